"""What is asked of a language model, what it replies, and what that costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["MOST", "LanguageModel", "Message", "Reply", "Usage", "plausible"]

Message = Mapping[str, str]
"""``role`` (``system``, ``user`` or ``assistant``) and ``content``."""

MOST = 2**40
"""Most tokens or calls that anything can have cost: what says more says nothing."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What requests cost.

    Attributes:
        prompt: Prompt tokens.
        completion: Completion tokens.
        calls: Replies.
        estimated: Of them, those whose tokens the endpoint did not report, counted
            with ``cl100k_base`` instead.
    """

    prompt: int = 0
    completion: int = 0
    calls: int = 0
    estimated: int = 0

    @property
    def total(self) -> int:
        """Prompt and completion tokens."""
        return self.prompt + self.completion

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt + other.prompt,
            self.completion + other.completion,
            self.calls + other.calls,
            self.estimated + other.estimated,
        )

    def __sub__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt - other.prompt,
            self.completion - other.completion,
            self.calls - other.calls,
            self.estimated - other.estimated,
        )


def plausible(usage: Any) -> bool:
    """Whether it is a :class:`Usage` of whole numbers from 0 to :data:`MOST`."""
    if not isinstance(usage, Usage):
        return False
    counts = usage.prompt, usage.completion, usage.calls, usage.estimated
    return all(type(count) is int and 0 <= count <= MOST for count in counts)


@dataclass(frozen=True, slots=True)
class Reply:
    """A usable reply.

    Attributes:
        text: What the model wrote.
        data: The JSON value in it where a schema was given, which it satisfies.
        finish: Why the model stopped: ``stop``, ``length``, or what the endpoint says.
        usage: What it cost, or cost when it was first asked, all attempts together.
        cached: Whether it comes from the cache.
    """

    text: str
    data: Any
    finish: str
    usage: Usage
    cached: bool


class LanguageModel(Protocol):
    """What the rest of the package needs of a model: :class:`LlmClient`, or a stand-in."""

    @property
    def logical(self) -> Usage:
        """What the replies so far cost, cached ones too."""
        ...

    @property
    def spent(self) -> Usage:
        """What was really asked of the endpoint so far."""
        ...

    def identity(self) -> dict[str, Any]:
        """What replies depend on besides the messages; JSON, no credentials."""
        ...

    def ask(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        schema: Mapping[str, Any] | None = None,
    ) -> Reply:
        """Reply to a conversation."""
        ...
