"""``ebbtide archive`` from push to erase."""

from __future__ import annotations

import itertools
import json
import sqlite3
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from reference.stand_ins import StubAnalyser, scripted

from ebbtide import ConfigError, ExternalError, Memory
from ebbtide.archives import FileArchive, Retry, open_archive
from ebbtide.cli import main

from .conftest import Fresh
from .makers import IDENTITY, record


class Terminal:
    """The command line, and what it printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def run(self, *words: object, code: int = 0) -> str:
        with pytest.raises(SystemExit) as end:
            main(["archive", *(str(word) for word in words)])
        shown = self._capsys.readouterr()
        assert int(end.value.code or 0) == code, shown.err
        return shown.out if code == 0 else shown.err

    def json(self, *words: object) -> Any:
        return json.loads(self.run(*words, "--json"))


@pytest.fixture
def terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setattr("ebbtide.analysis.analyser.Analyser", StubAnalyser)
    return Terminal(capsys)


@pytest.fixture
def store(terminal: Terminal, store_path: Path) -> Path:
    for name in ("ana", "luis"):
        with Memory.open(store_path, namespace=name) as memory:
            memory.add_many(scripted(number) for number in range(20))
            memory.add(f"The cat of {name} is called Mog", speaker=name.title())
    return store_path


def test_push_search_status_pull_migrate_erase(
    terminal: Terminal, store: Path, address: str, fresh_address: Fresh, tmp_path: Path
) -> None:
    err = terminal.run("push", "--store", store, "--to", address, code=1)
    assert "choose one with --namespace" in err
    out = terminal.run("push", "--store", store, "-n", "ana", "--to", address)
    assert out.startswith("'ana': 21 turns shipped, 0 erased; 21 in ")
    done = terminal.json(
        "push", "--store", store, "-n", "luis", "--to", address, "--as", "l", "--writer", "home"
    )
    assert (done["namespace"], done["shipped"]) == ("l", 21)
    err = terminal.run("push", "--store", store, "-n", "luis", "--to", address, "--as", "zoe")
    err = terminal.run("erase", "--from", address, "-n", "zoe", code=2)
    assert "--yes" in err
    assert "21 turns" in terminal.run("erase", "--from", address, "-n", "zoe", "--yes")
    assert "no namespace" in terminal.run("erase", "--from", address, "-n", "zoe", "--yes", code=1)

    out = terminal.run("search", "--from", address, "What is the cat called", "-k", "2")
    lines = out.splitlines()
    assert len(lines) == 2
    assert "(l, home, turn 20) Luis: The cat of luis" in out
    assert "(ana, turn 20) Ana: The cat of ana" in out
    found = terminal.json(
        "search", "--from", address, "the cat", "--in", "l", "--speaker", "luis", "-k", "1"
    )
    assert [one["namespace"] for one in found["evidence"]] == ["l"]
    assert "nothing found" in terminal.run(
        "search", "--from", address, "the cat", "--writer", "nobody"
    )

    status = terminal.json("status", "--from", address)
    assert [(row["namespace"], row["turns"]) for row in status["namespaces"]] == [
        ("ana", 21),
        ("l", 21),
    ]
    assert status["dimension"] == 384
    shown = terminal.run("status", "--from", address, "--verify")
    assert "'ana': 21 turns, up to 21; sum" in shown

    other = fresh_address("file")
    out = terminal.run("migrate", "--from", address, "--to", other)
    assert "'l': 21 records copied, 0 erased; 21 in both, sums equal" in out
    moved = terminal.json("migrate", "--from", address, "--to", other, "--in", "l")
    assert [row["copied"] for row in moved["namespaces"]] == [0]
    again = terminal.json("status", "--from", other)
    assert again["namespaces"] == status["namespaces"]

    new = tmp_path / "new.db"
    assert "there are: 'ana', 'l'" in terminal.run(
        "pull", "--from", other, "-n", "nobody", "--store", new, code=1
    )
    assert not list(tmp_path.glob("new.db*"))
    pulled = terminal.json("pull", "--from", other, "-n", "ana", "--store", new)
    with Memory.open(store, namespace="ana") as memory:
        assert pulled["digest"] == memory.digest()
    out = terminal.run("pull", "--from", other, "-n", "ana", "--store", new, "--as", "b")
    assert out.startswith("pulled 21 turns as 'b'")


def test_what_goes_wrong_is_said_in_a_sentence(
    terminal: Terminal, store: Path, tmp_path: Path
) -> None:
    missing = tmp_path / "none.db"
    for words in (["status"], ["search", "the cat"]):
        err = terminal.run(*words, "--from", missing, code=1)
        assert "holds no archive yet" in err
        assert "[archive.unavailable]" in err
    assert not missing.exists()
    archive = open_archive(str(missing), IDENTITY)
    archive.put("ana", [record(0)])
    archive.close()
    with sqlite3.connect(missing) as connection:
        connection.execute("UPDATE record SET vectors = zeroblob(64)")
    connection.close()
    assert "1 turn" in terminal.run("status", "--from", missing)
    assert "[archive.damaged]" in terminal.run("status", "--verify", "--from", missing, code=1)
    err = terminal.run("push", "--store", store, "-n", "ana", "--to", missing, code=1)
    assert "[fingerprint.analyser]" in err


def test_a_server_that_is_away_for_a_moment_is_not_noticed(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr("ebbtide.archives.Retry", partial(Retry, sleep=waits.append))
    address = str(tmp_path / "archive.db")
    archive = open_archive(address, IDENTITY)
    archive.put("ana", [record(0)])
    archive.close()

    def away_once(name: str) -> None:
        method = getattr(FileArchive, name)
        calls = itertools.count()

        def call(self: FileArchive, *given: Any) -> Any:
            if next(calls) == 0:
                raise ExternalError("away", "archive.unavailable")
            return method(self, *given)

        monkeypatch.setattr(FileArchive, name, call)

    for name in ("__init__", "namespaces", "inventory", "cursor", "page", "delete_namespace"):
        away_once(name)
    assert "'ana': 1 turn," in terminal.run("status", "--from", address, "--verify")
    assert waits == [0.5] * 5
    assert "1 turn" in terminal.run("erase", "--from", address, "-n", "ana", "--yes")
    assert waits == [0.5] * 6


@pytest.mark.parametrize(
    ("package", "extra", "address"),
    [
        ("psycopg", "postgres", "postgresql://127.0.0.1:1/none"),
        ("pgvector", "postgres", "postgresql://127.0.0.1:1/none"),
        ("chromadb", "chroma", "chroma://127.0.0.1:1/none"),
    ],
)
def test_a_missing_package_names_the_extra(
    package: str, extra: str, address: str, monkeypatch: pytest.MonkeyPatch, terminal: Terminal
) -> None:
    for name in list(sys.modules):
        if name == package or name.startswith(f"{package}."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError) as caught:
        open_archive(address)
    assert isinstance(caught.value, ConfigError)
    assert str(caught.value) == f'{package} is not installed: pip install "ebbtide[{extra}]"'
    assert "[config.model_missing]" in terminal.run("status", "--from", address, code=2)


def test_the_command_line_loads_no_driver() -> None:
    import subprocess

    code = (
        "import sys, ebbtide.cli.app, ebbtide.archives; "
        "print([p for p in ('psycopg', 'pgvector', 'chromadb') if p in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
