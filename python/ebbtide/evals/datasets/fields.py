"""Reading fields of raw samples; what is missing or unreadable is named."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

from ebbtide.errors import InputError

__all__ = ["UniqueNames", "answer_text", "bad_date", "field", "listed", "mapped", "utc"]

Kind = TypeVar("Kind")


class UniqueNames:
    """Gives a name that was used before the suffix ``#2``, ``#3`` and so on."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def __call__(self, name: str) -> str:
        """The name, with a suffix where it was given before."""
        candidate, number = name, 1
        while candidate in self._taken:
            number += 1
            candidate = f"{name}#{number}"
        self._taken.add(candidate)
        return candidate


def answer_text(value: object) -> str:
    """A gold answer as text, ``""`` for none."""
    # Some gold answers are numbers, a few of other datasets' variants are lists.
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(str(part) for part in value)
    return str(value)


def field(mapping: object, key: str, kind: type[Kind], where: str) -> Kind:
    """The value of a field.

    Args:
        mapping: The raw sample, or a part of it.
        key: The field.
        kind: What its value must be.
        where: What to name in the error.

    Raises:
        InputError: ``input.field``: it is missing, or of another kind.
    """
    value = mapping.get(key) if isinstance(mapping, Mapping) else None
    if not isinstance(value, kind):
        raise InputError(f"{where}: field {key!r} must be a {kind.__name__}", "input.field")
    return value


def listed(mapping: Mapping[str, Any], key: str, where: str) -> list[Any]:
    """The list in a field that may be missing.

    Raises:
        InputError: ``input.field``: it holds something else.
    """
    return [] if mapping.get(key) is None else field(mapping, key, list, where)


def mapped(value: object, where: str) -> Mapping[str, Any]:
    """The value, if it is a mapping, as a turn and a question are.

    Raises:
        InputError: ``input.field``: it is something else.
    """
    if not isinstance(value, Mapping):
        kind = type(value).__name__
        raise InputError(f"{where}: it must be a mapping, not {kind}", "input.field")
    return value


def bad_date(text: str) -> InputError:
    """The error for a date that cannot be read."""
    return InputError(f"cannot read the date {text!r}", "input.timestamp")


def utc(text: str, *parts: int) -> datetime:
    """The moment of year, month, day, hour, minute.

    Raises:
        InputError: ``input.timestamp``: there is no such moment; ``text`` is named.
    """
    year, month, day, hour, minute = parts
    try:
        return datetime(year, month, day, hour, minute, tzinfo=UTC)
    except ValueError:
        raise bad_date(text) from None
