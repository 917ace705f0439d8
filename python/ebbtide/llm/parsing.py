"""What an endpoint sent, read and checked; everything unusable is a ValueError."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ebbtide import _core
from ebbtide.errors import InputError
from ebbtide.llm.replies import MOST, Message, Usage

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

__all__ = ["completion_of", "cost_of", "is_unicode", "reply_value", "validator"]

_SHOWN = 300
_FENCED = re.compile(r"```(?:json)?\s*(.*?)\s*```", re.DOTALL)
_COMPLETION: dict[str, Any] = {
    "type": "object",
    "properties": {
        "choices": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {
                    "message": {
                        "type": "object",
                        "properties": {"content": {"type": ["string", "null"]}},
                    }
                },
                "required": ["message"],
            },
        }
    },
    "required": ["choices"],
}
"""What is relied on; servers that call themselves compatible differ in the rest."""
_COUNT = {"type": "integer", "minimum": 0, "maximum": MOST}
_USAGE: dict[str, Any] = {
    "type": "object",
    "properties": {"prompt_tokens": _COUNT, "completion_tokens": _COUNT},
    "required": ["prompt_tokens", "completion_tokens"],
}


def validator(schema: Mapping[str, Any]) -> Validator:
    """What checks values by a schema.

    Raises:
        InputError: ``input.field``: it is no JSON schema.
    """
    from jsonschema import Draft202012Validator, SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise InputError(f"not a JSON schema: {error.message}", "input.field") from error
    return Draft202012Validator(schema)


def _json(text: str, *, strict: bool) -> Any:
    """A JSON value.

    Raises:
        ValueError: It is none, or, if strict, holds NaN, an infinity or half a surrogate
            pair.
    """
    try:
        value = json.loads(text, parse_constant=_no_constant if strict else None)
        sound = not strict or is_unicode(json.dumps(value, ensure_ascii=False))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"it is not JSON, {error}") from error
    if not sound:
        raise ValueError("it holds half a surrogate pair")
    return value


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


def is_unicode(text: str) -> bool:
    """Whether a text can be stored: JSON can hold half a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _checked(value: Any, checker: Validator) -> Any:
    """The value.

    Raises:
        ValueError: It is not what the schema says.
        InputError: ``input.field``: the schema refers to something that is not there.
    """
    from jsonschema.exceptions import best_match
    from referencing.exceptions import Unresolvable

    try:
        found = best_match(checker.iter_errors(value))
    except Unresolvable as error:
        raise InputError(f"not a JSON schema: {error}", "input.field") from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if found is not None:
        raise ValueError(f"it is not as the schema says, {found.message[:_SHOWN]}")
    return value


def completion_of(body: str) -> dict[str, Any]:
    """A chat completion.

    Args:
        body: What an endpoint sent.

    Raises:
        ValueError: It is none.
    """
    # Some servers report speeds of NaN; nothing that is read can be one.
    value = _json(body, strict=False)
    if (said := _error_in(value)) is not None:
        raise ValueError(f"the endpoint says: {said}")
    found: dict[str, Any] = _checked(value, validator(_COMPLETION))
    return found


def _error_in(value: Any) -> str | None:
    """What a server says that sends its errors as if they were replies."""
    error = value.get("error") if isinstance(value, dict) and "choices" not in value else None
    said = error.get("message") if isinstance(error, dict) else error
    return said if isinstance(said, str) else None


def cost_of(completion: Mapping[str, Any], messages: Sequence[Message], text: str) -> Usage:
    """What a completion cost, as reported, or estimated and marked as such.

    Args:
        completion: The completion.
        messages: What was sent for it.
        text: What the model wrote.
    """
    usage = completion.get("usage")
    if usage is not None and validator(_USAGE).is_valid(usage):
        return Usage(int(usage["prompt_tokens"]), int(usage["completion_tokens"]), 1, 0)
    asked = sum(_core.count_tokens(message["content"], "cl100k_base") for message in messages)
    return Usage(asked, _core.count_tokens(text, "cl100k_base"), 1, 1)


def reply_value(text: str, checker: Validator | None) -> Any:
    """The JSON value of a reply, fenced as Markdown or not; None without a schema.

    Raises:
        ValueError: It is none, or not what the schema says; without one, it is empty.
        InputError: ``input.field``: the schema refers to something that is not there.
    """
    if checker is None:
        if not text.strip():
            raise ValueError("it is empty")
        return None
    fenced = _FENCED.fullmatch(text.strip())
    return _checked(_json(fenced[1] if fenced else text, strict=True), checker)
