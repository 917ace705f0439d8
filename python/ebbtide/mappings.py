"""Turns given as mappings: with our own names, or as chat messages of OpenAI's form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ebbtide.errors import EbbtideError, InputError
from ebbtide.inputs import checked_mapping
from ebbtide.types import Turn

__all__ = ["NOTHING", "refused", "turn_from", "turns_of"]

NOTHING: tuple[Any, ...] = (None, "", [])
"""What a text may be that says nothing."""
_ALIASES = {"content": "text", "name": "speaker", "id": "external_id"}
_GIVEN = (
    "text",
    "role",
    "speaker",
    "timestamp",
    "session_id",
    "external_id",
    "provenance",
    "metadata",
)


def turns_of(turns: Any) -> Iterator[Any]:
    """An iterable of turns, begun.

    Raises:
        InputError: If it is none.
    """
    try:
        return iter(turns)
    except TypeError as error:
        message = (
            f"turns must be an iterable of turns, not {type(turns).__name__}; only AsyncMemory "
            "takes an asynchronous one"
        )
        raise InputError(message, "input.field") from error


def refused(error: EbbtideError, place: int) -> EbbtideError:
    """The error of one of the turns of a call, which says which one it is.

    Args:
        error: What is wrong with it.
        place: How many turns of the call came before it, and were kept.

    Returns:
        An error of the same class and code.
    """
    kept = f"the {place} before it were kept" if place else "nothing came before it"
    return type(error)(f"turn {place + 1} of this call: {error}; {kept}", error.code)


def turn_from(item: Turn | Mapping[str, Any]) -> Turn:
    """A turn from a mapping: our own names, or an OpenAI chat message.

    ``content`` may be text or a list of content parts; tool calls are kept as
    text. Fields that a turn does not have become metadata. A field that is None
    is one that was not given.

    Raises:
        InputError: If it is neither, or has no text.
    """
    if isinstance(item, Turn):
        return item
    if not isinstance(item, Mapping):
        message = f"a turn is a Turn or a mapping, not {type(item).__name__}"
        raise InputError(message, "input.field")
    known: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for key, value in item.items():
        name = _ALIASES.get(key, key)
        if name in _GIVEN:
            # One that says nothing does not stand in the way of its other name.
            if value is None or (name in known and name == "text" and value in NOTHING):
                continue
            if name not in known or (name == "text" and known[name] in NOTHING):
                known[name] = value
                continue
        if key != "tool_calls":
            extra[_written("a field's name", key)] = value
    known["text"] = _content(known.get("text"), item.get("tool_calls"))
    if extra:
        given = known.get("metadata")
        known["metadata"] = {**checked_mapping("metadata", {} if given is None else given), **extra}
    external = known.get("external_id")
    if isinstance(external, int) and not isinstance(external, bool):
        known["external_id"] = _written("external_id", external)
    if known.get("external_id") == "":
        # It would make all such turns one.
        del known["external_id"]
    known["role"] = known.get("role") or "user"
    return Turn(**known)


def _written(what: str, value: Any) -> str:
    """A value as text, whole: one that is cut would be taken for another."""
    try:
        return str(value)
    except (ValueError, RecursionError) as error:  # an integer of thousands of digits, a deep list
        message = f"{what} is too long to be written: give it as text"
        raise InputError(message, "input.field") from error


def _content(content: Any, tool_calls: Any) -> str:
    parts: list[str] = []
    if isinstance(content, str):
        parts.append(content)
    elif isinstance(content, list):
        parts += [_part(part) for part in content]
    elif content is not None:
        message = f"a turn's text must be text or a list of parts, not {type(content).__name__}"
        raise InputError(message, "input.field")
    if not isinstance(tool_calls, list | tuple | None):
        message = f"tool_calls must be a list, not {type(tool_calls).__name__}"
        raise InputError(message, "input.field")
    for call in tool_calls or ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping):
            raise InputError("a tool call needs a function with a name", "input.field")
        name = _written("a tool's name", function.get("name", "tool"))
        arguments = _written("a tool call's arguments", function.get("arguments", ""))
        parts.append(f"{name}({arguments})")
    if not parts:
        raise InputError("a turn needs text: give `text` or `content`", "input.field")
    return "\n".join(part for part in parts if part)


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping):
        if isinstance(part.get("text"), str):
            return str(part["text"])
        kind = _written("a content part's type", part.get("type", "attachment"))
        return f"[{kind}]"
    message = f"a content part must be text or a mapping, not {type(part).__name__}"
    raise InputError(message, "input.field")
