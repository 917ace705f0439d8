"""Text normalisation behind answer containment.

Both sides, the gold answer and the rendered context, go through the same steps:

1. NFKC, then lower case.
2. Dates become one token: ``2023-05-08``, ``2023/05/08``, ``8 May, 2023``,
   ``8th of May 2023`` and ``May 8th 2023`` are all ``2023-05-08``; ``May 2023``
   is ``2023-05``; ``May 8`` is ``05-08``. Purely numeric day-month orders
   (``08/05/2023``) are ambiguous and stay as they are, impossible dates too.
3. Thousands separators (``12,000``), possessive ``'s`` and ordinal endings
   (``8th``) go.
4. The rest is split into words and numbers, so punctuation drops out. Chinese,
   Japanese and Korean characters are one token each, having no spaces.
5. Number words from ``one`` to ``twenty`` become digits; ``a``, ``an`` and
   ``the`` drop out.

The two sides differ in one thing: the answer keeps a date's most exact token,
the context also gets the less exact ones that follow from it. So a context with
``8 May, 2023`` holds the answers ``May 2023``, ``2023`` and ``May 8``, but a
context with ``May 2023`` does not hold the answer ``8 May 2023``.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import date

__all__ = ["answer_tokens", "context_tokens"]

_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_MONTH_OF = {name[:length]: n for n, name in enumerate(_MONTHS, 1) for length in (3, len(name))}
_MONTH_OF["sept"] = 9
_MONTH = r"(?P<month>" + "|".join(sorted(_MONTH_OF, key=lambda m: (-len(m), m))) + r")\b\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>\d{4})\b"
_GAP = r"(?:\s*,\s*|\s+of\s+|\s+)"
_DATE_PATTERNS = tuple(
    re.compile(pattern)
    for pattern in (
        # The time part of 2023-05-08T10:00 may follow without a word boundary.
        r"(?<![\w-])(?P<year>\d{4})(?P<sep>[-/])(?P<month>\d{1,2})(?P=sep)(?P<day>\d{1,2})(?![\d-])",
        rf"(?<![\w.:,]){_DAY}(?:\s+of)?\s+{_MONTH}{_GAP}{_YEAR}",
        rf"\b{_MONTH}\s+(?:the\s+)?{_DAY}\b{_GAP}{_YEAR}",
        rf"\b{_MONTH}{_GAP}{_YEAR}",
        rf"(?<![\w.:,]){_DAY}(?:\s+of)?\s+{_MONTH}",
        rf"\b{_MONTH}\s+(?:the\s+)?{_DAY}\b(?![:.,]\d)",
    )
)
# A date's parts travel through the word splitting as one word of letters.
_MARK = "\ue000"
_MARKED = re.compile(rf"{_MARK}(\d*)_(\d*)_(\d*){_MARK}")

_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_POSSESSIVE = re.compile(r"(?<=\w)['\u2019]s\b")
_APOSTROPHE = re.compile(r"(?<=\w)['\u2019](?=\w)")
_ORDINAL = re.compile(r"\b(\d+)(?:st|nd|rd|th)\b")
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_TOKEN = re.compile(rf"{_MARK}[\d_]+{_MARK}|\d+(?:\.\d+)+|[{_CJK}]|[^\W_{_CJK}]+")

_ARTICLES = frozenset({"a", "an", "the"})
_UP_TO_TWENTY = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen twenty"
)
_NUMBER_WORDS = {word: str(n) for n, word in enumerate(_UP_TO_TWENTY.split(), start=1)}


def answer_tokens(text: str) -> list[str]:
    """Content tokens of a gold answer, in order, dates at their most exact.

    Example:
        >>> answer_tokens("The 8th of May, 2023, at three")
        ['2023-05-08', 'at', '3']
    """
    tokens: list[str] = []
    for token in _split(text):
        marked = _MARKED.fullmatch(token)
        tokens.append(_date_tokens(*marked.groups())[0] if marked else token)
    return tokens


def context_tokens(text: str) -> frozenset[str]:
    """Content tokens of a context, with the less exact forms of each date."""
    tokens: set[str] = set()
    for token in _split(text):
        marked = _MARKED.fullmatch(token)
        tokens.update(_date_tokens(*marked.groups()) if marked else (token,))
    return frozenset(tokens)


def _split(text: str) -> list[str]:
    text = unicodedata.normalize("NFKC", text).lower().replace(_MARK, " ")
    for pattern in _DATE_PATTERNS:
        text = pattern.sub(_mark, text)
    text = _THOUSANDS.sub("", text)
    text = _APOSTROPHE.sub("", _POSSESSIVE.sub("", text))
    text = _ORDINAL.sub(r"\1", text)
    words = (_NUMBER_WORDS.get(token, token) for token in _TOKEN.findall(text))
    return [word for word in words if word not in _ARTICLES]


def _mark(match: re.Match[str]) -> str:
    parts = match.groupdict()
    year, day = parts.get("year") or "", parts.get("day") or ""
    month = _MONTH_OF.get(parts["month"]) or int(parts["month"])
    try:
        # 2000 is a leap year: 29 February without a year is possible.
        date(int(year or 2000), month, int(day or 1))
    except ValueError:
        return match[0]
    return f" {_MARK}{year}_{month}_{int(day) if day else ''}{_MARK} "


def _date_tokens(year: str, month: str, day: str) -> list[str]:
    """All tokens that a date stands for, the most exact first."""
    m, padded = int(month), f"{int(month):02}"
    tokens = []
    if year and day:
        tokens.append(f"{year}-{padded}-{int(day):02}")
    if year:
        tokens.append(f"{year}-{padded}")
    if day:
        tokens.append(f"{padded}-{int(day):02}")
    # The bare words, for answers such as "May" or "2023", last.
    tokens.append(_MONTHS[m - 1])
    return tokens + [part for part in (year, day) if part]
