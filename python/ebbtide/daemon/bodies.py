"""Bodies of a client's requests: questions, and turns as lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ebbtide.daemon.wire import given_turn, moment
from ebbtide.errors import EbbtideError, InputError
from ebbtide.inputs import as_dict, filters_for_core, positive, prepare, query_moment
from ebbtide.mappings import refused, turn_from, turns_of
from ebbtide.types import Turn

__all__ = ["ANY_LENGTH", "json_body", "line_requests", "question_body"]

_TURNS = 256
_BYTES = 2**20
"""Of one request of ``add_many``; others get their turn between two."""

ANY_LENGTH = 2**62
"""The daemon's configuration says how long a turn may be."""


def question_body(
    text: Any,
    limit: Any,
    query_time: Any,
    preset: Any,
    filters: Any,
    **more: Any,
) -> bytes:
    """A question's body.

    The daemon checks the rest: here is refused what JSON would change or cannot hold.
    """
    query_moment(query_time, None)
    filters_for_core(filters)
    limit = None if limit is None else positive("limit", limit)
    if more.get("max_tokens") is not None:
        more["max_tokens"] = positive("max_tokens", more["max_tokens"])
    if filters is not None:
        filters = {key: moment(value) for key, value in filters.items()}
    data = {
        "query_text": text,
        "limit": limit,
        "query_time": moment(query_time),
        "preset": preset,
        "filters": filters,
        **more,
    }
    return json_body({name: value for name, value in data.items() if value is not None})


def json_body(data: Mapping[str, Any]) -> bytes:
    """A body as JSON.

    It is ASCII: what is no Unicode reaches the daemon as it is, and is refused there.
    """
    try:
        text = json.dumps(data, allow_nan=False, separators=(",", ":"), default=as_dict)
        return text.encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        message = f"an argument cannot be written as JSON: {error}"
        raise InputError(message, "input.field") from error


def line_requests(
    turns: Iterable[Turn | Mapping[str, Any]],
) -> Iterator[tuple[list[bytes], bool]]:
    """Turns as lines, so many to a request, and whether they all carry an id of their own.

    Raises:
        Exception: What the iterable raised, or an InputError that names the turn, after
            those before it.
    """
    lines: list[bytes] = []
    size, repeatable = 0, True
    failure: Exception | None = None
    stream = enumerate(turns_of(turns))
    while failure is None:
        try:
            place, given = next(stream)
            turn = _line(place, given)
        except Exception as error:
            failure = error
        else:
            line, named = turn
            lines.append(line)
            size += len(line) + 1
            repeatable &= named
        if lines and (failure is not None or len(lines) >= _TURNS or size >= _BYTES):
            yield lines, repeatable
            lines, size, repeatable = [], 0, True
    if not isinstance(failure, StopIteration):
        raise failure


def _line(place: int, given: Turn | Mapping[str, Any]) -> tuple[bytes, bool]:
    """A turn as a line, and whether it has an external id."""
    try:
        turn = turn_from(given)
        prepare(turn, max_chars=ANY_LENGTH)
        return json_body(given_turn(turn)), turn.external_id is not None
    except EbbtideError as error:
        raise refused(error, place) from error
