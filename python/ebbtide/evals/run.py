"""Running systems over a dataset: in parallel, resumable, one part a conversation."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from ebbtide import _core
from ebbtide.config import PRESETS
from ebbtide.errors import InputError
from ebbtide.evals.datasets import Conversation, Question, measured_conversations
from ebbtide.evals.metrics import contains_answer, rank_metrics, to_sessions
from ebbtide.evals.noise import RatioOf, add_noise
from ebbtide.evals.parts import Pool, Progress, claim
from ebbtide.evals.provenance import code, file_sha256, fingerprint, machine, versions
from ebbtide.evals.results import BUDGETS, DEPTH, read_table, rows_digest, write_table
from ebbtide.evals.systems import (
    PEERS,
    POLICIES,
    READERS,
    SYSTEMS,
    Options,
    System,
    check_system,
    open_system,
    warm_up,
)
from ebbtide.files import read_json, write_json

__all__ = ["Plan", "evaluate", "finished", "measure"]


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run.

    Attributes:
        dataset: ``locomo``, ``longmemeval`` or ``noise``: a name for reports.
        data: The file.
        systems: Names of systems.
        limit: Most conversations, or None for all.
        noise: Share of generated noise, or None; see ``ratio_of``.
        ratio_of: Whether the share is of the ``timeline`` or of the ``original`` turns.
        seed: Seed of the noise.
        with_clean: Also measure the conversations without their noise, for comparison.
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
    with_clean: bool = False
    budgets: tuple[int, ...] = BUDGETS
    options: Options = field(default_factory=Options)
    command: str = ""

    def conversations(self) -> Iterator[Conversation]:
        """The conversations, with their noise."""
        for number, conversation in enumerate(measured_conversations(self.data)):
            if self.limit is not None and number >= self.limit:
                return
            if self.noise is None:
                yield conversation
            else:
                yield add_noise(
                    conversation, ratio=self.noise, ratio_of=self.ratio_of, seed=self.seed
                )

    def check(self) -> None:
        """Refuse, before anything is written, what no run can be made of.

        Raises:
            InputError: A system is not known, or the data hold no conversation or begin
                with none that can be read.
        """
        for system in self.systems:
            check_system(system, self.options)
        if next(self.conversations(), None) is None:
            raise InputError(f"{self.data.name} holds no conversation", "input.transcript")

    def identity(self) -> dict[str, Any]:
        """What makes two runs the same; parts are kept only while it holds.

        Which systems are run is no part of it: another one can join later.
        """
        # Where analyses are cached is no part of what is measured.
        plain = Options(self.options.changes)
        names = (*PRESETS, *POLICIES)
        configs = {name: plain.config(name) for name in names}
        return code() | {
            "dataset": self.dataset,
            "data": self.data.name,
            "data_sha256": file_sha256(self.data),
            "limit": self.limit,
            "noise": self.noise,
            "ratio_of": self.ratio_of,
            "seed": self.seed,
            "budgets": list(self.budgets),
            "configs": {name: _sha256(config.to_dict()) for name, config in configs.items()},
            "analyser": {name: fingerprint(config) for name, config in configs.items()},
        }


def evaluate(
    plan: Plan,
    out: Path,
    *,
    workers: int = 1,
    fresh: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run a plan into a directory, going on where an earlier call stopped.

    Systems that the directory holds already, whole, stay in its tables.

    Args:
        plan: What to run.
        out: The directory; made where it is missing.
        workers: Processes, one conversation and system at a time each. Results do
            not depend on it; timings do.
        fresh: Start over, whatever the directory holds.
        progress: Told of each finished part.

    Returns:
        The manifest.

    Raises:
        InputError: The directory holds another run, the data or a part cannot be read,
            or a system is not known.
        StoreError: ``store.open``: the directory cannot be written.
    """
    plan.check()
    identity = plan.identity()
    claim(out, identity, fresh=fresh)
    _check_peers(plan, out)
    names: list[str] = []
    clean: list[str] = []
    left_out = unresolved = 0
    with Pool(workers, progress) as pool:
        for conversation in plan.conversations():
            names.append(f"{len(names) + 1:05d}.parquet")
            asked = conversation.measured_questions
            left_out += len(conversation.questions) - len(asked)
            unresolved += len(conversation.unresolved)
            for system in plan.systems:
                part = out / "parts" / system / names[-1]
                pool.submit(_files(part), _run_part, plan, system, conversation, part)
            if not any(turn.noise for turn in conversation.turns):
                continue
            clean.append(names[-1])
            for system in plan.systems if plan.with_clean else ():
                part = out / "clean" / system / names[-1]
                plain = _without_noise(conversation)
                pool.submit(_files(part), _run_part, plan, system, plain, part)
    _merge_clean(out, clean)
    counts = {"left_out": left_out, "unresolved": unresolved}
    return _merge(plan, out, identity, names, counts)


