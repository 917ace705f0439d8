"""Variants measured beside a base, on the same questions.

A conversation is taken in once for all variants that remember it alike, and asked each
question under the settings of all of them: the question is read once too.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ebbtide import _core
from ebbtide.config import Config
from ebbtide.errors import InputError
from ebbtide.evals.datasets import Conversation, Question, measured_conversations
from ebbtide.evals.metrics import Interval, bootstrap_interval, rank_metrics
from ebbtide.evals.parts import Pool, Progress, claimed
from ebbtide.evals.provenance import code, file_sha256, fingerprint
from ebbtide.evals.results import DEPTH
from ebbtide.evals.sampling import sampled
from ebbtide.evals.systems import take_in
from ebbtide.evals.variants import Variant
from ebbtide.files import read_json, write_json
from ebbtide.inputs import filters_for_core, query_moment
from ebbtide.memory import Memory
from ebbtide.opened import open_handle

if TYPE_CHECKING:
    from ebbtide.analysis.analyser import Analyser

__all__ = ["METRICS", "Outcome", "compare"]

METRICS = ("recall@5", "recall@10", "recall_all@10", "mrr", "active")
"""Columns of a comparison; ``active`` is the share of evidence turns that the active
memory still holds when the conversation ends, which is what signals are for."""

_READING = ("retrieval", "ranking", "render")
"""Sections that change answers and not what is stored."""
_WRITTEN = "enable_card_semantic"
"""But for this key of theirs: with it, cards get vectors when they are stored."""
_NOT_MEASURED = ("analysis_cache", "threads")
"""Keys of ``[nlp]`` that change how long it takes and nothing else."""

_CHUNK = 12
"""Variants of a part of the work: so few that workers share it evenly and a stop loses little."""

_BASE = "base"

_Row = dict[str, float]


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


def compare(
    data: Path,
    variants: Sequence[Variant],
    base: Config,
    *,
    out: Path | None = None,
    workers: int = 1,
    limit: int | None = None,
    sample: int | None = None,
    seed: int = 0,
    fresh: bool = False,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Measure variants beside the base, which comes first.

    Args:
        data: A LoCoMo or LongMemEval file.
        variants: What to try. Equal settings are measured once; of two variants with
            one name and the same settings the second is left out.
        base: What they change.
        out: Where results are kept, so that another call goes on, with these variants
            or others; None keeps nothing.
        workers: Processes.
        limit: Most conversations.
        sample: Most questions, drawn by ``seed``.
        seed: Which draw.
        fresh: Start over, whatever the directory holds.
        progress: Told of each finished part of the work.

    Raises:
        InputError: The data cannot be read or holds no question with evidence, or the
            directory holds another run.
        ConfigError: A variant's setting is unknown or out of range.
    """
    named = dict.fromkeys(
        (v.name, base.replace(**v.changes)) for v in [Variant(_BASE, {}), *variants]
    )
    configs = {_key(config): config for _, config in named}
    conversations = sampled(
        itertools.islice(measured_conversations(data), limit), sample, seed=seed
    )
    if not conversations:
        raise InputError(f"{data.name} has no question with evidence", "input.transcript")
    identity = code() | {
        "kind": "comparison",
        "data": data.name,
        "data_sha256": file_sha256(data),
        "limit": limit,
        "sample": sample,
        "seed": seed,
        "analyser": fingerprint(base),
    }
    groups = list(_groups(configs))
    total = len(groups) * len(conversations)
    with claimed(out, identity, fresh=fresh) as folder, _scratch() as scratch:
        with Pool(workers, progress, total=total) as pool:
            # Group by group: by the second one every conversation is in the analysis cache.
            for group in groups:
                for place, conversation in enumerate(conversations):
                    parts = {key: _part(folder, key, place) for key in group}
                    left = {key: c for key, c in group.items() if not parts[key].exists()}
                    pool.submit(list(parts.values()), _measure, conversation, left, parts, scratch)
        rows = {
            key: [row for place in range(len(conversations)) for row in _read(folder, key, place)]
            for key in configs
        }
    held = rows[_key(base)]
    return [_outcome(name, rows[_key(config)], held) for name, config in named]


def _key(config: Config) -> str:
    """What names the parts of a configuration: a hash of all that decides results."""
    values = config.to_dict()
    for name in _NOT_MEASURED:
        del values["nlp"][name]
    embedder = None if config.embedder is None else str(config.embedder.fingerprint)
    return hashlib.sha256(json.dumps([values, embedder], sort_keys=True).encode()).hexdigest()[:16]


