"""ShareGPT data sets: ``{"id", "conversations": [{"from", "value"}]}``.

Long chats are cut there into parts called ``<chat>_<number of its first message>``;
parts that stand one behind the other become one conversation again. Other sets number
whole chats in the same way (``identity_0``, ``identity_1``): those stay apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ebbtide.importers.files import Part
from ebbtide.importers.html import from_html
from ebbtide.importers.reading import Reading
from ebbtide.importers.texts import as_mapping, as_text, clean, identifier
from ebbtide.inputs import readable
from ebbtide.types import Turn

__all__ = ["looks_like", "turns"]

_PART = re.compile(r"(.{5,})_(0|[1-9]\d{0,5})")
_SHARED = re.compile(r"[A-Za-z0-9]{7}")
"""What ShareGPT calls a chat; of those some parts are missing in sets that were filtered."""
_HTML = re.compile(r"\s*<(?:p|div|ul|ol|h[1-6]|pre|blockquote|table|span)\b.*>\s*", re.DOTALL)
_ROLES = {
    **dict.fromkeys(("human", "user", "prompter"), "user"),
    **dict.fromkeys(("gpt", "chatgpt", "assistant", "bing", "bard", "model", "bot"), "assistant"),
}
_LEFT_OUT = {
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("function_call", "observation", "tool", "function", "tool_call"), "tool"),
    "function_response": "tool",
    "tool_response": "tool",
}


def looks_like(item: Mapping[str, Any]) -> bool:
    """Whether this is one of its conversations."""
    return isinstance(item.get("conversations"), list)


def turns(reading: Reading) -> Iterator[Turn]:
    """The turns, in the order of the file."""
    parts = [part for part in reading.parts if not part.name.endswith(".html")]
    if not parts:
        raise reading.error("there is no .json or .jsonl file in it")
    for part in parts:
        yield from _part_turns(reading, part)


def _part_turns(reading: Reading, part: Part) -> Iterator[Turn]:
    chats = _Chats()
    stem = readable(part.stem)
    for number, item in enumerate(reading.json(part).documents(), 1):
        if not isinstance(item, Mapping) or not looks_like(item):
            words = "is no ShareGPT conversation, it has no `conversations`; check the format"
            raise reading.error(f"item {number} {words}", part.place)
        name = identifier(item.get("id")) or f"{stem}#{number}"
        chat, first = chats.placed(name, len(item["conversations"]))
        thread = reading.thread(chat, item.get("title"))
        if not reading.wants(thread):
            continue
        for index, value in enumerate(item["conversations"], first + 1):
            message = as_mapping(value)
            who = as_text(message.get("from") or message.get("role")).lower()
            text = _text(message, who)
            if reason := _LEFT_OUT.get(who):
                reading.skip(reason)
            elif not text or who not in _ROLES:
                reading.skip("unknown" if text else "empty")
            else:
                reading.local = True
                yield reading.said(thread, str(index), text, role=_ROLES[who])


class _Chats:
    """Which items of a file are parts of one chat."""

    def __init__(self) -> None:
        self._chat = ""
        self._end = 0
        self._is_part = False

    def placed(self, name: str, count: int) -> tuple[str, int]:
        """The chat that an item with so many messages belongs to, and its first message there."""
        cut = _PART.fullmatch(name)
        if cut is None:
            self._chat, self._is_part = "", False
            return name, 0
        chat, first = cut.group(1), int(cut.group(2))
        follows = chat == self._chat
        goes_on = follows and self._is_part and first == self._end
        overlaps = follows and first < self._end
        shared = _SHARED.fullmatch(chat) is not None and not overlaps
        self._chat, self._end = chat, first + count
        self._is_part = first == 0 or goes_on or shared
        return (chat, first) if self._is_part else (name, 0)


def _text(message: Mapping[str, Any], who: str) -> str:
    value = next((message[key] for key in ("value", "content", "text") if key in message), None)
    text = as_text(value)
    # Older sets hold answers as the page's HTML.
    html = _ROLES.get(who) == "assistant" and _HTML.fullmatch(text)
    return from_html(text) if html else clean(text)
