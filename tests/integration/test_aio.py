"""The asynchronous facade: the same memory, and an event loop that keeps turning."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from ebbtide import AsyncMemory, Config, InputError, Memory, NotFoundError, StoreError, aio

TURNS = [{"text": f"Turn {i}: the port is {8000 + i}.", "speaker": "Ana"} for i in range(50)]


def test_it_has_every_method_of_memory_with_its_arguments() -> None:
    for name, method in inspect.getmembers(Memory, inspect.isfunction):
        if name.startswith("_"):
            continue
        twin = getattr(AsyncMemory, name)
        have, want = inspect.signature(twin).parameters, inspect.signature(method).parameters
        assert list(have) == list(want), name
        assert [p.default for p in have.values()] == [p.default for p in want.values()], name


def test_the_state_is_that_of_the_plain_memory(stub: Config, tmp_path: Path) -> None:
    async def main() -> str:
        async with await AsyncMemory.open(tmp_path / "a.db", config=stub) as memory:
            for turn in TURNS[:10]:
                await memory.add(**turn)  # type: ignore[arg-type]
            await memory.add_many(TURNS[10:], batch_size=7)
            assert len(memory) == len(TURNS)
            assert [t.text async for t in memory.turns()] == [t["text"] for t in TURNS]
            later = [t.text async for t in memory.turns(first=1)]
            assert later == [t["text"] for t in TURNS[1:]]
            return await memory.digest()

    with Memory.open(tmp_path / "b.db", config=stub) as plain:
        plain.add_many(TURNS)
        assert asyncio.run(main()) == plain.digest()


def test_an_asynchronous_stream_is_read_on_the_loop(stub: Config) -> None:
    threads = set()

    async def stream() -> AsyncIterator[dict[str, Any]]:
        for turn in TURNS:
            threads.add(threading.current_thread())
            await asyncio.sleep(0)
            yield turn

    async def main() -> tuple[str, str]:
        async with AsyncMemory.in_memory(config=stub) as one:
            seen: list[int] = []
            report = await one.add_many(stream(), progress=seen.append, batch_size=20)
            assert (report.accepted, seen[-1]) == (50, 50)
            async with AsyncMemory.in_memory(config=stub) as two:
                await two.add_many(TURNS)
                return await one.digest(), await two.digest()

    first, second = asyncio.run(main())
    assert first == second
    assert threads == {threading.main_thread()}


def test_a_stream_that_fails_keeps_what_it_gave(stub: Config) -> None:
    async def failing() -> AsyncIterator[dict[str, Any]]:
        for turn in TURNS[:10]:
            yield turn
        raise OSError("the socket closed")

    async def bad() -> AsyncIterator[dict[str, Any]]:
        yield TURNS[0]
        yield {"text": 7}

    async def main() -> None:
        async with AsyncMemory.in_memory(config=stub) as memory:
            with pytest.raises(OSError, match="socket"):
                await memory.add_many(failing(), batch_size=4)
            assert len(memory) == 10
            with pytest.raises(InputError, match="turn 2 of this call"):
                await memory.add_many(bad())
            assert len(memory) == 11

    asyncio.run(main())


def test_concurrent_adds_are_stored_in_the_order_of_the_calls(stub: Config) -> None:
    async def main() -> list[str]:
        async with AsyncMemory.in_memory(config=stub) as memory:
            await asyncio.gather(*(memory.add(t["text"]) for t in TURNS))
            return [t.text async for t in memory.turns()]

    assert asyncio.run(main()) == [t["text"] for t in TURNS]


def test_the_loop_keeps_turning_during_adds(cheap: Config) -> None:
    """Each add is milliseconds of analysis; a 1 ms ticker goes on beside fifty of them."""

    async def main() -> tuple[int, int]:
        async with AsyncMemory.in_memory(config=cheap) as memory:
            await memory.warm_up()
            ticks, during = 0, 0

            async def ticker() -> None:
                nonlocal ticks
                while True:
                    ticks += 1
                    await asyncio.sleep(0.001)

            task = asyncio.create_task(ticker())
            adds = [asyncio.create_task(memory.add(t["text"])) for t in TURNS]
            for add in adds:
                before = ticks
                await add
                during += ticks > before
            task.cancel()
            return ticks, during

    ticks, during = asyncio.run(main())
    # A blocked loop would tick once or twice in all, and during none of the adds.
    assert ticks > 25
    assert during > 10


def test_reads_run_beside_a_write(stub: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    began, release = threading.Event(), threading.Event()

    def slow(memory: Memory) -> None:
        began.set()
        assert release.wait(20)

    async def main() -> None:
        async with AsyncMemory.in_memory(config=stub) as memory:
            await memory.add("The port is 8080.")
            write = asyncio.create_task(memory.delete_all())
            await asyncio.to_thread(began.wait, 20)
            assert (await memory.stats())["turns"] == 1
            assert not write.done()
            release.set()
            await write

    # `delete_all` stands for any long write.
    monkeypatch.setattr(AsyncMemory, "delete_all", aio._awaited(slow, writes=True))
    asyncio.run(main())


def test_errors_reach_the_awaiter(stub: Config, tmp_path: Path) -> None:
    async def main() -> None:
        memory = await AsyncMemory.open(tmp_path / "a.db", config=stub)
        with pytest.raises(InputError):
            await memory.add("")
        with pytest.raises(NotFoundError):
            await memory.get(7)
        with pytest.raises(StoreError):
            await AsyncMemory.open(tmp_path / "a.db", config=stub)
        await memory.close()
        await memory.close()

    asyncio.run(main())


def test_a_cancelled_call_that_has_begun_is_carried_out(stub: Config) -> None:
    began, release = threading.Event(), threading.Event()

    def slow() -> Iterator[dict[str, Any]]:
        began.set()
        assert release.wait(20)
        yield from TURNS

    async def main() -> int:
        async with AsyncMemory.in_memory(config=stub) as memory:
            task = asyncio.create_task(memory.add_many(slow()))
            await asyncio.to_thread(began.wait, 20)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            release.set()
            await memory.flush()  # waits for its turn behind the call
            return len(memory)

    assert asyncio.run(main()) == len(TURNS)


async def stalled(turns: list[dict[str, str]], reached: asyncio.Event) -> AsyncIterator[Any]:
    for turn in turns:
        yield turn
    reached.set()
    await asyncio.Event().wait()


@pytest.mark.timeout(60)
def test_a_stream_may_read_the_memory_that_it_goes_into(stub: Config) -> None:
    async def main() -> None:
        async with AsyncMemory.in_memory(config=stub) as memory:
            await memory.add("The port is 8080.")

            async def turns() -> AsyncIterator[dict[str, Any]]:
                for turn in TURNS[:5]:
                    assert await memory.retrieve("the port", limit=1)
                    yield turn

            assert (await memory.add_many(turns(), batch_size=1)).accepted == 5

    asyncio.run(main())


@pytest.mark.timeout(60)
def test_opening_that_the_end_of_the_loop_cancels_frees_the_store(
    stub: Config, store_path: Path
) -> None:
    async def left_behind() -> None:
        task = asyncio.create_task(AsyncMemory.open(store_path, config=stub))
        await asyncio.sleep(0)
        assert not task.done()

    asyncio.run(left_behind())
    with Memory.open(store_path, config=stub) as memory:
        assert len(memory) == 0


@pytest.mark.timeout(60)
def test_a_cancelled_stream_keeps_what_it_gave_and_blocks_nobody(stub: Config) -> None:
    async def main() -> list[str]:
        async with AsyncMemory.in_memory(config=stub) as memory:
            reached = asyncio.Event()
            task = asyncio.create_task(memory.add_many(stalled(TURNS[:5], reached), batch_size=2))
            await reached.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await memory.add("later")
            return [t.text async for t in memory.turns()]

    assert asyncio.run(main()) == [*(t["text"] for t in TURNS[:5]), "later"]


@pytest.mark.timeout(60)
def test_a_stream_cancelled_between_two_steps_is_read_no_further(stub: Config) -> None:
    """The writer is busy when the call is cancelled, and asks for the next item afterwards."""
    stored, release = threading.Event(), threading.Event()

    def progress(done: int) -> None:
        stored.set()
        assert release.wait(20)

    async def main() -> int:
        async with AsyncMemory.in_memory(config=stub) as memory:

            async def endless() -> AsyncIterator[dict[str, Any]]:
                while True:
                    yield TURNS[0]

            task = asyncio.create_task(memory.add_many(endless(), batch_size=1, progress=progress))
            await asyncio.to_thread(stored.wait, 20)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            release.set()
            await memory.flush()
            return len(memory)

    assert asyncio.run(main()) > 0


@pytest.mark.timeout(60)
def test_a_source_that_is_cancelled_itself_fails_the_call(stub: Config) -> None:
    async def cancelled() -> AsyncIterator[dict[str, Any]]:
        yield TURNS[0]
        raise asyncio.CancelledError

    async def main() -> int:
        async with AsyncMemory.in_memory(config=stub) as memory:
            with pytest.raises(asyncio.CancelledError):
                await memory.add_many(cancelled())
            return len(memory)

    assert asyncio.run(main()) == 1


@pytest.mark.timeout(60)
def test_a_stream_whose_loop_is_closed_ends(stub: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aio, "_LOOK_SECONDS", 0.01)
    memory = AsyncMemory.in_memory(config=stub)
    kept: list[asyncio.Task[Any]] = []
    for closed_early in (True, False):
        loop = asyncio.new_event_loop()
        loop.set_exception_handler(lambda *_: None)  # tasks are left pending
        reached = asyncio.Event()
        stored, release = threading.Event(), threading.Event()

        def progress(
            done: int, stored: threading.Event = stored, release: threading.Event = release
        ) -> None:
            stored.set()
            assert release.wait(20)

        # The writing thread waits for the loop, or comes back to it later.
        source = stalled(TURNS[:64] if closed_early else TURNS[:3], reached)
        kept.append(loop.create_task(memory.add_many(source, batch_size=1, progress=progress)))
        if closed_early:
            loop.run_until_complete(asyncio.to_thread(stored.wait, 20))
        else:
            loop.run_until_complete(reached.wait())
        loop.close()
        release.set()
    asyncio.run(memory.close())  # waits for the writing thread


def test_an_opening_that_is_cancelled_leaves_the_store_free(
    stub: Config, store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, release = threading.Event(), threading.Event()
    opening = Memory.open

    def slow(*given: Any, **named: Any) -> Memory:
        opened = opening(*given, **named)
        began.set()
        assert release.wait(20)
        return opened

    async def main() -> None:
        monkeypatch.setattr(Memory, "open", slow)
        task = asyncio.create_task(AsyncMemory.open(store_path, config=stub))
        await asyncio.to_thread(began.wait, 20)
        task.cancel()
        asyncio.get_running_loop().call_soon(release.set)
        with pytest.raises(asyncio.CancelledError):
            await task
        monkeypatch.setattr(Memory, "open", opening)
        async with await AsyncMemory.open(store_path, config=stub) as memory:
            assert len(memory) == 0

    asyncio.run(main())


def test_a_closed_memory_says_so_as_the_plain_one_does(stub: Config) -> None:
    plain = Memory.in_memory(config=stub)
    plain.close()
    with pytest.raises(StoreError) as expected:
        plain.add("x")

    async def main() -> None:
        memory = AsyncMemory.in_memory(config=stub)
        await memory.close()
        calls = (
            lambda: memory.add("x"),
            lambda: memory.add_many(TURNS),
            lambda: memory.retrieve("the port"),
            lambda: memory.digest(),
            lambda: anext(memory.turns()),
        )
        for call in calls:
            with pytest.raises(StoreError) as caught:
                await call()  # type: ignore[no-untyped-call]
            assert (caught.value.code, str(caught.value)) == (
                expected.value.code,
                str(expected.value),
            )

    asyncio.run(main())
