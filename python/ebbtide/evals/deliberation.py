"""What deliberation is worth: each question answered with and without it.

A conversation is taken in once; every question is then answered by the usual recall
alone, and with the whole history scanned. Which of the two a policy would have given
follows from its gates, so every policy is measured on the same answers.
"""

from __future__ import annotations

import itertools
import multiprocessing
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ebbtide.config import Config
from ebbtide.errors import InputError
from ebbtide.evals.datasets import Conversation, Question, measured_conversations
from ebbtide.evals.metrics import Interval, bootstrap_interval, contains_answer, recall_all_at
from ebbtide.evals.parts import Progress
from ebbtide.evals.systems import evidence_limit, take_in
from ebbtide.memory import Memory

__all__ = ["POLICIES", "Outcome", "Row", "measure", "outcomes"]

POLICIES = ("quality", "majority", "consensus")
"""Policies of deliberation, the paper's own first."""

_K = 10
_BUDGET = 2048


@dataclass(frozen=True, slots=True)
class Row:
    """One question under one policy.

    Attributes:
        conversation: Conversation id.
        question_id: Question id.
        category: The question's.
        policy: One of :data:`POLICIES`.
        escalated: Whether its gates asked for the scan.
        failed: Checks that did not pass.
        recall_all: recall_all@10 of the usual recall, and with the scan.
        contains: Containment in 2,048 tokens, likewise; None without a gold answer.
        milliseconds: Time of a recall, likewise. Not part of what is compared.
    """

    conversation: str
    question_id: str
    category: str
    policy: str
    escalated: bool
    failed: tuple[str, ...]
    recall_all: tuple[float, float]
    contains: tuple[float, float] | None
    milliseconds: tuple[float, float]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A policy over some questions.

    Attributes:
        questions: Their number.
        rate: Share of them that escalated.
        recall_all: recall_all@10 on the escalated ones, without the scan and with it.
        recall_gain: The difference, with a paired 95 % bootstrap interval.
        contains: Containment in 2,048 tokens on them, likewise.
        contains_gain: The difference of that.
        milliseconds: Mean time of a recall without the scan and with it.
    """

    questions: int
    rate: float
    recall_all: tuple[float, float] | None
    recall_gain: Interval | None
    contains: tuple[float, float] | None
    contains_gain: Interval | None
    milliseconds: tuple[float, float]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def measure(
    data: Path,
    config: Config,
    *,
    policies: Sequence[str] = POLICIES,
    workers: int = 1,
    limit: int | None = None,
    progress: Progress | None = None,
) -> list[Row]:
    """Answer every question that has evidence, without the scan and with it.

    Args:
        data: A LoCoMo or LongMemEval file.
        config: The memory's settings, but for the policy.
        policies: The policies whose gates are asked.
        workers: Processes, one conversation each; timings depend on them.
        limit: Most conversations.
        progress: Told of each finished conversation.

    Raises:
        InputError: The data cannot be read or holds no question with evidence.
    """
    conversations = list(itertools.islice(measured_conversations(data), limit))
    context = multiprocessing.get_context("spawn")
    rows: list[Row] = []
    with ProcessPoolExecutor(workers, mp_context=context) as executor:
        tasks = [executor.submit(_rows, one, config, policies) for one in conversations]
        for done, task in enumerate(tasks, start=1):
            rows += task.result()
            if progress is not None:
                progress(done, len(tasks))
    if not rows:
        raise InputError(f"{data.name} has no question with evidence", "input.transcript")
    return rows


def _rows(conversation: Conversation, config: Config, policies: Sequence[str]) -> list[Row]:
    import tempfile

    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="ebbtide-") as folder:
        store = Path(folder) / "memory.db"
        with Memory.open(store, config=config) as memory:
            take_in(memory, conversation)
        asked = conversation.measured_questions
        with _reading(store, config, "off") as memory:
            plain = [_answered(memory, question) for question in asked]
        # Both ways cost the same whatever the gates say, so the scan is forced once.
        with _reading(store, config, "quality") as memory:
            scanned = [_answered(memory, question, scan=True) for question in asked]
        for policy in policies:
            with _reading(store, config, policy) as memory:
                for question, without, with_scan in zip(asked, plain, scanned, strict=True):
                    seen = _verdict(memory, question)
                    rows.append(_row(conversation, question, policy, seen, without, with_scan))
    return rows


def _reading(store: Path, config: Config, policy: str) -> Memory:
    return Memory.open(
        store, config=config.replace(policy={"deliberation": policy}), read_only=True
    )


@dataclass(frozen=True, slots=True)
class _Answered:
    recall_all: float
    contains: float | None
    milliseconds: float


def _answered(memory: Memory, question: Question, *, scan: bool = False) -> _Answered:
    overruled = (True, None, None) if scan else None
    asked = memory._asking.ask(question.text, _K, question.query_time)
    start = time.perf_counter()
    found = memory._handle.recall(asked.query, trace=False, overruled=overruled, **asked.options)
    milliseconds = 1000 * (time.perf_counter() - start)
    ids = [str(row["turn"]["external_id"]) for row in found["evidence"]]
    contains = None
    if question.answer:
        most = {**asked.options, "limit": evidence_limit(_BUDGET)}
        text, _, _ = memory._handle.render(
            asked.query, max_tokens=_BUDGET, include_active=False, overruled=overruled, **most
        )
        contains = float(contains_answer(question.answer, text))
    return _Answered(recall_all_at(ids, question.evidence, _K), contains, milliseconds)


def _verdict(memory: Memory, question: Question) -> Mapping[str, Any]:
    asked = memory._asking.ask(question.text, _K, question.query_time)
    # Nothing of the scan is wanted here: facts given from outside stand in for it.
    found = memory._handle.recall(
        asked.query, trace=False, overruled=(None, [], None), **asked.options
    )
    seen: Mapping[str, Any] = found["deliberation"]
    return seen


def _row(
    conversation: Conversation,
    question: Question,
    policy: str,
    seen: Mapping[str, Any],
    without: _Answered,
    with_scan: _Answered,
) -> Row:
    contains = None
    if without.contains is not None and with_scan.contains is not None:
        contains = (without.contains, with_scan.contains)
    return Row(
        conversation=conversation.id,
        question_id=question.id,
        category=question.category,
        policy=policy,
        escalated=bool(seen["escalated"]),
        failed=tuple(c["check"] for c in seen["gates"] if not c["passed"]),
        recall_all=(without.recall_all, with_scan.recall_all),
        contains=contains,
        milliseconds=(without.milliseconds, with_scan.milliseconds),
    )


def outcomes(rows: Sequence[Row]) -> dict[str, dict[str, Outcome]]:
    """By policy and category; ``all`` holds every category together."""
    found: dict[str, dict[str, Outcome]] = {}
    for policy in dict.fromkeys(row.policy for row in rows):
        own = [row for row in rows if row.policy == policy]
        groups = {"all": own}
        for row in own:
            groups.setdefault(row.category, []).append(row)
        found[policy] = {name: _outcome(group) for name, group in groups.items()}
    return found


def _outcome(rows: Sequence[Row]) -> Outcome:
    escalated = [row for row in rows if row.escalated]
    recall = [row.recall_all for row in escalated]
    contains = [row.contains for row in escalated if row.contains is not None]
    return Outcome(
        questions=len(rows),
        rate=len(escalated) / len(rows),
        recall_all=_means(recall) if recall else None,
        recall_gain=_gain(recall),
        contains=_means(contains) if contains else None,
        contains_gain=_gain(contains),
        milliseconds=_means([row.milliseconds for row in rows]),
    )


def _means(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    first, second = (sum(pair[i] for pair in pairs) / len(pairs) for i in (0, 1))
    return first, second


def _gain(pairs: Sequence[tuple[float, float]]) -> Interval | None:
    return bootstrap_interval([after - before for before, after in pairs]) if pairs else None
