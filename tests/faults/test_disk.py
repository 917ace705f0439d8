"""Full, small and read-only disks: a typed error, nothing acknowledged lost, no half files."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from reference.stand_ins import scripted

from ebbtide import Config, EbbtideError, Memory, Store, StoreError
from faults.figures import Figures

FULL = (
    "a full disk is a typed error: nothing acknowledged is lost, no half file stays, and it goes "
    "on once there is room"
)
READ_ONLY = "a read-only disk refuses writers with a typed error, and readers read"


def mount(*words: str) -> bool:
    tool = "/usr/bin/mount"
    return (
        Path(tool).exists() and subprocess.run([tool, *words], capture_output=True).returncode == 0
    )


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A file system of its own, of that size; the test is skipped where it may not be made."""
    place = folder / "disk"
    place.mkdir()
    if os.geteuid() or not mount("-t", "tmpfs", "-o", f"size={size}", "none", str(place)):
        pytest.skip("a file system of its own takes root and the right to mount")
    try:
        yield place
    finally:
        subprocess.run(["/usr/bin/umount", "-l", str(place)], check=True)


def filled(memory: Memory, first: int) -> tuple[int, EbbtideError]:
    """Add turns until it is refused; how many there are then, and the refusal."""
    number = first
    while number < 100_000:
        try:
            memory.add(**scripted(number))
        except EbbtideError as error:
            return number, error
        number += 1
    raise AssertionError("the disk is not full")


def test_a_full_disk(stub: Config, tmp_path: Path) -> None:
    test = "tests/faults/test_disk.py::test_a_full_disk"
    with (
        Figures("full_disk", FULL, test) as figures,
        small_disk(tmp_path, "1m") as disk,
        Memory.in_memory(config=stub) as twin,
    ):
        path = disk / "memory.db"
        with Memory.open(path, config=stub) as memory:
            for room in ("1m", "1200k", "1500k"):
                assert mount("-o", f"remount,size={room}", str(disk))
                number, error = filled(memory, len(twin))
                assert error.code == "store.sqlite"
                assert "full" in str(error)
                figures.counts["turns acknowledged before the disk was full"] = number
                figures.counts["times that it was full"] += 1
                twin.add_many(scripted(n) for n in range(len(twin), number))
                # It reads on, and what it holds is what was acknowledged.
                assert memory.digest() == twin.digest()
                assert memory.retrieve("garden", limit=3)
                writes: tuple[Callable[[], object], ...] = (
                    lambda: memory.export(disk / "out.jsonl"),
                    lambda: Store.open(path, config=stub, read_only=True).backup(disk / "b.db"),
                    lambda: memory.add_many(scripted(n) for n in range(900, 950)),
                )
                for write in writes:
                    with pytest.raises(StoreError):
                        write()
                    figures.counts["calls refused for want of room"] += 1
                names = {entry.name for entry in disk.iterdir()}
                assert {n for n in names if not n.startswith("memory.db")} == set()
                assert memory.digest() == twin.digest()
            assert mount("-o", "remount,size=8m", str(disk))
            memory.add_many(scripted(n) for n in range(len(twin), len(twin) + 10))
            twin.add_many(scripted(n) for n in range(len(twin), len(twin) + 10))
            assert memory.digest() == twin.digest()
        with Store.open(path, config=stub) as store:
            assert store.check() == []
            assert store.memory().digest() == twin.digest()


LIMITED = """
import resource, signal, sys
sys.path.insert(0, sys.argv[2])
from faults.nursery import config, StubAnalyser, analyser
from faults.test_disk import filled
from ebbtide import Memory
analyser.Analyser = StubAnalyser
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
memory = Memory.open(sys.argv[1], config=config())
number, error = filled(memory, 0)
print(number, error.code, len(memory), flush=True)
"""


def test_a_limit_on_the_size_of_files(stub: Config, tmp_path: Path) -> None:
    """As on a full disk, and anybody may set one."""
    path = tmp_path / "memory.db"
    tests = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path), str(tests)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    number, code, length = done.stdout.split()
    assert code == "store.sqlite"
    assert number == length
    assert int(number) > 20
    with Memory.open(path, config=stub) as memory:
        assert [t.external_id for t in memory.turns()] == [f"t{n}" for n in range(int(number))]
        memory.add(**scripted(int(number)))


def test_a_read_only_disk(stub: Config, tmp_path: Path) -> None:
    test = "tests/faults/test_disk.py::test_a_read_only_disk"
    with Figures("read_only_disk", READ_ONLY, test) as figures, small_disk(tmp_path, "8m") as disk:
        path, other = disk / "memory.db", disk / "killed.db"
        with Memory.open(path, config=stub) as memory:
            memory.add_many(scripted(n) for n in range(20))
            digest = memory.digest()
        # One whose writer was killed: its last turns are in the write-ahead log alone.
        with Memory.open(path, config=stub) as memory:
            memory.add(**scripted(20))
            for end in ("", "-wal"):
                data = Path(f"{path}{end}").read_bytes()
                assert data
                Path(f"{other}{end}").write_bytes(data)
            memory.delete(20)
        with Memory.open(path, config=stub, read_only=True) as memory:
            digest = memory.digest()
        gc.collect()  # A memory that an error left open would keep the disk busy.
        assert mount("-o", "remount,ro", str(disk))
        with Store.open(path, config=stub, read_only=True) as store:
            assert store.memory().digest() == digest
            assert store.check() == []
            figures.counts["stores read on it"] += 1
        refused: tuple[Callable[[], object], ...] = (
            lambda: Memory.open(path, config=stub),
            lambda: Memory.open(disk / "new.db", config=stub),
            lambda: Memory.open(other, config=stub, read_only=True),
            lambda: Memory.open(path, config=stub, read_only=True).export(disk / "out.jsonl"),
            lambda: Store.open(path, config=stub, read_only=True).backup(disk / "copy.db"),
        )
        for call in refused:
            with pytest.raises(StoreError) as caught:
                call()
            assert caught.value.code == "store.open"
            assert str(disk) in str(caught.value)
            figures.counts["calls refused"] += 1
        assert mount("-o", "remount,rw", str(disk))
        with Memory.open(other, config=stub) as memory:
            assert len(memory) == 21


def test_a_disk_that_turns_read_only_under_a_writer(stub: Config, tmp_path: Path) -> None:
    with small_disk(tmp_path, "8m") as disk, Memory.in_memory(config=stub) as twin:
        path = disk / "memory.db"
        memory = Memory.open(path, config=stub)
        for one in (memory, twin):
            one.add_many(scripted(n) for n in range(20))
        # A file open for writing keeps a file system from being made read-only; what the
        # kernel does after an error of the device is to refuse the writes all the same.
        if not mount("-o", "remount,ro", str(disk)):
            memory.close()
            return
        with pytest.raises(StoreError):
            memory.add(**scripted(20))
        assert memory.digest() == twin.digest()
        assert mount("-o", "remount,rw", str(disk))
        memory.close()
