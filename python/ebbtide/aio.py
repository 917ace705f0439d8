"""The facade for asyncio: every call of :class:`Memory`, awaited, off the event loop."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
)
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from ebbtide.config import Config
from ebbtide.memory import Memory
from ebbtide.opened import PAGE, closed
from ebbtide.pipeline import BATCH
from ebbtide.threads import awaited, begun, settled
from ebbtide.types import Turn, WriteReport

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future, ThreadPoolExecutor

    from ebbtide.llm.seam import JsonModel

__all__ = ["AsyncMemory"]

_P = ParamSpec("_P")
_R = TypeVar("_R")

_LOOK_SECONDS = 0.5
"""How often a thread that waits for an event loop looks whether it is still there."""

_READERS = 4
"""Reads that run at the same time; more wait their turn."""


def _awaited(
    method: Callable[Concatenate[Memory, _P], _R], *, writes: bool = False
) -> Callable[Concatenate[AsyncMemory, _P], Coroutine[Any, Any, _R]]:
    """The method as a coroutine that runs in a thread of the memory's own."""

    @functools.wraps(method)
    async def call(self: AsyncMemory, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        pool = self._writer if writes else self._readers
        return await self._in(pool, functools.partial(method, self._memory, *args, **kwargs))

    return call


class AsyncMemory:
    """A :class:`Memory` whose calls are awaited and never block the event loop.

    Writes run one after the other in the order of the calls, on one thread; reads run
    beside them and see every write that was awaited before. A call whose task is
    cancelled is still carried out once it has begun; only an asynchronous iterable is
    read no further, since nobody would be left to end its waiting.

    Methods have the names, arguments, results and errors of :class:`Memory`.

    Example:
        >>> import asyncio
        >>> async def main() -> str:
        ...     async with AsyncMemory.in_memory() as memory:
        ...         await memory.add("I moved to Porto in May.", speaker="Ana")
        ...         evidence = await memory.retrieve("Where does Ana live?")
        ...         return evidence[0].turn.text
        >>> asyncio.run(main())
        'I moved to Porto in May.'
    """

    def __init__(self, memory: Memory) -> None:
        """Wrap an open memory, which is then used through this object alone."""
        from concurrent.futures import ThreadPoolExecutor

        self._memory = memory
        self._closed = False
        # Threads start with the first call.
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="ebbtide-write")
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="ebbtide-read")

    @classmethod
    async def open(
        cls,
        path: str | Path,
        *,
        namespace: str = "default",
        config: Config | str | Path | None = None,
        read_only: bool = False,
        reindexing: bool = False,
        llm: JsonModel | None = None,
    ) -> Self:
        """Open a memory in a store file, as :meth:`Memory.open` does.

        Cancelled, it waits until what it opened is closed: the store is free then.
        """
        import asyncio

        work = functools.partial(
            Memory.open,
            path,
            namespace=namespace,
            config=config,
            read_only=read_only,
            reindexing=reindexing,
            llm=llm,
        )
        # No task: the end of an event loop cancels all of those.
        opening = begun(work)
        try:
            opened = await asyncio.shield(opening)
        except asyncio.CancelledError:
            await settled(opening)
            with contextlib.suppress(Exception):  # nothing was opened
                await settled(begun(opening.result().close))
            raise
        return cls(opened)

    @classmethod
    def in_memory(
        cls, *, config: Config | str | Path | None = None, llm: JsonModel | None = None
    ) -> Self:
        """A memory that ends with the process."""
        return cls(Memory.in_memory(config=config, llm=llm))

    async def _in(self, pool: ThreadPoolExecutor, work: Callable[[], _R]) -> _R:
        if self._closed:
            raise closed()
        return await awaited(work, pool)

    @property
    def config(self) -> Config:
        """The configuration it was opened with."""
        return self._memory.config

    @property
    def namespace(self) -> str:
        """The memory's name within its store."""
        return self._memory.namespace

    # Writing

    add = _awaited(Memory.add, writes=True)
    relate = _awaited(Memory.relate, writes=True)
    delete = _awaited(Memory.delete, writes=True)
    delete_all = _awaited(Memory.delete_all, writes=True)
    forget = _awaited(Memory.forget, writes=True)
    retain = _awaited(Memory.retain, writes=True)
    reindex = _awaited(Memory.reindex, writes=True)
    flush = _awaited(Memory.flush, writes=True)

    async def add_many(
        self,
        turns: Iterable[Turn | Mapping[str, Any]] | AsyncIterable[Turn | Mapping[str, Any]],
        *,
        progress: Callable[[int], None] | None = None,
        batch_size: int = BATCH,
    ) -> WriteReport:
        """Store turns in order, in batches, as :meth:`Memory.add_many` does.

        Args:
            turns: An iterable, which is read in the writing thread, or an asynchronous
                one, which is read on the event loop. Cancelled, the call stores what
                it had read of that one, and leaves the rest.
            progress: Called in the writing thread after each batch.
            batch_size: Turns analysed and committed together.

        Raises:
            InputError: Naming the turn that is unusable; those before it were kept.
        """
        import asyncio

        source: _FromLoop[Turn | Mapping[str, Any]] | None = None
        if isinstance(turns, AsyncIterable):
            turns = source = _FromLoop(turns, asyncio.get_running_loop())
        store = functools.partial(
            self._memory.add_many, turns, progress=progress, batch_size=batch_size
        )
        try:
            return await self._in(self._writer, store)
        finally:
            if source is not None:
                source.stop()

    # Reading

    retrieve = _awaited(Memory.retrieve)
    render_context = _awaited(Memory.render_context)
    context = _awaited(Memory.context)
    trace = _awaited(Memory.trace)
    get = _awaited(Memory.get)
    history = _awaited(Memory.history)
    explain = _awaited(Memory.explain)
    episodes = _awaited(Memory.episodes)
    facts = _awaited(Memory.facts)
    unit_cosines = _awaited(Memory.unit_cosines)
    export = _awaited(Memory.export)
    stats = _awaited(Memory.stats)
    digest = _awaited(Memory.digest)
    warm_up = _awaited(Memory.warm_up)

    async def turns(
        self,
        *,
        state: str | None = None,
        first: int = 0,
        metadata: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[Turn]:
        """Stored turns in id order, as :meth:`Memory.turns` gives them, read in pages."""
        rows = self._memory.turns(state=state, first=first, metadata=metadata)
        page = functools.partial(_page, rows)
        while found := await self._in(self._readers, page):
            for turn in found:
                yield turn

    def count_tokens(self, text: str) -> int:
        """Tokens of a text by this memory's counter; quick, so not awaited."""
        return self._memory.count_tokens(text)

    def __len__(self) -> int:
        """Number of stored turns."""
        return len(self._memory)

    async def close(self) -> None:
        """Finish what was asked for, then free the store; closing twice is harmless."""
        self._closed = True

        def end() -> None:
            self._writer.shutdown(wait=True)
            self._readers.shutdown(wait=True)
            self._memory.close()

        await awaited(end)

    async def __aenter__(self) -> Self:
        """Use as an asynchronous context manager: closed at the end."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        await self.close()


class _FromLoop(Generic[_R]):
    """An asynchronous iterable as a plain one for another thread; the loop does the waiting."""

    def __init__(self, source: AsyncIterable[_R], loop: asyncio.AbstractEventLoop) -> None:
        self._iterator = aiter(source)
        self._loop = loop
        self._stopped = False
        self._step: asyncio.Task[Any] | None = None

    def stop(self) -> None:
        """End it after what was read; called on the loop.

        The other thread may wait for an item that never comes, and everyone who wants
        to write, or to close, for that thread.
        """
        self._stopped = True
        # Not the future that the thread waits for: the task may have an item already.
        if self._step is not None and not self._loop.is_closed():
            self._step.cancel()

    def __iter__(self) -> Iterator[_R]:
        from concurrent.futures import CancelledError

        while not self._stopped:
            step = self._asked()
            if step is None:
                return
            try:
                found = step.result()
            except CancelledError:
                if self._stopped:
                    return
                raise
            if not found:
                return
            yield found[0]

    def _asked(self) -> Future[list[_R]] | None:
        """The next step, done; None where the loop was closed, and nobody will ever do it."""
        import asyncio
        from concurrent.futures import wait

        step = self._next()
        try:
            begun = asyncio.run_coroutine_threadsafe(step, self._loop)
        except RuntimeError:
            step.close()
            return None
        while not wait([begun], _LOOK_SECONDS).done:
            if self._loop.is_closed():
                return None
        return begun

    async def _next(self) -> list[_R]:
        # StopAsyncIteration cannot leave a coroutine: no item, no more.
        import asyncio

        if self._stopped:
            return []
        self._step = asyncio.current_task()
        try:
            async for item in self._iterator:
                return [item]
            return []
        finally:
            self._step = None


def _page(rows: Iterable[Turn]) -> list[Turn]:
    from itertools import islice

    return list(islice(rows, PAGE))
