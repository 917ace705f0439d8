"""OpenAI Agents SDK: a session whose items lie in a memory (``ebbtide[openai-agents]``)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice
from typing import Any, ParamSpec, TypeVar, cast

from ebbtide.adapters.clock import Clock, utc_now
from ebbtide.adapters.sessions import clear_session, newest_first
from ebbtide.adapters.texts import parts_text, stored_text
from ebbtide.errors import NotFoundError
from ebbtide.extras import MissingExtraError
from ebbtide.inputs import checked_text
from ebbtide.memory import Memory
from ebbtide.threads import begun, settled
from ebbtide.types import Turn

try:
    from agents import TResponseInputItem
    from agents.memory import SessionABC, SessionSettings
except ImportError as error:
    raise MissingExtraError(error, "openai-agents") from error

__all__ = ["EbbtideSession"]

_P = ParamSpec("_P")
_R = TypeVar("_R")

_SPOKEN = ("user", "assistant", "system", "developer")


class EbbtideSession(SessionABC):
    """The items of one session, kept in a memory that can be asked about all sessions.

    Items come back as they were, tool calls and their outputs included. What was said in
    them is read like any turn, so ``memory.retrieve`` finds it. A call that changes the
    session and is cancelled ends once it is done, so that the next one finds it whole.
    """

    def __init__(
        self,
        session_id: str,
        memory: Memory,
        *,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        clock: Clock | None = None,
    ) -> None:
        """A session.

        Args:
            session_id: Its id.
            memory: The open memory; it stays the caller's to close.
            session_settings: The SDK's settings, such as how many items a run gets; a
                mapping of them will do, as for the SDK's own sessions.
            clock: Gives the time of an item; the system's by default.

        Raises:
            InputError: If the id is no text.
        """
        self.session_id = checked_text("session_id", session_id)
        if isinstance(session_settings, dict):
            session_settings = SessionSettings(**session_settings)
        self.session_settings = session_settings
        self._memory = memory
        self._clock = clock or utc_now

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The session's items, oldest first.

        Args:
            limit: Only so many, the newest; by default what the settings say, or all.
        """
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        return await asyncio.to_thread(self._newest, limit)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Store items in order.

        Raises:
            InputError: Naming the item that is unusable; those before it were kept.
        """
        turns = [self._turn(cast("Mapping[str, Any]", item)) for item in items]
        await _settled(self._memory.add_many, turns)

    async def pop_item(self) -> TResponseInputItem | None:
        """Erase the newest item and return it; None where there is none."""
        return await _settled(self._pop)

    async def clear_session(self) -> None:
        """Erase the session's items."""
        await _settled(clear_session, self._memory, self.session_id)

    def _newest(self, limit: int | None) -> list[TResponseInputItem]:
        turns = newest_first(self._memory, self.session_id)
        items = (item for turn in turns if (item := _item(turn)) is not None)
        return list(islice(items, None if limit is None else max(limit, 0)))[::-1]

    def _pop(self) -> TResponseInputItem | None:
        for turn in newest_first(self._memory, self.session_id):
            item = _item(turn)
            if item is None:
                continue
            try:
                self._memory.delete(turn.interaction_id)
            except NotFoundError:  # another call has this one, so the next is the newest
                continue
            return item
        return None

    def _turn(self, item: Mapping[str, Any]) -> Turn:
        role, text = _said(item)
        most = self._memory.config["limits"]["max_turn_chars"]
        return Turn(
            text=stored_text(text, f"[{item.get('type', 'message')}]", most=most),
            role=role,
            timestamp=self._clock(),
            session_id=self.session_id,
            metadata={"openai": item},
        )


async def _settled(work: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """Work in a thread, waited for although the caller is cancelled.

    The SDK puts a session right after a run that was cancelled: what goes on meanwhile
    would come in between.
    """
    # No task: the end of an event loop cancels all of those.
    done = begun(partial(work, *args, **kwargs))
    cancelled = await settled(done)
    if cancelled is not None:
        done.exception()  # the caller is gone; nobody else asks what became of it
        raise cancelled
    return done.result()


def _said(item: Mapping[str, Any]) -> tuple[str, str]:
    """Role and text of an item; no text for what nobody said, such as reasoning."""
    if "role" in item:
        role = str(item["role"])
        return "system" if role == "developer" else role, parts_text(item.get("content"))
    if item.get("type") == "function_call":
        return "assistant", f"{item.get('name')}({item.get('arguments')})"
    return "tool" if "output" in item else "assistant", parts_text(item.get("output"))


def _item(turn: Turn) -> TResponseInputItem | None:
    stored = (turn.metadata or {}).get("openai")
    if stored is None and turn.role in _SPOKEN:
        stored = {"role": turn.role, "content": turn.text}
    return cast("TResponseInputItem | None", stored)
