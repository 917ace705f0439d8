"""Utility of a turn by a language model, as D-MEM has it (section 4.1).

One small request a turn: how long what it says matters, and how much. The words of the
prompt are our own; the lifecycle, the forced 0 of what is transient and the range
(0, 1] of the rest are the paper's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ebbtide.errors import ExternalError
from ebbtide.llm.seam import (
    ONLY_JSON,
    JsonModel,
    Meter,
    failure,
    message_line,
    object_schema,
    text_given,
)

__all__ = ["ABSENT", "Assessment", "Critic"]

ABSENT = "llm.unavailable: the memory was opened without a language model"
"""Why the rules decide in a memory that has none."""

_LIFECYCLES = ("transient", "short_term", "persistent")


@dataclass(frozen=True, slots=True)
class Assessment:
    """What a model said of a turn, or why it said nothing.

    Attributes:
        lifecycle: ``transient``, ``short_term`` or ``persistent``; None where it failed.
        utility: In [0, 1], 0 for what is transient and only for that.
        failed: Why the rules decide.
        calls: Replies.
        tokens: Their tokens, logically: replies from a cache count.
    """

    lifecycle: str | None = None
    utility: float | None = None
    failed: str | None = None
    calls: int = 0
    tokens: int = 0

    def for_core(self) -> tuple[Any, ...]:
        """In the form that the core reads."""
        return self.lifecycle, self.utility, self.failed, (self.calls, self.tokens)


class Critic:
    """Asks a model about turns. Safe to share between threads if the model is."""

    def __init__(self, model: JsonModel | None) -> None:
        """Name the model; without one every turn is left to the rules."""
        self._model = model

    def assess(self, text: str, role: str, speaker: str | None) -> Assessment | None:
        """What the model says of a turn; a failing model never raises.

        Args:
            text: What was said.
            role: Its role.
            speaker: Who said it.

        Returns:
            None for turns of the system and of tools, which are never transient.
        """
        if role in ("system", "tool"):
            return None
        if self._model is None:
            return Assessment(failed=ABSENT)
        meter = Meter(self._model)
        lifecycle = utility = failed = None
        try:
            said = message_line(speaker or role, text)
            lifecycle, utility = _judged(meter.complete_json(_SYSTEM, said, _SCHEMA))
        except Exception as error:  # whatever a caller's model raises, the turn is kept
            failed = failure(error)
        return Assessment(lifecycle, utility, failed, *meter.cost)


def _judged(reply: dict[str, Any]) -> tuple[str, float]:
    lifecycle, utility = text_given("lifecycle", reply["lifecycle"]), reply["utility"]
    if lifecycle not in _LIFECYCLES:
        raise ExternalError(f"there is no lifecycle {lifecycle!r}", "llm.answer")
    if lifecycle == "transient":
        return lifecycle, 0.0
    if isinstance(utility, bool) or not isinstance(utility, int | float):
        raise ExternalError(f"utility is no number: {utility!r}", "llm.answer")
    if not 0.0 < utility <= 1.0:
        message = f"utility {utility} of a turn that is {lifecycle} is not in (0, 1]"
        raise ExternalError(message, "llm.answer")
    return lifecycle, float(utility)


_SYSTEM = (
    "You decide what a long-term memory of a conversation keeps. You are given one message"
    " with its speaker. First say how long it matters. transient: small talk, thanks, an"
    " acknowledgement, or a state that is over in a moment, with nothing that could be asked"
    " for later. short_term: what was done or is planned, a task or an event that matters for"
    " days or weeks. persistent: what holds for months or for good: who somebody is, family,"
    " work, home, health, possessions, preferences, rules, decisions, and each change of one."
    " Then give its utility: 0 if it is transient; else more than 0 and at most 1, the higher"
    " the likelier a later question needs it. Judge the message alone." + ONLY_JSON
)
_SCHEMA = object_schema(
    {
        "lifecycle": {"type": "string", "enum": list(_LIFECYCLES)},
        "utility": {"type": "number"},
    }
)
