"""Turns that come as JSON Lines: read, checked, and stored in order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ebbtide.errors import EbbtideError, InputError
from ebbtide.inputs import prepare
from ebbtide.mappings import refused, turn_from
from ebbtide.memory import Memory
from ebbtide.pipeline import BATCH
from ebbtide.types import Turn, WriteReport

__all__ = ["add_lines"]


def add_lines(memory: Memory, body: bytes, *, before: int = 0) -> WriteReport:
    """Store the turns of a body, as :meth:`Memory.add_many` stores them.

    The memory is free for others between two batches.

    Args:
        memory: The memory.
        body: One JSON object a line; empty lines do not count.
        before: Turns of the same call that came in earlier bodies, for messages.

    Raises:
        InputError: Naming the turn that is unusable; those before it are stored.
    """
    most = memory.config["limits"]["max_turn_chars"]
    turns: list[Turn] = []
    failure: EbbtideError | None = None
    for place, line in enumerate(_lines(body), start=before):
        try:
            turn = turn_from(_parsed(line))
            prepare(turn, max_chars=most)
        except EbbtideError as error:
            failure = refused(error, place)
            break
        turns.append(turn)
    reports = [memory.add_many(part) for part in _parts(turns)]
    if failure is not None:
        raise failure
    return WriteReport.total(reports)


def _lines(body: bytes) -> Iterator[bytes]:
    # Not splitlines: JSON text may hold the other line ends of Unicode, unescaped.
    return (line for line in body.split(b"\n") if line.strip())


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except UnicodeDecodeError as error:
        raise InputError("the line is not UTF-8", "input.unicode") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"the line is not JSON: {error}", "input.field") from error


def _parts(turns: list[Turn]) -> Iterator[list[Turn]]:
    if not turns:
        yield []
    for start in range(0, len(turns), BATCH):
        yield turns[start : start + BATCH]
