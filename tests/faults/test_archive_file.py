"""The file of archived turns (``ltm.storage_type = "file"``): a line a turn, whatever happens."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from reference.stand_ins import scripted

from ebbtide import Config, Memory, Store, StoreError

FULL = """
import json, resource, signal, sys
sys.path.insert(0, sys.argv[2])
from faults.nursery import config, StubAnalyser, analyser
from faults.test_disk import filled
from reference.stand_ins import scripted
from ebbtide import Memory
analyser.Analyser = StubAnalyser
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
settings = config().replace(
    capacity={"token_budget": 64}, ltm={"storage_type": "file", "storage_path": sys.argv[1]}
)
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
memory = Memory.in_memory(config=settings)
codes = []
for room in (5_000, 9_001, 12_345):
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, most))
    codes.append(filled(memory, len(list(memory.turns())))[1].code)
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
given = len(list(memory.turns()))
memory.add_many(scripted(n) for n in range(given, given + 20))
archived = [t.interaction_id for t in memory.turns() if t.state == "archived"]
print(json.dumps([codes, archived]), flush=True)
"""


def filing(stub: Config, out: Path) -> Config:
    """Settings of a small memory whose turns are soon archived into a file."""
    ltm = {"storage_type": "file", "storage_path": str(out)}
    return stub.replace(capacity={"token_budget": 64}, ltm=ltm)


def test_a_full_disk_leaves_whole_lines(tmp_path: Path) -> None:
    pytest.importorskip("resource", reason="the system has no limits on files")
    out, tests = tmp_path / "archive.jsonl", Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(out), str(tests)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    codes, archived = json.loads(done.stdout)
    assert codes == ["store.open"] * 3
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert len(archived) > 20
    assert {line["interaction_id"] for line in lines} >= set(archived)


@pytest.mark.parametrize("before", [b"", b'{"text": "mine"}\n', b'{"text": "cut', b"\n"])
def test_a_line_begins_where_a_line_ended(stub: Config, tmp_path: Path, before: bytes) -> None:
    out = tmp_path / "archive.jsonl"
    out.write_bytes(before)
    with Memory.in_memory(config=filing(stub, out)) as memory:
        memory.add_many(scripted(n) for n in range(30))
        archived = {t.interaction_id for t in memory.turns() if t.state == "archived"}
    assert archived
    data = out.read_bytes()
    assert data.startswith(before)
    rest = data[len(before) :]
    assert rest.startswith(b"\n") == (before[-1:] not in (b"", b"\n"))
    lines = [json.loads(line) for line in rest.splitlines() if line]
    assert {line["interaction_id"] for line in lines} == archived


@pytest.mark.parametrize("restart", [False, True])
def test_an_interrupted_reindexing_doubles_no_line(
    stub: Config, store_path: Path, restart: bool
) -> None:
    def interrupted(done: int) -> None:
        raise RuntimeError(f"after {done}")

    out = store_path.parent / "archive.jsonl"
    config = filing(stub, out)
    memory = Memory.open(store_path, config=config)
    memory.add_many(scripted(n) for n in range(100))
    lines = out.read_bytes().splitlines()
    assert len(lines) == len(list(memory.turns(state="archived"))) > 64
    with pytest.raises(RuntimeError, match="after 64"):
        memory.reindex(progress=interrupted)
    if restart:
        memory.close()
        memory = Memory.open(store_path, config=config)
    memory.flush()
    assert len(list(memory.turns(state="archived"))) == len(lines)
    memory.close()
    assert out.read_bytes().splitlines() == lines


def test_a_reindexing_that_failed_doubles_no_line(stub: Config, store_path: Path) -> None:
    out = store_path.parent / "archive.jsonl"
    # Another SQLite in this process takes the log away where it is closed first.
    with ExitStack() as stack, Memory.open(store_path, config=filing(stub, out)) as memory:
        memory.add_many(scripted(n) for n in range(40))
        lines = out.read_bytes().splitlines()
        out.write_bytes(b"\n".join(lines[:5]) + b"\n")
        raw = stack.enter_context(closing(sqlite3.connect(store_path)))
        raw.execute(
            "CREATE TRIGGER no BEFORE UPDATE OF archived ON turn "
            "WHEN NEW.archived AND NEW.key & 255 = 20 BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
        with pytest.raises(StoreError):
            memory.reindex()
        raw.execute("DROP TRIGGER no")
        assert len(out.read_bytes().splitlines()) > 5
        memory.flush()
    assert out.read_bytes().splitlines() == lines


def test_reindexing_writes_the_lines_that_are_missing(stub: Config, tmp_path: Path) -> None:
    out, other = tmp_path / "archive.jsonl", tmp_path / "other.jsonl"
    config = filing(stub, out)
    with Memory.in_memory(config=config) as memory:
        memory.add_many(scripted(n) for n in range(30))
        lines = out.read_bytes().splitlines()
        out.write_bytes(b"\n".join([b"[]", *lines[:5], lines[5][:40]]))
        memory.reindex()
        assert out.read_bytes().splitlines() == [b"[]", *lines[:5], lines[5][:40], *lines[5:]]
        out.unlink()
        memory.reindex()
        assert out.read_bytes().splitlines() == lines
        memory.export(tmp_path / "memory.jsonl")
    with Store.open(tmp_path / "other.db", config=filing(stub, other)) as store:
        store.load(tmp_path / "memory.jsonl").reindex()
    assert other.read_bytes() == out.read_bytes()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_takes_lines_too(stub: Config, tmp_path: Path) -> None:
    out = tmp_path / "pipe"
    os.mkfifo(out)
    end = os.open(out, os.O_RDWR | os.O_NONBLOCK)
    try:
        with Memory.in_memory(config=filing(stub, out)) as memory:
            memory.add_many(scripted(n) for n in range(20))
            archived = {t.interaction_id for t in memory.turns() if t.state == "archived"}
        lines = [json.loads(line) for line in os.read(end, 1 << 16).splitlines()]
    finally:
        os.close(end)
    assert {line["interaction_id"] for line in lines} == archived != set()
