"""The file of archived turns (``ltm.storage_type = "file"``): a line a turn, whatever happens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from reference.stand_ins import scripted

from ebbtide import Config, Memory

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
    config = stub.replace(
        capacity={"token_budget": 64}, ltm={"storage_type": "file", "storage_path": str(out)}
    )
    with Memory.in_memory(config=config) as memory:
        memory.add_many(scripted(n) for n in range(30))
        archived = {t.interaction_id for t in memory.turns() if t.state == "archived"}
    assert archived
    data = out.read_bytes()
    assert data.startswith(before)
    rest = data[len(before) :]
    assert rest.startswith(b"\n") == (before[-1:] not in (b"", b"\n"))
    lines = [json.loads(line) for line in rest.splitlines() if line]
    assert {line["interaction_id"] for line in lines} == archived


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_takes_lines_too(stub: Config, tmp_path: Path) -> None:
    out = tmp_path / "pipe"
    os.mkfifo(out)
    config = stub.replace(
        capacity={"token_budget": 64}, ltm={"storage_type": "file", "storage_path": str(out)}
    )
    end = os.open(out, os.O_RDWR | os.O_NONBLOCK)
    try:
        with Memory.in_memory(config=config) as memory:
            memory.add_many(scripted(n) for n in range(20))
            archived = {t.interaction_id for t in memory.turns() if t.state == "archived"}
        lines = [json.loads(line) for line in os.read(end, 1 << 16).splitlines()]
    finally:
        os.close(end)
    assert {line["interaction_id"] for line in lines} == archived != set()
