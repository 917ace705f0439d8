"""Timestamps of turns: the accepted forms, read as UTC."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from ebbtide.analysis.patterns import lazy
from ebbtide.analysis.temporal.vocabulary import MONTHS
from ebbtide.errors import InputError
from ebbtide.moments import iso_moment

__all__ = ["ParsedTimestamp", "parse_timestamp"]

_FORMS = (
    "ISO 8601 (2023-05-08, 2023-05-08T13:56:00Z, 2023-05-08 13:56+02:00), a datetime or date, "
    "seconds since 1970 as a number, '1:56 pm on 8 May, 2023', '8 May 2023, 1:56 pm' or "
    "'2023/05/30 (Tue) 20:08'"
)
_CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d))?\s*(?P<half>[ap]\.?m\.?)?"
_DATE = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?\s+(?P<month>[a-z]+)\.?,?\s+(?P<year>\d{4})"
_PATTERNS = tuple(
    lazy(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_CLOCK}\s+on\s+{_DATE}",
        rf"{_DATE}(?:,?\s+(?:at\s+)?{_CLOCK})?",
        rf"(?P<year>\d{{4}})/(?P<number>\d{{1,2}})/(?P<day>\d{{1,2}})(?:\s+\([a-z]+\))?(?:\s+{_CLOCK})?",
    )
)


@dataclass(frozen=True, slots=True)
class ParsedTimestamp:
    """A timestamp as given and as UTC.

    Attributes:
        given: What the caller gave, as text; kept as it was.
        utc: The moment, timezone-aware UTC.
        naive: Whether no time zone was given, so that it was read as UTC.
        is_day: Whether no time of day was given: ``utc`` is its first moment.
    """

    given: str
    utc: datetime
    naive: bool
    is_day: bool


def parse_timestamp(value: str | datetime | date | int | float) -> ParsedTimestamp:
    """Read a timestamp; one without a time zone is read as UTC and marked.

    Args:
        value: ISO 8601 text, a datetime, a date, seconds since 1970, or one of
            the two forms of the public conversation datasets. A weekday in
            brackets is not checked against the date.

    Raises:
        InputError: With code ``input.timestamp`` for anything else, and for a
            moment outside the years 1 to 9999.
    """
    try:
        moment, given, is_day = _read(value)
        if moment is not None:
            naive = moment.tzinfo is None or moment.utcoffset() is None
            utc = moment.replace(tzinfo=UTC) if naive else moment.astimezone(UTC)
            return ParsedTimestamp(given, utc, naive, is_day)
    except (ValueError, OverflowError, OSError):
        pass
    try:
        shown = repr(value)[:80]
    except ValueError:  # an integer too long to print
        shown = "of that size"
    raise InputError(f"timestamp {shown} is not understood; accepted: {_FORMS}", "input.timestamp")


def _read(value: object) -> tuple[datetime | None, str, bool]:
    """The moment, what was given, and whether that is a whole day."""
    if isinstance(value, datetime):
        if value.year != value.year:  # pandas' "not a time" is a datetime
            return None, "", False
        return value, value.isoformat(), False
    if isinstance(value, date):
        return datetime.combine(value, time()), value.isoformat(), True
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not math.isfinite(value):
            return None, "", False
        # A number of numpy's is one of Python's, and prints its type.
        plain = float(value) if isinstance(value, float) else int(value)
        return datetime.fromtimestamp(plain, UTC), repr(plain), False
    if isinstance(value, str):
        moment, is_day = _read_text(value.strip())
        return moment, value, is_day
    return None, "", False


def _read_text(text: str) -> tuple[datetime | None, bool]:
    for pattern in _PATTERNS:
        match = pattern.fullmatch(text)
        if match is not None:
            return _from_match(match), match["hour"] is None
    if not re.fullmatch(r"[0-9TtZzW:.,+\- ]{8,40}", text):
        return None, False
    return iso_moment(text.replace("z", "Z")), ":" not in text and len(text) <= 10


def _from_match(match: re.Match[str]) -> datetime | None:
    parts = match.groupdict()
    name = parts.get("month")
    month = MONTHS.get(name.lower()) if name else int(parts["number"])
    if month is None:
        return None
    hour, minute = int(parts.get("hour") or 0), int(parts.get("minute") or 0)
    half = (parts.get("half") or "").lower().replace(".", "")
    if half and not 1 <= hour <= 12:
        return None
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    second = int(parts.get("second") or 0)
    return datetime(int(parts["year"]), month, int(parts["day"]), hour, minute, second)
