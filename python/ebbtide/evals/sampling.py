"""Drawing questions: the same ones on every machine, whatever else is in the data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace

from ebbtide.evals.datasets import Conversation

__all__ = ["draw", "sampled"]


def draw(seed: int, conversation: str, question: str) -> str:
    """The place of a question in the draw of a seed, as text: the lowest are drawn first.

    It depends on the seed and the two ids and on nothing else.
    """
    return hashlib.sha256(json.dumps([seed, conversation, question]).encode()).hexdigest()


def sampled(
    conversations: Iterable[Conversation], count: int | None, *, seed: int = 0
) -> list[Conversation]:
    """The conversations with the questions that are measured: those that name their evidence.

    Args:
        conversations: Whence.
        count: Most questions in all, drawn by the seed; None for all of them.
        seed: Which draw.

    Returns:
        The conversations that are asked something, in order, with those questions only.
    """
    held = [(one, one.measured_questions) for one in conversations]
    if count is not None:
        places = sorted(draw(seed, one.id, q.id) for one, asked in held for q in asked)
        drawn = set(places[:count])
        held = [
            (one, [q for q in asked if draw(seed, one.id, q.id) in drawn]) for one, asked in held
        ]
    return [replace(one, questions=asked) for one, asked in held if asked]
