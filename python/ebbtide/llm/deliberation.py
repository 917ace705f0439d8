"""D-Mem's own procedure, for memories that have a language model.

Answer from what was recalled; judge that answer by the rubric of three parts; where one
fails, have facts extracted from the whole history chunk by chunk, filter them, and answer
from those (the D-Mem paper, sections 3.2 and 3.3). The words of the prompts are our own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ebbtide.errors import ExternalError
from ebbtide.llm.replies import Usage
from ebbtide.llm.seam import (
    LONGEST_MESSAGE,
    ONLY_JSON,
    JsonModel,
    Meter,
    failure,
    object_schema,
    text_given,
    whole_given,
)

__all__ = ["TOP", "Line", "Ruling", "deliberate"]

TOP = 30
"""Recalled turns that the first answer is given from (the paper's)."""

_CHUNK_CHARS = 6 * LONGEST_MESSAGE
"""Most characters that are read at once, so that a few long turns fit into a prompt, too."""

_RUBRIC = ("relevance", "faithfulness_consistency", "completeness")


@dataclass(frozen=True, slots=True)
class Line:
    """A turn as the model reads it: its id, and one line with date, speaker and text."""

    interaction_id: int
    text: str


@dataclass(slots=True)
class Ruling:
    """What the model decided, as far as it came.

    Attributes:
        escalate: Whether the history is to be read; None: not decided here.
        facts: Turns and scores from 0 to 10 that it took from the history; None
            where it did not read it to the end.
        read: What it read of the history, in the words of the rules' own scan.
        stages: What was asked, in order: ``answer``, ``judge``, ``extract``,
            ``filter``, ``answer``; each with what came of it.
        answer: Its last answer.
        failed: Why it was given up. Then the deterministic rules decide, unless it was
            the answer from the facts, on which nothing hangs.
        usage: Tokens, logically: replies from a cache count.
    """

    escalate: bool | None = None
    facts: list[tuple[int, float]] | None = None
    read: dict[str, int] = field(default_factory=dict)
    stages: list[dict[str, Any]] = field(default_factory=list)
    answer: str | None = None
    failed: str | None = None
    usage: Usage = field(default_factory=Usage)

    @property
    def holds(self) -> bool:
        """Whether it came as far as to say which evidence there is."""
        return self.failed is None or self.facts is not None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a trace."""
        return {
            "stages": self.stages,
            "answer": self.answer,
            "failed": self.failed,
            "tokens": self.usage.total,
            "calls": self.usage.calls,
        }


def deliberate(
    model: JsonModel,
    question: str,
    recalled: Sequence[Line],
    history: Callable[[], Iterable[Line]],
    settings: Mapping[str, Any],
    *,
    judges: bool = True,
    escalate: bool | None = None,
    answers: bool = True,
) -> Ruling:
    """Run the procedure; a failing model ends it, and never raises.

    Args:
        model: The model.
        question: The question.
        recalled: What the usual recall found, best first.
        history: The whole history, oldest first; called only where it is read.
        settings: ``[deliberation]`` of the configuration.
        judges: Whether an answer is given and judged first.
        escalate: What is decided already, where it does not judge.
        answers: Whether an answer is given from the facts.
    """
    ruling = Ruling(escalate=escalate)
    meter = Meter(model)
    try:
        if judges:
            best = next(_chunks(recalled, TOP), [])
            ruling.answer = _answer(meter, ruling, question, [line.text for line in best])
            ruling.escalate = _judge(meter, ruling, question, best)
        if ruling.escalate:
            found = _extract(meter, ruling, question, history, settings)
            kept = _filtered(meter, ruling, question, found, settings)
            ruling.facts = [(fact.interaction_id, fact.score) for fact in kept]
            if answers and kept:
                ruling.answer = _answer(meter, ruling, question, [fact.text for fact in kept])
    except Exception as error:  # whatever a caller's model raises, there is an answer
        ruling.failed = failure(error)
    ruling.usage = meter.usage
    return ruling


@dataclass(frozen=True, slots=True)
class _Fact:
    interaction_id: int
    text: str
    score: float


def _answer(meter: Meter, ruling: Ruling, question: str, memories: Sequence[str]) -> str:
    reply = meter.complete_json(_ANSWER, _about(question, "Memories", memories), _ANSWER_SCHEMA)
    answer = text_given("answer", reply["answer"])
    ruling.stages.append({"stage": "answer", "memories": len(memories), "answer": answer})
    return answer


def _judge(meter: Meter, ruling: Ruling, question: str, recalled: Sequence[Line]) -> bool:
    user = _about(question, "Memories", [line.text for line in recalled])
    reply = meter.complete_json(_JUDGE, f"{user}\n\nAnswer: {ruling.answer}", _JUDGE_SCHEMA)
    verdict = {part: text_given(part, reply[part]) for part in _RUBRIC}
    if not set(verdict.values()) <= {"pass", "fail"}:
        raise ExternalError(f"the judge said {verdict}", "llm.answer")
    ruling.stages.append({"stage": "judge", **verdict})
    return "fail" in verdict.values()


def _extract(
    meter: Meter,
    ruling: Ruling,
    question: str,
    history: Callable[[], Iterable[Line]],
    settings: Mapping[str, Any],
) -> list[_Fact]:
    found: list[_Fact] = []
    before: list[Line] = []
    chunks = messages = 0
    wants_context = settings["context_messages"] > 0
    for chunk in _chunks(history(), settings["chunk_messages"]):
        chunks += 1
        messages += len(chunk)
        lines = [f"{number}. {line.text}" for number, line in enumerate(chunk, start=1)]
        earlier = "\n".join(line.text for line in before) or "(none)"
        user = f"Read only, for context:\n{earlier}\n\n{_about(question, 'Messages', lines)}"
        reply = meter.complete_json(_EXTRACT, user, _EXTRACT_SCHEMA)
        found += _facts_of(reply, chunk, settings["emit_score"])
        before = (before + chunk)[-settings["context_messages"] :] if wants_context else []
    ruling.stages.append({"stage": "extract", "chunks": chunks, "facts": len(found)})
    each = {"sentences": len(found), "emitted": len(found)}
    ruling.read = {"chunks": chunks, "messages": messages, **each}
    return sorted(found, key=lambda f: (-f.score, f.interaction_id, f.text))


def _chunks(lines: Iterable[Line], most: int) -> Iterator[list[Line]]:
    """Lines in their order, at most so many at once, and of long ones fewer."""
    chunk: list[Line] = []
    chars = 0
    for line in lines:
        if chunk and (len(chunk) == most or chars + len(line.text) > _CHUNK_CHARS):
            yield chunk
            chunk, chars = [], 0
        chunk.append(line)
        chars += len(line.text)
    if chunk:
        yield chunk


def _facts_of(reply: Mapping[str, Any], chunk: Sequence[Line], least: float) -> Iterator[_Fact]:
    """The facts that name a message of the chunk: a model may make one up."""
    for row in reply["facts"]:
        number, score = _place(row["message"]), row["score"]
        if isinstance(score, bool) or not isinstance(score, int | float):
            raise ExternalError("the score of a fact is no number", "llm.answer")
        if 1 <= number <= len(chunk) and least <= score <= 10.0:
            fact = text_given("fact", row["fact"])
            yield _Fact(chunk[number - 1].interaction_id, fact, float(score))


def _filtered(
    meter: Meter,
    ruling: Ruling,
    question: str,
    found: Sequence[_Fact],
    settings: Mapping[str, Any],
) -> Sequence[_Fact]:
    kept = [fact for fact in found if fact.score > settings["keep_score"]]
    if not kept:
        return found[: settings["fallback_limit"]]
    if len(kept) <= settings["filter_above"]:
        return kept
    lines = [f"{number}. {fact.text}" for number, fact in enumerate(kept, start=1)]
    reply = meter.complete_json(_FILTER, _about(question, "Facts", lines), _FILTER_SCHEMA)
    wanted = {_place(number) for number in reply["indexes"]}
    chosen = [fact for number, fact in enumerate(kept, start=1) if number in wanted]
    ruling.stages.append({"stage": "filter", "facts": len(kept), "kept": len(chosen)})
    # As with Mem0*: a filter that leaves nothing is not followed.
    return (chosen or kept)[: settings["budget"]]


def _place(number: Any) -> int:
    """A place in a list.

    Raises:
        ExternalError: ``llm.answer``: it is no whole number.
    """
    found = whole_given(number)
    if found is None:
        raise ExternalError("a number in the reply is not whole", "llm.answer")
    return found


def _about(question: str, heading: str, lines: Sequence[str]) -> str:
    return f"{heading}:\n" + ("\n".join(lines) or "(none)") + f"\n\nQuestion: {question}"


_ANSWER = (
    "You answer questions about a conversation from remembered lines of it, each with its"
    " date and speaker. Use only these lines. Where two contradict each other, the later one"
    " counts. Turn relative dates into calendar dates, counted from the line's own date."
    ' Answer in a few words. Where the lines do not say, the answer is "unknown".' + ONLY_JSON
)
_JUDGE = (
    "You check an answer that was given from remembered lines of a conversation. Three things"
    " pass or fail, each by itself. relevance: the answer is about the question and answers"
    " it; not knowing fails. faithfulness_consistency: everything in the answer is in the"
    " lines, and no later line contradicts it. completeness: nothing that the question asks"
    " for is missing." + ONLY_JSON
)
_EXTRACT = (
    "You collect what helps to answer a question. Go through the numbered messages and write"
    " down each fact that helps, as a sentence that can be understood alone: with its date and"
    " speaker, names for pronouns. Take nothing from the lines that are for context only. Give"
    " the number of the message and a score from 0 to 10: 5 or 6 for something related, 7 or 8"
    " for a clear contribution, 9 or 10 for what the answer needs. Leave out what scores under"
    " 5; the list may be empty." + ONLY_JSON
)
_FILTER = (
    "You choose the facts that a question needs. Give the numbers of those that help to answer"
    " it; of two that say the same, one. Do not answer the question." + ONLY_JSON
)


_ANSWER_SCHEMA = object_schema({"answer": {"type": "string"}})
_JUDGE_SCHEMA = object_schema(
    {part: {"type": "string", "enum": ["pass", "fail"]} for part in _RUBRIC}
)
_FACT = object_schema(
    {
        "message": {"type": "integer"},
        "fact": {"type": "string"},
        "score": {"type": "integer"},
    }
)
_EXTRACT_SCHEMA = object_schema({"facts": {"type": "array", "items": _FACT}})
_FILTER_SCHEMA = object_schema({"indexes": {"type": "array", "items": {"type": "integer"}}})
