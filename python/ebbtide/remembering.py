"""Adding a turn and having it back, for those who show what became of it."""

from __future__ import annotations

from typing import Any

from ebbtide.memory import Memory
from ebbtide.types import Turn, WriteReport

__all__ = ["add_and_get"]


def add_and_get(memory: Memory, **turn: Any) -> tuple[WriteReport, Turn | None]:
    """Store one turn, as :meth:`Memory.add` does, and read it.

    Nobody else may write meanwhile: the newest id is taken for the turn's own.

    Args:
        memory: The memory.
        turn: The arguments of :meth:`Memory.add`.

    Returns:
        The report, and the stored turn: the one known before where it is a duplicate,
        None where nothing but a rendered block was given.
    """
    report = memory.add(**turn)
    if report.accepted:
        return report, memory.get(memory.stats()["next_id"] - 1)
    if report.duplicates:
        return report, memory.get(external_id=turn["external_id"])
    return report, None
