"""OpenAI message lists: requests and fine-tuning files, responses, assistants' threads.

A file is one list of messages, or has a conversation (``{"messages": [...]}``) or a
message a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ebbtide.importers.messages import Message, message_turns, messages_of
from ebbtide.importers.reading import Reading
from ebbtide.importers.texts import as_text, content_words, identifier
from ebbtide.types import Turn

__all__ = ["looks_like", "turns"]

_SYSTEM = ("system", "developer")
_TOOL = ("tool", "function")


def looks_like(item: Mapping[str, Any]) -> bool:
    """Whether this is a conversation or a message of it."""
    messages = messages_of(item)
    first = messages[0] if messages else item
    return isinstance(first, Mapping) and _message(first) is not None


def turns(reading: Reading) -> Iterator[Turn]:
    """The turns, in the order of the file."""
    return message_turns(reading, _message)


def _message(item: Mapping[str, Any]) -> Message | None:
    role = item.get("role")
    if not isinstance(role, str):
        kind = as_text(item.get("type"))
        if kind == "reasoning":
            return Message("", "hidden")
        # Items of a response: function_call, web_search_call, function_call_output, ...
        return Message("", "tool") if kind.endswith(("_call", "_output")) else None
    if role in _SYSTEM:
        return Message("", "system")
    if role in _TOOL:
        return Message("", "tool")
    words = content_words(item.get("content"))
    text, reason = words.text or as_text(item.get("refusal")).strip(), words.reason
    if not text and (item.get("tool_calls") or item.get("function_call")):
        reason = "tool"
    return Message(
        text=text,
        reason=reason,
        role="assistant" if role == "assistant" else "user",
        speaker=as_text(item.get("name")) or None,
        id=identifier(item.get("id")),
        moments=(item.get("created_at"), item.get("timestamp")),
    )
