"""Stand-ins for a language model: replies that follow from the request alone."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Mapping
from typing import Any

from ebbtide.llm import Usage, used

__all__ = ["CountedModel", "EchoModel", "FlakyModel"]


def _number(text: str) -> int:
    return hashlib.sha256(text.encode()).digest()[0]


class EchoModel:
    """Judges, writes and collects from a hash of what it is asked; safe for threads."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._lock = threading.Lock()

    def complete_json(self, system: str, user: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        with self._lock:
            self.asked.append(user)
        fields = schema["properties"]
        if "lifecycle" in fields:
            number = _number(user) % 8
            kind = ("transient", "short_term", "short_term")[number] if number < 3 else "persistent"
            return {"lifecycle": kind, "utility": (1 + _number(user)) / 256}
        if "episode" in fields:
            messages = re.findall(r"^\d+\. (.*)$", user, re.MULTILINE)
            return {"episode": f"It went on {_number(user)}. " + " ".join(messages)[:600]}
        if "message" not in fields.get("facts", {}).get("items", {}).get("properties", {}):
            raise ValueError("this is no request of the write path")
        rows = re.findall(r"^(\d+)\. (.*)$", user, re.MULTILINE)
        return {
            "facts": [{"message": int(n), "fact": f"Fact: {said}"[:900]} for n, said in rows[:2]]
        }


class FlakyModel(EchoModel):
    """Fails on some requests, always the same ones, in every way a model can fail."""

    def complete_json(self, system: str, user: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        reply = super().complete_json(system, user, schema)
        ways: list[Any] = [
            TimeoutError("no reply in time"),
            ConnectionRefusedError("connection refused"),
            RuntimeError("whatever an adapter raises"),
            {},
            {"lifecycle": "eternal", "utility": 7, "episode": "", "facts": [{"message": 1}]},
            {"lifecycle": "persistent", "utility": 1.5, "episode": 3, "facts": "none"},
        ]
        place = _number(f"way {user}") % (2 * len(ways))
        if place < len(ways):
            if isinstance(ways[place], Exception):
                raise ways[place]
            return ways[place]  # type: ignore[no-any-return]
        return reply


class CountedModel(EchoModel):
    """Tells what its replies cost, as a client does: 100 and 10 tokens each."""

    def complete_json(self, system: str, user: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        reply = super().complete_json(system, user, schema)
        used(Usage(100, 10, 1, 0))
        return reply
