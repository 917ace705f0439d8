"""Threads that open, write and close at the same time, and the one that writes behind them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from reference.stand_ins import HashEmbedder

from ebbtide import Config, Memory, Store, StoreError


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


AFTER_THE_END = """
import asyncio, atexit, sys, threading
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from reference.stand_ins import HashEmbedder
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
