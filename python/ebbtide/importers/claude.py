"""Claude: ``conversations.json`` of the data export, or the whole zip.

Messages name the one before them, so an edited question leaves a branch behind; the
live one ends in the newest message. Exports from before that are a plain list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ebbtide.importers.conversations import turns_of
from ebbtide.importers.reading import Reading
from ebbtide.importers.texts import (
    Words,
    as_list,
    as_mapping,
    as_text,
    clean,
    content_words,
    digest,
    identifier,
    moment,
    seconds_of,
)
from ebbtide.types import Turn

__all__ = ["looks_like", "turns"]

_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}
_UNSUPPORTED = re.compile(
    r"(?:(?<!\s)\s+)?```[^\S\n]*\n"
    r"\s*This block is not supported on your current device yet\.\s*```\s*"
)


def looks_like(item: Mapping[str, Any]) -> bool:
    """Whether this is one of its conversations."""
    return isinstance(item.get("chat_messages"), list)


def turns(reading: Reading) -> Iterator[Turn]:
    """The turns of every conversation, the oldest conversation first."""
    return turns_of(reading, "Claude", "chat_messages", looks_like, _turns)


def _turns(reading: Reading, item: Mapping[str, Any]) -> list[Turn]:
    messages = [as_mapping(message) for message in item["chat_messages"]]
    name = identifier(item.get("uuid"))
    name = name or digest(as_text(item.get("name")), as_text(item.get("created_at")))
    thread = reading.thread(name, item.get("name"))
    if not reading.wants(thread):
        return []
    live = _live(messages, item.get("current_leaf_message_uuid"))
    when = moment(item.get("created_at"))
    result: list[Turn] = []
    for number, message in enumerate(messages):
        words, role = _words(message), _ROLES.get(as_text(message.get("sender")))
        if role is None or not words.text:
            reading.skip("unknown" if role is None and words.text else words.reason)
        elif number not in live:
            reading.skip("branch")
        else:
            when = reading.moment(message.get("created_at")) or when
            key = identifier(message.get("uuid")) or f"#{number}"
            result.append(reading.said(thread, key, words.text, role=role, timestamp=when))
    return result


def _live(messages: list[Mapping[str, Any]], leaf: Any) -> set[int]:
    """Numbers of the messages on the live branch."""
    numbers = {as_text(m.get("uuid")): n for n, m in enumerate(messages) if m.get("uuid")}
    if not any(as_text(m.get("parent_message_uuid")) in numbers for m in messages):
        return set(range(len(messages)))  # no branches, or an export that knows none
    dates = [seconds_of(moment(m.get("created_at"))) for m in messages]
    newest = max(range(len(messages)), key=lambda n: (dates[n], n))
    number: int | None = numbers.get(as_text(leaf), newest)
    live: set[int] = set()
    while number is not None and number not in live:
        live.add(number)
        number = numbers.get(as_text(messages[number].get("parent_message_uuid")))
    return live


def _words(message: Mapping[str, Any]) -> Words:
    content = as_list(message.get("content"))
    words = content_words(content)
    if not content:  # exports from before there were parts
        words = Words(clean(_UNSUPPORTED.sub("\n", as_text(message.get("text")))))
    attachments = [as_mapping(item) for item in as_list(message.get("attachments"))]
    # A long paste becomes an attachment without a name; it is what the person said.
    pasted = [as_text(a.get("extracted_content")) for a in attachments if not a.get("file_name")]
    text = "\n".join(filter(None, [words.text, *(clean(paste) for paste in pasted)]))
    if not text and (attachments or as_list(message.get("files"))):
        return Words("", "attachment")
    return Words(text, words.reason)
