"""Many writers and readers at once: nothing is lost, and the order alone decides the state."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from reference.stand_ins import HashEmbedder, scripted

from ebbtide import Config, Memory, Store

from .load import NAMES, mixed
from .processes import daemon

SCRIPT = Path(__file__).with_name("load.py")


def as_in_order(store: Path, config: Config, numbers: set[int]) -> dict[str, int]:
    """Check that every turn is there and that the digests are those of serial adding.

    Args:
        store: The store.
        config: Its configuration.
        numbers: Calls that added a turn.

    Returns:
        Turns by memory.
    """
    found: set[int] = set()
    sizes: dict[str, int] = {}
    with Store.open(store, config=config) as opened:
        assert opened.namespaces() == sorted(NAMES)
        for name in opened.namespaces():
            memory = opened.memory(name)
            order = [int((turn.external_id or "")[1:]) for turn in memory.turns()]
            assert found.isdisjoint(order)
            found.update(order)
            sizes[name] = len(order)
            assert len(set(order)) == len(order)
            with Memory.in_memory(config=config) as serial:
                serial.add_many(scripted(number) for number in order)
                assert serial.digest() == memory.digest(), name
        assert opened.check() == []
    assert found == numbers
    return sizes


def by_threads(store: Path, config: Config, threads: int, calls: int) -> dict[str, Any]:
    """Threads of one process that share a store's memories."""
    start = time.perf_counter()
    with Store.open(store, config=config) as opened:
        memories = {name: opened.memory(name) for name in NAMES}
        with ThreadPoolExecutor(threads) as pool:
            running = [
                pool.submit(mixed, memories.__getitem__, n * calls, calls) for n in range(threads)
            ]
            done = [one.result() for one in running]
    return figures(done, time.perf_counter() - start)


def by_processes(store: Path, processes: int, calls: int) -> dict[str, Any]:
    """Processes that share a daemon."""
    with daemon(store) as (serving, address):
        start = time.perf_counter()
        running = [
            subprocess.Popen(
                [sys.executable, str(SCRIPT), address, str(n * calls), str(calls)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for n in range(processes)
        ]
        done = []
        for process in running:
            output, failure = process.communicate()
            assert process.returncode == 0, failure
            done.append(json.loads(output))
        seconds = time.perf_counter() - start
        serving.terminate()
        assert serving.wait(60) == 0
    return figures(done, seconds)


def figures(done: list[dict[str, int]], seconds: float) -> dict[str, Any]:
    adds, recalls = (sum(one[kind] for one in done) for kind in ("adds", "recalls"))
    return {
        "adds": adds,
        "recalls": recalls,
        "seconds": round(seconds, 1),
        "calls a second": round((adds + recalls) / seconds),
    }


def test_threads_of_one_process(store_path: Path, stub: Config) -> None:
    found = by_threads(store_path, stub, 8, 200)
    assert (found["adds"], found["recalls"]) == (800, 800)
    as_in_order(store_path, stub, set(range(0, 1600, 2)))


def test_processes_through_the_daemon(store_path: Path, stub: Config) -> None:
    found = by_processes(store_path, 4, 100)
    assert (found["adds"], found["recalls"]) == (200, 200)
    as_in_order(store_path, stub, set(range(0, 400, 2)))


def listed(turns: dict[str, int]) -> str:
    """Turns by memory, as they are read."""
    return ", ".join(f"{count:,}" for count in turns.values())


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_the_promised_load(tmp_path: Path, stub: Config) -> None:
    """8 threads × 10,000 calls in process, then 4 processes × 5,000 through the daemon."""
    start = time.perf_counter()
    threads = by_threads(tmp_path / "threads.db", stub, 8, 10_000)
    apart = as_in_order(tmp_path / "threads.db", stub, set(range(0, 80_000, 2)))
    processes = by_processes(tmp_path / "daemon.db", 4, 5_000)
    served = as_in_order(tmp_path / "daemon.db", stub, set(range(0, 20_000, 2)))
    threads["turns in each memory"] = listed(apart)
    processes["turns in each memory"] = listed(served)
    folder = os.environ.get("EBBTIDE_FIGURES")
    if folder is None:
        return
    document = {
        "promise": (
            "8 threads with 10,000 mixed calls each, and 4 processes through the daemon with "
            "5,000 each: nothing lost, no error, every digest that of serial adding"
        ),
        "test": "tests/daemon/test_load.py::test_the_promised_load",
        "figures": {
            "threads": {"threads": 8, "calls each": 10_000, **threads},
            "daemon": {"processes": 4, "calls each": 5_000, **processes},
            "lost": 0,
            "errors": 0,
            "digests equal": len(apart) + len(served),
            "analysis": f"stand-in, {HashEmbedder().dimension} dimensions",
        },
        "seconds": round(time.perf_counter() - start, 1),
    }
    path = Path(folder) / "load.json"
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
