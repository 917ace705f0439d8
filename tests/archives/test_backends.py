"""What is particular to one backend: approximate indexes, damage, closing, passwords."""

from __future__ import annotations

import gc
import sqlite3
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from ebbtide import ExternalError, FingerprintError, InputError
from ebbtide.archives import Identity, Retry, open_archive
from ebbtide.archives.base import Filters, UnusableError, unavailable
from ebbtide.archives.ranking import certain, error_bound, rescored
from ebbtide.archives.records import escaped, unescaped

from .conftest import Fresh
from .makers import DIMENSION, IDENTITY, brute, keys, record, vector
from .servers import PostgresServer


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


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:SEC/RET@127.0.0.1:1/x",
        "postgresql://me:SECRET@RET@127.0.0.1:1/x",
        "postgresql://me:SECRET%RET@127.0.0.1:1/x",
        "postgresql://me:54321/RET@127.0.0.1:1/x",
        "postgresql://me:SECRET@127.0.0.1:5432a/x",
        "postgresql://127.0.0.1:1/x?pasword=SECRET",
        "host=127.0.0.1 pasword=SECRET dbname=x",
        "postgresql:/me:SECRET@127.0.0.1:1/x",
        " Postgres:me:SECRET@127.0.0.1:1/x",
        "chroma:/me:SECRET@127.0.0.1:1/x",
        "chroma://me:SEC/RET@127.0.0.1:1/x",
    ],
)
def test_an_address_that_is_miswritten_does_not_show_the_password(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("psycopg")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        open_archive(address, IDENTITY)
    assert caught.value.code == "input.field"
    assert "SEC" not in str(caught.value)
    assert "RET" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_what_a_driver_repeats_of_an_address_is_shown_without_the_password() -> None:
    said = ValueError("cannot reach https://me:SEC/RET@127.0.0.1:1/x today")
    shown = str(unavailable("chroma://127.0.0.1:1/x", said, passing=True))
    assert shown.endswith("cannot be used: cannot reach https://127.0.0.1:1/x today")


def test_a_connection_string_of_keywords_names_a_server(fresh_address: Fresh) -> None:
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    address = fresh_address("postgres")
    words = make_conninfo("", **conninfo_to_dict(address))
    archive = open_archive(words, IDENTITY)
    archive.put("ana", [record(0)])
    archive.close()
    archive = open_archive(address)
    assert archive.count() == 1
    archive.close()


def test_how_postgres_is_connected_to(fresh_address: Fresh) -> None:
    from ebbtide.archives.postgres import PostgresArchive

    address = fresh_address("postgres")
    archive = PostgresArchive(address, IDENTITY)
    assert archive._open is not None
    # Servers behind a pooler do not know each other's prepared statements.
    assert archive._open.prepare_threshold is None
    said = archive._open.info.get_parameters()
    assert (said["keepalives_idle"], said["client_encoding"]) == ("15", "UTF8")
    archive.close()
    archive = PostgresArchive(f"{address}&keepalives_idle=7&connect_timeout=4", IDENTITY)
    assert archive._open is not None
    said = archive._open.info.get_parameters()
    assert (said["keepalives_idle"], said["connect_timeout"]) == ("7", "4")
    archive.close()


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_of_another_encoding_is_refused(
    encoding: str, postgres_server: PostgresServer
) -> None:
    import psycopg

    name = f"in_{encoding.lower()}"
    with psycopg.connect(postgres_server.uri, autocommit=True) as connection:
        connection.execute(
            f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0".encode()
        )
    with pytest.raises(UnusableError, match=f"keeps text as {encoding}: .* ENCODING 'UTF8'"):
        open_archive(postgres_server.uri.replace("/postgres?", f"/{name}?"), IDENTITY)


def test_a_name_too_long_for_an_index_is_refused(fresh_address: Fresh) -> None:
    archive = open_archive(fresh_address("postgres"), IDENTITY)
    name = "".join(chr(0x4E00 + number * 7919 % 0x4000) for number in range(6000))
    with pytest.raises(InputError, match="push under a shorter name") as caught:
        archive.put(name, [record(0, name)])
    assert caught.value.code == "input.field"
    assert archive.namespaces() == []
    archive.close()


def test_a_call_that_was_interrupted_leaves_nothing_behind(
    fresh_address: Fresh, caplog: pytest.LogCaptureFixture
) -> None:
    from ebbtide.archives.postgres import PostgresArchive

    archive = PostgresArchive(fresh_address("postgres"), IDENTITY)
    archive.put("ana", [record(0)])

    def interrupted() -> None:
        with archive._transaction() as connection:
            connection.pgconn.send_query(b"SELECT 1")  # a command is under way
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert caplog.messages == []
    assert archive.count() == 1
    archive.close()


def test_a_lock_that_is_never_given_back_does_not_hold_a_push_for_ever(
    fresh_address: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    address = fresh_address("postgres")
    archive = open_archive(address, IDENTITY)
    archive.put("ana", [record(0)])
    monkeypatch.setattr("ebbtide.archives.postgres._PATIENCE_MS", 20)
    with psycopg.connect(address) as other:
        other.execute("SELECT * FROM ebbtide_namespace FOR UPDATE")
        with pytest.raises(UnusableError, match="lock timeout"):
            archive.put("ana", [record(1)])
    assert archive.put("ana", [record(1)]) == 1
    archive.close()


def test_a_collection_of_something_else_is_left_alone(
    fresh_address: Fresh, request: pytest.FixtureRequest
) -> None:
    import chromadb

    address = fresh_address("chroma")
    port = request.getfixturevalue("chroma_server").port
    client = chromadb.HttpClient("127.0.0.1", port)
    name = address.rpartition("/")[2]
    docs = client.create_collection(name, embedding_function=None, metadata={"whose": "theirs"})
    docs.add(ids=["1"], embeddings=[[1.0] * DIMENSION], metadatas=[{"part": 0}])
    before = len(client.list_collections())
    with pytest.raises(UnusableError, match="in use by something else"):
        open_archive(address, IDENTITY)
    assert len(client.list_collections()) == before
    assert docs.count() == 1
    # What was cut off while it was made holds nothing yet.
    docs.delete(ids=["1"])
    archive = open_archive(address, IDENTITY)
    archive.put("ana", [record(0)])
    archive.close()
    open_archive(address, IDENTITY).close()


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


def test_what_will_not_pass_is_not_asked_again(fresh_address: Fresh, tmp_path: Path) -> None:
    import psycopg

    waits: list[float] = []
    retry = Retry(sleep=waits.append)

    def refused(work: Callable[[], Any]) -> str:
        with pytest.raises(UnusableError) as caught:
            retry(work)
        assert caught.value.code == "archive.unavailable"
        return str(caught.value)

    address = fresh_address("postgres")
    archive = open_archive(address, IDENTITY)
    with psycopg.connect(address) as connection:
        connection.execute("DROP TABLE ebbtide_record CASCADE")
    assert "does not exist" in refused(archive.count)
    archive.close()
    assert "holds no archive yet" in refused(lambda: open_archive(str(tmp_path / "none.db")))
    assert "unable to open" in refused(lambda: open_archive("/no/such/folder/a.db", IDENTITY))
    # The server names what it does not take.
    short = fresh_address("chroma").rpartition("/")[0] + "/a"
    refused(lambda: open_archive(short, IDENTITY))
    assert waits == []


def test_what_may_pass_is_asked_again(fresh_address: Fresh, tmp_path: Path) -> None:
    import psycopg

    waits: list[float] = []
    retry = Retry(sleep=waits.append)
    address = fresh_address("postgres")
    archive = open_archive(address, IDENTITY)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    assert retry(archive.count) == 0
    assert waits == [0.5]
    archive.close()
    for away in ("postgresql://127.0.0.1:1/none", "chroma://127.0.0.1:1/none"):
        waits.clear()
        with pytest.raises(ExternalError):
            retry(open_archive, away, IDENTITY)
        assert waits == [0.5, 1.0, 2.0]


@pytest.mark.parametrize(
    ("state", "password", "passes"),
    [
        (None, None, True),
        ("08006", None, True),
        ("57P03", None, True),
        ("42501", None, False),
        ("55P03", None, False),
        (None, False, True),
        (None, True, False),
    ],
)
def test_which_faults_of_postgres_pass(state: Any, password: bool | None, passes: bool) -> None:
    psycopg = pytest.importorskip("psycopg")
    from ebbtide.archives.postgres import _passes

    # A connection that was refused knows whether it was asked for a password.
    asked: Any = SimpleNamespace(needs_password=False, used_password=password)
    error = psycopg.OperationalError("x", pgconn=None if password is None else asked)
    error.sqlstate = state
    assert _passes(error) is passes
    assert not _passes(psycopg.ProgrammingError("x"))
