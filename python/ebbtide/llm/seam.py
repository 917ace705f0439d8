"""The one seam where a language model can take part in the memory's own decisions.

Whatever has a ``complete_json`` will do; :class:`~ebbtide.llm.LlmClient` has one. The
memory works without: a call that fails leaves the decision to the deterministic rules.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from ebbtide import _core
from ebbtide.errors import EbbtideError, ExternalError
from ebbtide.llm.parsing import is_unicode
from ebbtide.llm.replies import MOST, Usage
from ebbtide.llm.tally import tallied

__all__ = [
    "LONGEST_MESSAGE",
    "ONLY_JSON",
    "JsonModel",
    "Meter",
    "failure",
    "message_line",
    "object_schema",
    "one_line",
    "text_given",
    "whole_given",
]

_SHOWN = 300

LONGEST_MESSAGE = 8000
"""Characters: of a longer message the beginning is read."""

ONLY_JSON = " Reply with one JSON object and nothing else."
"""Ends what a model is told that it is."""


def object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema of an object with these fields and no others, as endpoints take it."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def failure(error: Exception) -> str:
    """Why a model failed, as the client would name it, for a trace and the store."""
    code = "llm.unavailable" if isinstance(error, OSError) else "llm.answer"
    # Other packages' errors have codes that mean something else.
    if isinstance(error, EbbtideError):
        code = error.code
    try:
        said = str(error)
    except Exception:  # a caller's own error may fail at that, too
        said = ""
    text = f"{code}: {said or type(error).__name__}"
    return text[:_SHOWN].encode("utf-8", "replace").decode("utf-8")


def one_line(text: str) -> str:
    """A text without its line breaks: in a prompt a line is a message."""
    lines = (line.strip() for line in text.splitlines())
    return " ".join(line for line in lines if line)


def message_line(speaker: str, text: str, timestamp: str | None = None) -> str:
    """A message as a model reads it: one line, the beginning of one that is too long."""
    said = f"{one_line(speaker)}: {one_line(text[:LONGEST_MESSAGE])}"
    return f"[{timestamp}] {said}" if timestamp else said


def text_given(what: str, text: Any) -> str:
    """A text that a model gave, on one line.

    Raises:
        ExternalError: ``llm.answer``: it is no text, or cannot be stored.
    """
    if not isinstance(text, str) or not is_unicode(text):
        raise ExternalError(f"the {what} is no text", "llm.answer")
    return " ".join(text.split())


def whole_given(number: Any) -> int | None:
    """A whole number that a model gave, 1.0 too, as JSON has it; None: it is none."""
    if isinstance(number, bool) or not isinstance(number, int | float):
        return None
    return int(number) if number == number // 1 else None


@runtime_checkable
class JsonModel(Protocol):
    """A language model that replies with a JSON object."""

    def complete_json(self, system: str, user: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """A reply that satisfies a JSON schema.

        Args:
            system: Who the model is and how it replies.
            user: What is asked.
            schema: JSON schema of the reply, an object.

        Raises:
            ExternalError: The model cannot be reached, refuses or replies with
                something else.
        """
        ...


class Meter:
    """A model whose use is counted, replies from a cache at what they once cost.

    Attributes:
        usage: What was used through it: as the model tells it (see
            :func:`~ebbtide.llm.used`), else counted with ``cl100k_base``.
    """

    def __init__(self, model: JsonModel) -> None:
        """Count from now on."""
        self._model = model
        self.usage = Usage()

    @property
    def cost(self) -> tuple[int, int]:
        """Replies and tokens, of each no more than can be kept."""
        return min(self.usage.calls, MOST), min(self.usage.total, MOST)

    def complete_json(self, system: str, user: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """The model's reply.

        Raises:
            ExternalError: ``llm.answer``: it is no object; or what the model raises.
        """
        with tallied() as told:
            try:
                reply = self._model.complete_json(system, user, schema)
            finally:
                # Replies that could not be used were paid for as well.
                self.usage += told.usage
        if not isinstance(reply, dict):
            message = f"the language model replied with {type(reply).__name__}, not an object"
            raise ExternalError(message, "llm.answer")
        if not told.usage.calls:
            asked = sum(_core.count_tokens(text, "cl100k_base") for text in (system, user))
            said = _core.count_tokens(json.dumps(reply), "cl100k_base")
            self.usage += Usage(asked, said, 1, 1)
        return reply
