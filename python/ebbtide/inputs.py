"""What callers hand in, checked and put into one form before anything is stored."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ebbtide import _core
from ebbtide.errors import InputError, NotFoundError
from ebbtide.messages import shown
from ebbtide.moments import by_its_clock, micros_of, moment_of, on_clock
from ebbtide.types import Turn

__all__ = [
    "ID_LIMIT",
    "Prepared",
    "Stamp",
    "as_dict",
    "checked_mapping",
    "checked_text",
    "filters_for_core",
    "interaction_id_of",
    "paired",
    "positive",
    "prepare",
    "query_moment",
    "readable",
    "turn_named",
    "turns_asked",
    "whole",
]

ID_LIMIT = 2**40
"""Interaction ids stay below; in a store's keys the bits above name the memory."""

_PROVENANCE_TEXT = ("role", "session_id", "source_turn", "timestamp")
_PROVENANCE_FLAGS = (
    "is_user_correction",
    "is_preference_update",
    "is_constraint",
    "derived_from_model",
    "corrected_by_user",
)
_FILTERS = ("role", "speaker", "session_id", "since", "until", "metadata")

_DEEPEST = 100
"""Levels of metadata; JSON readers, the core's among them, refuse more than 128."""

_MOST_BITS = 1000
"""Of a whole number in metadata; the core's JSON reader refuses what no float comes near."""

_MOST_VALUES = 1_000_000
"""Values of metadata: some megabytes of JSON."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """A timestamp as given, in UTC microseconds, and whether UTC was assumed."""

    given: str
    utc_micros: int
    naive: bool


@dataclass(frozen=True, slots=True)
class Prepared:
    """A checked turn in the form that the core reads."""

    text: str
    role: str
    speaker: str | None
    stamp: Stamp | None
    session_id: str | None
    external_id: str | None
    provenance: str | None
    metadata: str | None
    received_at: int
    moment: datetime | None
    """When it was said, on the clock of its stamp."""


def paired(text: str) -> str:
    """Text that can be stored: halves of surrogate pairs are joined, or replaced by U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def readable(name: str) -> str:
    """A file's name in Unicode; Linux takes any bytes for one, JSON any half of a pair."""
    return name.encode("utf-8", "backslashreplace").decode()


def prepare(turn: Turn, *, max_chars: int) -> Prepared | None:
    """Check a turn; None when nothing but a block rendered by ebbtide is left of it.

    Raises:
        InputError: Naming the field and what would be accepted.
    """
    text = checked_text("text", turn.text)
    checked_text("role", turn.role)
    for name in ("speaker", "session_id", "external_id"):
        value = getattr(turn, name)
        if value is not None:
            checked_text(name, value)
    if not text:
        raise InputError("a turn needs text; this one is empty", "input.field")
    if len(text) > max_chars:
        message = (
            f"the turn has {len(text):,} characters, the limit is {max_chars:,}; split it, "
            "or raise [limits] max_turn_chars"
        )
        raise InputError(message, "input.too_long")
    if "=== END OF MEMORY ===" in text:
        text = _core.without_rendered(text)
        if not text.strip():
            return None
    stamp, moment = _stamp(turn.timestamp)
    return Prepared(
        text=text,
        role=turn.role,
        speaker=turn.speaker,
        stamp=stamp,
        session_id=turn.session_id,
        external_id=turn.external_id,
        provenance=_provenance(turn.provenance),
        metadata=_metadata(turn.metadata),
        received_at=time.time_ns() // 1000,
        moment=moment,
    )


def checked_text(name: str, value: Any) -> str:
    """The value, if it is text that can be stored.

    Raises:
        InputError: Naming the field, with code ``input.field`` or ``input.unicode``.
    """
    if not isinstance(value, str):
        raise InputError(f"{name} must be text, not {type(value).__name__}", "input.field")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        message = (
            f"{name} is not valid Unicode: a lone surrogate at character {error.start}; decode the "
            'text with errors="replace" before adding it'
        )
        raise InputError(message, "input.unicode") from error
    if name == "role" and not value:
        raise InputError("role must not be empty", "input.field")
    return str(value)


