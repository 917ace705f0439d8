"""The part that a language model has in what a memory takes in."""

from __future__ import annotations

import threading
from collections.abc import Container, Mapping
from typing import Any, Protocol

from ebbtide.llm.seam import JsonModel
from ebbtide.llm.utility import Assessment, Critic
from ebbtide.llm.writing import Author, Desk

__all__ = ["Said", "WritingPart"]


class Said(Protocol):
    """A turn, as far as a model is told of it."""

    @property
    def text(self) -> str:
        """What was said."""
        ...

    @property
    def role(self) -> str:
        """Its role."""
        ...

    @property
    def speaker(self) -> str | None:
        """Who said it."""
        ...


class WritingPart:
    """Which turns a model judges and which episodes it writes, by ``[policy]``.

    It is asked while turns queue up for the memory and never within a transaction, so a
    slow model delays writers but holds neither the store nor Python's lock.
    """

    def __init__(self, policy: Mapping[str, Any], model: JsonModel | None) -> None:
        """Read the switches.

        Args:
            policy: ``[policy]`` of the configuration.
            model: The memory's language model; without one the rules decide.
        """
        judges = policy["gate"] == "rpe" and policy["rpe"]["utility"] == "llm"
        gathers = policy["consolidation"] == "recurrence"
        writes = policy["recurrence"]["writer"] == "llm"
        self._critic = Critic(model) if judges else None
        # What an earlier process left unwritten is finished, whoever writes now.
        self._author = Author(model if writes else None) if gathers else None
        self._one_by_one = gathers and writes
        # So that a read need not look.
        self._settled = self._author is None

    def assess(self, turn: Said) -> Assessment | None:
        """What the model says of a turn; None where it is not asked."""
        if self._critic is None:
            return None
        return self._critic.assess(turn.text, turn.role, turn.speaker)

    def assess_pending(self, known: Container[int], number: int, turn: Said) -> Assessment | None:
        """The same of a journalled turn, unless something is known of it already."""
        return None if number in known else self.assess(turn)

    @property
    def judges(self) -> bool:
        """Whether turns are judged by a model."""
        return self._critic is not None

    @property
    def settled(self) -> bool:
        """Whether nothing can be left to write."""
        return self._settled

    def parts(self, batch: list[Any]) -> list[list[Any]]:
        """A batch in the parts that are stored together.

        Where episodes are written by a model that is one turn, so that what it reads,
        and what the rules do where it fails, cannot depend on the size of a batch.
        """
        if not self._one_by_one or not batch:
            return [batch]
        return [[turn] for turn in batch]

    def settle(self, desk: Desk) -> None:
        """Write what is to be written; the caller keeps other writers out."""
        if self._author is not None:
            self._settled = False
            self._settled = self._author.settle(desk)

    def settle_leftovers(self, desk: Desk, lock: threading.RLock) -> None:
        """The same for what a killed process left, unless a writer is at it anyway."""
        if not self._settled and lock.acquire(blocking=False):
            try:
                self.settle(desk)
            finally:
                lock.release()
