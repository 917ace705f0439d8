"""Text, moments and ids as they stand in exports, made fit for storing."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ebbtide.inputs import paired
from ebbtide.moments import iso_moment

__all__ = [
    "Words",
    "as_list",
    "as_mapping",
    "as_text",
    "aware",
    "clean",
    "content_words",
    "digest",
    "identifier",
    "joined",
    "moment",
    "seconds_of",
]

_MILLISECONDS = 1e11
"""Seconds since 1970 stay below this until the year 5138; larger is milliseconds."""
_COUNTED = re.compile(r"\d{9,}(?:\.\d+)?")
"""Such a number as text; eight digits are a day."""


def clean(text: str) -> str:
    """Text without outer space; half surrogates are joined, or replaced by U+FFFD."""
    return paired(text).strip()


def as_text(value: Any) -> str:
    """The value if it is text, else nothing."""
    return value if isinstance(value, str) else ""


def as_mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def as_list(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def identifier(*values: Any) -> str | None:
    """The first of the values that can be an id, as text."""
    for value in values:
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 64:
            return str(value)
        if isinstance(value, str) and (text := clean(value)):
            return text if len(text) <= 200 else digest(text)
    return None


def digest(*values: str) -> str:
    """Sixteen hexadecimal digits that stand for the values."""
    joined = "\x1f".join(values).encode("utf-8", "surrogatepass")
    return hashlib.sha256(joined).hexdigest()[:16]


def moment(value: Any) -> str | None:
    """A moment as ISO 8601 text: from seconds or milliseconds since 1970, or such text.

    None for anything else, and for what no calendar holds; text without a time zone
    stays without one.
    """
    try:
        if isinstance(value, str) and len(value) <= 40 and _COUNTED.fullmatch(value.strip()):
            value = float(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            if not math.isfinite(value) or value <= 0:
                return None
            seconds = value / 1000 if value > _MILLISECONDS else value
            return datetime.fromtimestamp(seconds, UTC).isoformat()
        if isinstance(value, str) and 8 <= len(value) <= 40:
            read = iso_moment(value.strip())
            if read.tzinfo is not None:
                read.astimezone(UTC)  # raises at the ends of the calendar
            return read.isoformat() if 1 < read.year < 9999 else None
    except (ValueError, OverflowError, OSError):
        pass
    return None


def aware(stamp: str) -> datetime:
    """What :func:`moment` gave; without a time zone it is read as UTC, as a memory does."""
    read = datetime.fromisoformat(stamp)
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def seconds_of(stamp: Any) -> float:
    """What :func:`moment` gave, as seconds since 1970; 0.0 for None."""
    return aware(stamp).timestamp() if isinstance(stamp, str) else 0.0


def joined(pieces: Iterable[tuple[str, bool]]) -> str:
    """Pieces of text, a line each, but a mark such as ``[image]`` in the line beside it.

    Args:
        pieces: Text, and whether it is a mark.
    """
    result: list[str] = []
    after_mark = False
    for text, is_mark in pieces:
        if text := text.strip() if is_mark else text:
            if result:
                result.append(" " if is_mark or after_mark else "\n")
            result.append(text)
            after_mark = is_mark
    return "".join(result)


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a message that has parts.

    Attributes:
        text: The words, ``[image]`` for an image among them.
        reason: Why there are none, where there are none: a reason for leaving out.
    """

    text: str
    reason: str = "empty"


_TOOL = [
    "tool_use",
    "tool_result",
    "tool_call",
    "tool_call_chunk",
    "server_tool_use",
    "web_search_tool_result",
    "function_call",
    "function_call_output",
    "code_execution_tool_result",
    "mcp_tool_use",
    "mcp_tool_result",
    "server_tool_call",
    "server_tool_result",
    "invalid_tool_call",
]
_HIDDEN = ["thinking", "redacted_thinking", "reasoning", "reasoning_content", "thoughts"]
_IMAGE = ["image", "image_url", "input_image", "image_file", "image_asset_pointer"]
_FILE = [
    "file",
    "input_file",
    "document",
    "input_audio",
    "audio",
    "video",
    "media",
    "audio_asset_pointer",
    "voice_note",
    "real_time_user_audio_video_asset_pointer",
    "video_container_asset_pointer",
    "text-plain",
]


def content_words(content: Any) -> Words:
    """Words of a message whose content is text or a list of typed parts.

    The parts of OpenAI, Anthropic and LangChain are known: words are kept, tool calls
    and reasoning are not, an image beside words becomes ``[image]``.
    """
    if isinstance(content, str):
        return Words(clean(content))
    pieces: list[tuple[str, bool]] = []
    seen: set[str] = set()
    for part in [content] if isinstance(content, Mapping) else as_list(content):
        kind = as_text(as_mapping(part).get("type") or as_mapping(part).get("content_type"))
        if isinstance(part, str):
            pieces.append((part, False))
        elif kind in _IMAGE:
            seen.add("attachment")
            pieces.append(("[image]", True))
        elif kind in _TOOL:
            seen.add("tool")
        elif kind in _HIDDEN:
            seen.add("hidden")
        elif words := _part_words(as_mapping(part)):
            pieces.append((words, False))
        elif kind in _FILE:
            seen.add("attachment")
    if any(not is_mark and text.strip() for text, is_mark in pieces):
        return Words(clean(joined(pieces)))
    order = ("attachment", "tool", "hidden")
    return Words("", next((reason for reason in order if reason in seen), "empty"))


def _part_words(part: Mapping[str, Any]) -> str:
    for key in ("text", "refusal", "transcript"):
        value = part.get(key)
        if isinstance(value, Mapping):  # {"text": {"value": ..., "annotations": ...}}
            value = value.get("value")
        if isinstance(value, str):
            return value
    return ""
