"""What each part is worth: settings changed in turn, on the same questions.

A conversation is taken in once for all variants that only change how questions are
answered, and anew for one that changes what is remembered.
"""

from __future__ import annotations

import itertools
import multiprocessing
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ebbtide.config import Config
from ebbtide.errors import InputError
from ebbtide.evals.datasets import Conversation, iter_conversations
from ebbtide.evals.metrics import Interval, bootstrap_interval, rank_metrics
from ebbtide.memory import Memory

__all__ = ["METRICS", "Outcome", "Variant", "ablations", "compare", "sweep"]

METRICS = ("recall@5", "recall@10", "recall_all@10", "mrr", "active")
"""Columns of a comparison; ``active`` is the share of evidence turns that the active
memory still holds when the conversation ends, which is what signals are for."""

_READING = frozenset({"retrieval", "ranking", "render"})
"""Sections that change answers and not what is stored."""

_BASE = "base"

Changes = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Variant:
    """A named change of settings.

    Attributes:
        name: What it is called in the table.
        changes: Settings on top of the base.
    """

    name: str
    changes: Changes

    @property
    def rereads(self) -> bool:
        """Whether the conversation has to be taken in anew."""
        return not set(self.changes) <= _READING


@dataclass(frozen=True, slots=True)
class Outcome:
    """A variant's means, and their difference to the base on the same questions.

    Attributes:
        name: The variant's.
        means: By metric.
        differences: By metric, with a paired 95 % bootstrap interval; none for the base.
    """

    name: str
    means: Mapping[str, float]
    differences: Mapping[str, Interval]


def ablations(base: Config) -> list[Variant]:
    """Each channel, ranking term, answerability feature and signal switched off in turn.

    What is off already is left out.
    """
    retrieval = base["retrieval"]
    channels = (*(k for k in retrieval if k.startswith("enable_")), "late_interaction")
    found = [
        Variant(f"channel {key.removeprefix('enable_')}", _one(key, False))
        for key in channels
        if retrieval[key]
    ]
    for key, weight in base["ranking"].items():
        if weight:
            found.append(Variant(f"term {key}", {"ranking": {key: 0.0}}))
    for key in ("answerability_weights", "answerability_penalties"):
        names = _FEATURES if key.endswith("weights") else _PENALTIES
        for place, name in enumerate(names):
            weights = list(retrieval[key])
            if weights[place]:
                weights[place] = 0.0
                found.append(Variant(f"feature {name}", _one(key, weights)))
    signals = ("alpha_", "beta_", "gamma_", "delta_", "eta_")
    for key, weight in base["scoring_weights"].items():
        if key.startswith(signals) and weight:
            found.append(Variant(f"signal {key}", {"scoring_weights": {key: 0.0}}))
    return found


def sweep(values: Mapping[tuple[str, str], Sequence[Any]]) -> list[Variant]:
    """Every combination of values of settings.

    Args:
        values: For each (section, key) the values to try.
    """
    names = list(values)
    found: list[Variant] = []
    for combination in itertools.product(*values.values()):
        changes: dict[str, dict[str, Any]] = {}
        for (section, key), value in zip(names, combination, strict=True):
            changes.setdefault(section, {})[key] = value
        label = " ".join(f"{s}.{k}={v}" for (s, k), v in zip(names, combination, strict=True))
        found.append(Variant(label, changes))
    return found


def compare(
    data: Path,
    variants: Sequence[Variant],
    base: Config,
    *,
    workers: int = 1,
    limit: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Outcome]:
    """Measure variants beside the base, which comes first.

    Args:
        data: A LoCoMo or LongMemEval file.
        variants: What to try.
        base: What they change.
        workers: Processes, one conversation each.
        limit: Most conversations.
        progress: Told of each finished conversation.

    Raises:
        InputError: The data cannot be read or holds no question with evidence.
        ConfigError: A variant's setting is unknown or out of range.
    """
    every = [Variant(_BASE, {}), *variants]
    for variant in every:
        base.replace(**variant.changes)  # a wrong setting is told before the work
    conversations = list(itertools.islice(iter_conversations(data), limit))
    context = multiprocessing.get_context("spawn")
    values: dict[str, list[dict[str, float]]] = {variant.name: [] for variant in every}
    with ProcessPoolExecutor(workers, mp_context=context) as executor:
        tasks = [executor.submit(_measure, one, every, base) for one in conversations]
        for done, task in enumerate(tasks, start=1):
            for name, rows in task.result().items():
                values[name] += rows
            if progress is not None:
                progress(done, len(tasks))
    if not values[_BASE]:
        raise InputError(f"{data.name} has no question with evidence", "input.transcript")
    return [_outcome(name, rows, values[_BASE]) for name, rows in values.items()]


def _measure(
    conversation: Conversation, variants: Sequence[Variant], base: Config
) -> dict[str, list[dict[str, float]]]:
    found: dict[str, list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="ebbtide-") as folder:
        shared = Path(folder) / "base.db"
        _take_in(shared, conversation, base)
        for number, variant in enumerate(variants):
            config = base.replace(**variant.changes)
            store = shared
            if variant.rereads:
                store = Path(folder) / f"{number}.db"
                _take_in(store, conversation, config)
            with Memory.open(store, config=config, read_only=True) as memory:
                found[variant.name] = _rows(memory, conversation)
            if variant.rereads:
                store.unlink()
    return found


def _take_in(store: Path, conversation: Conversation, config: Config) -> None:
    with Memory.open(store, config=config) as memory:
        memory.add_many((turn.as_turn() for turn in conversation.turns), batch_size=256)


def _rows(memory: Memory, conversation: Conversation) -> list[dict[str, float]]:
    active = {turn.external_id for turn in memory.turns(state="active")}
    rows: list[dict[str, float]] = []
    for question in conversation.questions:
        if question.abstention or not question.evidence:
            continue
        found = memory.retrieve(question.text, limit=30, query_time=question.query_time)
        row = rank_metrics([str(item.turn.external_id) for item in found], question.evidence)
        row["active"] = sum(i in active for i in question.evidence) / len(question.evidence)
        rows.append({name: row[name] for name in METRICS})
    return rows


def _outcome(
    name: str, rows: Sequence[Mapping[str, float]], base: Sequence[Mapping[str, float]]
) -> Outcome:
    means = {metric: sum(row[metric] for row in rows) / len(rows) for metric in METRICS}
    differences = {}
    if name != _BASE:
        for metric in METRICS:
            paired = [row[metric] - other[metric] for row, other in zip(rows, base, strict=True)]
            differences[metric] = bootstrap_interval(paired)
    return Outcome(name, means, differences)


def _one(key: str, value: Any) -> dict[str, dict[str, Any]]:
    return {"retrieval": {key: value}}


_FEATURES = (
    "semantic_similarity",
    "entity_overlap",
    "subject_match",
    "predicate_match",
    "query_specificity",
    "temporal_compatibility",
    "current_state",
    "not_superseded",
    "answer_span",
    "evidence_chain",
)
_PENALTIES = ("stale", "social", "topic_only")
