"""The time of what is said through an adapter; the engine itself has no clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

__all__ = ["Clock", "utc_now"]

Clock = Callable[[], datetime]
"""Gives the time of a call, with a zone."""


def utc_now() -> datetime:
    """The system's time."""
    return datetime.now(UTC)
