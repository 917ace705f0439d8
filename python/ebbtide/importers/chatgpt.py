"""ChatGPT: ``conversations.json`` of the data export, or the whole zip.

A conversation is a tree of nodes; what the reader saw last is the path from
``current_node`` up to the root. Everything beside it was edited or regenerated away.
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

_HIDDEN = ("thoughts", "reasoning_recap", "user_editable_context", "model_editable_context")
_TOOL = [
    "code",
    "execution_output",
    "tether_quote",
    "tether_browsing_display",
    "tether_browsing_code",
    "computer_output",
    "system_error",
    "sonic_webpage",
    "app_pairing_content",
]
_MARKED = re.compile("\ue200([^\ue200\ue201]*)\ue201")
_NAMES = re.compile(r'"((?:[^"\\]|\\.)*+)(?P<closed>"?)')
_SOURCE = re.compile(r"(?<![ \t])[ \t]*【\d+(?::\d+)?†[^】\n]*+(?P<closed>】?)")
"""What does not close is taken, too, and left as it is: so it is looked at once."""


def looks_like(item: Mapping[str, Any]) -> bool:
    """Whether this is one of its conversations."""
    return isinstance(item.get("mapping"), Mapping)


def turns(reading: Reading) -> Iterator[Turn]:
    """The turns of every conversation, the oldest conversation first."""
    return turns_of(reading, "ChatGPT", "mapping", looks_like, _turns)


def _turns(reading: Reading, item: Mapping[str, Any]) -> list[Turn]:
    mapping: Mapping[str, Any] = item["mapping"]
    name = identifier(item.get("conversation_id"), item.get("id"))
    # The root's id is random, too, and as stable.
    name = name or digest(as_text(item.get("title")), next(iter(mapping), ""))
    thread = reading.thread(name, item.get("title"))
    if not reading.wants(thread):
        return []
    path = live_path(mapping, item.get("current_node"))
    result: list[Turn] = []
    when = moment(item.get("create_time"))
    for node in path:
        message = as_mapping(as_mapping(mapping[node]).get("message"))
        if not message:
            continue
        words = _words(message)
        if not words.text:
            reading.skip(words.reason)
            continue
        author = as_mapping(message.get("author"))
        # A message without a date was said after the one before it.
        when = reading.moment(message.get("create_time")) or when
        turn = reading.said(
            thread,
            identifier(message.get("id"), node) or digest(node),
            words.text,
            role=author["role"],
            speaker=as_text(author.get("name")),
            timestamp=when,
            model=identifier(as_mapping(message.get("metadata")).get("model_slug")),
        )
        result.append(turn)
    live = set(path)
    for node, value in mapping.items():
        message = as_mapping(as_mapping(value).get("message"))
        if node not in live and message:
            words = _words(message)
            reading.skip("branch" if words.text else words.reason)
    return result


def live_path(mapping: Mapping[str, Any], current: Any) -> list[str]:
    """Ids from the root down to the current node, or to the newest leaf without one."""
    node: Any = current if isinstance(current, str) and current in mapping else _newest(mapping)
    path: dict[str, None] = {}
    while isinstance(node, str) and node in mapping and node not in path:
        path[node] = None
        node = as_mapping(mapping[node]).get("parent")
    return list(reversed(path))


def _newest(mapping: Mapping[str, Any]) -> str | None:
    """The leaf with the latest date; the last of them in the file, where dates are equal."""
    parents = {as_text(as_mapping(node).get("parent")) for node in mapping.values()}
    leaves = [node for node in mapping if node not in parents] or list(mapping)[-1:]
    dates = [
        seconds_of(moment(as_mapping(as_mapping(mapping[node]).get("message")).get("create_time")))
        for node in leaves
    ]
    best = max(range(len(leaves)), key=lambda i: (dates[i], i), default=None)
    return None if best is None else leaves[best]


def _words(message: Mapping[str, Any]) -> Words:
    """What was shown of a message, or why nothing was."""
    content, metadata = as_mapping(message.get("content")), as_mapping(message.get("metadata"))
    kind = as_text(content.get("content_type"))
    role = as_mapping(message.get("author")).get("role")
    if role == "tool" or message.get("recipient") not in (None, "all") or kind in _TOOL:
        return Words("", "tool")
    if metadata.get("is_visually_hidden_from_conversation") is True and role != "system":
        return Words("", "hidden")
    if role not in ("user", "assistant"):
        return Words("", "system" if role in ("system", "developer") else "unknown")
    if kind in _HIDDEN or message.get("channel") == "analysis":
        return Words("", "hidden")
    if kind not in ("text", "multimodal_text"):
        return Words("", "unknown")
    words = content_words(as_list(content.get("parts")))
    text = words.text if role == "user" else _without_citations(words.text)
    if not text and as_list(metadata.get("attachments")):
        return Words("", "attachment")
    return Words(text, words.reason)


def _without_citations(text: str) -> str:
    """Answers carry marks for links and sources, between private-use characters."""
    text = _MARKED.sub(_mark_words, text)
    return clean(_SOURCE.sub(lambda match: "" if match["closed"] else match[0], text))


def _mark_words(match: re.Match[str]) -> str:
    kind, _, rest = match.group(1).partition("\ue202")
    if kind == "url":  # label, address
        return rest.partition("\ue202")[0]
    if kind == "entity":  # ["city","Porto","Portugal"]
        names = [match[1] for match in _NAMES.finditer(rest) if match["closed"]]
        return names[1] if len(names) > 1 else ""
    return ""
