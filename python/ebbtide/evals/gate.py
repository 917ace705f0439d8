"""What the RPE gate keeps out, and what that costs.

The gate is right where it skips small talk and keeps the turns that questions are
about. A dataset says which turns those are; a file with noise says which are small
talk. Questions without an answer (LoCoMo's category 5) show how often the fallback to
skipped turns is taken, and how often the engine says that it does not know.
"""

from __future__ import annotations

import itertools
import multiprocessing
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ebbtide.config import Config
from ebbtide.errors import InputError
from ebbtide.evals.datasets import Conversation, measured_conversations
from ebbtide.evals.metrics import rank_metrics
from ebbtide.evals.noise import add_noise, category_of
from ebbtide.evals.parts import Progress
from ebbtide.evals.systems import take_in
from ebbtide.memory import Memory
from ebbtide.types import KNOWS

__all__ = ["PAPER_SKIPPED", "Judged", "Measured", "Source", "measure_gate", "sources"]

PAPER_SKIPPED = 0.539
"""Share of LoCoMo's own turns that D-MEM's gate skips, by its authors' count."""

_DEPTH = 10


@dataclass(frozen=True, slots=True)
class Source:
    """Conversations to put before the gate.

    Attributes:
        name: For the table.
        data: The file.
        noise: Share of generated noise in the timeline, or None for the file as it is.
        seed: Seed of the noise.
    """

    name: str
    data: Path
    noise: float | None = None
    seed: int = 0

    def conversations(self, limit: int | None) -> Iterator[Conversation]:
        """The conversations, with their noise."""
        for conversation in itertools.islice(measured_conversations(self.data), limit):
            if self.noise is None:
                yield conversation
            else:
                yield add_noise(conversation, ratio=self.noise, ratio_of="timeline", seed=self.seed)


@dataclass(frozen=True, slots=True)
class Judged:
    """One turn before the gate.

    Attributes:
        conversation: The conversation's id.
        place: From 0, in the order of the timeline.
        kind: ``gold`` (evidence of a question), ``real`` or ``noise``.
        category: Category of a generated noise turn, else "".
        tier: ``skip``, ``construct_only`` or ``full_evolution``.
        lifecycle: ``transient``, ``short_term`` or ``persistent``.
        reason: Which rule decided.
        surprise: In [0, 1].
        utility: In [0, 1].
        rpe: In [0, 1].
    """

    conversation: str
    place: int
    kind: str
    category: str
    tier: str
    lifecycle: str
    reason: str
    surprise: float
    utility: float
    rpe: float


@dataclass(frozen=True, slots=True)
class _Asked:
    """One question: whether it has an answer, and what recall made of it."""

    answerable: bool
    nearest: float
    fallback: bool
    unsure: bool
    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Measured:
    """The gate on one source.

    Attributes:
        source: Name of the source.
        turns: Every turn, in order.
        skipped: Share of turns skipped, by kind, and by ``noise: category``.
        tiers: Turns by tier, of those that are not noise.
        recall: Means of ``recall@10`` and ``recall_all@10`` on answerable questions.
        fallback: Share of questions that fell back on skipped turns, by ``answerable``
            and ``adversarial``.
        unsure: Share of questions with confidence below 0.5, likewise.
        nearest: 5 %, 50 % and 95 % quantiles of the best note's cosine, likewise: a
            fallback threshold for an embedding model lies between the two.
    """

    source: str
    turns: Sequence[Judged]
    skipped: Mapping[str, tuple[int, int]]
    tiers: Mapping[str, int]
    recall: Mapping[str, float]
    fallback: Mapping[str, float]
    unsure: Mapping[str, float]
    nearest: Mapping[str, tuple[float, float, float]]

    def share(self, kind: str) -> float | None:
        """Share skipped of a kind; None where there is no such turn."""
        skipped, total = self.skipped.get(kind, (0, 0))
        return skipped / total if total else None

    def to_dict(self, *, turns: bool = False) -> dict[str, Any]:
        """Plain JSON-able data, the single turns only if asked for."""
        data = {name: getattr(self, name) for name in ("source", "tiers", "recall", "fallback")}
        data |= {"unsure": self.unsure, "nearest": self.nearest}
        data["skipped"] = {
            kind: {"skipped": skipped, "turns": total, "share": skipped / total}
            for kind, (skipped, total) in self.skipped.items()
        }
        return data | ({"turns": [asdict(turn) for turn in self.turns]} if turns else {})


