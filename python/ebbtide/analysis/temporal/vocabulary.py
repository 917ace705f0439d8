"""Words of time: number words, units, months, weekdays, as regex pieces."""

from __future__ import annotations

import re

from ebbtide.analysis.patterns import lazy

__all__ = [
    "BREAK",
    "DAY",
    "MONTH",
    "MONTHS",
    "MONTH_NAMES",
    "NUMBER",
    "ORDINALS",
    "PART_OF_DAY",
    "UNIT",
    "WEEKDAY",
    "WEEKDAYS",
    "YEAR",
    "parse_count",
    "parse_unit",
    "parse_year",
]

_ONES = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13,
    "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18,
    "nineteen": 19,
}  # fmt: skip
_TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "ninety": 90}

ORDINALS = {
    "first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3,
    "fourth": 4, "4th": 4, "fifth": 5, "5th": 5, "last": -1,
}  # fmt: skip

MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June", "July", "August",
    "September", "October", "November", "December",
)  # fmt: skip
MONTHS = {
    "january": 1, "jan": 1, "february": 2, "feb": 2, "march": 3, "mar": 3,
    "april": 4, "apr": 4, "may": 5, "june": 6, "jun": 6, "july": 7, "jul": 7,
    "august": 8, "aug": 8, "september": 9, "sept": 9, "sep": 9, "october": 10,
    "oct": 10, "november": 11, "nov": 11, "december": 12, "dec": 12,
}  # fmt: skip

WEEKDAYS = {
    "monday": 0, "mon": 0, "tuesday": 1, "tues": 1, "tue": 1, "wednesday": 2,
    "weds": 2, "wed": 2, "thursday": 3, "thurs": 3, "thur": 3, "thu": 3,
    "friday": 4, "fri": 4, "saturday": 5, "sat": 5, "sunday": 6, "sun": 6,
}  # fmt: skip


def _alternatives(words: dict[str, int]) -> str:
    """Longest first, so that ``sept`` is not read as ``sep``."""
    return "|".join(sorted(words, key=lambda word: (-len(word), word)))


_SMALL = _alternatives(_ONES)
_NUMBER_ATOM = (
    r"\d{1,3}(?:\.5)?|(?:" + _alternatives(_TENS) + r")(?:[- ](?:" + _SMALL + r"))?|" + _SMALL
)
NUMBER = (
    r"(?:(?:about|around|almost|nearly|over|roughly|just|just over|just under|under|maybe|"
    r"approximately|more than|at least|only|like)\s+)?"
    r"(?P<count>(?:a\s+)?couple(?:\s+of)?|a\s+good\s+few|a\s+few|few|several|half\s+an?|"
    r"(?:an?|" + _NUMBER_ATOM + r")\s+and\s+a\s+half|"
    r"(?:" + _NUMBER_ATOM + r"|an?)(?:\s*(?:-|–|to|or)\s*(?:" + _NUMBER_ATOM + r"))?|an?)"
)
UNIT = (
    r"(?P<unit>minutes?|mins?|hours?|hrs?|days?|nights?|weekends?|weeks?|wks?|fortnights?|"
    r"months?|years?|yrs?|decades?)"
)
MONTH = r"(?P<month>" + _alternatives(MONTHS) + r")"
WEEKDAY = r"(?P<weekday>" + _alternatives(WEEKDAYS) + r")"
DAY = r"(?P<day>0?[1-9]|[12]\d|3[01])"
YEAR = r"(?P<year>(?:1[89]|20)\d\d)"
PART_OF_DAY = r"(?:\s+(?:morning|afternoon|evening|night|lunchtime))"

# What may follow a bare "the 15th" or "Christmas" that is a date and not the
# first half of a compound ("the 15th floor", "Christmas tree").
BREAK = (
    r"(?=\s*(?:[.,;:!?)\]\"—–]|$|-\s)|\s+(?:and|or|but|at|to|in|on|of|with|without|after|before|"
    r"because|when|while|where|for|from|until|till|so|as|by|that|which|who|this|last|next|we|I|"
    r"he|she|they|it|you|my|our|his|her|their|the|was|were|is|are|will|if|than|since|like|"
    r"did|do|does|has|have|had|i|too|though|again|via|per|around|morning|afternoon|evening|"
    r"night)\b)"
)

_RANGE = lazy(r"\s*(?:-|–|\bto\b|\bor\b)\s*")


def _number(word: str) -> float:
    if word in {"a", "an"}:
        return 1
    if word[0].isdigit():
        return float(word)
    head, _, tail = word.replace("-", " ").partition(" ")
    return _TENS.get(head, 0) + _ONES.get(tail or head, 0)


def parse_count(text: str) -> tuple[float, float]:
    """The number range that a count word stands for.

    A couple is 2, a few 2 to 5, several 3 to 7; other counts are exact.
    """
    words = " ".join(text.lower().split())
    if "couple" in words:
        return 2, 2
    if "few" in words:
        return 2, 5
    if words == "several":
        return 3, 7
    if words.startswith("half"):
        return 0.5, 0.5
    if words.endswith("and a half"):
        value = _number(words[: -len(" and a half")]) + 0.5
        return value, value
    if re.fullmatch(r"[a-z]+-[a-z]+", words) and words.split("-")[0] in _TENS:
        return _number(words), _number(words)
    parts = [part for part in _RANGE.split(words) if part]
    values = sorted(_number(part) for part in parts)
    return values[0], values[-1]


def parse_unit(word: str) -> tuple[str, int]:
    """A unit word as (unit, how many of it): a fortnight is two weeks."""
    stem = word.lower().rstrip("s")
    if stem == "fortnight":
        return "week", 2
    return {
        "min": "minute", "hr": "hour", "wk": "week", "yr": "year", "night": "day",
    }.get(stem, stem), 1  # fmt: skip


def parse_year(text: str) -> int:
    """A four-digit year, or ``'21`` read as 2021 (50 to 99: the 1900s)."""
    digits = text.lstrip("'’")
    value = int(digits)
    if len(digits) == 4:
        return value
    return 1900 + value if value >= 50 else 2000 + value
