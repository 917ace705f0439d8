"""Scores of an answer against the gold answer, and what answering cost in tokens.

The texts that are compared:

* Exact match and token F1 (DMF paper, section 11.1: "normalized", "token-overlap"):
  lower case, ASCII punctuation removed, ``a``, ``an`` and ``the`` removed, split at
  white space, as SQuAD does (Rajpurkar et al. 2016). Dates are not normalised, so
  the figures stand beside published ones: "2023-03-16" shares nothing with
  "16 March, 2023", which is why the judge is the main figure.
* BLEU-1 (both D-MEM papers): lower case, split into words and punctuation marks.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["TokenUse", "bleu1", "exact_match", "token_f1"]

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = frozenset({"a", "an", "the"})
# Words keep their hyphens and numbers their separators; a clitic stands alone.
_WORD = re.compile(r"\d+(?:[.,:/-]\d+)+(?!\w)|\w+(?:-\w+)*|['\u2019]\w+|[^\w\s]")


def exact_match(answer: str, gold: str) -> float:
    """1.0 if the normalised texts are equal, else 0.0."""
    return float(_normalised(answer) == _normalised(gold))


def token_f1(answer: str, gold: str) -> float:
    """Harmonic mean of precision and recall over the tokens, repetitions counted, 0 to 1.

    1.0 where neither text has a token, 0.0 where only one of them has.
    """
    given, wanted = Counter(_normalised(answer)), Counter(_normalised(gold))
    if not given and not wanted:
        return 1.0
    shared = (given & wanted).total()
    # 2PR / (P + R) with P = shared / given and R = shared / wanted.
    return 2 * shared / (given.total() + wanted.total())


def bleu1(answer: str, gold: str) -> float:
    """BLEU with unigrams against one reference, 0 to 1 (Papineni et al. 2002, eqs. 2, 3).

    Share of the answer's words that the gold answer has, each counted as often as
    there at most, times the brevity penalty exp(1 - r / c) of an answer of c words
    that is shorter than the gold answer's r. 0.0 for an empty answer.
    """
    given, wanted = _words(answer), _words(gold)
    if not given:
        return 0.0
    shared = (Counter(given) & Counter(wanted)).total()
    brevity = min(1.0, math.exp(1.0 - len(wanted) / len(given)))
    return brevity * shared / len(given)


@dataclass(frozen=True, slots=True)
class TokenUse:
    """Tokens of one question, or of many, by the columns of the DMF paper's tables 6 and 8.

    Attributes:
        answer_prompt: "Prompt": what the answering model was sent.
        answer_completion: What it wrote; no column of its own, part of the total.
        memory_prompt: "Mem. Prompt": what the memory sent to a model of its own.
        memory_completion: "Mem. Compl.": what that wrote.
        judge_prompt: What the judge was sent; outside of every column of the paper.
        judge_completion: What the judge wrote; likewise.
    """

    answer_prompt: int = 0
    answer_completion: int = 0
    memory_prompt: int = 0
    memory_completion: int = 0
    judge_prompt: int = 0
    judge_completion: int = 0

    @property
    def input(self) -> int:
        """Prompts of the answer and of the memory: the column "E2E Input"."""
        return self.answer_prompt + self.memory_prompt

    @property
    def memory_total(self) -> int:
        """Prompts and completions of the memory: the column "Mem. Total"."""
        return self.memory_prompt + self.memory_completion

    @property
    def total(self) -> int:
        """Everything but the judge: the column "Rec. E2E"."""
        return self.input + self.memory_completion + self.answer_completion

    def __add__(self, other: TokenUse) -> TokenUse:
        return TokenUse(
            self.answer_prompt + other.answer_prompt,
            self.answer_completion + other.answer_completion,
            self.memory_prompt + other.memory_prompt,
            self.memory_completion + other.memory_completion,
            self.judge_prompt + other.judge_prompt,
            self.judge_completion + other.judge_completion,
        )


def _normalised(text: str) -> Sequence[str]:
    words = text.lower().translate(_PUNCTUATION).split()
    return [word for word in words if word not in _ARTICLES]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
