"""What is put into messages."""

from __future__ import annotations

from typing import Any

__all__ = ["counted", "reason", "shown"]


def shown(value: Any) -> str:
    """A value in an error message: short, and safe for what has no text form."""
    try:
        return repr(value)[:80]
    except (ValueError, RecursionError):  # an integer of thousands of digits, a deep list
        return f"a {type(value).__name__}"


def reason(error: Exception) -> str:
    """Why something failed, without the name of the file where it is the system that says so."""
    return str(getattr(error, "strerror", None) or error)


def counted(number: int, thing: str) -> str:
    """Things with their number, of one or of several."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
