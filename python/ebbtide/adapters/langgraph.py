"""LangGraph's long-term store (``ebbtide[langgraph]``).

Each namespace is a memory of its own, so that what one user says never supersedes what
another said. An item is a turn: its text is what the engine reads, its value lies in the
turn's metadata, and putting it again replaces the turn.
"""

from __future__ import annotations

import heapq
import os
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Self
from weakref import WeakValueDictionary

from ebbtide.adapters.clock import Clock, utc_now
from ebbtide.adapters.items import NAME, Items
from ebbtide.closing import Closing
from ebbtide.config import Config
from ebbtide.errors import ConfigError
from ebbtide.extras import MissingExtraError
from ebbtide.forking import RenewedLock
from ebbtide.store import Store
from ebbtide.threads import awaited

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        InvalidNamespaceError,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        get_text_at_path,
    )
except ImportError as error:
    raise MissingExtraError(error, "langgraph") from error

__all__ = ["EbbtideStore"]


class _Shared:
    """What all that wrap one store have in common: a key is known to each of them, or to none."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.lock = threading.RLock()
        self.opened: dict[tuple[str, ...], Items] = {}


_shared: WeakValueDictionary[int, _Shared] = WeakValueDictionary()
"""By the store's identity, which is no other's as long as there is an entry: that holds it."""
_shared_lock = RenewedLock()


def _shared_by(store: Store) -> _Shared:
    with _shared_lock:
        found = _shared.get(id(store))
        if found is None:
            found = _shared[id(store)] = _Shared(store)
        return found


class EbbtideStore(Closing, BaseStore):
    """A LangGraph store in an ebbtide store file.

    Searching with a query ranks by the memory's evidence; an item's ``score`` is its
    confidence in [0, 1]. Items put with ``index=False`` are found by key and filter, and
    follow the scored ones in a search with a query. Safe to share between threads; several
    over one open :class:`~ebbtide.Store` see each other's items.

    Time to live counts in minutes from the last write or, where reads refresh it, the
    last read; reads are remembered while the store is open, so that after reopening it
    counts from the last write. Expired items are erased when their namespace is next
    used.
    """

    supports_ttl = True

    def __init__(
        self,
        store: Store,
        *,
        fields: list[str] | None = None,
        ttl: TTLConfig | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Wrap an open store, which :meth:`close` closes; :meth:`open` opens one.

        Args:
            store: The store.
            fields: Paths into a value whose texts are read, as LangGraph writes them
                (``"text"``, ``"messages[*].content"``); every text in it by default.
            ttl: LangGraph's settings: ``default_ttl``, ``refresh_on_read``.
            clock: Gives the time of a call, with a zone; the system's by default.

        Raises:
            ConfigError: If its settings discard turns: items would go without a word.
        """
        archive = store.config["ltm"]
        if not archive["enabled"] or archive["storage_type"] == "null":
            message = (
                "these settings discard what leaves the active memory, and a store must keep its "
                'items: set [ltm] enabled = true and storage_type = "sqlite"'
            )
            raise ConfigError(message, "config.range")
        self.ttl_config = ttl
        self._store = store
        self._fields = fields
        self._clock = clock or utc_now
        self._shared = _shared_by(store)
        self._lock = self._shared.lock
        self._opened = self._shared.opened
        # One at a time can go on: in the event loop's threads the others would wait, and keep
        # whoever else needs one from it. It starts with the first call.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ebbtide-langgraph")
        self._process = os.getpid()

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        config: Config | str | Path | None = None,
        fields: list[str] | None = None,
        ttl: TTLConfig | None = None,
        clock: Clock | None = None,
    ) -> Self:
        """Open a store file, creating it where it is missing.

        Raises:
            StoreError: As :meth:`ebbtide.Store.open`.
            ConfigError: If the settings are unusable, or discard turns.
        """
        store = Store.open(path, config=config)
        try:
            return cls(store, fields=fields, ttl=ttl, clock=clock)
        except BaseException:
            store.close()
            raise

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations in their order; each sees those before it."""
        with self._lock:
            return [self._run(op) for op in ops]

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations in their order, off the event loop; calls in theirs."""
        # A fork has a copy of the pool without its thread, and is refused by another one.
        pool = self._thread if os.getpid() == self._process else None
        return await awaited(partial(self.batch, list(ops)), pool)

    def close(self) -> None:
        """Free the store file."""
        with self._lock:
            self._opened.clear()
            self._store.close()
        # What still waits for its turn is told that the store was closed.
        self._thread.shutdown(wait=False)

    def _run(self, op: Op) -> Result:
        now = self._clock()
        if isinstance(op, PutOp):
            self._put(op, now)
            return None
        if isinstance(op, GetOp):
            items = self._items(op.namespace, now)
            return None if items is None else items.get(op.key, now, refresh=op.refresh_ttl)
        if isinstance(op, SearchOp):
            return list(self._search(op, now))
        if isinstance(op, ListNamespacesOp):
            return list(self._list(op))
        message = f"not a store operation: {type(op).__name__}"
        raise TypeError(message)

    def _items(
        self, namespace: tuple[str, ...], now: datetime, *, create: bool = False
    ) -> Items | None:
        """The items of a namespace that has some, the expired ones gone."""
        items = self._opened.get(namespace)
        if items is None:
            name = _name(namespace)
            if not create and name not in self._store.namespaces():
                return None
            items = self._opened[namespace] = Items(self._store.memory(name), namespace)
        items.expire(now)
        if items.deserted and not create:
            self._drop(namespace)
            return None
        return items

    def _drop(self, namespace: tuple[str, ...]) -> None:
        del self._opened[namespace]
        self._store.delete(_name(namespace))

    def _put(self, op: PutOp, now: datetime) -> None:
        if op.value is None:
            items = self._items(op.namespace, now)
            if items is not None and items.remove(op.key) and items.deserted:
                self._drop(op.namespace)
            return
        value = dict(op.value)
        text: str | None = None
        # An item may name no field at all, and is not read then, as with False.
        fields = (self._fields or None) if op.index is None else op.index
        if isinstance(fields, list | tuple):
            text = "\n".join(t for path in fields for t in get_text_at_path(value, path))
        items = self._items(op.namespace, now, create=True)
        assert items is not None
        try:
            items.put(op.key, value, now, text=text, indexed=op.index is not False, ttl=op.ttl)
        finally:
            if items.deserted:  # a value that was refused leaves no empty namespace behind
                self._drop(op.namespace)

    def _search(self, op: SearchOp, now: datetime) -> list[SearchItem]:
        each: list[list[tuple[Item, float | None]]] = []
        wanted = max(op.offset + op.limit, 0)
        for namespace in self._namespaces():
            if namespace[: len(op.namespace_prefix)] != tuple(op.namespace_prefix):
                continue
            items = self._items(namespace, now)
            if items is not None:
                each.append(items.search(op.query, op.filter, wanted))
        # Scores are comparable within a memory only, confidence between them: each keeps
        # its order, and the more confident of the foremost is next. Pages fit together.
        found = heapq.merge(*each, key=lambda pair: 1.0 if pair[1] is None else -pair[1])
        page = list(islice(found, max(op.offset, 0), wanted))
        for item, _ in page:
            self._opened[item.namespace].touch(item.key, now, refresh=op.refresh_ttl)
        return [
            SearchItem(i.namespace, i.key, i.value, i.created_at, i.updated_at, score)
            for i, score in page
        ]

    def _namespaces(self) -> list[tuple[str, ...]]:
        names = (n for n in self._store.namespaces() if n.startswith(NAME))
        return sorted(tuple(name.removeprefix(NAME).split(".")) for name in names)

    def _list(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        conditions = op.match_conditions or ()
        names = [name for name in self._namespaces() if all(_matches(name, c) for c in conditions)]
        if op.max_depth is not None:
            names = sorted({name[: op.max_depth] for name in names})
        return names[op.offset : op.offset + op.limit]


def _name(namespace: tuple[str, ...]) -> str:
    """The name of the memory that holds a namespace; its labels can be read back from it."""
    if not namespace or any(
        not isinstance(label, str) or not label or "." in label for label in namespace
    ):
        message = f"a namespace needs labels, and none may be empty or hold a period: {namespace}"
        raise InvalidNamespaceError(message)
    return NAME + ".".join(namespace)


def _matches(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    path = condition.path
    if len(path) > len(namespace):
        return False
    part = namespace[: len(path)]
    if condition.match_type == "suffix":
        part = namespace[len(namespace) - len(path) :]
    return all(want in ("*", have) for want, have in zip(path, part, strict=True))
