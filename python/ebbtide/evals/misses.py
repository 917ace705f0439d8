"""Where evidence is lost: every gold turn that a ranking misses, by what became of it."""

from __future__ import annotations

import itertools
import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ebbtide.config import Config
from ebbtide.evals.datasets import Conversation, Question, iter_conversations
from ebbtide.memory import Memory

__all__ = ["CLASSES", "Miss", "find_misses", "tally"]

CLASSES = ("pool", "first_stage", "filter", "rank_11_20", "rank_21_50", "rank_51", "budget")
"""What became of a gold turn that is not among the first k:

``pool`` no channel found it; ``first_stage`` found, but not among those that are
reranked; ``filter`` dropped by a filter; ``rank_…`` reranked, to that place; ``budget``
among the first k, but not in the context of the token budget.
"""


@dataclass(frozen=True, slots=True)
class Miss:
    """One gold turn that was lost.

    Attributes:
        conversation: Conversation id.
        question_id: Question id.
        category: The question's.
        question: Its text.
        evidence: External id of the gold turn.
        fate: One of :data:`CLASSES`.
        place: Its place in the ranking, from 1, or None.
        sessions: Over how many sessions the question's gold turns are spread.
        text: What the turn says.
    """

    conversation: str
    question_id: str
    category: str
    question: str
    evidence: str
    fate: str
    place: int | None
    sessions: int
    text: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def find_misses(
    data: Path,
    config: Config,
    *,
    k: int = 10,
    max_tokens: int = 2048,
    workers: int = 1,
    limit: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Miss]:
    """Every gold turn outside the first k, or outside the context of a token budget.

    Args:
        data: A LoCoMo or LongMemEval file.
        config: The memory's settings.
        k: Places that count.
        max_tokens: The token budget.
        workers: Processes, one conversation each.
        limit: Most conversations.
        progress: Told of each finished conversation.

    Raises:
        InputError: The data cannot be read.
    """
    conversations = list(itertools.islice(iter_conversations(data), limit))
    context = multiprocessing.get_context("spawn")
    found: list[Miss] = []
    with ProcessPoolExecutor(workers, mp_context=context) as executor:
        tasks = [executor.submit(_misses, one, config, k, max_tokens) for one in conversations]
        for done, task in enumerate(tasks, start=1):
            found += task.result()
            if progress is not None:
                progress(done, len(tasks))
    return found


def tally(misses: Sequence[Miss]) -> dict[str, Counter[str]]:
    """Misses by category and fate; ``all`` holds the sums."""
    counts: dict[str, Counter[str]] = {"all": Counter()}
    for miss in misses:
        for name in (miss.category, "all"):
            row = counts.setdefault(name, Counter())
            row[miss.fate] += 1
            row["split"] += miss.sessions > 1
    return counts


def _misses(conversation: Conversation, config: Config, k: int, max_tokens: int) -> list[Miss]:
    with Memory.in_memory(config=config) as memory:
        memory.add_many((turn.as_turn() for turn in conversation.turns), batch_size=256)
        return [
            miss
            for question in conversation.questions
            if question.evidence and not question.abstention
            for miss in _of_question(memory, conversation, question, k, max_tokens)
        ]


def _of_question(
    memory: Memory, conversation: Conversation, question: Question, k: int, max_tokens: int
) -> Iterator[Miss]:
    turns = {turn.external_id: turn for turn in conversation.turns}
    found = memory.retrieve(question.text, limit=len(turns), query_time=question.query_time)
    places = {str(item.turn.external_id): item.rank for item in found}
    context = memory.context(
        question.text,
        limit=max(k, max_tokens // 10),
        max_tokens=max_tokens,
        query_time=question.query_time,
        include_active=False,
    )
    shown = {memory.get(i).external_id for i in context.shown}
    lost = [i for i in question.evidence if places.get(i, k + 1) > k or i not in shown]
    if not lost:
        return
    # With a small limit only the first stage's best are reranked, as in everyday use.
    trace = memory.trace(question.text, limit=k, query_time=question.query_time)
    fates = {c["interaction_id"]: c["fate"] for c in trace["candidates"]}
    sessions = {turns[i].session_id for i in question.evidence if i in turns}
    for name in lost:
        identity = memory.get(external_id=name).interaction_id
        place = places.get(name)
        yield Miss(
            conversation=conversation.id,
            question_id=question.id,
            category=question.category,
            question=question.text,
            evidence=name,
            fate=_fate(place, fates.get(identity), k),
            place=place,
            sessions=len(sessions),
            text=turns[name].text,
        )


def _fate(place: int | None, fate: str | None, k: int) -> str:
    if fate is None:
        return "pool"
    if fate == "first_stage":
        return "first_stage"
    if place is None:
        return "filter"
    if place <= k:
        return "budget"
    return "rank_11_20" if place <= 20 else "rank_21_50" if place <= 50 else "rank_51"
