"""One question answered from one context."""

from __future__ import annotations

from dataclasses import dataclass

from ebbtide.evals.datasets import Question
from ebbtide.evals.endtoend.prompts import answer_messages
from ebbtide.llm.replies import LanguageModel, Usage

__all__ = ["ANSWER_TOKENS", "Answer", "answer_question"]

ANSWER_TOKENS = 512
"""Most tokens of an answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer.

    Attributes:
        text: What the model wrote, without white space around it.
        usage: What it cost, or cost when it was first asked.
        cached: Whether it comes from the cache.
    """

    text: str
    usage: Usage
    cached: bool


def answer_question(
    client: LanguageModel, question: Question, context: str, *, max_tokens: int = ANSWER_TOKENS
) -> Answer:
    """Have a model answer a question from a context.

    Args:
        client: The model.
        question: The question; see :func:`~ebbtide.evals.endtoend.prompts.answer_messages`.
        context: What a system puts before the reader.
        max_tokens: Most tokens of the answer.

    Raises:
        ExternalError: ``llm.unavailable``, ``llm.request`` (the context may be too long
            for the model) or ``llm.answer``.
    """
    reply = client.ask(answer_messages(question, context), max_tokens=max_tokens)
    return Answer(reply.text.strip(), reply.usage, reply.cached)
