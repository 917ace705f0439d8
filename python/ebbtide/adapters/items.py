"""Keyed items in one memory, for the LangGraph store."""

from __future__ import annotations

import operator as operators
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from ebbtide.adapters.ranking import ranked
from ebbtide.adapters.texts import leaves, stored_text
from ebbtide.errors import InputError, NotFoundError
from ebbtide.extras import MissingExtraError
from ebbtide.inputs import checked_text
from ebbtide.memory import Memory
from ebbtide.messages import shown
from ebbtide.remembering import add_numbered
from ebbtide.types import Turn

try:
    from langgraph.store.base import Item
except ImportError as error:
    raise MissingExtraError(error, "langgraph") from error

__all__ = ["NAME", "Items", "fits"]

NAME = "langgraph:"
"""What the names of the memories that hold a namespace begin with."""

_UNREAD = "(not indexed)"
"""The text of an item that is not to be found by its words."""

_ORDERS = {"$gt": operators.gt, "$gte": operators.ge, "$lt": operators.lt, "$lte": operators.le}


class Items:
    """The items of one namespace; what is kept beside the store is keys, ids and expiry."""

    def __init__(self, memory: Memory, namespace: tuple[str, ...]) -> None:
        """Read which keys the memory holds."""
        self._memory = memory
        self._namespace = namespace
        self._ids: dict[str, int] = {}
        self._expiry: dict[str, tuple[datetime, float]] = {}
        self._others = False
        replaced: list[int] = []
        for turn in memory.turns():
            if not _is_item(turn):
                self._others = True
                continue
            number, metadata = _parts(turn)
            key = str(metadata["key"])
            if key in self._ids:
                # The process ended between writing an item anew and erasing the old one.
                replaced.append(self._ids[key])
            self._know(key, number, datetime.fromisoformat(metadata["updated"]), metadata["ttl"])
        if replaced:
            memory.forget(ids=replaced)

    @property
    def deserted(self) -> bool:
        """Whether nothing is in the memory: no item, and no turn that came in another way."""
        return not self._ids and not self._others

    def _know(self, key: str, number: int, used: datetime, ttl: Any) -> None:
        self._ids[key] = number
        self._date(key, used, ttl)

    def _date(self, key: str, used: datetime, ttl: Any) -> None:
        self._expiry.pop(key, None)
        end = _end(used, ttl)
        if end is not None:
            self._expiry[key] = (end, ttl)

    def expire(self, now: datetime) -> None:
        """Erase the items whose time is over."""
        over = [key for key, (end, _) in self._expiry.items() if end <= now]
        there = [self._ids[key] for key in over if self._turn(key) is not None]
        if there:
            self._memory.forget(ids=there)
        for key in over:
            self._lose(key)

    def _lose(self, key: str) -> None:
        self._ids.pop(key, None)
        self._expiry.pop(key, None)

    def _turn(self, key: str) -> Turn | None:
        """The turn of a key; None if there is none, or it was erased beside the store."""
        if key not in self._ids:
            return None
        try:
            return self._memory.get(self._ids[key])
        except NotFoundError:  # as by ``retain`` of the memory itself
            self._lose(key)
            return None

    def touch(self, key: str, now: datetime, *, refresh: bool) -> None:
        """Start an item's time to live anew, where it has one."""
        if refresh and key in self._expiry:
            self._date(key, now, self._expiry[key][1])

    def get(self, key: str, now: datetime, *, refresh: bool) -> Item | None:
        """One item by its key."""
        turn = self._turn(key)
        if turn is None:
            return None
        self.touch(key, now, refresh=refresh)
        return self._item(turn)

    def put(
        self,
        key: str,
        value: Mapping[str, Any],
        now: datetime,
        *,
        text: str | None,
        indexed: bool,
        ttl: float | None,
    ) -> None:
        """Store an item, or replace the one of that key, which keeps its time of creation.

        Args:
            key: The key.
            value: JSON-able data.
            now: The time of the call.
            text: What the engine reads; every text in the value if None.
            indexed: Whether a query finds it.
            ttl: Minutes to live, None for ever.

        Raises:
            InputError: If the value is no JSON, or the minutes are no number; the old
                item stays.
        """
        _check_minutes(ttl)
        # Whatever may fail comes before the turn is stored: what is stored must be readable.
        lasting = ttl if _end(now, ttl) is not None else None
        old = self._turn(key)
        created = now.isoformat() if old is None else _parts(old)[1]["created"]
        if not indexed:
            text = ""
        elif text is None:
            text = leaves(value)
        text = stored_text(text, "", most=self._memory.config["limits"]["max_turn_chars"])
        _, number = add_numbered(
            self._memory,
            text=text or _UNREAD,
            timestamp=now,
            metadata={
                "key": key,
                "value": value,
                "created": created,
                "updated": now.isoformat(),
                "ttl": lasting,
                # One in which nothing can be read must not be ranked by what stands for it.
                "indexed": bool(text),
            },
        )
        assert number is not None  # the store's settings discard no turn
        # The new one is there before the old one goes: no moment without the item.
        self._know(key, number, now, lasting)
        if old is not None:
            self._memory.delete(old.interaction_id)

    def remove(self, key: str) -> bool:
        """Erase an item; False if there is none of that key."""
        turn = self._turn(key)
        if turn is None:
            return False
        self._memory.delete(turn.interaction_id)
        self._lose(key)
        return True

    def search(
        self, query: str | None, filters: Mapping[str, Any] | None, wanted: int
    ) -> list[tuple[Item, float | None]]:
        """Items that match a filter with their scores, best first; without a query, oldest first.

        Args:
            query: A question, or None.
            filters: Fields of the value that must be equal, or operators on them.
            wanted: How many at most.
        """
        found: list[tuple[Item, float | None]] = []
        if wanted < 1:
            return found
        for turn, score in self._ranked(query):
            if not _is_item(turn):
                continue
            item = self._item(turn)
            if fits(item.value, filters or {}):
                found.append((item, score))
                if len(found) == wanted:
                    break
        return found

    def _ranked(self, query: str | None) -> Iterator[tuple[Turn, float | None]]:
        if query is None or not checked_text("query", query).strip():
            yield from ((turn, None) for turn in self._memory.turns())
            return
        yield from ranked(self._memory, query, {"indexed": True})
        yield from ((turn, None) for turn in self._memory.turns(metadata={"indexed": False}))

    def _item(self, turn: Turn) -> Item:
        _, metadata = _parts(turn)
        return Item(
            value=metadata["value"],
            key=metadata["key"],
            namespace=self._namespace,
            created_at=datetime.fromisoformat(metadata["created"]),
            updated_at=datetime.fromisoformat(metadata["updated"]),
        )


