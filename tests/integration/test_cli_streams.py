"""The command line where its output goes nowhere, and its input comes from a pipe."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ebbtide import Memory

MAIN = "from ebbtide.cli import main; main()"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one turn, which the tests only read."""
    path = tmp_path_factory.mktemp("streams") / "memory.db"
    with Memory.open(path) as memory:
        memory.add("I live in Porto.")
    return path


def shell(line: str, *words: str | Path, unbuffered: str = "") -> tuple[int, str]:
    """Run a line of shell with the command as ``$1``, its words behind; status and errors."""
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run(
        ["/bin/sh", "-c", line, "sh", sys.executable, "-c", MAIN, *map(str, words)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        env=environment,
        timeout=120,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_said(store: Path, tmp_path: Path, unbuffered: str) -> None:
    for words in (["stats"], ["stats", "--json"], ["doctor"]):
        code, said = shell('"$@" >/dev/full', *words, "--store", store, unbuffered=unbuffered)
        assert code == 1
        if "--json" in words:
            said = json.loads(said)["error"]["message"]
        assert "standard output cannot be written: No space left on device" in said
    chat = tmp_path / "chat.jsonl"
    chat.write_text(json.dumps({"role": "user", "content": "I drink tea."}) + "\n")
    code, said = shell('"$@" >/dev/full', "replay", chat, "--store", tmp_path / "other.db")
    assert code == 1
    assert "stored is safe" in said
    with Memory.open(tmp_path / "other.db", read_only=True) as memory:
        assert len(memory) == 1


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_went_away_changes_no_status(store: Path, unbuffered: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    damaged = store.with_name("missing.db")
    for path, status in ((store, 0), (damaged, 1)):
        for words in (["stats"], ["stats", "--json"], ["explain", "0"], ["doctor"]):
            done = subprocess.run(
                [sys.executable, "-c", MAIN, *words, "--store", str(path)],
                stdout=writer,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
                env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            )
            assert done.returncode == status, words
            assert (done.stderr == "") is (status == 0)
    os.close(writer)


def test_closed_streams(store: Path, tmp_path: Path) -> None:
    for closed in (">&-", "2>&-", ">&- 2>&-"):
        for words in (["stats"], ["stats", "--json"], ["doctor"]):
            assert shell(f'"$@" {closed}', *words, "--store", store) == (0, "")
        code, _ = shell(f'"$@" {closed}', "stats", "--store", tmp_path / "missing.db")
        assert code == 1


def test_a_transcript_from_a_pipe(tmp_path: Path) -> None:
    lines = [{"role": "user", "content": f"Tea {n}.", "id": f"m{n}"} for n in range(3)]
    chat, store = tmp_path / "chat.jsonl", tmp_path / "pipe.db"
    chat.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for command in (f'cat {chat} | "$@" /dev/stdin', f'"$@" /dev/stdin < {chat}'):
        assert shell(command, "replay", "--store", store)[0] == 0
        with Memory.open(store, read_only=True) as memory:
            assert [turn.external_id for turn in memory.turns()] == ["m0", "m1", "m2"]
    code, said = shell('echo no | "$@" /dev/stdin', "replay", "--store", store)
    assert code == 1
    assert "stdin:1" in said
    # What is read as a whole export needs a file, and says so.
    code, said = shell(f'cat {chat} | "$@" /dev/stdin', "import", "--store", store, "openai")
    assert code == 1
    assert "read twice" in said
