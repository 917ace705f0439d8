"""Running systems over a dataset: in parallel, resumable, one part a conversation."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from ebbtide import _core
from ebbtide.config import PRESETS
from ebbtide.errors import InputError
from ebbtide.evals.datasets import Conversation, Question, iter_conversations
from ebbtide.evals.metrics import contains_answer, rank_metrics, to_sessions
from ebbtide.evals.noise import RatioOf, add_noise
from ebbtide.evals.results import (
    BUDGETS,
    DEPTH,
    file_sha256,
    machine,
    read_table,
    rows_digest,
    versions,
    write_table,
)
from ebbtide.evals.systems import POLICIES, Options, System, open_system

__all__ = ["Plan", "claim", "evaluate", "measure"]

Progress = Callable[[int, int], None]
"""Told the parts done and the parts in all."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run.

    Attributes:
        dataset: ``locomo``, ``longmemeval`` or ``noise``: a name for reports.
        data: The file.
        systems: Names of systems, in the order of reports.
        limit: Most conversations, or None for all.
        noise: Share of generated noise, or None; see ``ratio_of``.
        ratio_of: Whether the share is of the ``timeline`` or of the ``original`` turns.
        seed: Seed of the noise.
        budgets: Token budgets; none measures the rankings only.
        options: What systems are opened with.
        command: The command line, for the manifest.
    """

    dataset: str
    data: Path
    systems: tuple[str, ...]
    limit: int | None = None
    noise: float | None = None
    ratio_of: RatioOf = "timeline"
    seed: int = 0
    budgets: tuple[int, ...] = BUDGETS
    options: Options = field(default_factory=Options)
    command: str = ""

    def conversations(self) -> Iterator[Conversation]:
        """The conversations, with their noise."""
        for number, conversation in enumerate(iter_conversations(self.data)):
            if self.limit is not None and number >= self.limit:
                return
            if self.noise is None:
                yield conversation
            else:
                yield add_noise(
                    conversation, ratio=self.noise, ratio_of=self.ratio_of, seed=self.seed
                )

    def identity(self) -> dict[str, Any]:
        """What makes two runs the same; parts are kept only while it holds."""
        # Where analyses are cached is no part of what is measured.
        plain = Options(self.options.changes)
        configs = {name: _sha256(plain.config(name).to_dict()) for name in PRESETS}
        for name in set(self.systems) & set(POLICIES):
            switched_on = plain.config("default").replace(**POLICIES[name])
            configs[name] = _sha256(switched_on.to_dict())
        return {
            "ebbtide": _core.__version__,
            "dataset": self.dataset,
            "data": self.data.name,
            "data_sha256": file_sha256(self.data),
            "limit": self.limit,
            "noise": self.noise,
            "ratio_of": self.ratio_of,
            "seed": self.seed,
            "budgets": list(self.budgets),
            "configs": configs,
        } | self._peer()

    def _peer(self) -> dict[str, Any]:
        """What the peer's environment consists of, where one is run."""
        if self.options.peer is None:
            return {}
        from ebbtide.evals.peers import open_environment

        return {"peer": dict(open_environment(self.options.peer).details)}


def evaluate(
    plan: Plan, out: Path, *, workers: int = 1, progress: Progress | None = None
) -> dict[str, Any]:
    """Run a plan into a directory, going on where an earlier call stopped.

    Args:
        plan: What to run.
        out: The directory; made where it is missing.
        workers: Processes, one conversation and system at a time each. Results do
            not depend on it; timings do.
        progress: Told of each finished part.

    Returns:
        The manifest.

    Raises:
        InputError: The directory holds another run, the data cannot be read, or a
            system is not known.
    """
    identity = plan.identity()
    claim(out, identity)
    count = 0
    left_out = unresolved = 0
    todo: list[tuple[str, Path]] = []
    with _Pool(workers, progress) as pool:
        for conversation in plan.conversations():
            count += 1
            asked = [q for q in conversation.questions if q.evidence and not q.abstention]
            left_out += len(conversation.questions) - len(asked)
            unresolved += len(conversation.unresolved)
            for system in plan.systems:
                part = out / "parts" / system / f"{count:05d}.parquet"
                todo.append((system, part))
                pool.submit(part, (plan, system, conversation, part))
    if not count:
        raise InputError(f"{plan.data.name} holds no conversation", "input.transcript")
    return _merge(plan, out, identity, todo, {"left_out": left_out, "unresolved": unresolved})


def claim(out: Path, identity: Mapping[str, Any]) -> None:
    """Make a directory the one of a run, for this call and those that go on with it.

    Args:
        out: The directory; made where it is missing.
        identity: What makes two runs the same, JSON-able.

    Raises:
        InputError: ``input.field``: it holds parts of another run.
    """
    path = out / "plan.json"
    out.mkdir(parents=True, exist_ok=True)
    if path.exists():
        before = json.loads(path.read_text(encoding="utf-8"))
        changed = sorted(name for name in identity if before.get(name) != identity[name])
        if changed:
            message = (
                f"{out} holds another run (its {', '.join(changed)} differs); "
                "name another directory, or delete that one"
            )
            raise InputError(message, "input.field")
    path.write_text(json.dumps(identity, indent=1) + "\n", encoding="utf-8")


