"""Systems answered from and judged end to end, resumable, one part a conversation.

    DIR/plan.json               what is being run; a second call goes on with it
    DIR/parts/SYSTEM/N.json     finished conversations
    DIR/parts/SYSTEM/N.jsonl    the questions answered so far of one that is not
    DIR/answers.jsonl           one row a (system, question)
    DIR/summary.json            scores by category, tokens by system, versions, digest
    DIR/summary.md              the same as tables

One request at a time: an endpoint decides how fast this goes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from ebbtide.errors import EbbtideError, InputError
from ebbtide.evals.datasets import LOCOMO_CATEGORIES, Conversation, Question
from ebbtide.evals.endtoend.answer import ANSWER_TOKENS, answer_question
from ebbtide.evals.endtoend.judge import judge_answer
from ebbtide.evals.endtoend.prompts import prompts_sha256
from ebbtide.evals.endtoend.protocols import Protocol
from ebbtide.evals.endtoend.scores import TokenUse, bleu1, exact_match, token_f1
from ebbtide.evals.endtoend.summary import summarise, summary_markdown
from ebbtide.evals.parts import Progress, claim
from ebbtide.evals.provenance import machine
from ebbtide.evals.results import rows_digest
from ebbtide.evals.run import Plan, finished
from ebbtide.evals.sampling import draw
from ebbtide.evals.systems import System, open_system
from ebbtide.files import read_json, write_json, write_text, writing
from ebbtide.llm.replies import LanguageModel, Usage

__all__ = ["end_to_end"]

_CONTEXT_TOKENS = 2048
_ADVERSARIAL = LOCOMO_CATEGORIES[5]

_Chosen = tuple[int, str, str]
"""Conversation number, question id, category."""


@dataclass(frozen=True, slots=True)
class _Models:
    """Who answers, who judges, whose memory is metered, and the limits of contexts and answers."""

    answerer: LanguageModel
    judge: LanguageModel
    memory: LanguageModel | None
    context_tokens: int
    answer_tokens: int


def end_to_end(
    plan: Plan,
    out: Path,
    client: LanguageModel,
    *,
    judge: LanguageModel | None = None,
    memory: LanguageModel | None = None,
    context_tokens: int | None = None,
    answer_tokens: int = ANSWER_TOKENS,
    per_category: int | None = None,
    protocol: Protocol | None = None,
    fresh: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Answer and judge the questions of a plan, going on where an earlier call stopped.

    Questions without a gold answer and LoCoMo's adversarial ones are left out and
    counted, as the papers do.

    Args:
        plan: What to run; its ``budgets`` play no part.
        out: The directory; made where it is missing.
        client: The model that answers.
        judge: The model that judges; the same one where none is given.
        memory: The model that the systems themselves use, if any: what it costs
            between two questions is the memory's part of the token table.
        context_tokens: Budget of a context; None: the protocol's, or 2,048.
        answer_tokens: Most tokens of an answer.
        per_category: Most questions of each category, drawn by ``plan.seed``; None
            for all.
        protocol: A named run, which brings its own ``per_category``.
        fresh: Start over, whatever the directory holds.
        progress: Told of the questions done.

    Returns:
        The summary.

    Raises:
        InputError: The directory holds another run, the data cannot be read or holds
            no question, or an argument is out of range.
        ExternalError: ``llm.unavailable``: the endpoint cannot be used; what is
            answered stays. ``llm.request``, ``llm.answer``: every question of a
            system and conversation failed.
    """
    if protocol is not None:
        per_category = protocol.per_category
    if context_tokens is None:
        context_tokens = protocol.context_tokens if protocol else _CONTEXT_TOKENS
    if context_tokens < 1 or answer_tokens < 1 or (per_category is not None and per_category < 1):
        message = "context_tokens, answer_tokens and per_category must be at least 1"
        raise InputError(message, "input.field")
    models = _Models(client, judge or client, memory, context_tokens, answer_tokens)
    plan.check()
    identity = plan.identity() | _identity(models, per_category)
    out = Path(out)
    identity["protocol"] = protocol.name if protocol else None
    chosen, left_out = _choose(plan, per_category, protocol)
    if not chosen:
        raise InputError(f"{plan.data.name} holds no question to answer", "input.transcript")
    claim(out, identity, fresh=fresh)
    spent = models.answerer.spent, models.judge.spent
    done, every = 0, len(chosen) * len(plan.systems)
    names: list[str] = []
    for number, conversation in _asked(plan, chosen):
        names.append(f"{number:05d}.json")
        for system in plan.systems:
            part = out / "parts" / system / names[-1]
            if not part.exists():
                write_json(part, _run_part(plan, system, conversation, models, _Begun(part)))
                _Begun(part).forget()
            done += len(conversation.questions)
            if progress is not None:
                progress(done, every)
    summary = _merge(plan, out, identity, names)
    summary |= {
        "left_out": left_out,
        "short": protocol.short([name for _, _, name in chosen]) if protocol else {},
        "source": protocol.source if protocol else None,
        "spent": _spent(models, *spent),
    }
    write_json(out / "summary.json", summary)
    write_text(out / "summary.md", summary_markdown(summary))
    return summary


