"""One answer judged: right or wrong, nothing between."""

from __future__ import annotations

from dataclasses import dataclass

from ebbtide.errors import EbbtideError
from ebbtide.evals.datasets import Question
from ebbtide.evals.endtoend.prompts import VERDICT_SCHEMA, judge_messages
from ebbtide.llm.replies import LanguageModel, Usage

__all__ = ["JUDGE_TOKENS", "Verdict", "judge_answer"]

JUDGE_TOKENS = 64
"""Most tokens of a verdict."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict.

    Attributes:
        correct: Whether the answer is right; None where the judge gave no verdict.
            Such rows are outside of the accuracy ("Judge Count" in the DMF paper's
            table 7 counts the others).
        usage: What it cost, or cost when it was first asked.
        cached: Whether it comes from the cache.
    """

    correct: bool | None
    usage: Usage
    cached: bool


def judge_answer(
    client: LanguageModel, question: Question, answer: str, *, max_tokens: int = JUDGE_TOKENS
) -> Verdict:
    """Have a model judge an answer by the gold answer.

    An empty answer is wrong without being asked about.

    Args:
        client: The judge.
        question: The question, with its gold answer.
        answer: What was answered.
        max_tokens: Most tokens of the verdict.

    Raises:
        ExternalError: ``llm.unavailable``; a refused request or an unusable reply is
            a verdict of None instead.
    """
    if not answer.strip():
        return Verdict(False, Usage(), cached=False)
    before = client.logical
    try:
        reply = client.ask(
            judge_messages(question, answer), max_tokens=max_tokens, schema=VERDICT_SCHEMA
        )
    except EbbtideError as error:
        if error.code not in ("llm.request", "llm.answer"):
            raise
        return Verdict(None, client.logical - before, cached=False)
    return Verdict(reply.data["verdict"] == "yes", reply.usage, reply.cached)
