"""Turns are analysed ahead of being stored: bounded, in order, and gone when it is over."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from reference.stand_ins import DyingEmbedder, StubAnalyser, scripted

from ebbtide import Config, ExternalError, InputError, Memory, Store, Turn
from ebbtide.analysis.beside import Beside
from ebbtide.analysis.reading_ahead import CHUNK_CHARACTERS, CHUNK_TURNS, FIRST_CHUNK
from ebbtide.replay import ReplayJob, replay, replay_all

TURNS = [scripted(number) for number in range(1000)]


BEFORE: set[threading.Thread] = set()


@pytest.fixture(autouse=True)
def _those_of_other_tests() -> Iterator[None]:
    """A memory that another test left open keeps its thread: it is none of ours."""
    BEFORE.update(threading.enumerate())
    yield
    BEFORE.clear()


def own_threads() -> list[str]:
    new = [t for t in threading.enumerate() if t not in BEFORE]
    return [t.name for t in new if t.name.startswith("ebbtide")]


def given(turns: list[dict[str, Any]]) -> list[Turn]:
    return [Turn(**turn) for turn in turns]


def test_it_reads_a_bounded_number_of_turns_ahead(stub: Config) -> None:
    read = 0

    def turns() -> Iterator[dict[str, Any]]:
        nonlocal read
        for turn in [scripted(number) for number in range(3000)]:
            read += 1
            yield turn

    ahead: list[int] = []
    with Memory.in_memory(config=stub) as memory:
        memory.add_many(turns(), batch_size=16, progress=lambda done: ahead.append(read - done))
        assert len(memory) == 3000
    # What comes first is stored first: the chunks grow.
    assert ahead[0] <= 3 * FIRST_CHUNK
    assert CHUNK_TURNS < max(ahead) <= 2 * CHUNK_TURNS
    assert ahead[-1] == 0


def test_long_texts_close_a_chunk_early(stub: Config) -> None:
    read = 0

    def turns() -> Iterator[dict[str, Any]]:
        nonlocal read
        for number in range(50):
            read += 1
            yield {"text": f"{number} " + "word " * (CHUNK_CHARACTERS // 10)}

    ahead: list[int] = []
    with Memory.in_memory(config=stub) as memory:
        memory.add_many(turns(), batch_size=1, progress=lambda done: ahead.append(read - done))
        assert len(memory) == 50
    assert max(ahead) <= 6


def test_no_thread_is_left(stub: Config) -> None:
    assert own_threads() == []
    memory = Memory.in_memory(config=stub)
    assert own_threads() == []
    memory.add_many(TURNS)
    assert own_threads() == []
    memory.add("later", wait="journalled")
    assert own_threads() == ["ebbtide-flush"]
    memory.close()
    assert own_threads() == []


def test_the_thread_beside_goes_with_the_last_memory(
    cheap: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if nobody else in this process had one.
    monkeypatch.setattr(Beside, "_executor", None)
    monkeypatch.setattr(Beside, "_users", 0)
    first, second = Memory.in_memory(config=cheap), Memory.in_memory(config=cheap)
    first.add("one")
    second.add("two")
    assert sum("beside" in name for name in own_threads()) == 1
    first.close()
    second.add("three")
    assert sum("beside" in name for name in own_threads()) == 1
    second.close()
    assert own_threads() == []


@pytest.mark.parametrize("kind", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_call_leaves_a_store_to_go_on_with(
    stub: Config, store_path: Path, kind: type[BaseException]
) -> None:
    def stop(done: int) -> None:
        if done >= 200:
            raise kind

    with Memory.open(store_path, config=stub) as memory:
        with pytest.raises(kind):
            memory.add_many(TURNS, progress=stop, batch_size=40)
        assert own_threads() == []
        assert len(memory) == 200
    with Memory.open(store_path, config=stub) as memory, Memory.in_memory(config=stub) as whole:
        report = memory.add_many(TURNS)
        assert (report.accepted, report.duplicates) == (800, 200)
        whole.add_many(TURNS)
        assert memory.digest() == whole.digest()


def test_an_error_of_the_analysis_comes_out_of_the_call(
    stub: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = StubAnalyser.facts

    def broken(self: StubAnalyser, turns: Any) -> Any:
        if any(turn.text == TURNS[500]["text"] for turn in turns):
            raise RuntimeError("the model broke")
        return facts(self, turns)

    monkeypatch.setattr(StubAnalyser, "facts", broken)
    with Memory.in_memory(config=stub) as memory:
        with pytest.raises(RuntimeError, match="the model broke"):
            memory.add_many(TURNS)
        # Whole chunks before the broken one: 64, 128, 256.
        assert [t.external_id for t in memory.turns()] == [f"t{n}" for n in range(448)]
        assert own_threads() == []


def test_the_unusable_turn_is_named_wherever_it_stands(stub: Config) -> None:
    for bad in (0, 1, 63, 64, 65, 191, 192, 500, 999):
        turns: list[dict[str, Any]] = [*TURNS]
        turns[bad] = {"text": "bad", "timestamp": "whenever"}
        with Memory.in_memory(config=stub) as memory:
            with pytest.raises(InputError, match=f"turn {bad + 1} of this call"):
                memory.add_many(turns)
            assert len(memory) == bad


def test_a_turn_that_comes_twice_is_stored_once(stub: Config) -> None:
    turns = [turn for turn in TURNS[:300] for _ in range(3)]
    with Memory.in_memory(config=stub) as memory, Memory.in_memory(config=stub) as once:
        report = memory.add_many(turns, batch_size=7)
        assert (report.accepted, report.duplicates) == (300, 600)
        once.add_many(TURNS[:300])
        assert memory.digest() == once.digest()


def test_journalling_does_not_wait_for_an_analysis(
    stub: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    facts = StubAnalyser.facts

    def slow(self: StubAnalyser, turns: Any) -> Any:
        begun.set()
        assert go_on.wait(60)
        return facts(self, turns)

    monkeypatch.setattr(StubAnalyser, "facts", slow)
    with Memory.in_memory(config=stub) as memory:
        memory.add("first", wait="journalled")
        assert begun.wait(60)
        for number in range(20):
            assert memory.add(f"turn {number}", wait="journalled").accepted == 1
        assert memory.stats()["pending"] == 21
        go_on.set()
        memory.flush()
        assert memory.stats()["pending"] == 0
        assert len(memory) == 21


# Several transcripts, several processes


def test_transcripts_follow_each_other_without_a_pause(stub: Config, store_path: Path) -> None:
    parts = {"a": TURNS[:90], "b": [], "c": TURNS[90:400]}
    seen: list[tuple[str, int]] = []
    with Store.open(store_path, config=stub) as store:
        jobs = [
            ReplayJob(
                store.memory(name),
                given(turns),
                lambda summary, _: seen.append((summary.namespace, summary.turns)),
            )
            for name, turns in parts.items()
        ]
        summaries = list(replay_all(jobs, batch_size=50))
        assert [(s.namespace, s.turns, s.accepted) for s in summaries] == [
            ("a", 90, 90),
            ("b", 0, 0),
            ("c", 310, 310),
        ]
        assert all(summary.finished for summary in summaries)
        assert seen[:3] == [("a", 50), ("a", 90), ("c", 50)]
        for summary in summaries:
            with Memory.in_memory(config=stub) as alone:
                alone.add_many(parts[summary.namespace])
                assert alone.digest() == summary.digest


def test_a_stop_drops_what_was_read_ahead(stub: Config, store_path: Path) -> None:
    stored = 0

    def note(summary: Any, report: Any) -> None:
        nonlocal stored
        stored += report.accepted

    with Store.open(store_path, config=stub) as store:
        jobs = [ReplayJob(store.memory(name), given(TURNS[:400]), note) for name in ("a", "b", "c")]
        summaries = list(replay_all(jobs, batch_size=10, stop=lambda: stored >= 400))
        assert [summary.finished for summary in summaries] == [True, False]
        assert [len(store.memory(name)) for name in ("a", "b", "c")] == [400, 0, 0]
        assert own_threads() == []
        whole = list(replay_all(jobs))
        assert [summary.accepted for summary in whole] == [0, 400, 400]
        assert len({summary.digest for summary in whole}) == 1


def test_worker_processes_make_the_same_memory(cheap: Config) -> None:
    turns = given(TURNS[:150])
    with Memory.in_memory(config=cheap) as one, Memory.in_memory(config=cheap) as two:
        single = replay(one, turns)
        double = replay(two, turns, workers=2)
        assert double.accepted == 150
        assert double.digest == single.digest


def test_a_worker_that_dies_is_reported_and_gone_on_after() -> None:
    turns = [Turn(f"turn {number}") for number in range(100)]
    turns.append(Turn("this is the end"))
    with Memory.in_memory(config=Config().with_embedder(DyingEmbedder())) as memory:
        with pytest.raises(ExternalError, match="fewer workers") as caught:
            replay(memory, turns, workers=2)
        assert caught.value.code == "worker.failed"
        stored = len(memory)
        assert stored in (0, 64)
        memory.delete_all()
        assert replay(memory, turns[:100]).accepted == 100


def test_a_forked_child_has_a_thread_of_its_own(tmp_path: Path) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("processes are forked on Linux")
    script = """
import os, sys, threading, warnings
warnings.simplefilter("ignore")
from ebbtide.analysis.beside import Beside
beside = Beside()
def begins():
    begun = threading.Event()
    beside.submit(begun.set)
    return begun.wait(30)
assert begins()
child = os.fork()
if child == 0:
    os._exit(0 if begins() else 1)
assert os.waitpid(child, 0)[1] == 0
beside.close()
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_nothing_is_started_or_loaded_at_import() -> None:
    script = """
import sys, threading
import ebbtide
assert threading.active_count() == 1
heavy = {"spacy", "onnxruntime", "tokenizers", "numpy", "multiprocessing", "typer"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