def _identity(models: _Models, per_category: int | None) -> dict[str, Any]:
    """What makes two runs the same besides the plan: models, limits, and the prompts' words."""
    return {
        "answerer": models.answerer.identity(),
        "judge": models.judge.identity(),
        "context_tokens": models.context_tokens,
        "answer_tokens": models.answer_tokens,
        "per_category": per_category,
        "prompts_sha256": prompts_sha256(),
    }


def _choose(
    plan: Plan, per_category: int | None, protocol: Protocol | None
) -> tuple[set[_Chosen], int]:
    """The questions to ask, and how many are left out."""
    by_category: dict[str, list[tuple[str, _Chosen]]] = {}
    count = 0
    for number, conversation in enumerate(plan.conversations(), start=1):
        if protocol is not None:
            protocol.check(conversation)
        count += len(conversation.questions)
        for question in conversation.questions:
            if not question.answer.strip() or question.category == _ADVERSARIAL:
                continue
            place = draw(plan.seed, conversation.id, question.id)
            one = (number, question.id, question.category)
            by_category.setdefault(question.category, []).append((place, one))
    chosen = {one for drawn in by_category.values() for _, one in sorted(drawn)[:per_category]}
    return chosen, count - len(chosen)


def _asked(plan: Plan, chosen: set[_Chosen]) -> Iterator[tuple[int, Conversation]]:
    """The conversations that are asked something, with those questions only."""
    for number, conversation in enumerate(plan.conversations(), start=1):
        questions = [q for q in conversation.questions if (number, q.id, q.category) in chosen]
        if questions:
            yield number, replace(conversation, questions=questions)


