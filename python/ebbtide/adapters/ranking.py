"""Every turn that there is, once, those that answer a question first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ebbtide.adapters.texts import question_for
from ebbtide.memory import Memory
from ebbtide.types import Turn

__all__ = ["ranked"]

_FIRST = 64
"""The first limit: by the default settings as many candidates are ranked as for any smaller one."""

_GROWTH = 8


def ranked(
    memory: Memory, question: str, metadata: Mapping[str, Any]
) -> Iterator[tuple[Turn, float | None]]:
    """Turns with their confidence, best first, then those that recall does not give.

    The order does not depend on how many are taken, so that pages fit together: a larger
    limit ranks more candidates, and what it finds need not begin with what a smaller one
    does. Hence the limits are always the same ones, and each adds what is new.

    Args:
        memory: The memory.
        question: The question; one that is too long is read as far as the memory does.
        metadata: Fields that must be equal.

    Yields:
        Each turn once. One with the words of another, which recall takes for the same
        evidence, has the other's confidence; one that recall hides has None.
    """
    seen: set[int | None] = set()
    known: dict[tuple[str, str, str | None], float] = {}
    limit = _FIRST
    question = question_for(memory, question)
    while True:
        found = memory.retrieve(question, limit=limit, filters={"metadata": dict(metadata)})
        for item in found:
            if item.turn.interaction_id not in seen:
                seen.add(item.turn.interaction_id)
                known.setdefault(_words(item.turn), item.confidence)
                yield item.turn, item.confidence
        if len(found) < limit:
            break
        limit *= _GROWTH
    for turn in memory.turns(metadata=metadata):
        if turn.interaction_id not in seen:
            yield turn, known.get(_words(turn))


def _words(turn: Turn) -> tuple[str, str, str | None]:
    return turn.text, turn.role, turn.speaker
