"""Everything that the page and the plots are made of, read from a memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ebbtide.inputs import positive
from ebbtide.inspection.life import Decay, row_of
from ebbtide.inspection.lineage import threads
from ebbtide.inspection.questions import replayed
from ebbtide.inspection.series import Series
from ebbtide.memory import Memory

__all__ = ["LIMIT", "gather"]

LIMIT = 2_000
"""Turns that are shown unless another number is asked for."""


def gather(
    memory: Memory,
    *,
    limit: int = LIMIT,
    questions: Iterable[str] = (),
    store: str | None = None,
) -> dict[str, Any]:
    """Read a memory: its newest turns with their lives, lineage, cards, and questions.

    The same memory gives the same data: nothing in it comes from the clock.

    Args:
        memory: The memory; one that is opened for reading is enough.
        limit: Most turns, the newest ones.
        questions: Questions whose traces are taken along.
        store: What the page calls the store, such as its file name.

    Returns:
        JSON-able data: ``memory`` (its numbers), ``settings`` (of decay), ``left_out``
        (older turns that are not shown), ``turns``, ``series``, ``threads`` (lineage),
        ``episodes``, ``facts`` and ``questions``. Scores are rounded to four digits;
        :meth:`Memory.explain` has them whole.

    Raises:
        InputError: If ``limit`` or a question is unusable.
    """
    limit = positive("limit", limit)
    decay = Decay.of(memory.config)
    traces = [replayed(memory, question) for question in dict.fromkeys(questions)]
    numbers = {**memory.stats(), "digest": memory.digest(), "store": store}
    newest = _newest(memory, limit)
    series = _series(memory, newest, decay)
    rows = []
    for number in newest:
        life = memory.explain(number)
        series.take(life)
        rows.append(row_of(life, decay))
    return {
        "memory": numbers,
        "settings": asdict(decay),
        "left_out": len(memory) - len(rows),
        "turns": rows,
        "series": series.to_dict(),
        "threads": threads(rows),
        "episodes": [episode.to_dict() for episode in memory.episodes()],
        "facts": [fact.to_dict() for fact in memory.facts()],
        "questions": traces,
    }


def _newest(memory: Memory, limit: int) -> list[int]:
    """Ids of the newest turns, in order."""
    last: deque[int] = deque(maxlen=limit)
    # Ids are never reused, so where none was erased this leaves only those wanted to read.
    first = max(memory.stats()["next_id"] - limit, 0)
    for start in dict.fromkeys((first, 0)):
        last.clear()
        last.extend(_ids(memory, start))
        if len(last) == limit:
            break
    return list(last)


def _ids(memory: Memory, first: int) -> Iterable[int]:
    for turn in memory.turns(first=first):
        assert turn.interaction_id is not None
        yield turn.interaction_id


def _series(memory: Memory, newest: Sequence[int], decay: Decay) -> Series:
    """The series over the shown turns, begun with the older ones that were still active then."""
    if not newest:
        return Series(0, -1, decay)
    series = Series(newest[0], newest[-1], decay)
    reach = decay.reach()
    first = 0 if reach is None else max(newest[0] - reach, 0)
    for number in _before(memory, first, newest[0]):
        life: Mapping[str, Any] = memory.explain(number)
        series.take(life)
    return series


def _before(memory: Memory, first: int, end: int) -> Iterable[int]:
    for number in _ids(memory, first):
        if number >= end:
            return
        yield number
