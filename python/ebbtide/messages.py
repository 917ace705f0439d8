"""What is put into the messages of errors."""

from __future__ import annotations

from typing import Any

__all__ = ["shown"]


def shown(value: Any) -> str:
    """A value in an error message: short, and safe for what has no text form."""
    try:
        return repr(value)[:80]
    except (ValueError, RecursionError):  # an integer of thousands of digits, a deep list
        return f"a {type(value).__name__}"
