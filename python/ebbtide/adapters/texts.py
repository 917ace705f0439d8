"""What of another library's message or value the engine reads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ebbtide import _core
from ebbtide.memory import Memory

__all__ = ["leaves", "parts_text", "question_for", "stored_text"]


def stored_text(text: str, otherwise: str, *, most: int) -> str:
    """Text that a turn can be made of.

    The memory takes blocks that it rendered out of a turn, and refuses an empty one. An
    adapter keeps the original beside the text, so the turn must exist all the same.

    Args:
        text: The text.
        otherwise: Stands for it where nothing is left of it.
        most: Characters of a turn at most; what is longer is read up to there.
    """
    text = _core.without_rendered(text) if "=== END OF MEMORY ===" in text else text
    return text[:most] if text.strip() else otherwise


def question_for(memory: Memory, question: str) -> str:
    """A question as far as a memory reads one.

    Who asks through another library often hands on what a user wrote, whatever its length.
    """
    most = memory.config["limits"]["max_query_chars"]
    if not isinstance(question, str) or len(question) <= most:
        return question  # the memory says what is wrong with it
    return question.strip()[:most]


def parts_text(content: Any) -> str:
    """The text of a message's content: a string, or a list of parts of which some have text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (
        part if isinstance(part, str) else part.get("text") or part.get("refusal")
        for part in content
        if isinstance(part, str | Mapping)
    )
    return "\n".join(text for text in texts if isinstance(text, str))


def leaves(value: Any) -> str:
    """Every text in a JSON value, a line each; the JSON itself where it has none."""
    found = [text for text in _texts(value) if text.strip()]
    return "\n".join(found) if found else json.dumps(value, ensure_ascii=False, default=str)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