def _sha256(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


class _Pool:
    """Parts on their way: a few at a time, so that conversations do not pile up."""

    def __init__(self, workers: int, progress: Progress | None) -> None:
        self._workers = workers
        self._progress = progress
        self._done = self._all = 0
        self._running: set[Future[None]] = set()
        context = multiprocessing.get_context("spawn")
        self._executor = ProcessPoolExecutor(workers, mp_context=context) if workers > 1 else None

    def __enter__(self) -> _Pool:
        return self

    def submit(self, part: Path, task: tuple[Any, ...]) -> None:
        self._all += 1
        if part.exists():
            self._finished(1)
        elif self._executor is None:
            _run_part(*task)
            self._finished(1)
        else:
            if len(self._running) >= 2 * self._workers:
                self._wait(FIRST_COMPLETED)
            self._running.add(self._executor.submit(_run_part, *task))

    def _wait(self, until: str) -> None:
        done, self._running = wait(self._running, return_when=until)
        for future in done:
            future.result()
        self._finished(len(done))

    def _finished(self, count: int) -> None:
        self._done += count
        if self._progress is not None:
            self._progress(self._done, self._all)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._executor is None:
            return
        try:
            if kind is None:
                self._wait("ALL_COMPLETED")
        finally:
            self._executor.shutdown(wait=True, cancel_futures=True)


def _run_part(plan: Plan, system: str, conversation: Conversation, part: Path) -> None:
    rows, facts = measure(plan, system, conversation)
    part.parent.mkdir(parents=True, exist_ok=True)
    part.with_suffix(".json").write_text(json.dumps(facts), encoding="utf-8")
    write_table(part, "rows", rows)


def measure(
    plan: Plan, system: str, conversation: Conversation
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """One system on one conversation: its rows, and the facts of the conversation."""
    cache = plan.options.cache
    cold = cache is None or not cache.exists()
    start = time.perf_counter()
    with open_system(system, conversation, plan.options) as opened:
        seconds = time.perf_counter() - start
        names = {"dataset": plan.dataset, "system": system, "conversation": conversation.id}
        sessions = {t.external_id: t.session_id for t in conversation.turns}
        rows = [
            names | _row(opened, question, sessions, plan.budgets)
            for question in conversation.questions
        ]
        facts = names | {
            "turns": len(conversation.turns),
            "noise_turns": sum(turn.noise for turn in conversation.turns),
            "questions": len(conversation.questions),
            # With analyses from a cache the time to take turns in means nothing.
            "ingest_s": seconds if cold else None,
            "rss_mb": _resident(),
            **opened.facts(),
        }
    return rows, facts


def _row(
    system: System, question: Question, sessions: Mapping[str, str], budgets: Sequence[int]
) -> dict[str, Any]:
    start = time.perf_counter()
    ranking = system.rank(question, DEPTH)
    row: dict[str, Any] = {
        "question_id": question.id,
        "category": question.category,
        "question": question.text,
        "answer": question.answer,
        "abstention": question.abstention,
        "evidence": list(question.evidence),
        "ranked": [] if ranking is None else ranking.ids,
        "confidence": None if ranking is None else ranking.confidence,
        "latency_ms": None if ranking is None else 1000 * (time.perf_counter() - start),
    }
    if question.abstention:
        return row
    if ranking is not None and question.evidence:
        row |= rank_metrics(ranking.ids, question.evidence)
        gold = {sessions[i] for i in question.evidence if i in sessions}
        by_session = rank_metrics(to_sessions(ranking.ids, sessions), gold)
        row |= {f"session_{name}": value for name, value in by_session.items()}
    for budget in budgets:
        row |= _inside(system, question, budget)
    return row


def _inside(system: System, question: Question, budget: int) -> dict[str, float]:
    """What of the evidence and the answer is inside a context of so many tokens."""
    context = system.context(question, budget)
    name = f"budget_{budget}"
    found: dict[str, float] = {f"{name}_tokens": float(context.tokens)}
    if question.answer:
        found[f"{name}_contains"] = float(contains_answer(question.answer, context.text))
    if question.evidence:
        held = sum(one in context.shown for one in question.evidence)
        found[f"{name}_recall"] = held / len(question.evidence)
        found[f"{name}_any"] = float(held > 0)
        found[f"{name}_all"] = float(held == len(question.evidence))
    return found


def _resident() -> float:
    """Most memory that this process has held, in MiB; systems share a process."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def _merge(
    plan: Plan,
    out: Path,
    identity: Mapping[str, Any],
    parts: Sequence[tuple[str, Path]],
    counts: Mapping[str, int],
) -> dict[str, Any]:
    order = {name: place for place, name in enumerate(plan.systems)}
    parts = sorted(parts, key=lambda item: (order[item[0]], item[1].name))
    rows = [row for _, part in parts for row in read_table(part)]
    facts = [json.loads(p.with_suffix(".json").read_text(encoding="utf-8")) for _, p in parts]
    write_table(out / "rows.parquet", "rows", rows)
    write_table(out / "conversations.parquet", "conversations", facts)
    manifest = {
        "ebbtide": _core.__version__,
        "dataset": plan.dataset,
        "data": plan.data.name,
        "data_sha256": identity["data_sha256"],
        "systems": {
            name: {"config_sha256": identity["configs"].get(name)} for name in plan.systems
        },
        "seed": plan.seed,
        "options": {
            "command": plan.command,
            "limit": plan.limit,
            "noise": plan.noise,
            "ratio_of": plan.ratio_of,
            "budgets": list(plan.budgets),
            "changes": asdict(plan.options)["changes"],
            "peer": identity.get("peer"),
        },
        "versions": versions(),
        "machine": machine(),
        "date": date.today().isoformat(),
        "questions": len(rows) // len(plan.systems),
        **counts,
        "digest": rows_digest(rows),
    }
    path = out / "manifest.json"
    path.write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    return manifest
