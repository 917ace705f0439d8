"""Episodes and facts in a language model's words, as RecMem has them.

The memory decides by its rules what is gathered and when (eq. 5 and 6). What is asked of
the model is the text: of a new episode (eq. 7), or of one that a unit was merged into
(eq. 6), then the facts that this text leaves out, with the nearest stored facts before it
(eq. 8 and 9). The words of the prompts are our own.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ebbtide.errors import ExternalError
from ebbtide.llm.seam import (
    ONLY_JSON,
    JsonModel,
    Meter,
    failure,
    message_line,
    object_schema,
    one_line,
    text_given,
    whole_given,
)
from ebbtide.llm.utility import ABSENT

__all__ = ["Author", "Desk", "Written"]

_LONGEST_EPISODE = 4000
_LONGEST_FACT = 1000


class Desk(Protocol):
    """Where assignments come from and go to: the memory's handle."""

    def unwritten(self) -> dict[str, Any] | None:
        """What is to be written next."""
        ...

    def written(self, episode: int, version: int, outcome: tuple[Any, ...]) -> None:
        """Take what was written."""
        ...


@dataclass(slots=True)
class Written:
    """What a model wrote, as far as it came.

    Attributes:
        text: The episode; None: its sentences stand for it.
        facts: Facts with the turns that say them; None: the rules choose.
        failed: Why something is missing.
        calls: Replies.
        tokens: Their tokens, logically: replies from a cache count.
    """

    text: str | None = None
    facts: list[tuple[int, str]] | None = None
    failed: str | None = None
    calls: int = 0
    tokens: int = 0

    def for_core(self) -> tuple[Any, ...]:
        """In the form that the core reads."""
        return self.text, self.facts, self.failed, (self.calls, self.tokens)


class Author:
    """Writes what a memory notes down to be written."""

    def __init__(self, model: JsonModel | None) -> None:
        """Name the model; without one the rules write."""
        self._model = model
        self._busy = threading.local()

    def settle(self, desk: Desk) -> bool:
        """Write all there is, in its order; whoever calls keeps other writers out.

        Returns:
            Whether nothing is left. A model that asks the same memory something while it
            writes is not asked again.

        Raises:
            StoreError: What was written could not be stored; it is still to be written.
        """
        if getattr(self._busy, "now", False):
            return False
        self._busy.now = True
        try:
            while (found := desk.unwritten()) is not None:
                written = self.write(found)
                desk.written(found["episode"], found["version"], written.for_core())
            return True
        finally:
            self._busy.now = False

    def write(self, assignment: Mapping[str, Any]) -> Written:
        """Text and facts of one episode; a failing model ends it, and never raises.

        Args:
            assignment: ``past`` (the text so far, or None), ``messages`` (mappings with
                ``interaction_id``, ``timestamp``, ``speaker`` and ``text``) and
                ``known`` (stored facts, nearest first).
        """
        if self._model is None:
            return Written(failed=ABSENT)
        meter, written = Meter(self._model), Written()
        messages = assignment["messages"]
        try:
            written.text = _told(meter, assignment["past"], messages)
            written.facts = _facts(meter, written.text, messages, assignment["known"])
        except Exception as error:  # whatever a caller's model raises, nothing is lost
            written.failed = failure(error)
        written.calls, written.tokens = meter.cost
        return written


def _told(meter: Meter, past: str | None, messages: Sequence[Mapping[str, Any]]) -> str:
    lines = _numbered(messages)
    if past is None:
        reply = meter.complete_json(_EPISODE, f"Messages:\n{lines}", _EPISODE_SCHEMA)
    else:
        user = f"Episode so far:\n{past}\n\nNew messages:\n{lines}"
        reply = meter.complete_json(_MERGE, user, _EPISODE_SCHEMA)
    return _clean("episode", reply["episode"], _LONGEST_EPISODE)


def _facts(
    meter: Meter, episode: str, messages: Sequence[Mapping[str, Any]], known: Sequence[str]
) -> list[tuple[int, str]]:
    stored = "\n".join(f"- {one_line(fact)}" for fact in known) or "(none)"
    said = f"Episode:\n{episode}\n\nMessages:\n{_numbered(messages)}"
    user = f"{said}\n\nFacts stored already:\n{stored}"
    rows = meter.complete_json(_REFINE, user, _FACTS_SCHEMA)["facts"]
    found: list[tuple[int, str]] = []
    for row in rows:
        number = whole_given(row["message"])
        # A model may make a message up; what nobody said is no fact.
        if number is not None and 1 <= number <= len(messages):
            fact = _clean("fact", row["fact"], _LONGEST_FACT)
            found.append((messages[number - 1]["interaction_id"], fact))
    return found


def _numbered(messages: Sequence[Mapping[str, Any]]) -> str:
    lines = (message_line(m["speaker"], m["text"], m["timestamp"]) for m in messages)
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, start=1))


def _clean(what: str, text: Any, longest: int) -> str:
    """A text on one line.

    Raises:
        ExternalError: ``llm.answer``: it is empty, too long, or no text.
    """
    line = text_given(what, text)
    if not 0 < len(line) <= longest:
        message = f"the {what} has {len(line)} characters, 1 to {longest} are right"
        raise ExternalError(message, "llm.answer")
    return line


_RULES = (
    " Tell of the people who talk: what they do, plan, feel, decide and learn. Stories, examples"
    " and long explanations that they only mention get a few words at most. Keep dates as they"
    " are. A message's date is when it was written; a relative time in it becomes one relative to"
    ' that date, as in "the day before 2024-03-02". Add nothing that the messages do not say.'
)
_EPISODE = (
    "You write the episodes of a long-term memory. The numbered messages come from several days"
    " and are about one thing. Tell in one paragraph of three to six sentences how it went on,"
    " in the order of time: how it began, what changed, what came of it. No list of lasting"
    " facts: those are kept elsewhere." + _RULES + ONLY_JSON
)
_MERGE = (
    "You keep the episodes of a long-term memory up to date. You get an episode so far, and new"
    " messages that go on with it. Give the whole episode anew as one paragraph in the order of"
    " time, with what matters of both, not much longer than before; where the new messages"
    " change something, say what it was and what it is now." + _RULES + ONLY_JSON
)
_REFINE = (
    "You collect facts for a long-term memory. You get an episode, the numbered messages behind"
    " it, and facts that are stored already. Write down what the episode leaves out or only"
    " touches on and a later question about these people may ask for: names, places, numbers,"
    " dates, preferences, rules, decisions, changes. One fact is one sentence that can be"
    " understood alone: names for pronouns, with its date. Give the number of the message that"
    " says it. Leave out what a stored fact says already in whatever words; where a message"
    " changes a stored fact, write the change down, with its date. At most nine; the list may be"
    " empty." + _RULES + ONLY_JSON
)


_EPISODE_SCHEMA = object_schema({"episode": {"type": "string"}})
_FACT = object_schema({"message": {"type": "integer"}, "fact": {"type": "string"}})
_FACTS_SCHEMA = object_schema({"facts": {"type": "array", "items": _FACT}})