def finished(folder: Path, names: Sequence[str]) -> list[str]:
    """Systems that have every part in a folder, in the order of reports.

    Args:
        folder: Holds one folder a system.
        names: File names of the parts.
    """
    return [
        system
        for system in (*SYSTEMS, *POLICIES, *PEERS)
        if names and all((folder / system / name).exists() for name in names)
    ]


def _sha256(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def _without_noise(conversation: Conversation) -> Conversation:
    return replace(conversation, turns=[turn for turn in conversation.turns if not turn.noise])


def _peer(system: str, options: Options) -> dict[str, Any] | None:
    """What a peer's environment consists of, where the system is one that can be run."""
    if system not in PEERS or options.peer is None:
        return None
    from ebbtide.evals.peers import open_environment

    return dict(open_environment(options.peer).details)


def _check_peers(plan: Plan, out: Path) -> None:
    """A peer's parts were all made in one environment."""
    for system in plan.systems:
        details = _peer(system, plan.options)
        parts = sorted((out / "parts" / system).glob("*.json")) if details else []
        if any(_facts(part)["peer"] != details for part in parts):
            message = (
                f"{out} holds parts of {system} from another environment; "
                "name another directory with --out, or start over there with --fresh"
            )
            raise InputError(message, "input.field")


def _files(part: Path) -> list[Path]:
    """The rows of a part, and what is said of them."""
    return [part, part.with_suffix(".json")]


def _facts(part: Path) -> dict[str, Any]:
    return read_json(part.with_suffix(".json"), dict)


def _run_part(plan: Plan, system: str, conversation: Conversation, part: Path) -> None:
    rows, facts = measure(plan, system, conversation)
    facts |= {"command": plan.command, "peer": _peer(system, plan.options)}
    write_json(part.with_suffix(".json"), facts)
    write_table(part, "rows", rows)


def measure(
    plan: Plan, system: str, conversation: Conversation
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """One system on one conversation: its rows, and the facts of the conversation."""
    # With analyses from a cache the time to take turns in means nothing, and whether
    # this system or the one before filled the cache is chance: it is not taken at all.
    timed = plan.options.cache is None or system not in READERS
    if timed:
        warm_up(system, plan.options)
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
            "ingest_s": seconds if timed else None,
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


def _resident() -> float | None:
    """Most memory that this process has held, in MiB; systems share a process.

    None where the platform does not tell, as on Windows.
    """
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def _merge_clean(out: Path, names: Sequence[str]) -> None:
    """The rows without noise in one file, of the systems that have them all."""
    systems = finished(out / "clean", names)
    (out / "clean.parquet").unlink(missing_ok=True)
    if systems:
        parts = [out / "clean" / system / name for system in systems for name in names]
        write_table(out / "clean.parquet", "rows", [row for p in parts for row in read_table(p)])


def _merge(
    plan: Plan,
    out: Path,
    identity: Mapping[str, Any],
    names: Sequence[str],
    counts: Mapping[str, int],
) -> dict[str, Any]:
    systems = finished(out / "parts", names)
    parts = [out / "parts" / system / name for system in systems for name in names]
    rows = [row for part in parts for row in read_table(part)]
    facts = [_facts(part) for part in parts]
    write_table(out / "rows.parquet", "rows", rows)
    write_table(out / "conversations.parquet", "conversations", facts)
    clean = out / "clean.parquet"
    manifest = {
        "ebbtide": _core.__version__,
        "dataset": plan.dataset,
        "data": plan.data.name,
        "data_sha256": identity["data_sha256"],
        "systems": {name: _about(name, identity, facts) for name in systems},
        "seed": plan.seed,
        "options": {
            # Systems may have joined by a command of their own.
            "command": "\n".join(dict.fromkeys(one["command"] for one in facts)),
            "limit": plan.limit,
            "noise": plan.noise,
            "ratio_of": plan.ratio_of,
            "budgets": list(plan.budgets),
            "changes": asdict(plan.options)["changes"],
        },
        **{name: identity[name] for name in ("core_sha256", "sources_sha256")},
        "versions": versions(),
        "machine": machine(),
        "date": date.today().isoformat(),
        "questions": len(rows) // len(systems),
        **counts,
        "digest": rows_digest(rows),
        "clean_digest": rows_digest(read_table(clean)) if clean.exists() else None,
    }
    write_json(out / "manifest.json", manifest)
    return manifest


def _about(
    system: str, identity: Mapping[str, Any], facts: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The settings and the analyser of a system, and what a peer's environment consists of."""
    peer = next((one["peer"] for one in facts if one["system"] == system), None)
    return {
        "config_sha256": identity["configs"].get(system),
        "analyser": identity["analyser"].get(system),
        **({"peer": peer} if peer else {}),
    }
