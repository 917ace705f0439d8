"""LangChain messages: ``messages_to_dict`` lists and what ``dumpd`` or ``dumps`` writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ebbtide.importers.messages import Message, message_turns
from ebbtide.importers.reading import Reading
from ebbtide.importers.texts import as_list, as_mapping, as_text, content_words, identifier
from ebbtide.types import Turn

__all__ = ["looks_like", "turns"]

_ROLES = {"human": "user", "user": "user", "ai": "assistant", "assistant": "assistant"}
_LEFT_OUT = {
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
    "remove": "deleted",
}


def looks_like(item: Mapping[str, Any]) -> bool:
    """Whether this is a message of it."""
    return _fields(item) is not None


def turns(reading: Reading) -> Iterator[Turn]:
    """The turns, in the order of the file."""
    return message_turns(reading, _message)


def _fields(item: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]] | None:
    """What kind of message it is, and its fields."""
    if item.get("lc") is not None and isinstance(item.get("kwargs"), Mapping):
        fields, path = as_mapping(item["kwargs"]), as_list(item.get("id"))
        return as_text(path[-1]) if path else as_text(fields.get("type")), fields
    if isinstance(item.get("data"), Mapping) and isinstance(item.get("type"), str):
        return item["type"], item["data"]
    if isinstance(item.get("type"), str) and "content" in item:
        return item["type"], item  # what model_dump gives
    return None


def _message(item: Mapping[str, Any]) -> Message | None:
    found = _fields(item)
    if found is None:
        return None
    name, fields = found
    kind = name.lower().removesuffix("chunk").removesuffix("message")
    if kind == "chat":
        kind = as_text(fields.get("role")).lower()
    if kind in _LEFT_OUT:
        return Message("", _LEFT_OUT[kind])
    words = content_words(fields.get("content"))
    reason = words.reason
    if kind not in _ROLES and words.text:
        return Message("", "unknown")
    if not words.text and (fields.get("tool_calls") or fields.get("invalid_tool_calls")):
        reason = "tool"
    extra = as_mapping(fields.get("additional_kwargs"))
    return Message(
        text=words.text,
        reason=reason,
        role=_ROLES.get(kind, "user"),
        speaker=as_text(fields.get("name")) or None,
        id=identifier(fields.get("id")),
        moments=(extra.get("timestamp"), extra.get("created_at")),
    )
