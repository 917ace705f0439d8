"""LlamaIndex: a memory block for its ``Memory`` (``ebbtide[llamaindex]``)."""

from __future__ import annotations

import asyncio
from typing import Any

from ebbtide.adapters.clock import Clock, utc_now
from ebbtide.adapters.texts import question_for, stored_text
from ebbtide.extras import MissingExtraError
from ebbtide.inputs import paired
from ebbtide.memory import Memory
from ebbtide.types import Turn

try:
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.bridge.pydantic import Field
    from llama_index.core.memory import BaseMemoryBlock
except ImportError as error:
    raise MissingExtraError(error, "llamaindex") from error

__all__ = ["EbbtideMemoryBlock"]

_ROLES = {
    "chatbot": "assistant",
    "model": "assistant",
    "function": "tool",
    "developer": "system",
}
"""Roles by LlamaIndex's, where they have other names."""


class EbbtideMemoryBlock(BaseMemoryBlock[str]):
    """Long-term memory: takes the messages that leave the short-term one, recalls by them.

    What it gives is a block of text about the last user's message, at most ``max_tokens``
    long; such a block is not stored anew when a message that holds it comes back.

    Attributes:
        memory: The open memory; it stays the caller's to close.
        max_tokens: Most tokens of what it gives, by the memory's counter.
        include_active: Whether the active conversation follows the evidence.
        filters: What evidence must match, as for :meth:`ebbtide.Memory.retrieve`.
        clock: Gives the time of a message.
    """

    name: str = Field(default="ebbtide", description="The name of the memory block.")
    memory: Memory = Field(exclude=True, description="The open memory.")
    max_tokens: int = Field(default=1024, ge=1, description="Most tokens of what it gives.")
    include_active: bool = Field(
        default=False, description="Whether the active conversation follows the evidence."
    )
    filters: dict[str, Any] | None = Field(default=None, description="What evidence must match.")
    clock: Clock = Field(default=utc_now, exclude=True, description="The time of a message.")

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        question = paired(_question(messages or []))
        if not question.strip():
            return ""
        return await asyncio.to_thread(
            self.memory.render_context,
            question_for(self.memory, question),
            max_tokens=self.max_tokens,
            include_active=self.include_active,
            filters=self.filters,
        )

    async def _aput(self, messages: list[ChatMessage]) -> None:
        turns = [turn for message in messages if (turn := self._turn(message)) is not None]
        if turns:
            await asyncio.to_thread(self.memory.add_many, turns)

    def _turn(self, message: ChatMessage) -> Turn | None:
        session_id = message.additional_kwargs.get("session_id")
        most = self.memory.config["limits"]["max_turn_chars"]
        # A message cut within an emoji has half of it. Refused, it would be lost, and those
        # that leave the short-term memory with it: nobody hands them in again.
        text = stored_text(paired(message.content or ""), "", most=most)
        if not text:
            return None
        role = str(message.role.value)
        return Turn(
            text=text,
            role=_ROLES.get(role, role),
            timestamp=self.clock(),
            session_id=None if session_id is None else str(session_id),
        )


def _question(messages: list[ChatMessage]) -> str:
    """The last message of the user, or of anybody where no user spoke."""
    said = [message for message in messages if (message.content or "").strip()]
    asked = [message for message in said if message.role.value == "user"]
    last = (asked or said)[-1:]
    return (last[0].content or "") if last else ""
