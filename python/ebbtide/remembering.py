"""Adding a turn and having it back, for those who show what became of it."""

from __future__ import annotations

from typing import Any

from ebbtide.memory import Memory
from ebbtide.types import Turn, WriteReport

__all__ = ["add_and_get", "add_numbered"]


def add_numbered(
    memory: Memory, *, wait: str = "complete", **turn: Any
) -> tuple[WriteReport, int | None]:
    """Store one turn, as :meth:`Memory.add` does, and tell its interaction id.

    Others may write meanwhile, into the same memory too.

    Args:
        memory: The memory.
        wait: As for :meth:`Memory.add`.
        turn: Its other arguments.

    Returns:
        The report, and the id; None where nothing was stored, or the memory discards what
        leaves the active one and this turn had no place there.
    """
    numbers: list[int] = []
    report = memory._add_numbered(Turn(**turn), wait, numbers)
    return report, numbers[-1] if numbers else None


def add_and_get(memory: Memory, **turn: Any) -> tuple[WriteReport, Turn | None]:
    """Store one turn, as :func:`add_numbered` does, and read it.

    Args:
        memory: The memory.
        turn: The arguments of :meth:`Memory.add`.

    Returns:
        The report, and the stored turn: the one known before where it is a duplicate,
        None where nothing was kept.
    """
    report, number = add_numbered(memory, **turn)
    if number is not None:
        return report, memory.get(number)
    if report.duplicates:
        return report, memory.get(external_id=turn["external_id"])
    return report, None
