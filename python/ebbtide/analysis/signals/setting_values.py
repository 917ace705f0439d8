"""Values of settings: how they are written, one normal form each, and of what sort they are."""

from __future__ import annotations

import re

from ebbtide.analysis.normalise import nfc_lower
from ebbtide.analysis.patterns import lazy
from ebbtide.analysis.temporal.vocabulary import MONTH_NAMES, MONTHS

__all__ = ["ANY", "MONTH", "NAMED", "VALUE", "WEEKDAY", "is_value", "normal", "sort_of"]

MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
WEEKDAY = r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day)"
_DAY = (
    rf"(?:\d{{4}}-\d\d-\d\d|\d{{1,2}}/\d{{1,2}}(?:/\d{{2,4}})?|\d{{1,2}}\.\d{{1,2}}\.\d{{2,4}}"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {MONTH}(?:,? \d{{4}})?"
    rf"|{MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?|(?:next "
    f"|this )?{WEEKDAY}(?: (?:morning|afternoon|evening|noon))?"
    r"|\d{1,2}(?:st|nd|rd|th)|tomorrow)"
)
_CLOCK = (
    r"(?:\d{1,2}(?:[:.]\d\d)? ?(?:[ap]\.m\.|[ap]m|o'clock)|\d{1,2}:\d\d(?::\d\d)?|noon|midnight)"
)
_AMOUNT = r"\d+(?:,\d{3})*(?:\.\d+)?k?"
_SUM = r"\d+(?:,\d{3})*(?:\.\d+)?[km]?"
_CURRENCY = "(?:euros?|dollars?|usd|eur|pounds?)"
_MONEY = rf"(?:[$€£]{_SUM}(?:-[$€£]?{_SUM})?|{_SUM}(?:-{_SUM})? ?{_CURRENCY})"
_DURATION = (
    rf"(?:{_AMOUNT} ?(?:ms|s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?|days?|weeks?|months?"
    "|years?))"
)
_UNIT = "(?:%|percent|[kmgt]b|people|users?|words|characters|pages|kg|km|miles|degrees)"
_STREET = "(?:street|st|road|rd|avenue|ave|lane|drive|square|boulevard|blvd)"
# The right edge: "555" is no value of "555-1234", nor "3" of "3/15".
_EDGE = r"(?![\w%]|[-/:][\w$€£]|[.,]\d)"

VALUE = (
    rf"(?:(?:{_DAY}|{_CLOCK}|https?://[^\s,]+|[\w.+-]+@[\w.-]+\.\w+"
    rf"|\d{{1,5}}[a-z]? (?:[\w'-]+ ){{1,3}}?{_STREET}"
    r"|\+\d{1,3}(?:[ -]?\d{2,4}){2,4}|\d{2,5}(?:-\d{2,5}){1,3}|\d{2,4}(?: \d{3,4}){2,3}"
    rf"|{_MONEY}|{_DURATION}|v?\d+(?:\.\d+)+[\w-]*|{_AMOUNT}(?: ?{_UNIT})?|{MONTH}){_EDGE})"
)
"""A value that tells by its form that it is one; to be matched without regard to case."""

NAMED = (
    r"(?:\"[^\"\n]{1,40}\"|[A-Z][\w.+#-]*(?: [A-Z\d][\w.+#-]*){0,3}"
    r"|[a-z]\w*?(?:[-_./]\w|\d)[\w./-]*)"
)
"""A name or a term, told by its capitals or by signs within it."""


ANY = f"(?:(?i:{VALUE})|{NAMED})"
"""A value or a name."""


def is_value(text: str) -> bool:
    """Whether a text is a value by its form."""
    return _WHOLE.fullmatch(text.strip()) is not None


_WHOLE = lazy(rf"(?i:{VALUE})")


def sort_of(value: str) -> str:
    """``day``, ``month``, ``clock``, ``money``, ``duration``, ``number`` or ``other``.

    Only values of one sort contradict each other: a meeting on Monday may be at three.
    """
    for sort, form in _SORTS:
        if form.fullmatch(value):
            return sort
    return "other"


_SORTS = tuple(
    (sort, lazy(form, re.IGNORECASE))
    for sort, form in (
        ("month", MONTH),
        ("day", _DAY),
        ("clock", _CLOCK),
        ("money", _MONEY),
        ("duration", _DURATION),
        ("number", _AMOUNT),
    )
)


