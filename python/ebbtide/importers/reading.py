"""One reading of an export: what is wanted of it, where it stands, what it leaves out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Any

from ebbtide.importers.failures import ExportError
from ebbtide.importers.files import Part, pieces
from ebbtide.importers.jsonstream import JsonStream
from ebbtide.importers.texts import clean, moment
from ebbtide.messages import shown
from ebbtide.types import Turn

__all__ = ["NAMED", "REASONS", "Options", "Reading", "Thread"]

REASONS = {
    "branch": "answers and questions that were edited or regenerated away",
    "hidden": "reasoning, custom instructions and other things the chat does not show",
    "system": "system prompts and notices (joined, renamed, encrypted)",
    "tool": "tool calls and what they returned",
    "deleted": "deleted messages",
    "attachment": "messages that are nothing but an attachment",
    "empty": "messages without words",
    "activity": "entries that are no message of this product",
    "unknown": "content of a kind this version does not know",
}
"""Why messages are left out, with what each reason stands for."""

NAMED = 20
"""Conversations named in an error, at most; one more is kept, to know of others."""


@dataclass(frozen=True, slots=True)
class Options:
    """What is wanted.

    Attributes:
        conversation: Only the conversation with this id or title; None for all.
        timezone: Where clock times without a zone were read off; None leaves them so.
        date_order: ``dmy``, ``mdy`` or ``ymd``; None finds out.
    """

    conversation: str | None = None
    timezone: tzinfo | None = None
    date_order: str | None = None


@dataclass(frozen=True, slots=True)
class Thread:
    """The conversation that a message belongs to.

    Attributes:
        id: Stable id, the session of its turns.
        title: What it is called, if anything.
        key: What its messages' ids begin with.
    """

    id: str
    title: str | None
    key: str


@dataclass(slots=True)
class Reading:
    """What the modules of the formats work with.

    Attributes:
        format: Name of the format.
        parts: Files of the export.
        options: What is wanted.
        stopped: Asked between conversations that are not stored yet; once true, no more are read.
        place: What is being read, for errors.
        local: Whether the ids of the turns that come are unique in their file only.
        skips: Messages left out, by reason.
        notes: Things to tell the user: guesses that were made.
        undated: What stands where messages have their dates, and cannot be read as one.
        conversations: Conversations seen that are not wanted, the first of them.
        seen: Whether any conversation was wanted.
        bytes_read: So far.
        ticked: Called whenever a piece of a file was read.
    """

    format: str
    parts: Sequence[Part]
    options: Options
    stopped: Callable[[], bool] = lambda: False
    ticked: Callable[[], None] = lambda: None
    place: str = ""
    local: bool = False
    skips: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    undated: list[Any] = field(default_factory=list)
    conversations: list[str] = field(default_factory=list)
    seen: bool = False
    bytes_read: int = 0

    def text(self, part: Part) -> Iterator[str]:
        """The text of a file, in pieces."""
        self.place = part.place
        return pieces(part, self._tick)

    def json(self, part: Part) -> JsonStream:
        """A file as JSON.

        Raises:
            ExportError: If it is plainly something else.
        """
        stream = JsonStream(self.text(part), part.place)
        mark = stream.peek()
        if mark and mark not in "[{":
            kind = "HTML; export as JSON instead" if mark == "<" else "not JSON"
            raise ExportError(f"the file is {kind}", part.place)
        return stream

    def error(self, words: str, place: str | None = None) -> ExportError:
        """An error at this place."""
        return ExportError(words, place or self.place)

    def skip(self, reason: str) -> None:
        """Count a message that is left out."""
        assert reason in REASONS
        self.skips[reason] += 1

    def note(self, words: str) -> None:
        """Remember something for the report, once."""
        if words not in self.notes:
            self.notes.append(words)

    def moment(self, *values: Any) -> str | None:
        """When something was said: the first of the values that can be read as a moment."""
        for value in values:
            if (found := moment(value)) is not None:
                return found
        given = [value for value in values if value not in (None, "", 0)]
        self.undated += given[:1]
        return None

    def told(self) -> list[str]:
        """What the user is to know: the notes, and how many dates could not be read."""
        count = len(self.undated)
        if not count:
            return list(self.notes)
        first = shown(self.undated[0])
        words = f"{count} dates could not be read, the first: {first}"
        return [*self.notes, words if count > 1 else f"a date could not be read: {first}"]

    def thread(self, name: str, title: Any = None, *, key: str | None = None) -> Thread:
        """A conversation by its id.

        Args:
            name: Its id.
            title: Its title, if it has one that is text.
            key: Beginning of its messages' ids, if not the format's name and its id.
        """
        words = clean(title)[:200] if isinstance(title, str) else ""
        return Thread(name, words or None, f"{self.format}/{name}" if key is None else key)

    def wants(self, thread: Thread) -> bool:
        """Whether a conversation is asked for; others are not counted."""
        wanted = self.options.conversation
        if wanted is None or wanted in (thread.id, thread.title):
            self.seen = True
            return True
        name = thread.id if thread.title is None else f"{thread.id} ({thread.title})"
        if len(self.conversations) <= NAMED and name not in self.conversations:
            self.conversations.append(name)
        return False

    def said(
        self,
        thread: Thread,
        name: str,
        text: str,
        *,
        role: str = "user",
        speaker: str | None = None,
        timestamp: str | None = None,
        **extra: Any,
    ) -> Turn:
        """A message as a turn.

        Args:
            thread: Its conversation.
            name: Its id within that.
            text: Its words, not empty.
            role: ``user`` or ``assistant``.
            speaker: Who said it.
            timestamp: When, as ISO 8601 text.
            extra: Metadata; None is left out.
        """
        known = {"source": self.format, "title": thread.title, **extra}
        return Turn(
            text=text,
            role=role,
            speaker=clean(speaker)[:200] or None if speaker else None,
            timestamp=timestamp,
            session_id=thread.id,
            external_id=f"{thread.key}/{name}",
            metadata={key: value for key, value in known.items() if value is not None},
        )

    def _tick(self, count: int) -> None:
        self.bytes_read += count
        self.ticked()
