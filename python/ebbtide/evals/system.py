"""What the harness asks of a system that remembers conversations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ebbtide.evals.datasets import Question

__all__ = ["Context", "Ranking", "System"]


@dataclass(frozen=True, slots=True)
class Ranking:
    """External ids of turns, best first, and how sure the system is of the first."""

    ids: list[str]
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """A rendered context: its text, its tokens, the external ids of the turns in it."""

    text: str
    tokens: int
    shown: frozenset[str]


class System(Protocol):
    """A system that has taken in a conversation."""

    def rank(self, question: Question, limit: int) -> Ranking | None:
        """The best turns for a question; None where the system does not rank."""
        ...

    def context(self, question: Question, max_tokens: int) -> Context:
        """What it would put before a reader under a token budget."""
        ...

    def facts(self) -> Mapping[str, Any]:
        """``llm_tokens``, ``state_bytes``, ``digest``: those that it knows."""
        ...