def sources(data: Path, *, noise: Path | None, ratio: float | None, seed: int) -> list[Source]:
    """The file as it is, with generated noise, and a file that has its own."""
    found = [Source("as it is", data)]
    if ratio:
        found.append(Source(f"{ratio:.0%} generated noise", data, ratio, seed))
    if noise is not None:
        found.append(Source(noise.name, noise))
    return found


def measure_gate(
    source: Source,
    config: Config,
    *,
    workers: int = 1,
    limit: int | None = None,
    progress: Progress | None = None,
) -> Measured:
    """Put the conversations of a source before the gate.

    Args:
        source: What to read.
        config: Settings; the gate is switched on.
        workers: Processes, one conversation each.
        limit: Most conversations.
        progress: Told of each finished conversation.

    Raises:
        InputError: The data cannot be read or holds no conversation.
    """
    config = config.replace(policy={"gate": "rpe"})
    turns: list[Judged] = []
    asked: list[_Asked] = []
    conversations = list(source.conversations(limit))
    if not conversations:
        raise InputError(f"{source.data.name} holds no conversation", "input.transcript")
    for done, (judged, answers) in enumerate(_each(conversations, config, workers), start=1):
        turns += judged
        asked += answers
        if progress is not None:
            progress(done, len(conversations))
    return _summary(source.name, turns, asked)


_Part = tuple[list[Judged], list[_Asked]]


def _each(conversations: Sequence[Conversation], config: Config, workers: int) -> Iterator[_Part]:
    """The conversations measured, in order."""
    if workers == 1:
        yield from (_measure(one, config) for one in conversations)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as executor:
        yield from executor.map(_measure, conversations, itertools.repeat(config))


def _measure(conversation: Conversation, config: Config) -> _Part:
    gold = {
        name
        for question in conversation.questions
        if not question.abstention
        for name in question.evidence
    }
    with Memory.in_memory(config=config) as memory:
        take_in(memory, conversation)
        judged = []
        for place, turn in enumerate(conversation.turns):
            verdict = memory.explain(place)["gate"]
            kind = "noise" if turn.noise else "gold" if turn.external_id in gold else "real"
            judged.append(
                Judged(
                    conversation=conversation.id,
                    place=place,
                    kind=kind,
                    category=(category_of(turn.text) or "") if turn.noise else "",
                    **{name: verdict[name] for name in _VERDICT},
                )
            )
        return judged, list(_answers(memory, conversation))


_VERDICT = ("tier", "lifecycle", "reason", "surprise", "utility", "rpe")


def _answers(memory: Memory, conversation: Conversation) -> Iterator[_Asked]:
    for question in conversation.questions:
        if not question.abstention and not question.evidence:
            continue
        found = memory.retrieve(question.text, limit=_DEPTH, query_time=question.query_time)
        ids = [str(item.turn.external_id) for item in found]
        answerable = not question.abstention
        metrics = rank_metrics(ids, question.evidence) if answerable else {}
        yield _Asked(
            answerable=answerable,
            nearest=max((item.channels.get("raw_semantic", 0.0) for item in found), default=0.0),
            fallback=any(item.kind == "shadow" for item in found),
            unsure=not found or found[0].confidence < KNOWS,
            metrics=metrics,
        )


def _summary(name: str, turns: list[Judged], asked: list[_Asked]) -> Measured:
    total: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    for turn in turns:
        kinds = [turn.kind, *([f"noise: {turn.category}"] if turn.category else [])]
        total.update(kinds)
        if turn.tier == "skip":
            skipped.update(kinds)
    groups = {
        "answerable": [one for one in asked if one.answerable],
        "adversarial": [one for one in asked if not one.answerable],
    }
    groups = {group: members for group, members in groups.items() if members}
    answered = groups.get("answerable", [])
    return Measured(
        source=name,
        turns=turns,
        skipped={kind: (skipped[kind], total[kind]) for kind in sorted(total)},
        tiers=dict(sorted(Counter(t.tier for t in turns if t.kind != "noise").items())),
        recall={
            metric: _mean([one.metrics[metric] for one in answered])
            for metric in ("recall@10", "recall_all@10")
            if answered
        },
        fallback={k: _mean([float(one.fallback) for one in v]) for k, v in groups.items()},
        unsure={k: _mean([float(one.unsure) for one in v]) for k, v in groups.items()},
        nearest={k: _quantiles([one.nearest for one in v]) for k, v in groups.items()},
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _quantiles(values: Sequence[float]) -> tuple[float, float, float]:
    ordered = sorted(values)
    low, middle, high = (ordered[int(share * (len(ordered) - 1))] for share in (0.05, 0.5, 0.95))
    return low, middle, high