def checked_mapping(name: str, value: Any) -> Mapping[Any, Any]:
    """The value, if it is a mapping of any kind.

    Raises:
        InputError: Naming the field, with code ``input.field``.
    """
    if not isinstance(value, Mapping):
        raise InputError(f"{name} must be a mapping, not {type(value).__name__}", "input.field")
    return value


def as_dict(value: Any) -> dict[Any, Any]:
    """For ``json.dumps``, which writes no other mapping than a ``dict``."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def _stamp(value: Any) -> tuple[Stamp | None, datetime | None]:
    if value is None:
        return None, None
    from ebbtide.analysis.temporal import parse_timestamp

    parsed = parse_timestamp(value)
    stamp = Stamp(parsed.given, micros_of(parsed.utc), parsed.naive)
    return stamp, by_its_clock(parsed.utc, parsed.given)


def _provenance(value: Any) -> str | None:
    if value is None:
        return None
    checked_mapping("provenance", value)
    for key, item in value.items():
        if key in _PROVENANCE_FLAGS:
            fits = isinstance(item, bool)
        elif key in _PROVENANCE_TEXT:
            fits = item is None or isinstance(item, str)
        else:
            known = ", ".join(_PROVENANCE_TEXT + _PROVENANCE_FLAGS)
            message = (
                f"provenance has no field {shown(key)}; it has {known}. Put others into metadata"
            )
            raise InputError(message, "input.field")
        if not fits:
            message = f"provenance field {key!r} has an unusable value {shown(item)}"
            raise InputError(message, "input.field")
        if isinstance(item, str):
            checked_text(f"provenance field {key}", item)
    return json.dumps({key: item for key, item in value.items() if item is not None})


def _metadata_wanted(value: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Values that metadata must have, as the core compares them.

    Raises:
        InputError: ``input.field``: they are no JSON, or a number is none that can be compared.
    """
    if value is None:
        return None
    wanted: dict[str, Any] = json.loads(_metadata(value) or "{}", parse_int=_comparable)
    return wanted


def _comparable(digits: str) -> int:
    number = int(digits)
    if not -(2**63) <= number < 2**64:
        message = "a condition has a whole number of more than 64 bits; numbers are compared by "
        raise InputError(message + "64 bits: store it as text and ask for that", "input.field")
    return number


def _metadata(value: Any) -> str | None:
    if value is None:
        return None
    checked_mapping("metadata", value)
    within = _within(value, _DEEPEST)
    if within is None:
        raise InputError(f"metadata is nested more than {_DEEPEST} levels deep", "input.field")
    if _count(value, {}) > _MOST_VALUES:
        message = f"metadata has more than {_MOST_VALUES:,} values; those of a part count at each"
        raise InputError(f"{message} place of it", "input.field")
    if any(isinstance(x, int) and x.bit_length() > _MOST_BITS for x in within):
        message = f"metadata has a whole number of more than {_MOST_BITS} bits; give it as text"
        raise InputError(message, "input.field")
    try:
        text = json.dumps(
            value, ensure_ascii=False, sort_keys=True, allow_nan=False, default=as_dict
        )
        text.encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"metadata cannot be written as JSON: {error}", "input.field") from error
    return text


def _within(value: Any, most: int) -> list[Any] | None:
    """Every value in it; None where they are nested deeper than ``most``, as in a cycle.

    One that occurs in several places is looked at once a level: a part that is shared at
    each of many levels occurs more often than anybody can count.
    """
    found: dict[int, Any] = {}
    level = {id(value): value}
    for _ in range(most + 1):
        level = {id(child): child for parent in level.values() for child in _children(parent)}
        if not level:
            return list(found.values())
        found |= level
    return None


