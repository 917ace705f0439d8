"""Moments as the core keeps them: microseconds since 1970 in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import overload

__all__ = ["micros_of", "moment_of"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