def normal(value: str) -> str:
    """One form for one value: "5,000" is "5000", "15:00" is "3:00 pm", "May 5th" is "5 may".

    A clock time of which nobody says whether it is before or after noon stays open: all
    words of "3:00" are words of "3:00 pm".
    """
    value = nfc_lower(value.strip().strip("\"'"))
    value = value if re.search(r"[ap]\.m\.$", value) else value.rstrip(".,!?;:")
    value = re.sub(r"^(?:the|an?|our|my|on|at) ", "", value)
    for form, write in _FORMS:
        match = form.fullmatch(value)
        if match:
            return write(match)
    return value


def _day(match: re.Match[str]) -> str:
    month = _month_name(MONTHS[match.group("name") or match.group("name2")])
    year = match.group("year") or match.group("year2")
    day = int(match.group("day") or match.group("day2"))
    return f"{day} {month} {year}" if year else f"{day} {month}"


def _iso_day(match: re.Match[str]) -> str:
    year, month, day = map(int, match.groups())
    return f"{day} {_month_name(month)} {year}" if 1 <= month <= 12 else match.group()


def _month(match: re.Match[str]) -> str:
    return _month_name(MONTHS[match.group()])


def _month_name(month: int) -> str:
    return MONTH_NAMES[month - 1].lower()


def _clock(match: re.Match[str]) -> str:
    if match.group() in ("noon", "midnight"):
        return "12:00 pm" if match.group() == "noon" else "12:00 am"
    hour, minute = int(match.group("hour")), match.group("minute") or "00"
    half = (match.group("half") or "").replace(".", "")
    if hour > 23 or (hour > 12 and half):
        return match.group()
    if hour == 0 or hour > 12 or (match.group("hour").startswith("0") and not half):
        half, hour = ("am" if hour < 12 else "pm"), hour % 12 or 12
    return f"{hour}:{minute} {half}" if half in ("am", "pm") else f"{hour}:{minute}"


def _number(text: str) -> str:
    text = text.replace(",", "")
    factor = {"k": 1_000, "m": 1_000_000}.get(text[-1])
    if factor is None:
        return text
    whole, _, part = text[:-1].partition(".")
    zeros = len(str(factor)) - 1
    return whole + part.ljust(zeros, "0") if len(part) <= zeros else text


def _money(match: re.Match[str]) -> str:
    amounts = [re.sub(r"\.0+$", "", _number(sum_)) for sum_ in re.findall(_SUM, match.group())]
    name = next(name for sign, name in _CURRENCIES if sign in match.group())
    return f"{'-'.join(amounts)} {name}"


_CURRENCIES = (
    ("$", "dollars"), ("€", "euros"), ("£", "pounds"), ("dollar", "dollars"), ("usd", "dollars"),
    ("eur", "euros"), ("pound", "pounds"),
)  # fmt: skip


def _duration(match: re.Match[str]) -> str:
    count, unit = match.group("count", "unit")
    if unit == "ms":
        return f"{_number(count)} ms"
    unit = unit.rstrip("s") or "s"
    return f"{_number(count)} {_UNITS_OF_TIME.get(unit, unit)}{'' if count == '1' else 's'}"


_UNITS_OF_TIME = {"s": "second", "sec": "second", "min": "minute", "h": "hour", "hr": "hour"}
_WRITTEN_DURATION = _DURATION.replace(
    rf"(?:{_AMOUNT} ?(?:", rf"(?:(?P<count>{_AMOUNT}) ?(?P<unit>", 1
)
_ORDINAL = "(?:st|nd|rd|th)?"
_WRITTEN_DAY = (
    rf"(?P<day>\d{{1,2}}){_ORDINAL}(?: of)? (?P<name>{MONTH})(?:,? (?P<year>\d{{4}}))?"
    rf"|(?P<name2>{MONTH}) (?P<day2>\d{{1,2}}){_ORDINAL}(?:,? (?P<year2>\d{{4}}))?"
)
_WRITTEN_CLOCK = (
    r"(?P<hour>\d{1,2})(?:[:.](?P<minute>\d\d))? ?(?P<half>[ap]\.m\.|[ap]m|o'clock)"
    "|noon|midnight"
)
_FORMS = (
    (lazy(r"(\d{4})-(\d\d)-(\d\d)"), _iso_day),
    (lazy(_WRITTEN_DAY), _day),
    (lazy(MONTH), _month),
    (lazy(_WRITTEN_CLOCK), _clock),
    (lazy(r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?P<half>)"), _clock),
    (lazy(_MONEY), _money),
    (lazy(_WRITTEN_DURATION), _duration),
    (lazy(_AMOUNT), lambda match: _number(match.group())),
)