class _Begun:
    """Rows of a conversation that is not finished, so that none is paid for twice."""

    def __init__(self, part: Path) -> None:
        self._path = part.with_suffix(".jsonl")

    def rows(self) -> dict[str, dict[str, Any]]:
        """By question id; a line that was cut off is asked for anew."""
        found: dict[str, dict[str, Any]] = {}
        if self._path.exists():
            for line in self._path.read_text(encoding="utf-8").splitlines():
                try:
                    row = json.loads(line)
                    found[row["question_id"]] = row
                except (KeyError, TypeError, ValueError):
                    continue
        return found

    def add(self, row: Mapping[str, Any]) -> None:
        """Keep a row."""
        with writing(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                # The line end comes first: what was cut off before stays a line of its own.
                file.write("\n" + json.dumps(row))

    def forget(self) -> None:
        """The conversation is finished."""
        self._path.unlink(missing_ok=True)


def _run_part(
    plan: Plan, system: str, conversation: Conversation, models: _Models, begun: _Begun
) -> dict[str, Any]:
    """One system on one conversation: what taking it in cost, and the rows."""
    names = {"dataset": plan.dataset, "system": system, "conversation": conversation.id}
    failure: EbbtideError | None = None
    rows = []
    answered = begun.rows()
    before = _logical(models.memory)
    with open_system(system, conversation, plan.options) as opened:
        taken_in = _logical(models.memory) - before
        for question in conversation.questions:
            row = answered.get(question.id)
            if row is None:
                asked, error = _row(opened, question, models)
                row = names | asked
                failure = failure or error
                if error is None:
                    begun.add(row)
            rows.append(row)
    if failure is not None and all(row["error"] for row in rows):
        raise type(failure)(
            f"no question about {conversation.id} could be answered with {system}: {failure}",
            failure.code,
        )
    use = TokenUse(memory_prompt=taken_in.prompt, memory_completion=taken_in.completion)
    return names | {"taking_in": asdict(use), "rows": rows}


def _row(
    system: System, question: Question, models: _Models
) -> tuple[dict[str, Any], EbbtideError | None]:
    """A question's row, and what went wrong with its answer, if anything."""
    before = _logical(models.memory)
    context = system.context(question, models.context_tokens)
    remembered = _logical(models.memory) - before
    row: dict[str, Any] = {
        "question_id": question.id,
        "category": question.category,
        "question": question.text,
        "gold": question.answer,
        "context_tokens": context.tokens,
        "answer": None,
        "correct": None,
        "error": None,
    }
    use = TokenUse(memory_prompt=remembered.prompt, memory_completion=remembered.completion)
    asked = models.answerer.logical
    try:
        answer = answer_question(
            models.answerer, question, context.text, max_tokens=models.answer_tokens
        )
    except EbbtideError as error:
        # A context too long for the model is that system's failure, not the run's end.
        if error.code not in ("llm.request", "llm.answer"):
            raise
        use += _answering(models.answerer.logical - asked)
        return row | {"error": str(error)} | _tokens(use), error
    verdict = judge_answer(models.judge, question, answer.text)
    use += _answering(answer.usage)
    use += TokenUse(judge_prompt=verdict.usage.prompt, judge_completion=verdict.usage.completion)
    scores = {
        "answer": answer.text,
        "correct": verdict.correct,
        "exact_match": exact_match(answer.text, question.answer),
        "token_f1": token_f1(answer.text, question.answer),
        "bleu1": bleu1(answer.text, question.answer),
    }
    return row | scores | _tokens(use), None


def _answering(usage: Usage) -> TokenUse:
    return TokenUse(answer_prompt=usage.prompt, answer_completion=usage.completion)


def _tokens(use: TokenUse) -> dict[str, int]:
    return asdict(use) | {"total": use.total}


def _logical(model: LanguageModel | None) -> Usage:
    return Usage() if model is None else model.logical


def _spent(models: _Models, answerer: Usage, judge: Usage) -> dict[str, Any]:
    """What this call asked of the endpoints; what came from a cache or a part is not in it."""
    spent = {"answerer": asdict(models.answerer.spent - answerer)}
    if models.judge is not models.answerer:
        spent["judge"] = asdict(models.judge.spent - judge)
    return spent


def _merge(
    plan: Plan, out: Path, identity: Mapping[str, Any], names: Sequence[str]
) -> dict[str, Any]:
    """Rows in one file and the scores of each system that has them all."""
    read = {
        system: [read_json(out / "parts" / system / name, dict) for name in names]
        for system in finished(out / "parts", names)
    }
    rows = [row for held in read.values() for part in held for row in part["rows"]]
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    write_text(out / "answers.jsonl", "".join(lines))
    return {
        **identity,
        "systems": {system: summarise(held) for system, held in read.items()},
        "command": plan.command,
        "machine": machine(),
        "date": date.today().isoformat(),
        "digest": rows_digest(rows),
    }
