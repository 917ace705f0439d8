"""The turns of one session, for adapters that keep whole conversations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from ebbtide.errors import NotFoundError
from ebbtide.forking import RenewedLock
from ebbtide.memory import Memory
from ebbtide.types import Turn

__all__ = ["clear_session", "newest_first", "session_turns"]


@dataclass
class _Known:
    """Ids by session, and the first id that was not looked at yet."""

    ids: dict[str, set[int]] = field(default_factory=dict)
    next: int = 0


# Histories are made anew for every request; the memory is read through only once.
_known: WeakKeyDictionary[Memory, _Known] = WeakKeyDictionary()
_lock = RenewedLock()


def session_turns(memory: Memory, session_id: str) -> list[Turn]:
    """The turns of a session in the order in which they were stored."""
    return list(newest_first(memory, session_id))[::-1]


def newest_first(memory: Memory, session_id: str) -> Iterator[Turn]:
    """The turns of a session, the newest first, each read when it is asked for."""
    for number in _ids_of(memory, session_id)[::-1]:
        try:
            turn = memory.get(number)
        except NotFoundError:  # deleted since
            with _lock:
                _known[memory].ids[session_id].discard(number)
            continue
        yield turn


def _ids_of(memory: Memory, session_id: str) -> list[int]:
    with _lock:
        known = _known.setdefault(memory, _Known())
        for turn in memory.turns(first=known.next):
            assert turn.interaction_id is not None
            if turn.session_id is not None:
                known.ids.setdefault(turn.session_id, set()).add(turn.interaction_id)
            # Last: a child whose parent was amid this looks at the turn again.
            known.next = turn.interaction_id + 1
        return sorted(known.ids.get(session_id, ()))


def clear_session(memory: Memory, session_id: str) -> None:
    """Erase the turns of a session, all of them at once."""
    while ids := [turn.interaction_id or 0 for turn in session_turns(memory, session_id)]:
        try:
            memory.forget(ids=ids)
            return
        except NotFoundError:  # one went by another thread, just now
            continue
