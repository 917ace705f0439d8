"""Exports that hold all conversations in ``conversations.json``, one object each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ebbtide.importers.ordering import in_order
from ebbtide.importers.reading import Reading
from ebbtide.types import Turn

__all__ = ["turns_of"]

_FILE = re.compile(r"conversations(?:[-_]?\d+)?\.json(?:\.gz)?")


def turns_of(
    reading: Reading,
    program: str,
    field: str,
    looks_like: Callable[[Mapping[str, Any]], bool],
    turns: Callable[[Reading, Mapping[str, Any]], list[Turn]],
) -> Iterator[Turn]:
    """The turns of every conversation, the oldest conversation first.

    Args:
        reading: The export.
        program: Whose it is, for errors.
        field: What each of its conversations has, for errors.
        looks_like: Whether an object is one of its conversations.
        turns: The turns of one.
    """
    named = [part for part in reading.parts if _FILE.fullmatch(part.name)]
    parts = named or (list(reading.parts) if len(reading.parts) == 1 else [])
    if not parts:
        words = "there is no conversations.json in it; give the zip that"
        raise reading.error(f"{words} {program} sent, or that file")

    def conversations() -> Iterator[list[Turn]]:
        for part in parts:
            for number, item in enumerate(reading.json(part).documents(), 1):
                if not isinstance(item, Mapping) or not looks_like(item):
                    words = f"is no {program} conversation, it has no `{field}`; check the format"
                    raise reading.error(f"item {number} {words}", part.place)
                yield turns(reading, item)

    yield from in_order(reading, conversations())
