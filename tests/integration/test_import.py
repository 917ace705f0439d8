"""Importing and using the package: no network, no home, no threads, nothing heavy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HEAVY = ("numpy", "spacy", "onnxruntime", "tokenizers", "vaderSentiment", "thinc", "typer", "rich")

NO_NETWORK = """
import socket
def refuse(*args, **kwargs):
    raise AssertionError("a socket was asked for")
class Refused(socket.socket):  # a class: ssl derives from it when spaCy imports it
    __init__ = refuse
socket.socket = Refused
socket.create_connection = refuse
socket.getaddrinfo = refuse
"""

IMPORT = (
    NO_NETWORK
    + """
import json, sys, threading
before = threading.active_count()
import ebbtide
names = [name for name in ebbtide.__all__ if getattr(ebbtide, name) is not None]
print(json.dumps({
    "heavy": sorted({m.split(".")[0] for m in sys.modules} & set(sys.argv[1:])),
    "threads": threading.active_count() - before,
    "tasks": len(__import__("os").listdir("/proc/self/task")) if sys.platform == "linux" else 1,
    "names": len(names),
}))
"""
)

USE = (
    NO_NETWORK
    + """
import json, sys
import ebbtide
with ebbtide.Memory.open(sys.argv[1]) as memory:
    memory.add("I moved to Porto in May.", speaker="Ana", timestamp="2024-06-01")
    found = memory.retrieve("Where does Ana live?")
    text = memory.render_context("Where does Ana live?")
print(json.dumps({"text": found[0].turn.text, "context": text}))
"""
)


def run(code: str, *args: str, **environment: str) -> Any:
    # Without what conftest.py sets for the tests: the package must see to it itself.
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("ORT_")}
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", code, *args],
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1, "library calls print nothing"
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    folder.chmod(0o500)
    return folder


def test_import_is_light_and_quiet(home: Path) -> None:
    found = run(IMPORT, *HEAVY, HOME=str(home), XDG_CACHE_HOME=str(home / "cache"))
    assert found["heavy"] == []
    assert found["threads"] == 0
    assert found["tasks"] == 1
    assert found["names"] > 10
    assert list(home.iterdir()) == []


def test_import_without_a_home(tmp_path: Path) -> None:
    found = run(IMPORT, *HEAVY, HOME=str(tmp_path / "missing"))
    assert found["heavy"] == []
    assert not (tmp_path / "missing").exists()


def test_the_whole_path_runs_offline_and_writes_only_the_store(home: Path, tmp_path: Path) -> None:
    """Nothing else on disk either: no cache, no device id of a library's telemetry."""
    store = tmp_path / "store" / "memory.db"
    store.parent.mkdir()
    found = run(USE, str(store), HOME=str(home), XDG_CACHE_HOME=str(home / "cache"))
    assert found["text"] == "I moved to Porto in May."
    assert "Porto" in found["context"]
    assert list(home.iterdir()) == []
    assert {entry.name for entry in store.parent.iterdir()} <= {"memory.db", "memory.db.lock"}


def test_a_missing_model_is_never_downloaded() -> None:
    code = (
        NO_NETWORK
        + """
import json
import ebbtide
try:
    config = ebbtide.Config().replace(nlp={"model_name": "some/other-model"})
    ebbtide.Memory.in_memory(config=config)
except ebbtide.ConfigError as error:
    print(json.dumps({"code": error.code, "words": str(error)}))
"""
    )
    found = run(code)
    assert found["code"] == "config.model_missing"
    assert "never downloaded" in found["words"]