def _count(value: Any, counted: dict[int, tuple[Any, int]]) -> int:
    """Values in it as they are written: a shared part counts wherever it occurs.

    Args:
        value: What is without cycles.
        counted: What was counted already, by its id, and held so that the id stays its own.
    """
    if id(value) not in counted:
        counted[id(value)] = value, 1 + sum(_count(child, counted) for child in _children(value))
    return counted[id(value)][1]


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list | tuple) else ()


def query_moment(value: Any, newest: tuple[int, int] | None) -> datetime | None:
    """When a question is asked: as said, or the newest turn's time; never the machine's clock.

    Args:
        value: What the caller gave.
        newest: The newest turn's time in microseconds, and the seconds that its clock is
            ahead of UTC.
    """
    if value is not None:
        from ebbtide.analysis.temporal import parse_timestamp

        parsed = parse_timestamp(value)
        return by_its_clock(parsed.utc, parsed.given)
    if newest is None:
        return None
    micros, ahead = newest
    return on_clock(moment_of(micros), ahead)


def turns_asked(
    state: Any, first: Any, metadata: Mapping[str, Any] | None
) -> tuple[int, dict[str, Any] | None]:
    """The id that a list of turns begins with, and the values that their metadata must have.

    Raises:
        InputError: ``input.field``: one of them, or the state, cannot be used.
    """
    if state not in (None, "active", "archived"):
        message = f'state must be "active" or "archived", not {shown(state)}'
        raise InputError(message, "input.field")
    return interaction_id_of(first), _metadata_wanted(metadata)


def filters_for_core(filters: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Filters with times as UTC microseconds; a bare date in ``until`` includes its day.

    Raises:
        InputError: For an unknown filter or an unusable time.
    """
    if filters is None:
        return None
    checked_mapping("filters", filters)
    from ebbtide.analysis.temporal import parse_timestamp

    result: dict[str, Any] = {}
    for key, value in filters.items():
        if key not in _FILTERS:
            message = f"no filter is called {shown(key)}; there are {', '.join(_FILTERS)}"
            raise InputError(message, "input.field")
        if value is None:
            continue
        if key in ("since", "until"):
            parsed = parse_timestamp(value)
            moment = parsed.utc
            if key == "until" and parsed.is_day:
                moment += timedelta(days=1) - timedelta(microseconds=1)
            value = micros_of(moment)
        elif key == "metadata":
            value = _metadata_wanted(value)
        else:
            checked_text(f"filter {key}", value)
        result[key] = value
    return result


def positive(name: str, value: Any) -> int:
    """A whole number of at least 1, named in the error where it is none.

    Raises:
        InputError: ``input.field``: it is something else.
    """
    return whole(name, value, least=1)


def whole(name: str, value: Any, *, least: int) -> int:
    """A whole number from ``least`` on, named in the error where it is none.

    Raises:
        InputError: ``input.field``: it is something else.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        message = f"{name} must be a whole number of at least {least}, not {shown(value)}"
        raise InputError(message, "input.field")
    return min(value, 2**31 - 1)  # more than any memory holds


def interaction_id_of(value: Any) -> int:
    """A number that may be a turn's.

    Raises:
        InputError: ``input.field``: it is no such number.
        NotFoundError: ``not_found.turn``: it is more than any turn's.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        message = "name a turn by its interaction id (0 or more) or its external id"
        raise InputError(message, "input.field")
    if value >= ID_LIMIT:
        raise NotFoundError(f"there is no turn {shown(value)}", "not_found.turn")
    return value


def turn_named(interaction_id: Any, external_id: Any) -> str | int:
    """Which turn is meant: its external id as text, or a number that may be a turn's.

    Raises:
        InputError: ``input.field``: it is named by neither, by both, or by what names none.
        NotFoundError: ``not_found.turn``: the number is more than any turn's.
    """
    if external_id is None:
        if isinstance(interaction_id, str):
            return checked_text("external_id", interaction_id)
        return interaction_id_of(interaction_id)
    if interaction_id is not None:
        message = "name a turn by its interaction id or by its external id, not by both"
        raise InputError(message, "input.field")
    return checked_text("external_id", external_id)
