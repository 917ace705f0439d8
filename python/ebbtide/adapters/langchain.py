"""LangChain: a retriever over a memory, and a chat history in one (``ebbtide[langchain]``)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ebbtide.adapters.clock import Clock, utc_now
from ebbtide.adapters.sessions import clear_session, session_turns
from ebbtide.adapters.texts import parts_text, question_for, stored_text
from ebbtide.extras import MissingExtraError
from ebbtide.inputs import checked_text
from ebbtide.memory import Memory
from ebbtide.types import RetrievedEvidence, Turn

try:
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.documents import Document
    from langchain_core.messages import (
        AIMessage,
        BaseMessage,
        ChatMessage,
        FunctionMessage,
        HumanMessage,
        SystemMessage,
        ToolMessage,
        message_to_dict,
        messages_from_dict,
    )
    from langchain_core.retrievers import BaseRetriever
except ImportError as error:
    raise MissingExtraError(error, "langchain") from error

__all__ = ["EbbtideChatMessageHistory", "EbbtideRetriever"]

_KINDS: tuple[tuple[type[BaseMessage], str], ...] = (
    (HumanMessage, "user"),
    (AIMessage, "assistant"),
    (SystemMessage, "system"),
    (ToolMessage, "tool"),
    (FunctionMessage, "tool"),
)
"""Roles by LangChain's kinds of message; the chunks of a stream are of these kinds too."""

_NAMED = {"human": "user", "ai": "assistant", "function": "tool", "developer": "system"}
"""Roles by the names that a message of any role may give, where we have others."""

_PLAIN: dict[str, type[BaseMessage]] = {
    "user": HumanMessage,
    "assistant": AIMessage,
    "system": SystemMessage,
}


class EbbtideRetriever(BaseRetriever):
    """Turns of a memory as documents, best first.

    A document's text is the turn's; its metadata has ``interaction_id``,
    ``external_id``, ``role``, ``speaker``, ``timestamp``, ``session_id``, ``validity``,
    ``confidence`` and the turn's own ``metadata``.

    Attributes:
        memory: The open memory; it stays the caller's to close.
        k: How many turns at most.
        filters: What they must match, as for :meth:`ebbtide.Memory.retrieve`.
        query_time: When the question is asked; the newest turn's time by default.
        min_confidence: Turns below are left out, in [0, 1]; below 0.5 the memory does
            not know.
    """

    memory: Memory
    k: int = 5
    filters: dict[str, Any] | None = None
    query_time: Any = None
    min_confidence: float = 0.0

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        found = self.memory.retrieve(
            question_for(self.memory, query),
            limit=self.k,
            filters=self.filters,
            query_time=self.query_time,
        )
        return [_document(item) for item in found if item.confidence >= self.min_confidence]


class EbbtideChatMessageHistory(BaseChatMessageHistory):
    """The messages of one session, kept in a memory that can be asked about all sessions.

    Messages come back as they were, tool calls and parts included. Turns of the session
    that came in another way are messages too, where they are a user's, an assistant's or
    the system's.
    """

    def __init__(self, memory: Memory, session_id: str, *, clock: Clock | None = None) -> None:
        """A session's history.

        Args:
            memory: The open memory; it stays the caller's to close.
            session_id: The session.
            clock: Gives the time of a message; the system's by default.

        Raises:
            InputError: If the session is no text.
        """
        super().__init__()
        self.session_id = checked_text("session_id", session_id)
        self._memory = memory
        self._clock = clock or utc_now

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """The session's messages, oldest first."""
        turns = session_turns(self._memory, self.session_id)
        return [message for turn in turns if (message := _message(turn)) is not None]

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages in order.

        Raises:
            InputError: Naming the message that is unusable; those before it were kept.
        """
        self._memory.add_many([self._turn(message) for message in messages])

    def clear(self) -> None:
        """Erase the session's messages."""
        clear_session(self._memory, self.session_id)

    def _turn(self, message: BaseMessage) -> Turn:
        text = parts_text(message.content)
        if isinstance(message, AIMessage) and message.tool_calls:
            calls = (f"{call['name']}({_written(call['args'])})" for call in message.tool_calls)
            text = "\n".join([*([text] if text else []), *calls])
        most = self._memory.config["limits"]["max_turn_chars"]
        return Turn(
            text=stored_text(text, f"[{message.type}]", most=most),
            role=_role(message),
            speaker=message.name or None,
            timestamp=self._clock(),
            session_id=self.session_id,
            metadata={"langchain": message_to_dict(message)},
        )


def _role(message: BaseMessage) -> str:
    for kind, role in _KINDS:
        if isinstance(message, kind):
            return role
    name = (message.role if isinstance(message, ChatMessage) else "") or message.type
    return _NAMED.get(name.lower(), name)


def _written(arguments: Any) -> str:
    """A tool call's arguments, their letters as they are: what is escaped answers no question."""
    return json.dumps(arguments, ensure_ascii=False, default=str)


def _document(item: RetrievedEvidence) -> Document:
    turn = item.turn
    names = ("interaction_id", "external_id", "role", "speaker", "session_id", "validity")
    metadata: dict[str, Any] = {name: getattr(turn, name) for name in names}
    metadata["timestamp"] = turn.timestamp
    metadata["confidence"] = item.confidence
    metadata["metadata"] = turn.metadata
    return Document(id=str(turn.interaction_id), page_content=turn.text, metadata=metadata)


def _message(turn: Turn) -> BaseMessage | None:
    stored = (turn.metadata or {}).get("langchain")
    if isinstance(stored, Mapping):
        return messages_from_dict([dict(stored)])[0]
    kind = _PLAIN.get(turn.role)
    return None if kind is None else kind(content=turn.text, name=turn.speaker)
