"""Threads that open, write and close at the same time, and the one that writes behind them."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from pathlib import Path

import pytest

from ebbtide import Config, Memory, Store, StoreError


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
