"""Where evidence is lost: every gold turn that a ranking misses, by what became of it."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ebbtide.config import Config
from ebbtide.evals.datasets import Conversation, Question, measured_conversations
from ebbtide.evals.parts import Pool, Progress, claimed
from ebbtide.evals.provenance import code, file_sha256, fingerprint
from ebbtide.evals.sampling import sampled
from ebbtide.evals.systems import evidence_limit, take_in
from ebbtide.files import read_json, write_json
from ebbtide.memory import Memory

__all__ = ["CLASSES", "Miss", "find_misses", "tally"]

_FILTERS = (
    "superseded",
    "corrected",
    "invalidated",
    "entity_mismatch",
    "evidence_type",
    "duplicate",
)

CLASSES = (
    "pool",
    "first_stage",
    *_FILTERS,
    "rank_to_20",
    "rank_to_50",
    "rank_past_50",
    "budget",
)
"""What became of a gold turn that is not among the first k:

``pool`` no channel found it; ``first_stage`` found, but not among those that are
reranked; ``superseded`` to ``duplicate`` dropped by the filter of that name;
``rank_…`` reranked, past k and to place 20, 50 or later; ``budget`` among the first k,
but not in the context of the token budget.
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
        place: Its place in the ranking that the fate is from, from 1; None where it
            has none.
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
    out: Path | None = None,
    workers: int = 1,
    limit: int | None = None,
    sample: int | None = None,
    seed: int = 0,
    fresh: bool = False,
    progress: Progress | None = None,
) -> list[Miss]:
    """Every gold turn outside the first k, or outside the context of a token budget.

    Args:
        data: A LoCoMo or LongMemEval file.
        config: The memory's settings.
        k: Places that count.
        max_tokens: The token budget.
        out: Where conversations that are done are kept, or None.
        workers: Processes, one conversation each.
        limit: Most conversations.
        sample: Most questions, drawn by ``seed``.
        seed: Which draw.
        fresh: Start over, whatever the directory holds.
        progress: Told of each finished conversation.

    Raises:
        InputError: The data cannot be read, or the directory holds another run.
    """
    conversations = sampled(
        itertools.islice(measured_conversations(data), limit), sample, seed=seed
    )
    identity = code() | {
        "kind": "misses",
        "data": data.name,
        "data_sha256": file_sha256(data),
        "config": config.replace(nlp={"analysis_cache": ""}).to_dict(),
        "analyser": fingerprint(config),
        "k": k,
        "max_tokens": max_tokens,
        "limit": limit,
        "sample": sample,
        "seed": seed,
    }
    parts: list[Path] = []
    with claimed(out, identity, fresh=fresh) as folder:
        with Pool(workers, progress, total=len(conversations)) as pool:
            for number, conversation in enumerate(conversations, start=1):
                parts.append(folder / "parts" / f"{number:05d}.json")
                pool.submit(parts[-1:], _misses, conversation, config, k, max_tokens, parts[-1])
        return [Miss(**row) for part in parts for row in read_json(part, list)]


def tally(misses: Sequence[Miss]) -> dict[str, Counter[str]]:
    """Misses by category and fate; ``all`` holds the sums.

    ``split`` counts, beside its fate, a miss whose question has gold turns in several
    sessions.
    """
    counts: dict[str, Counter[str]] = {"all": Counter()}
    for miss in misses:
        for name in (miss.category, "all"):
            row = counts.setdefault(name, Counter())
            row[miss.fate] += 1
            row["split"] += miss.sessions > 1
    return counts


def _misses(
    conversation: Conversation, config: Config, k: int, max_tokens: int, part: Path
) -> None:
    with Memory.in_memory(config=config) as memory:
        take_in(memory, conversation)
        names = {int(t.interaction_id or 0): str(t.external_id) for t in memory.turns()}
        found = [
            miss.to_dict()
            for question in conversation.questions
            for miss in _of_question(memory, names, conversation, question, k, max_tokens)
        ]
    write_json(part, found)


def _of_question(
    memory: Memory,
    names: Mapping[int, str],
    conversation: Conversation,
    question: Question,
    k: int,
    max_tokens: int,
) -> Iterator[Miss]:
    context = memory.context(
        question.text,
        limit=max(k, evidence_limit(max_tokens)),
        max_tokens=max_tokens,
        query_time=question.query_time,
        include_active=False,
    )
    shown = {names[i] for i in context.shown}
    # One trace says both the place and the fate, asked for k turns as in everyday use:
    # a larger limit lets more candidates through to the reranking.
    trace = memory.trace(question.text, limit=k, query_time=question.query_time)
    ranked = _ranked(trace["candidates"], names)
    turns = {turn.external_id: turn for turn in conversation.turns}
    sessions = {turns[i].session_id for i in question.evidence if i in turns}
    for name in question.evidence:
        fate, place = ranked.get(name, ("pool", None))
        if place is not None and place <= k and name in shown:
            continue
        yield Miss(
            conversation=conversation.id,
            question_id=question.id,
            category=question.category,
            question=question.text,
            evidence=name,
            fate=fate if place is None else _by_place(place, k),
            place=place,
            sessions=len(sessions),
            text=turns[name].text,
        )


def _ranked(
    candidates: Sequence[Mapping[str, Any]], names: Mapping[int, str]
) -> dict[str, tuple[str, int | None]]:
    """Fate and place of each candidate turn: its best form's, which comes first."""
    found: dict[str, tuple[str, int | None]] = {}
    places = itertools.count(1)
    for row in candidates:
        name = names[row["interaction_id"]]
        if name not in found:
            ranked = row["fate"] in ("kept", "cut")
            found[name] = (row["fate"], next(places) if ranked else None)
    return found


def _by_place(place: int, k: int) -> str:
    if place <= k:
        return "budget"
    return "rank_to_20" if place <= 20 else "rank_to_50" if place <= 50 else "rank_past_50"
