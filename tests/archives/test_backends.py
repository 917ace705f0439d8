"""What is particular to one backend: approximate indexes, damage, closing, passwords."""

from __future__ import annotations

import gc
import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from ebbtide import ExternalError, FingerprintError
from ebbtide.archives import Identity, Retry, open_archive
from ebbtide.archives.base import Filters
from ebbtide.archives.ranking import certain, error_bound, rescored
from ebbtide.archives.records import escaped, unescaped

from .conftest import Fresh
from .makers import DIMENSION, IDENTITY, brute, keys, record, vector


def test_postgres_with_an_index_orders_its_candidates_exactly(fresh_address: Fresh) -> None:
    from ebbtide.archives.postgres import PostgresArchive

    address = fresh_address("postgres")
    exact = PostgresArchive(address, IDENTITY)
    records = [record(number, passages=1 + number % 2) for number in range(400)]
    exact.put("ana", records)
    exact.build_index()
    exact.build_index()
    approximate = PostgresArchive(address, exact=False)
    queries = [vector(f"q{number}") for number in range(10)]
    overlap = 0
    for query in queries:
        wanted = brute(records, query, 5)
        assert keys(exact.search(query, 5)) == wanted
        found = keys(approximate.search(query, 5))
        assert found == sorted(found, key=lambda hit: (-hit[0], *hit[1:]))
        assert set(found) <= set(brute(records, query, 400))
        overlap += len(set(found) & set(wanted))
    assert overlap >= 45
    exact.close()
    approximate.close()


def test_a_closed_chroma_archive_leaves_no_connection_open(fresh_address: Fresh) -> None:
    address = fresh_address("chroma")
    gc.collect()
    before = _sockets()
    archive = open_archive(address, IDENTITY)
    archive.put("ana", [record(0)])
    assert _sockets() > before
    archive.close()
    assert _sockets() == before
    with pytest.raises(FingerprintError):
        open_archive(address, Identity("another", DIMENSION, schema=1))
    assert _sockets() == before


def _sockets() -> int:
    """How many this process has open."""
    links = [path.readlink() for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    return sum(link.name.startswith("socket:") for link in links)


def test_chroma_beyond_its_exact_size_orders_its_candidates_exactly(fresh_address: Fresh) -> None:
    from ebbtide.archives.chroma import ChromaArchive

    address = urlsplit(fresh_address("chroma"))
    assert address.hostname
    assert address.port
    archive = ChromaArchive(
        address.hostname, address.port, address.path[1:], IDENTITY, exact_below=1
    )
    records = [record(number, passages=1 + number % 2) for number in range(400)]
    archive.put("ana", records)
    overlap = 0
    for number in range(10):
        query = vector(f"q{number}")
        found = keys(archive.search(query, 5))
        assert set(found) <= set(brute(records, query, 400))
        overlap += len(set(found) & set(brute(records, query, 5)))
    assert overlap >= 45
    rare = {"metadata": {"parity": 1}, "session_id": "s3", "speaker": "luis"}
    found = archive.search(vector("q"), 50, filters=rare)
    assert [hit.record.interaction_id % 2 for hit in found] == [1] * 5
    archive.close()


@pytest.mark.parametrize(("slack", "calls"), [(1e-6, 1), (0.1, 1), (1.0, 2)])
def test_more_is_asked_for_until_the_order_is_certain(slack: float, calls: int) -> None:
    records = [record(number) for number in range(300)]
    query = vector("q")
    exact = {number: score for score, _, number in brute(records, query, 300)}
    # A server whose cosines are too low for every other record, within the slack.
    off = {number: score + slack * (0, -0.9)[number % 2] for number, score in exact.items()}
    order = sorted(records, key=lambda one: -off[one.interaction_id])
    asked: list[int] = []

    def fetch(passages: int) -> tuple[list[Any], float | None]:
        asked.append(passages)
        got = order[:passages]
        return got, None if len(got) < passages else off[got[-1].interaction_id]

    assert keys(certain(fetch, query, 5, Filters(), slack)) == brute(records, query, 5)
    assert len(asked) == calls
    if calls > 1:  # believed at its word, the server would have misled us
        assert keys(certain(fetch, query, 5, Filters(), 0.0)) != brute(records, query, 5)
    rare = Filters(metadata={"parity": 1})
    odd = [one for one in records if one.interaction_id % 2]
    assert keys(certain(fetch, query, 140, rare, slack)) == brute(odd, query, 140)
    assert certain(fetch, np.zeros(DIMENSION, np.int16), 5, rare, slack) == []
    assert rescored([], query, 5) == []


def test_the_bound_holds_for_float32_sums() -> None:
    bound = error_bound(DIMENSION)
    for number in range(200):
        one, other = vector(f"a{number}"), vector(f"b{number}")
        exact = int(one.astype(int) @ other.astype(int)) / 32767**2
        floats = [(v.astype(np.float32) / np.float32(32767)) for v in (one, other)]
        total = np.float32(0)
        for left, right in zip(*floats, strict=True):
            total += left * right
        assert abs(float(total) - exact) < bound


def test_a_file_of_another_kind_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE record (x)")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(ExternalError, match="no archive of ebbtide"):
        open_archive(str(path), IDENTITY)
    assert path.read_bytes() == before
    path.write_text("no database at all, " * 100)
    with pytest.raises(ExternalError, match="cannot be used"):
        open_archive(str(path), IDENTITY)


def test_a_password_is_never_shown() -> None:
    pytest.importorskip("psycopg")
    from ebbtide.archives.postgres import PostgresArchive

    with pytest.raises(ExternalError) as caught:
        PostgresArchive("postgresql://me:hunter2@127.0.0.1:1/db", IDENTITY, timeout=1)
    assert "hunter2" not in str(caught.value)
    assert "postgresql://127.0.0.1:1/db" in str(caught.value)


@pytest.mark.parametrize("text", ["", "plain", "\\", "\0", "\\0", "\\\0", "\0\\", "\\\\0\0\\0\\"])
def test_escaping_loses_nothing(text: str) -> None:
    assert "\0" not in escaped(text)
    assert unescaped(escaped(text)) == text


def test_retries_are_bounded_and_only_for_servers_that_are_away() -> None:
    waits: list[float] = []
    retry = Retry(attempts=4, first=1.0, most=3.0, sleep=waits.append)
    answers = iter(["archive.unavailable", "archive.unavailable", None])

    def work(value: int, *, more: int) -> int:
        code = next(answers)
        if code is not None:
            raise ExternalError("away", code)
        return value + more

    assert retry(work, 1, more=2) == 3
    assert waits == [1.0, 2.0]
    answers = iter(["archive.conflict"])
    with pytest.raises(ExternalError):
        retry(work, 1, more=2)
    answers = iter(["archive.unavailable"] * 9)
    with pytest.raises(ExternalError):
        retry(work, 1, more=2)
    assert waits == [1.0, 2.0, 1.0, 2.0, 3.0]
    assert len(list(answers)) == 5
