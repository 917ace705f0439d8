"""Two writers, links to one file, and what a fork may do with what its parent opened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from reference.stand_ins import scripted

from ebbtide import Config, Memory, Store, StoreError
from faults.children import Nursery
from faults.figures import Figures

FORK = """
import os, sys, time
sys.path.insert(0, sys.argv[2])
from faults.nursery import StubAnalyser, analyser, config, scripted
from ebbtide import Memory, Store, StoreError
analyser.Analyser = StubAnalyser

memory = Memory.open(sys.argv[1], config=config())
memory.add_many(scripted(n) for n in range(20))
for n in range(20, 30):
    memory.add(**scripted(n), wait="journalled")  # its thread does not come with a fork
calls = [
    lambda: memory.add("x"),
    lambda: memory.add("x", wait="journalled"),
    lambda: memory.add_many([{"text": "x"}]),
    lambda: memory.retrieve("garden"),
    lambda: memory.digest(),
    lambda: memory.delete(1),
    lambda: memory.get(1),
    lambda: len(memory),
    lambda: list(memory.turns()),
    lambda: memory._store.backup("x"),
]
def child(kind):
    refused = 0
    for call in calls:
        try:
            call()
        except StoreError as error:
            refused += error.code == "store.closed" and "forked" in str(error)
    if kind == "closes":
        memory.close()
    if kind == "reads anew":
        with Memory.open(sys.argv[1], config=config(), read_only=True) as own:
            refused += len(own) >= 20
        refused -= 1
    if kind == "takes the lock":
        try:
            Memory.open(sys.argv[1], config=config())
        except StoreError as error:
            refused += error.code == "store.locked"
        refused -= 1
    return refused == len(calls)

for kind in ("closes", "leaves it", "reads anew", "takes the lock"):
    number = os.fork()
    if not number:
        code = 1
        try:  # where the memory is let go of, or the interpreter ends
            code = 0 if child(kind) else 2
            del memory
        finally:
            sys.stdout.flush()
            sys.exit(code) if kind == "leaves it" else os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
    print(kind, status, flush=True)
    for n in range(len(memory), len(memory) + 5):
        memory.add(**scripted(n))
with Memory.in_memory(config=config()) as twin:
    twin.add_many(scripted(n) for n in range(len(memory)))
    print("digest", int(twin.digest() != memory.digest()), flush=True)
memory.close()
print("check", len(Store.open(sys.argv[1], config=config()).check()), flush=True)
"""

OWN = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
from faults.nursery import StubAnalyser, analyser, config, scripted
from ebbtide import Memory
analyser.Analyser = StubAnalyser

def opened(**how):
    return Memory.open(sys.argv[1], config=config(), **how)

memory = opened()
memory.add_many(scripted(n) for n in range(20))
to_child, to_parent = os.pipe(), os.pipe()
child = os.fork()
if not child:
    signal.alarm(60)  # where the parent says nothing
    code = 1
    try:
        own = opened(read_only=True)
        seen = [len(list(own.turns()))]
        os.write(to_parent[1], b".")
        os.read(to_child[0], 1)
        # Others closed it, opened it, and wrote.
        seen.append(len(list(own.turns())))
        seen.append(len(opened(read_only=True)))
        own.close()
        with opened() as writer:
            writer.add(**scripted(30))
            seen.append(len(writer))
        print(*seen, flush=True)
        code = 0
    finally:
        os._exit(code)
os.read(to_parent[0], 1)
memory.close()
with opened() as memory:
    memory.add_many(scripted(n) for n in range(20, 30))
os.write(to_child[1], b".")
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
with opened() as memory:
    print(status, len(memory), len(memory._store.check()))
"""

OUTLIVES = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
from faults.nursery import StubAnalyser, analyser, config
from ebbtide import Memory
analyser.Analyser = StubAnalyser

memory = Memory.open(sys.argv[1], config=config())
memory.add("one")
if os.fork():
    signal.pause()