def _is_item(turn: Turn) -> bool:
    """Whether a turn is an item, and none that somebody put into the memory itself."""
    return {"key", "value", "created", "updated", "ttl", "indexed"} <= (turn.metadata or {}).keys()


def _parts(turn: Turn) -> tuple[int, Mapping[str, Any]]:
    assert turn.interaction_id is not None
    assert turn.metadata is not None
    return turn.interaction_id, turn.metadata


def _check_minutes(ttl: Any) -> None:
    number = isinstance(ttl, int | float) and not isinstance(ttl, bool) and ttl == ttl
    if ttl is not None and not number:
        message = f"ttl must be a number of minutes or None, not {shown(ttl)}"
        raise InputError(message, "input.field")


def _end(used: datetime, ttl: Any) -> datetime | None:
    """When the time of an item is over; None for never, as after the last year there is."""
    if ttl is None:
        return None
    try:
        return used + timedelta(minutes=ttl)
    except OverflowError:
        return None if ttl > 0 else used
    except (TypeError, ValueError):  # no number; earlier versions stored such an item
        return None


def fits(value: Any, wanted: Any) -> bool:
    """Whether a value matches a filter: equal, or every operator or field in it does."""
    if isinstance(wanted, list | tuple):
        same = isinstance(value, list) and len(value) == len(wanted)
        return same and all(map(fits, value, wanted))
    if not isinstance(wanted, Mapping):
        return bool(value == wanted)
    if any(str(key).startswith("$") for key in wanted):
        return all(_compare(value, key, other) for key, other in wanted.items())
    if not isinstance(value, Mapping):
        return False
    return all(fits(value.get(key), other) for key, other in wanted.items())


def _stored(value: Any) -> Any:
    """A value as it comes back from the store, where no tuple is."""
    if isinstance(value, Mapping):
        return {key: _stored(item) for key, item in value.items()}
    return [_stored(item) for item in value] if isinstance(value, list | tuple) else value


def _compare(value: Any, operator: str, other: Any) -> bool:
    if operator == "$eq":
        return bool(value == _stored(other))
    if operator == "$ne":
        return bool(value != _stored(other))
    if operator not in _ORDERS:
        message = f"no filter operator {operator!r}; there are $eq, $ne, {', '.join(_ORDERS)}"
        raise ValueError(message)
    try:
        return bool(_ORDERS[operator](value, other))
    except TypeError:  # a missing field, or a text against a number
        return False
