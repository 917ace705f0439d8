"""The turns of one session, for adapters that keep whole conversations."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from ebbtide.errors import NotFoundError
from ebbtide.memory import Memory
from ebbtide.types import Turn

__all__ = ["clear_session", "session_turns"]


@dataclass
class _Known:
    """Ids by session, and the first id that was not looked at yet."""

    ids: dict[str, list[int]] = field(default_factory=dict)
    next: int = 0


# Histories are made anew for every request; the memory is read through only once.
_known: WeakKeyDictionary[Memory, _Known] = WeakKeyDictionary()
_lock = threading.Lock()


def session_turns(memory: Memory, session_id: str) -> list[Turn]:
    """The turns of a session in the order in which they were stored."""
    with _lock:
        known = _known.setdefault(memory, _Known())
        for turn in memory.turns(first=known.next):
            assert turn.interaction_id is not None
            known.next = turn.interaction_id + 1
            if turn.session_id is not None:
                known.ids.setdefault(turn.session_id, []).append(turn.interaction_id)
        ids = known.ids.get(session_id, [])
        turns: list[Turn] = []
        for number in list(ids):
            try:
                turns.append(memory.get(number))
            except NotFoundError:  # deleted since
                ids.remove(number)
    return turns


def clear_session(memory: Memory, session_id: str) -> None:
    """Erase the turns of a session, all of them at once."""
    while ids := [turn.interaction_id or 0 for turn in session_turns(memory, session_id)]:
        try:
            memory.forget(ids=ids)
            return
        except NotFoundError:  # one went by another thread, just now
            continue
