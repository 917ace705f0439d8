"""End to end, optional: a language model answers from the context and another judges.

It needs an OpenAI-compatible endpoint and ``pip install "ebbtide[eval,llm]"``;
everything else in :mod:`ebbtide.evals` needs neither.
"""

from __future__ import annotations

from ebbtide.evals.endtoend.answer import Answer, answer_question
from ebbtide.evals.endtoend.judge import Verdict, judge_answer
from ebbtide.evals.endtoend.protocols import PROTOCOLS, Protocol, protocol_of
from ebbtide.evals.endtoend.run import end_to_end
from ebbtide.evals.endtoend.scores import TokenUse, bleu1, exact_match, token_f1
from ebbtide.evals.endtoend.summary import summary_markdown

__all__ = [
    "PROTOCOLS",
    "Answer",
    "Protocol",
    "TokenUse",
    "Verdict",
    "answer_question",
    "bleu1",
    "end_to_end",
    "exact_match",
    "judge_answer",
    "protocol_of",
    "summary_markdown",
    "token_f1",
]
