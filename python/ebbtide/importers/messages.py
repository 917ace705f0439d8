"""Files of message lists: one list a file, or one conversation a line or element."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ebbtide.importers.files import Part
from ebbtide.importers.reading import Reading, Thread
from ebbtide.importers.texts import identifier, moment, seconds_of
from ebbtide.inputs import readable
from ebbtide.types import Turn

__all__ = ["Message", "message_turns", "messages_of"]

_KINDS = (".json", ".jsonl", ".ndjson", ".txt")
_NO_MESSAGE = "is no message with a role and content; check the format"


@dataclass(frozen=True, slots=True)
class Message:
    """A message of such a list, read.

    Attributes:
        text: Its words; empty if it is left out.
        reason: Why, then.
        role: ``user`` or ``assistant``.
        speaker: Who said it, where that is known.
        id: Its own id, if it has one.
        moments: When, in what it may stand; the first that can be read holds.
    """

    text: str
    reason: str = "empty"
    role: str = "user"
    speaker: str | None = None
    id: str | None = None
    moments: tuple[Any, ...] = ()


def message_turns(
    reading: Reading, read: Callable[[Mapping[str, Any]], Message | None]
) -> Iterator[Turn]:
    """The turns of every file, in the order of the file.

    Args:
        reading: The reading.
        read: Reads one message, or gives None for what is none.
    """
    parts = [part for part in reading.parts if part.name.removesuffix(".gz").endswith(_KINDS)]
    if not parts:
        raise reading.error("there is no .json or .jsonl file in it")
    for part in parts:
        yield from _part_turns(reading, part, read)


def _part_turns(
    reading: Reading, part: Part, read: Callable[[Mapping[str, Any]], Message | None]
) -> Iterator[Turn]:
    stem = readable(part.stem)
    loose = reading.thread(stem)
    threads = count = 0
    for number, item in enumerate(reading.json(part).documents(), 1):
        listed = _listed(item)
        if listed is None:
            message = read(item) if isinstance(item, Mapping) else None
            if message is None:
                raise reading.error(f"item {number} {_NO_MESSAGE}", part.place)
            if count or reading.wants(loose):
                yield from _turn(reading, loose, message, count)
                count += 1
            continue
        threads += 1
        about, messages = listed
        own = identifier(about.get("conversation_id"), about.get("thread_id"), about.get("id"))
        thread = reading.thread(own or f"{stem}#{threads}", about.get("title"))
        if not reading.wants(thread):
            continue
        for index, value in enumerate(messages):
            message = read(value) if isinstance(value, Mapping) else None
            if message is None:
                words = f"message {index + 1} of item {number} {_NO_MESSAGE}"
                raise reading.error(words, part.place)
            yield from _turn(reading, thread, message, index)


def _listed(item: Any) -> tuple[Mapping[str, Any], list[Any]] | None:
    """A conversation's own fields and its messages; None for what is no conversation."""
    if isinstance(item, list):
        return {}, item
    if not isinstance(item, Mapping):
        return None
    messages = messages_of(item)
    return None if messages is None else (item, _oldest_first(messages))


def messages_of(item: Mapping[str, Any]) -> list[Any] | None:
    """The messages of an object that is a conversation."""
    listed = (item.get(key) for key in ("messages", "data", "items"))
    found = next((value for value in listed if isinstance(value, list)), None)
    return None if isinstance(item.get("type"), str) else found


def _oldest_first(messages: list[Any]) -> list[Any]:
    """Pages of the assistants' interface list the newest message first."""
    dates = [
        seconds_of(moment(m.get("created_at"))) if isinstance(m, Mapping) else 0.0 for m in messages
    ]
    return messages[::-1] if dates and dates[0] > dates[-1] > 0 else messages


def _turn(reading: Reading, thread: Thread, message: Message, index: int) -> Iterator[Turn]:
    if not message.text:
        reading.skip(message.reason)
        return
    reading.local = message.id is None
    yield reading.said(
        thread,
        message.id or str(index + 1),
        message.text,
        role=message.role,
        speaker=message.speaker,
        timestamp=reading.moment(*message.moments),
    )
