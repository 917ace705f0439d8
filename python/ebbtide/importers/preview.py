"""What an import would bring, without bringing it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from ebbtide.importers.texts import seconds_of
from ebbtide.types import Turn

__all__ = ["ImportedConversation", "preview"]

_SHOWN = 300
"""Characters of a message that are kept to be shown."""


@dataclass(slots=True)
class ImportedConversation:
    """A conversation of an export, counted.

    Attributes:
        id: Its id, the ``session_id`` of its turns.
        title: Its title, if it has one.
        turns: Messages in it.
        first: Earliest timestamp, ISO 8601, or None.
        last: Latest timestamp, or None.
        speakers: Who speaks, in the order of their first message: names, or roles.
        beginning: Its first messages, long ones cut off.
    """

    id: str
    title: str | None = None
    turns: int = 0
    first: str | None = None
    last: str | None = None
    speakers: list[str] = field(default_factory=list)
    beginning: list[Turn] = field(default_factory=list)

    def note(self, turn: Turn, keep: int) -> None:
        """Count a turn, and keep it if it is among the first."""
        self.turns += 1
        if self.turns <= keep:
            self.beginning.append(replace(turn, text=shortened(turn.text)))
        who = turn.speaker or turn.role
        if who not in self.speakers and len(self.speakers) < 100:
            self.speakers.append(who)
        stamp = turn.timestamp
        if isinstance(stamp, str):
            if self.first is None or seconds_of(stamp) < seconds_of(self.first):
                self.first = stamp
            if self.last is None or seconds_of(stamp) > seconds_of(self.last):
                self.last = stamp

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-able data."""
        return {
            "id": self.id,
            "title": self.title,
            "turns": self.turns,
            "first": self.first,
            "last": self.last,
            "speakers": self.speakers,
            "beginning": [
                {
                    "role": turn.role,
                    "speaker": turn.speaker,
                    "timestamp": turn.timestamp,
                    "text": turn.text,
                }
                for turn in self.beginning
            ],
        }


def shortened(text: str) -> str:
    """A text's beginning."""
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def preview(turns: Iterable[Turn], *, keep: int = 3) -> list[ImportedConversation]:
    """The conversations of an export, in the order of their first turn.

    Args:
        turns: What ``read`` gives.
        keep: First messages to keep of each conversation.
    """
    found: dict[str, ImportedConversation] = {}
    for turn in turns:
        name = turn.session_id or ""
        if name not in found:
            title = (turn.metadata or {}).get("title")
            found[name] = ImportedConversation(name, title)
        found[name].note(turn, keep)
    return list(found.values())
