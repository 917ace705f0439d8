"""Discord: JSON files of DiscordChatExporter, one a channel, or a folder or zip of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ebbtide.importers.files import Part
from ebbtide.importers.reading import Reading, Thread
from ebbtide.importers.texts import (
    Words,
    as_list,
    as_mapping,
    as_text,
    clean,
    digest,
    identifier,
    moment,
)
from ebbtide.types import Turn

__all__ = ["looks_like", "turns"]

_SAID = ("Default", "Reply", "20", "ChatInputCommand", "23", "ContextMenuCommand")
"""Kinds of messages that someone wrote; the others are notices."""


def looks_like(item: Mapping[str, Any]) -> bool:
    """Whether this is a file of it, or its beginning."""
    return isinstance(item.get("guild"), Mapping) and isinstance(item.get("channel"), Mapping)


def turns(reading: Reading) -> Iterator[Turn]:
    """The turns of every channel, channel by channel in the order of the files' names."""
    parts = [part for part in reading.parts if part.name.endswith((".json", ".json.gz"))]
    if not parts:
        raise reading.error("there is no .json file in it; export with DiscordChatExporter as JSON")
    for part in parts:
        yield from _part_turns(reading, part)


def _part_turns(reading: Reading, part: Part) -> Iterator[Turn]:
    stream = reading.json(part)
    if stream.peek() != "{":
        raise reading.error("no DiscordChatExporter file; export as JSON", part.place)
    head: dict[str, Any] = {}
    met = False
    for name, value in stream.pairs(streamed=("messages",)):
        if name != "messages":
            head[name] = value
            continue
        if not isinstance(value, Iterator) or not looks_like(head):
            break
        met = True
        thread = _thread(reading, head)
        if not reading.wants(thread):
            continue
        for number, message in enumerate(value, 1):
            if not isinstance(message, Mapping):
                raise reading.error(f"message {number} is no object", part.place)
            yield from _turn(reading, thread, message)
    if not met:
        words = "it has no `guild`, `channel` and `messages`; export with DiscordChatExporter"
        raise reading.error(words, part.place)


def _thread(reading: Reading, head: Mapping[str, Any]) -> Thread:
    guild, channel = as_mapping(head["guild"]), as_mapping(head["channel"])
    names = [as_text(guild.get("name")), as_text(channel.get("name"))]
    name = identifier(channel.get("id")) or digest(*names)
    return reading.thread(name, " / ".join(filter(None, names)))


def _turn(reading: Reading, thread: Thread, message: Mapping[str, Any]) -> Iterator[Turn]:
    words = _words(message)
    if not words.text:
        reading.skip(words.reason)
        return
    author = as_mapping(message.get("author"))
    when = reading.moment(message.get("timestamp"))
    name = identifier(message.get("id"))
    yield reading.said(
        thread,
        name or digest(as_text(message.get("timestamp")), words.text),
        words.text,
        role="assistant" if author.get("isBot") is True else "user",
        speaker=as_text(author.get("nickname")) or as_text(author.get("name")),
        timestamp=when,
        edited=moment(message.get("timestampEdited")),
        reply_to=_reply(thread, message),
    )


def _reply(thread: Thread, message: Mapping[str, Any]) -> str | None:
    name = identifier(as_mapping(message.get("reference")).get("messageId"))
    return f"{thread.key}/{name}" if name and message.get("type") == "Reply" else None


def _words(message: Mapping[str, Any]) -> Words:
    if identifier(message.get("type")) not in _SAID:
        return Words("", "system")
    text = clean(as_text(message.get("content")))
    forwarded = as_mapping(message.get("forwardedMessage"))
    text = text or clean(as_text(forwarded.get("content")))
    # Under words an embed is the preview of a link; alone it is the message.
    text = text or "\n".join(
        line
        for embed in as_list(message.get("embeds"))
        for key in ("title", "description")
        if (line := clean(as_text(as_mapping(embed).get(key))))
    )
    attached = as_list(message.get("attachments")) or as_list(message.get("stickers"))
    return Words(text, "attachment" if attached or forwarded else "empty")
