"""Moments as the core keeps them: microseconds since 1970 in UTC."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, overload

from ebbtide import _core

__all__ = [
    "by_its_clock",
    "iso_day",
    "iso_moment",
    "micros_of",
    "moment_of",
    "on_clock",
    "stored_moment",
]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ISO_DAY = re.compile(r"\d{4}(?:-?\d\d-?\d\d|-?W\d\d(?:-?\d)?)(?:[Tt ]|$)")
"""What ISO 8601 text begins with; Python takes any character for the one behind the day."""


def micros_of(moment: datetime) -> int:
    """Microseconds from 1970 to an aware moment; negative before."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


@overload
def moment_of(micros: int) -> datetime: ...
@overload
def moment_of(micros: None) -> None: ...
@overload
def moment_of(micros: int | None) -> datetime | None: ...
def moment_of(micros: int | None) -> datetime | None:
    """The moment in UTC, or None where there is none."""
    return None if micros is None else _EPOCH + timedelta(microseconds=micros)


def iso_moment(text: str) -> datetime:
    """The moment that ISO 8601 text names; without a time zone it has none.

    Raises:
        ValueError: If it is something else, as thirteen digits of milliseconds are.
    """
    if _ISO_DAY.match(text) is None:
        message = f"not ISO 8601: {text!r}"
        raise ValueError(message)
    return datetime.fromisoformat(text)


def on_clock(moment: datetime, ahead: int) -> datetime:
    """The same moment on a clock that is so many seconds ahead of UTC."""
    return moment.astimezone(timezone(timedelta(seconds=ahead)))


def by_its_clock(moment: datetime, given: str) -> datetime:
    """The same moment on the clock of the stamp that was given: in the offset it ends in.

    Args:
        moment: The moment in UTC.
        given: The stamp's own words; UTC where they name no offset.
    """
    return on_clock(moment, _core.clock_offset(given))


def stored_moment(row: Mapping[str, Any]) -> datetime | None:
    """When a turn of the core was said, on the clock of its stamp; None where it has none."""
    if row["timestamp"] is None:
        return None
    return by_its_clock(moment_of(row["utc_micros"]), row["timestamp"])


def iso_day(utc: datetime | None, given: object) -> str | None:
    """The day of a stored turn by its own clock, ``2023-05-08``, or None where it has none."""
    return None if utc is None else by_its_clock(utc, str(given)).date().isoformat()