def _groups(configs: Mapping[str, Config]) -> Iterator[dict[str, Config]]:
    """Configurations that store the same, a chunk at a time, in order."""
    alike: dict[str, dict[str, Config]] = {}
    for key, config in configs.items():
        values = config.to_dict()
        written = {section: v for section, v in values.items() if section not in _READING}
        written["cards"] = {_WRITTEN: values["retrieval"][_WRITTEN]}
        alike.setdefault(json.dumps(written, sort_keys=True), {})[key] = config
    for group in alike.values():
        held = list(group.items())
        for first in range(0, len(held), _CHUNK):
            yield dict(held[first : first + _CHUNK])


@contextmanager
def _scratch() -> Iterator[Path]:
    """A folder for stores and, where the caller keeps none, for analyses.

    It is this process's to remove, also when workers are ended in the middle.
    """
    with tempfile.TemporaryDirectory(prefix="ebbtide-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _part(folder: Path, key: str, place: int) -> Path:
    return folder / "parts" / key / f"{place + 1:05d}.json"


def _read(folder: Path, key: str, place: int) -> list[_Row]:
    return read_json(_part(folder, key, place), list)


def _measure(
    conversation: Conversation,
    configs: Mapping[str, Config],
    parts: Mapping[str, Path],
    scratch: Path,
) -> None:
    """Write a part for each configuration; all of them store the same."""
    first = next(iter(configs.values()))
    if not first["nlp"]["analysis_cache"]:
        first = first.replace(nlp={"analysis_cache": str(scratch / "analyses.db")})
    with tempfile.TemporaryDirectory(dir=scratch, ignore_cleanup_errors=True) as folder:
        store = Path(folder) / "memory.db"
        with Memory.open(store, config=first) as memory:
            take_in(memory, conversation)
            active = {turn.external_id for turn in memory.turns(state="active")}
        rows: dict[str, list[_Row]] = {key: [] for key in configs}
        with _opened(store, first, configs) as ask:
            for question in conversation.questions:
                held = sum(i in active for i in question.evidence) / len(question.evidence)
                for key, ids in ask(question):
                    found = rank_metrics(ids, question.evidence) | {"active": held}
                    rows[key].append({name: found[name] for name in METRICS})
    for key, held_rows in rows.items():
        write_json(parts[key], held_rows)


_Ask = Callable[[Question], Iterator[tuple[str, list[str]]]]
"""A question to, for each configuration's key, the external ids of the turns found."""


@contextmanager
def _opened(store: Path, written: Config, configs: Mapping[str, Config]) -> Iterator[_Ask]:
    """A store that answers under several configurations at once.

    The engine knows presets by name; here they are the configurations. So the indexes
    are loaded once, and a question is read once for all that read it alike.
    """
    from ebbtide.analysis.analyser import Analyser

    cards = bool(written["retrieval"][_WRITTEN])
    analyser = Analyser(written["nlp"], embedder=written.embedder, cards=cards)
    opened = open_handle(store, written, read_only=True)
    try:
        handle = _core.MemoryHandle(
            opened,
            "default",
            config=written.to_json(),
            presets={key: config.to_json() for key, config in configs.items()},
            analyser=analyser.fingerprint,
            reindexing=False,
        )
        bare = {key: not c["retrieval"]["late_interaction"] for key, c in configs.items()}
        no_filters = filters_for_core(None)

        def ask(question: Question) -> Iterator[tuple[str, list[str]]]:
            moment = query_moment(question.query_time, handle.newest_time())
            speakers = tuple(handle.speakers())
            read = {
                way: _read_question(analyser, question.text, moment, speakers, way)
                for way in set(bare.values())
            }
            for key in configs:
                found = handle.recall(
                    read[bare[key]], trace=False, limit=DEPTH, preset=key, filters=no_filters
                )
                yield key, [str(row["turn"]["external_id"]) for row in found["evidence"]]

        yield ask
        handle.close()
    finally:
        opened.close()


_questions: dict[tuple[Any, ...], tuple[Any, ...]] = {}
"""What this process has read of questions: the next group asks the same ones."""


def _read_question(
    analyser: Analyser,
    text: str,
    moment: datetime | None,
    speakers: tuple[str, ...],
    bare: bool,
) -> tuple[Any, ...]:
    key = (analyser.fingerprint, text, moment, speakers, bare)
    if key not in _questions:
        q = analyser.question(text, query_time=moment, speakers=speakers, bare=bare)
        _questions[key] = (q.frame.to_dict(), q.vector, q.tokens, q.token_terms)
    return _questions[key]


def _outcome(name: str, rows: Sequence[_Row], base: Sequence[_Row]) -> Outcome:
    means = {metric: sum(row[metric] for row in rows) / len(rows) for metric in METRICS}
    differences = {}
    if name != _BASE:
        for metric in METRICS:
            paired = [row[metric] - other[metric] for row, other in zip(rows, base, strict=True)]
            differences[metric] = bootstrap_interval(paired)
    return Outcome(name, means, differences)
