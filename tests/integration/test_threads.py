"""Threads that open, write and close at the same time, and the one that writes behind them."""

from __future__ import annotations

import contextlib
import copy
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from reference.stand_ins import HashEmbedder, scripted

from ebbtide import Config, InputError, Memory, Store, StoreError


class Flaky(HashEmbedder):
    """Fails as a server's client does, with no error of ours, as long as it is told to."""

    failing = False

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.failing:
            raise RuntimeError("the server is away")
        return super().embed(texts)


def until(holds: Callable[[], bool]) -> None:
    """Wait for what another thread does."""
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.005)


def test_threads_that_ask_for_a_memory_get_the_same_one(stub: Config, store_path: Path) -> None:
    with Store.open(store_path, config=stub) as store:
        for round_ in range(20):
            found: list[Memory] = []
            together = threading.Barrier(4)

            def ask(
                name: str = f"memory {round_}",
                found: list[Memory] = found,
                together: threading.Barrier = together,
            ) -> None:
                together.wait()
                found.append(store.memory(name))

            threads = [threading.Thread(target=ask) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(found) == 4
            assert len({id(memory) for memory in found}) == 1


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_does_not_wait_for_a_thread_that_it_does_not_have(
    stub: Config, store_path: Path
) -> None:
    store = Store.open(store_path, config=stub)
    with store._lock:
        child = os.fork()
        if child == 0:
            # Where a lock is waited for, the alarm ends the child.
            signal.alarm(20)
            status = 1
            with contextlib.suppress(BaseException):
                # Another thread than the one that holds the lock.
                done = threading.Thread(target=store.close)
                done.start()
                done.join()
                try:
                    store.memory("a")
                except StoreError as error:
                    status = 0 if error.code == "store.closed" else 2
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    store.memory("a").add("unharmed")
    store.close()


def test_turns_are_analysed_behind_after_an_error_that_is_not_ours(
    caplog: pytest.LogCaptureFixture,
) -> None:
    embedder = Flaky()
    with Memory.in_memory(config=Config().with_embedder(embedder)) as memory:
        embedder.failing = True
        memory.add("My cat is called Miso.", wait="journalled")
        until(lambda: bool(caplog.records))
        assert [vars(record)["error"] for record in caplog.records] == ["RuntimeError"]
        # Whoever needs the turn sees why it is missing.
        for call in (memory.flush, lambda: memory.retrieve("What is the cat called?")):
            with pytest.raises(RuntimeError, match="the server is away"):
                call()
        embedder.failing = False
        memory.add("I live in Porto.", wait="journalled")
        until(lambda: memory.stats()["pending"] == 0)
        assert len(memory.retrieve("What is the cat called?", limit=2)) == 2


def test_a_turn_journalled_while_the_memory_closes_starts_no_thread(
    stub: Config, store_path: Path
) -> None:
    memory = Memory.open(store_path, config=stub)
    handle = memory._writing._handle

    class Closes:
        """Closed by another thread just when the turn is safe."""

        def journal(self, turns: list[Any]) -> Any:
            found = handle.journal(turns)
            closing = threading.Thread(target=memory.close)
            closing.start()
            closing.join()
            return found

        def __getattr__(self, name: str) -> Any:
            return getattr(handle, name)

    memory._writing._handle = Closes()  # type: ignore[assignment]
    before = threading.active_count()
    assert memory.add("It is safe.", wait="journalled").accepted == 1
    assert threading.active_count() == before
    with Memory.open(store_path, config=stub) as opened:
        assert [turn.text for turn in opened.turns()] == ["It is safe."]


def test_closing_ends_though_turns_go_on_being_journalled(stub: Config) -> None:
    memory = Memory.in_memory(config=stub)
    memory.add("first", wait="journalled")
    errors: list[StoreError] = []

    def journal() -> None:
        try:
            while True:
                memory.add("and another", wait="journalled")
        except StoreError as error:
            errors.append(error)

    thread = threading.Thread(target=journal)
    thread.start()
    memory._writing.stop()  # what close() does first; the store is still open
    thread.join(30)
    assert not thread.is_alive()
    assert [error.code for error in errors] == ["store.closed"]
    memory.close()


def in_another(call: Callable[[], Any]) -> Any:
    """What a call gives in another thread; it must not wait for this one."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(call()), daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive(), "it waits"
    return found[0]


def test_reads_go_on_while_a_stream_is_added(stub: Config, store_path: Path) -> None:
    with Memory.open(store_path, config=stub) as memory:
        memory.add("The garden is old.")

        def turns() -> Iterator[dict[str, Any]]:
            for number in range(200):
                yield scripted(number)
                if number % 80 == 0:
                    assert in_another(lambda: memory.retrieve("the garden", limit=1))
                    assert in_another(memory.digest)
                    # What is journalled meanwhile is there for whoever asks then.
                    said = f"The shed is number {number}."
                    in_another(lambda: memory.add(said, wait="journalled"))  # noqa: B023
                    found = in_another(lambda: memory.retrieve("number of the shed", limit=9))
                    assert said in [one.turn.text for one in found]
                    in_another(memory.flush)
                    assert memory.stats()["pending"] == 0

        report = memory.add_many(turns(), batch_size=16)
        assert report.accepted == 200
        stored, digest = list(memory.turns()), memory.digest()
    with Memory.in_memory(config=stub) as again:
        for turn in stored:
            again.add_many([turn])
        assert again.digest() == digest


def test_writers_wait_for_the_end_of_a_stream(stub: Config) -> None:
    with Memory.in_memory(config=stub) as memory:
        writers: list[threading.Thread] = []

        def turns() -> Iterator[dict[str, Any]]:
            for number in range(100):
                yield scripted(number)
                if number == 50:
                    calls = (
                        lambda: memory.add("later"),
                        lambda: memory.add_many([{"text": "later"}]),
                        lambda: memory.relate(1, "corrects", 0),
                    )
                    writers.extend(threading.Thread(target=call) for call in calls)
                    for thread in writers:
                        thread.start()

        memory.add_many(turns(), batch_size=8)
        for thread in writers:
            thread.join(30)
        assert [turn.text for turn in memory.turns()][100:] == ["later", "later"]


class Slow(HashEmbedder):
    """Embeds texts that say so when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go_on = threading.Event(), threading.Event()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if any("slow" in text for text in texts):
            self.begun.set()
            assert self.go_on.wait(30)
        return super().embed(texts)


def test_who_closes_second_waits_for_the_first(stub: Config, store_path: Path) -> None:
    slow = Slow()
    config = stub.with_embedder(slow)
    memory = Memory.open(store_path, config=config)
    memory.add("a slow one", wait="journalled")
    assert slow.begun.wait(30)
    first, second = (threading.Thread(target=memory.close) for _ in range(2))
    first.start()
    until(lambda: memory._writing._stopped)
    second.start()
    second.join(0.2)  # far longer than it takes where it does not wait
    slow.go_on.set()
    first.join(30)
    second.join(30)
    with Memory.open(store_path, config=config) as opened:
        assert opened.stats()["pending"] == 0


def test_an_interrupt_ends_the_waiting_and_the_store_is_free(
    stub: Config, store_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    slow = Slow()
    config = stub.with_embedder(slow)

    def interrupted(timeout: float | None = None) -> None:
        raise KeyboardInterrupt

    def left_behind(memory: Memory) -> threading.Thread:
        slow.begun.clear()
        memory.add("a slow one", wait="journalled")
        assert slow.begun.wait(30)
        background = memory._writing._background
        assert background is not None
        background._thread.join = interrupted  # type: ignore[method-assign]
        return background._thread

    memory = Memory.open(store_path, config=config)
    threads = [left_behind(memory)]
    with pytest.raises(KeyboardInterrupt):
        memory.close()
    store = Store.open(store_path, config=config)
    store.memory("other")
    threads.append(left_behind(store.memory("default")))
    threads.append(left_behind(store.memory("third")))
    with pytest.raises(KeyboardInterrupt):
        store.close()
    slow.go_on.set()
    with Store.open(store_path, config=config) as again:
        assert again.memory("default").stats()["pending"] == 2
        assert again.memory("default").retrieve("a slow one")
        assert again.memory("default").stats()["pending"] == 0
    for thread in threads:
        threading.Thread.join(thread, 30)
        assert not thread.is_alive()
    assert caplog.records == []


@pytest.mark.timeout(60)
@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="there is no such signal here")
@pytest.mark.parametrize("call", ["add", "relate", "delete_all"])
def test_a_signal_that_closes_the_memory_amid_a_write(
    stub: Config, store_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Its handler has the writers' locks, and the thread behind waits for them."""
    memory = Memory.open(store_path, config=stub)
    memory.add_many([{"text": "one"}, {"text": "two"}])
    handle = memory._handle

    class Signalled:
        def _signalled(self, work: Callable[..., Any], *given: Any) -> Any:
            found = work(*given)
            memory.add("It is safe.", wait="journalled")
            signal.raise_signal(signal.SIGUSR1)
            return found

        def add(self, batch: list[Any]) -> Any:
            return self._signalled(handle.add, batch)

        def relate(self, *given: Any) -> Any:
            return self._signalled(handle.relate, *given)

        def delete_all(self) -> Any:
            return self._signalled(handle.delete_all)

        def __getattr__(self, name: str) -> Any:
            return getattr(handle, name)

    for part in (memory, memory._writing):
        monkeypatch.setattr(part, "_handle", Signalled())
    calls = {
        "add": lambda: memory.add("three"),
        "relate": lambda: memory.relate(1, "corrects", 0),
        "delete_all": memory.delete_all,
    }
    before = signal.signal(signal.SIGUSR1, lambda *_: memory.close())
    try:
        with contextlib.suppress(StoreError):  # where something was left to do
            calls[call]()
        with pytest.raises(StoreError, match="closed"):
            memory.stats()
    finally:
        signal.signal(signal.SIGUSR1, before)
    with Memory.open(store_path, config=stub) as opened:
        assert [turn.text for turn in opened.turns()][-1] == "It is safe."
        opened.flush()
        assert opened.stats()["pending"] == 0


def test_a_memory_that_is_dropped_frees_its_store(stub: Config, store_path: Path) -> None:
    memory = Memory.open(store_path, config=stub)
    memory.add("one", wait="journalled")
    memory.flush()
    background = memory._writing._background
    assert background is not None
    thread = background._thread
    del memory, background
    thread.join(30)
    assert not thread.is_alive()
    with Memory.open(store_path, config=stub) as opened:
        assert [turn.text for turn in opened.turns()] == ["one"]


def test_a_store_opens_a_memory_anew_that_was_closed(stub: Config, store_path: Path) -> None:
    with Store.open(store_path, config=stub) as store:
        for number in range(3):
            with store.memory("a") as memory:
                memory.add(f"turn {number}")
                assert store.memory("a") is memory
        assert len(store.memory("a")) == 3


def test_where_no_thread_starts_a_reader_analyses(
    stub: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    with Memory.in_memory(config=stub) as memory:
        monkeypatch.setattr(threading.Thread, "start", start)
        assert memory.add("The port is 8080.", wait="journalled").accepted == 1
        assert memory.stats()["pending"] == 1
        assert len(memory.retrieve("the port")) == 1
        monkeypatch.undo()


def test_a_memory_is_not_copied(stub: Config) -> None:
    with Memory.in_memory(config=stub) as memory:
        for call in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="a Memory cannot be copied or pickled"):
                call(memory)


AFTER_THE_END = """
import asyncio, atexit, sys, threading
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from reference.stand_ins import HashEmbedder, scripted
from ebbtide import AsyncMemory, Config, Memory, connect
from ebbtide.daemon.server import Daemon, Settings

folder = Path(sys.argv[1])
config = Config().with_embedder(HashEmbedder())
ready = threading.Event()
daemon = Daemon(Settings(folder / "served.db", config=config))
serving = threading.Thread(target=daemon.run, args=[lambda address: ready.set()])
serving.start()
ready.wait()
served = connect(folder / "served.db.sock")
here = Memory.open(folder / "here.db", config=config)
late = Memory.open(folder / "late.db", config=config)

def use(memory):
    memory.add("I live in Porto.")
    memory.add("My cat is called Miso.", wait="journalled")
    memory.add_many({"text": f"turn {n}"} for n in range(3))
    assert len(memory.retrieve("Where do I live?", limit=5)) == 5
    memory.close()

async def use_it():
    async with await AsyncMemory.open(folder / "async.db", config=config) as memory:
        await memory.add("I live in Porto.")
        assert len(await memory.retrieve("Where do I live?")) == 1

def go_on():
    threading.main_thread().join()
    use(here)
    use(served)
    asyncio.run(use_it())
    daemon.stop()
    serving.join()
    print("went on")

def at_the_end():
    use(late)
    print("ended")

atexit.register(at_the_end)
threading.Thread(target=go_on).start()
"""


def test_a_memory_is_used_on_after_the_main_thread_has_ended(tmp_path: Path) -> None:
    """By other threads, and by what is called when the interpreter ends."""
    tests = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", AFTER_THE_END, str(tmp_path), str(tests)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split("\n")[:2] == ["went on", "ended"]
    for name in ("here", "late", "async", "served"):
        with Store.open(tmp_path / f"{name}.db", read_only=True) as store:
            assert store.namespaces() == ["default"]


def test_what_reads_while_all_is_read_anew_changes_nothing(stub: Config) -> None:
    config = stub.replace(capacity={"token_budget": 200})
    seen = []

    def look(done: int) -> None:
        memory.retrieve("What was said?")
        seen.append((done, memory.stats()["pending"]))

    with Memory.in_memory(config=config) as memory:
        memory.add_many(scripted(n) for n in range(200))
        memory.reindex()
        digest, stats = memory.digest(), memory.stats()
        assert memory.reindex(progress=look) == 200
        assert (memory.digest(), memory.stats()) == (digest, stats)
        # Each look saw what had been read so far, and began nothing of its own.
        assert [done + pending for done, pending in seen] == [200] * len(seen)
        assert len(seen) > 1
        with pytest.raises(InputError, match="by this very thread"):
            memory.reindex(progress=lambda _: memory.reindex())
        memory.flush()
        assert memory.digest() == digest