print("forked", flush=True)
sys.stdin.read()
os._exit(0)
"""

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


def command(script: str, path: Path) -> list[str]:
    return [sys.executable, "-c", script, str(path), str(Path(__file__).parents[1])]


@forks
def test_a_fork_is_refused_and_its_parent_unharmed(tmp_path: Path) -> None:
    promise = "a fork may not use what its parent opened (a typed error), and does it no harm"
    test = "tests/faults/test_processes.py::test_a_fork_is_refused_and_its_parent_unharmed"
    with Figures("fork", promise, test) as figures:
        done = subprocess.run(
            command(FORK, tmp_path / "m.db"), capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        lines = [line.rsplit(" ", 1) for line in done.stdout.splitlines()]
        assert [word for word, _ in lines[-2:]] == ["digest", "check"]
        assert {status for _, status in lines} == {"0"}, done.stdout + done.stderr
        figures.counts["forks"] = 4
        figures.counts["calls refused in each"] = 10


@forks
def test_a_fork_opens_for_itself_what_its_parent_had_open(tmp_path: Path) -> None:
    done = subprocess.run(
        command(OWN, tmp_path / "m.db"), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["20 30 30 31", "0 31 0"], done.stdout + done.stderr


@forks
def test_the_lock_of_a_killed_writer_is_free_though_its_fork_lives(
    stub: Config, tmp_path: Path
) -> None:
    writer = subprocess.Popen(
        command(OUTLIVES, tmp_path / "m.db"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "forked\n"
        writer.kill()
        writer.wait()
        with Memory.open(tmp_path / "m.db", config=stub) as memory:
            memory.add("two")
            assert [turn.text for turn in memory.turns()] == ["one", "two"]


def races(folder: Path, rounds: int) -> None:
    promise = "of two processes that open a store for writing at once, exactly one gets it"
    test = "tests/faults/test_processes.py::test_a_hundred_races"
    with Figures("writers", promise, test) as figures, Nursery() as one, Nursery() as two:
        path = folder / "memory.db"
        for _ in range(rounds):
            pids = one.start("race", path), two.start("race", path)
            # Whoever lost says so at once; whoever won waits for a signal.
            first = [nursery._hear() for nursery in (one, two)]
            for pid, said in zip(pids, first, strict=True):
                if said == "ack won":
                    os.kill(pid, signal.SIGUSR1)
            for nursery in (one, two):
                nursery.end()
            assert sorted(first) == ["ack store.locked", "ack won"], first
            figures.counts["races"] += 1


def test_five_races(tmp_path: Path) -> None:
    races(tmp_path, 5)


@pytest.mark.long
def test_a_hundred_races(tmp_path: Path) -> None:
    races(tmp_path, 100)


def test_a_link_to_a_store_is_the_store(stub: Config, tmp_path: Path) -> None:
    path, link = tmp_path / "memory.db", tmp_path / "link.db"
    with Memory.open(path, config=stub) as memory:
        memory.add("one")
        link.symlink_to(path)
        with pytest.raises(StoreError) as caught:
            Memory.open(link, config=stub)
        assert caught.value.code == "store.locked"
    with Memory.open(link, config=stub) as memory:
        memory.add("two")
        with pytest.raises(StoreError):
            Memory.open(path, config=stub)
    assert not (tmp_path / "link.db.lock").exists()
    with Memory.open(path, config=stub) as memory:
        assert [turn.text for turn in memory.turns()] == ["one", "two"]


def test_an_emptied_store_is_not_taken_for_a_new_one(stub: Config, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Memory.open(path, config=stub) as memory:
        memory.add("one")
    path.write_bytes(b"")
    for _ in range(2):
        with pytest.raises(StoreError, match="is empty, but held a store") as caught:
            Memory.open(path, config=stub)
        assert caught.value.code == "store.corrupt"
    assert path.read_bytes() == b""
    path.unlink()
    with Memory.open(path, config=stub) as memory:
        assert len(memory) == 0
    # An empty file where none was before is a new one: a temporary file, say.
    other = tmp_path / "other.db"
    other.touch()
    with Memory.open(other, config=stub) as memory:
        assert memory.add("one").accepted == 1


@pytest.mark.skipif(os.name == "nt", reason="what is open cannot be taken away here")
@pytest.mark.parametrize("ends", [["", "-wal", "-shm", ".lock"], [""], ["-wal"]])
@pytest.mark.parametrize("replaced", [False, True])
def test_nothing_is_acknowledged_once_the_files_are_gone(
    stub: Config, tmp_path: Path, ends: list[str], replaced: bool
) -> None:
    path, away = tmp_path / "memory.db", tmp_path / "away"
    away.mkdir()
    with Memory.open(path, config=stub) as memory:
        memory.add("one")
        for end in ends:
            file = Path(f"{path}{end}")
            file.rename(away / file.name)
            if replaced:
                file.write_bytes((away / file.name).read_bytes())
        for write in (
            lambda: memory.add("two"),
            lambda: memory.add("two", wait="journalled"),
            lambda: memory.delete(0),
        ):
            with pytest.raises(StoreError, match="deleted, moved or replaced") as caught:
                write()
            assert caught.value.code == "store.open"
        assert [turn.text for turn in memory.turns()] == ["one"]
        for end in ends:
            file = Path(f"{path}{end}")
            (away / file.name).replace(file)
        memory.add("two")
    with Memory.open(path, config=stub) as memory:
        assert [turn.text for turn in memory.turns()] == ["one", "two"]


def test_links_are_not_followed_by_what_is_written(stub: Config, tmp_path: Path) -> None:
    precious = tmp_path / "precious.txt"
    precious.write_text("mine")
    with Store.open(tmp_path / "memory.db", config=stub) as store:
        memory = store.memory()
        memory.add_many(scripted(n) for n in range(5))
        for name in ("out.jsonl", "copy.db"):
            (tmp_path / f"{name}.ebbtide-partial").symlink_to(precious)
        memory.export(tmp_path / "out.jsonl")
        store.backup(tmp_path / "copy.db")
        (tmp_path / "link.jsonl").symlink_to(precious)
        memory.export(tmp_path / "link.jsonl")
        (tmp_path / "link.db").symlink_to(tmp_path / "nothing yet.db")
        with pytest.raises(StoreError, match="there already"):
            store.backup(tmp_path / "link.db")
    assert precious.read_text() == "mine"
    assert not (tmp_path / "nothing yet.db").exists()
    assert not (tmp_path / "link.jsonl").is_symlink()
    assert not list(tmp_path.glob("*-partial"))


def test_names_of_memories_are_no_paths(stub: Config, tmp_path: Path) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    config = stub.replace(retrieval={"ann_min_vectors": 1024, "ann_segment": 1024})
    names = ["../../x", "/etc/x", "..", "a/../../b", "x" * 300, "\x00", "con\\..\\x"]
    with Store.open(folder / "memory.db", config=config) as store:
        for name in names:
            memory = store.memory(name)
            memory.add("The port is 8080.")
            memory.export(folder / "one.jsonl")
            store.delete(name)
            assert store.load(folder / "one.jsonl").namespace == name
        assert store.namespaces() == sorted(names)
    assert [entry.name for entry in tmp_path.iterdir()] == ["inner"]
    assert {e.name.split(".")[0] for e in folder.iterdir()} == {"memory", "one"}
