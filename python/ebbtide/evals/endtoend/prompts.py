"""Prompts of the answering model and of the judge.

The words are our own; the rules are those of the DMF paper's appendix A: a short
phrase for LoCoMo, in the context's words, with dates from the sessions' dates; the
date of the question for LongMemEval and no limit on length; a binary judge that
grants partial credit, paraphrases, extra detail, dates within 14 days, durations
within half, and refusals where the gold answer is one.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from ebbtide.evals.datasets import LOCOMO_CATEGORIES, Question
from ebbtide.llm.replies import Message

__all__ = ["VERDICT_SCHEMA", "answer_messages", "judge_messages", "prompts_sha256"]

_TEMPORAL = LOCOMO_CATEGORIES[2]

_SHORT_ANSWER = """\
These are excerpts of a conversation between two people, each with its date:

{context}

Answer the question below from these excerpts. Write a few words, no full sentence, \
and take them over from the excerpts where they fit.{dates}

Question: {question}
Answer:"""

_DATES = (
    " The answer is about time: work it out from the date of the session in which"
    " something was said, and give a date even if only an approximate one is possible."
)

_FREE_ANSWER = """\
These are excerpts of earlier chats between a user and an assistant, each with its date:

{context}

Today is {today}. Answer the user's question from what these chats say.

Question: {question}
Answer:"""

_JUDGE_ROLE = (
    "You check whether a system remembers a conversation correctly."
    ' Reply with one JSON object, {"verdict": "yes"} or {"verdict": "no"}, and nothing else.'
)

_JUDGE = """\
Is the reply to the question right, measured by the reference? Say "yes" or "no".

{about}Question: {question}
Reference: {gold}
Reply: {answer}

How to decide:
- The reference may list several things; a reply that has one of them right is right.
- Only the meaning counts. Other words, another order or another level of detail are fine, \
and so is anything the reply adds.
- A reply that means the same person, place, thing or idea as the reference is right, \
however it describes it.
- A date is right up to two weeks away from the reference, a length of time up to half as \
long again or half as short, and "last Friday" or the like if it means the same time.
- Where the reference says that the answer is not known, a reply that declines is right.
- Say "no" only to a reply that has nothing of the reference in it, contradicts it, or is \
about something else."""

VERDICT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"verdict": {"type": "string", "enum": ["yes", "no"]}},
    "required": ["verdict"],
    "additionalProperties": False,
}
"""The judge's reply."""


def answer_messages(question: Question, context: str) -> list[Message]:
    """What the answering model is sent: one message, without a system prompt.

    Args:
        question: One with a ``query_time`` is asked as in LongMemEval, one without
            as in LoCoMo.
        context: What a system puts before the reader.
    """
    if question.query_time is None:
        dates = _DATES if question.category == _TEMPORAL else ""
        content = _SHORT_ANSWER.format(context=context, dates=dates, question=question.text)
    else:
        content = _FREE_ANSWER.format(context=context, today=_day(question), question=question.text)
    return [{"role": "user", "content": content}]


def judge_messages(question: Question, answer: str) -> list[Message]:
    """What the judge is sent; the kind and date of a question where the data has dates."""
    about = ""
    if question.query_time is not None:
        about = f"Kind of question: {question.category}\nAsked on: {_day(question)}\n"
    content = _JUDGE.format(
        about=about, question=question.text, gold=question.answer, answer=answer
    )
    return [{"role": "system", "content": _JUDGE_ROLE}, {"role": "user", "content": content}]


def prompts_sha256() -> str:
    """SHA-256 of every word in this module that a model is sent."""
    words = [_SHORT_ANSWER, _DATES, _FREE_ANSWER, _JUDGE_ROLE, _JUDGE, VERDICT_SCHEMA]
    return hashlib.sha256(json.dumps(words, sort_keys=True).encode()).hexdigest()


def _day(question: Question) -> str:
    when = question.query_time
    return "" if when is None else f"{when:%A}, {when.day} {when:%B %Y}, {when:%H:%M}"
