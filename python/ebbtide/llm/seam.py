"""The one seam where a language model can take part in the memory's own decisions.

Whatever has a ``complete_json`` will do; :class:`~ebbtide.llm.LlmClient` has one. The
memory works without: a call that fails leaves the decision to the deterministic rules.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from ebbtide import _core
from ebbtide.errors import ExternalError
from ebbtide.llm.replies import Usage
from ebbtide.llm.tally import tallied

__all__ = ["ONLY_JSON", "JsonModel", "Meter", "failure", "object_schema"]

_SHOWN = 300

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
    other = "llm.unavailable" if isinstance(error, OSError) else "llm.answer"
    text = f"{getattr(error, 'code', other)}: {str(error) or type(error).__name__}"
    return text[:_SHOWN].encode("utf-8", "replace").decode("utf-8")


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
