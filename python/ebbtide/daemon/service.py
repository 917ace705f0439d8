"""One store for many requests: who may use which memory when.

Everything here runs on the event loop, which makes its bookkeeping atomic; only the work
on a memory goes to threads.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar

from ebbtide.daemon.answers import Answers
from ebbtide.errors import ExternalError, NotFoundError
from ebbtide.memory import Memory
from ebbtide.store import Store
from ebbtide.threads import awaited

__all__ = ["Service"]

_R = TypeVar("_R")

_READERS = 32
_WRITERS = 4
"""Threads; a memory has one writer at a time, so these serve different memories."""

_READERS_EACH = 4
"""Reads of one memory at a time: those that wait for it leave threads to the others."""

_OPEN = 64
"""Memories kept open while nobody uses them."""


class _Room:
    """A memory that is used, about to be opened, or kept open."""

    def __init__(self) -> None:
        self.memory: Memory | None = None
        self.users = 0
        self.empty = asyncio.Event()
        self.opening = asyncio.Lock()
        # Fair: whoever asked first writes first.
        self.writing = asyncio.Lock()
        self.reading = asyncio.Semaphore(_READERS_EACH)


class Service:
    """The memories of a store: writes to one in order of arrival, reads beside them.

    Attributes:
        instance: Random name of this process's service, for clients that lost an answer.
    """

    def __init__(self, store: Store) -> None:
        """Serve an open store, which is then used through this object alone."""
        self.instance = secrets.token_hex(8)
        self._store = store
        self._answers = Answers()
        self._rooms: OrderedDict[str, _Room] = OrderedDict()
        self._leaving: dict[str, asyncio.Event] = {}
        self._keeping = asyncio.Lock()
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="ebbtide-read")
        self._writers = ThreadPoolExecutor(_WRITERS, thread_name_prefix="ebbtide-write")

    async def read(self, namespace: str, work: Callable[[Memory], _R]) -> _R:
        """Run ``work`` in a thread, beside writes and other reads.

        Raises:
            NotFoundError: If there is no such memory.
        """
        async with self._using(namespace) as room:
            memory = await self._opened(namespace, room, create=False)
            async with room.reading:
                return await self._in(self._readers, work, memory)

    async def write(
        self,
        namespace: str,
        work: Callable[[Memory], bytes],
        *,
        create: bool = False,
        key: str | None = None,
        instance: str | None = None,
        asked: bytes = b"",
    ) -> bytes:
        """Run ``work`` in a thread, after every write to this memory that came before.

        Args:
            namespace: The memory.
            work: What writes; gives the answer.
            create: Make the memory where it is missing.
            key: Idempotency key: the work is done once for it.
            instance: The process that an earlier attempt was sent to.
            asked: The request, which a key belongs to.

        Raises:
            NotFoundError: If there is no such memory and ``create`` is not set.
            ExternalError: If an earlier attempt went to another process, whose end may
                have come before or after the write.
        """
        if instance is not None and instance != self.instance:
            message = (
                "the daemon was started anew since this write was first sent: whether it was "
                "carried out is not known here; look, or repeat it with an external_id"
            )
            raise ExternalError(message, "daemon.uncertain")

        async def once() -> bytes:
            # The place in the queue comes first: opening the memory must not change it.
            async with self._using(namespace) as room, room.writing:
                memory = await self._opened(namespace, room, create=create)
                return await self._in(self._writers, work, memory)

        return await self._answers.once(namespace, key, asked, once)

    async def namespaces(self) -> list[str]:
        """Names of the memories, ordered."""
        return await self._in(self._readers, Store.namespaces, self._store)

    async def delete(self, namespace: str) -> None:
        """Erase a memory and its name, once the requests that use it are over.

        Raises:
            NotFoundError: If there is no such memory.
        """
        async with self._alone(namespace):
            await self._in(self._writers, self._store.delete, namespace)

    async def close(self) -> None:
        """Finish every write that was begun, and what is journalled; close the store."""
        await self._answers.settled()

        def end() -> None:
            self._writers.shutdown(wait=True)
            self._readers.shutdown(wait=True)
            self._store.close()

        await awaited(end)

    # Who uses what

    @asynccontextmanager
    async def _using(self, namespace: str) -> AsyncIterator[_Room]:
        while namespace in self._leaving:
            await self._leaving[namespace].wait()
        room = self._rooms.setdefault(namespace, _Room())
        self._rooms.move_to_end(namespace)
        room.users += 1
        room.empty.clear()
        try:
            yield room
        finally:
            room.users -= 1
            if room.users == 0:
                room.empty.set()
                if room.memory is None:  # a name that nothing is stored under
                    del self._rooms[namespace]

    @asynccontextmanager
    async def _alone(self, namespace: str) -> AsyncIterator[None]:
        """Nobody uses the memory, nobody begins to, and afterwards it is not open."""
        while namespace in self._leaving:
            await self._leaving[namespace].wait()
        left = self._leaving[namespace] = asyncio.Event()
        try:
            room = self._rooms.get(namespace)
            if room is not None and room.users:
                await room.empty.wait()
            async with self._keeping:
                try:
                    yield
                finally:
                    self._rooms.pop(namespace, None)
        finally:
            del self._leaving[namespace]
            left.set()

    async def _opened(self, namespace: str, room: _Room, *, create: bool) -> Memory:
        async with room.opening:
            if room.memory is None:
                # One at a time changes what the store has open: to wait here holds no thread.
                async with self._keeping:
                    room.memory = await self._in(self._writers, self._open, namespace, create)
                await self._retire()
        return room.memory

    def _open(self, namespace: str, create: bool) -> Memory:
        if not create and namespace not in self._store.namespaces():
            message = (
                f"there is no memory {namespace!r}; `/v1/namespaces` lists them, and the first "
                "turn makes one"
            )
            raise NotFoundError(message, "not_found.namespace")
        return self._store.memory(namespace)

    async def _retire(self) -> None:
        """Close the memories that were not used for longest, where too many are open."""
        spare = len(self._rooms) - _OPEN
        idle = [
            name
            for name, room in self._rooms.items()
            if not room.users and name not in self._leaving
        ]
        for name in idle[: max(spare, 0)]:
            room = self._rooms.get(name)
            if room is not None and not room.users:
                async with self._alone(name):
                    await self._in(self._writers, self._store.release, name)

    @staticmethod
    async def _in(pool: ThreadPoolExecutor, work: Callable[..., _R], *given: object) -> _R:
        return await awaited(partial(work, *given), pool)
