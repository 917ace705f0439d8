"""One writer, many readers, and files that are no store of ours."""

from __future__ import annotations

import hashlib
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from reference.stand_ins import scripted

from ebbtide import (
    Config,
    EbbtideError,
    Memory,
    NotFoundError,
    SchemaVersionError,
    Store,
    StoreError,
)

HOLDER = """
import sys
from ebbtide import Config, Store
store = Store.open(sys.argv[1])
print("open", flush=True)
sys.stdin.read()
"""


@contextmanager
def holder(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the store open for writing."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "open\n"
        yield process
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait()


def contents(path: Path) -> str:
    """Of the store file itself; a reader may leave SQLite's empty companions beside it."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def refused(path: Path, config: Config, *, read_only: bool = False) -> EbbtideError:
    with pytest.raises(EbbtideError) as caught:
        Memory.open(path, config=config, read_only=read_only)
    assert str(path) in str(caught.value)
    return caught.value


def test_a_second_writer_in_this_process_is_refused(stub: Config, store_path: Path) -> None:
    with Memory.open(store_path, config=stub) as memory:
        memory.add("kept")
        error = refused(store_path, stub)
        assert isinstance(error, StoreError)
        assert error.code == "store.locked"
        assert f"process {os.getpid()}" in str(error)
        assert "read_only" in str(error)
        with pytest.raises(StoreError) as caught:
            Store.open(store_path)
        assert caught.value.code == "store.locked"
        memory.add("still writes")
    with Memory.open(store_path, config=stub) as memory:
        assert len(memory) == 2


def test_a_second_writer_in_another_process_is_refused_until_it_dies(
    stub: Config, store_path: Path
) -> None:
    with holder(store_path) as process:
        error = refused(store_path, stub)
        assert error.code == "store.locked"
        assert f"process {process.pid}" in str(error)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        with Memory.open(store_path, config=stub) as memory:
            memory.add("free at once")


def test_the_lock_is_free_after_close_and_after_a_failed_open(
    stub: Config, store_path: Path
) -> None:
    with Memory.open(store_path, config=stub) as memory:
        memory.add("one")
    other = Config().with_embedder(type(stub.embedder)(16))
    for _ in range(2):
        assert refused_code(store_path, other) == "fingerprint.analyser"
    with Memory.open(store_path, config=stub) as memory:
        assert len(memory) == 1


def refused_code(path: Path, config: Config) -> str:
    with pytest.raises(EbbtideError) as caught:
        Memory.open(path, config=config)
    return caught.value.code


def test_closing_the_store_ends_its_memories(stub: Config, store_path: Path) -> None:
    store = Store.open(store_path, config=stub)
    memory = store.memory("ana")
    memory.add("x")
    store.close()
    store.close()
    with pytest.raises(StoreError) as caught:
        memory.add("y")
    assert caught.value.code == "store.closed"
    Store.open(store_path, config=stub).close()


def test_readers_work_beside_a_writer(stub: Config, store_path: Path) -> None:
    with Memory.open(store_path, config=stub) as writer:
        writer.add_many(scripted(n) for n in range(30))
        digest = writer.digest()
        with (
            Memory.open(store_path, config=stub, read_only=True) as first,
            Memory.open(store_path, config=stub, read_only=True) as second,
        ):
            assert first.digest() == second.digest() == digest
            before = [item.to_dict() for item in first.retrieve("tea port", limit=5)]
            writer.add_many(scripted(n) for n in range(30, 60))
            assert [item.to_dict() for item in second.retrieve("tea port", limit=5)] == before
            assert first.render_context("tea port")
            # Rows are read as they are now; what recall looks into is as it was.
            assert len(list(first.turns())) == 60
            found = first.retrieve("tea port", limit=60)
            assert {item.turn.interaction_id for item in found} <= set(range(30))
        with Memory.open(store_path, config=stub, read_only=True) as third:
            assert len(third) == 60


def test_a_reader_survives_what_the_writer_deletes(stub: Config, store_path: Path) -> None:
    with Memory.open(store_path, config=stub) as writer:
        writer.add_many(scripted(n) for n in range(20))
        with Memory.open(store_path, config=stub, read_only=True) as reader:
            assert len(reader.retrieve("tea port garden", limit=20)) > 10
            for interaction_id in range(0, 20, 2):
                writer.delete(interaction_id)
            found = reader.retrieve("tea port garden", limit=20)
            assert {item.turn.interaction_id for item in found} <= set(range(1, 20, 2))
            assert reader.render_context("tea port garden")


def test_a_reader_beside_a_writer_in_another_process(stub: Config, store_path: Path) -> None:
    with Memory.open(store_path, config=stub) as memory:
        memory.add("the harbour is closed")
    with (
        holder(store_path),
        Memory.open(store_path, config=stub, read_only=True) as reader,
    ):
        assert reader.retrieve("harbour")[0].turn.text == "the harbour is closed"


def test_a_reader_opens_in_one_state_while_a_writer_goes_on(stub: Config, store_path: Path) -> None:
    done = threading.Event()
    with Memory.open(store_path, config=stub) as writer:
        writer.add(**scripted(0))

        def write() -> None:
            while not done.is_set():
                writer.add(**scripted(len(writer)))

        thread = threading.Thread(target=write)
        thread.start()
        try:
            for _ in range(80):
                with Memory.open(store_path, config=stub, read_only=True) as reader:
                    assert len(reader) > 0
        finally:
            done.set()
            thread.join()


def test_every_write_on_a_reader_is_refused(stub: Config, store_path: Path) -> None:
    with Memory.open(store_path, config=stub) as memory:
        memory.add_many(scripted(n) for n in range(5))
    before = contents(store_path)
    with Memory.open(store_path, config=stub, read_only=True) as reader:
        writes = (
            lambda: reader.add("x"),
            lambda: reader.add("x", wait="journalled"),
            lambda: reader.add_many([{"text": "x"}]),
            lambda: reader.relate(3, "corrects", 1),
            lambda: reader.delete(1),
            lambda: reader.delete_all(),
            lambda: reader.reindex(),
        )
        for write in writes:
            with pytest.raises(StoreError) as caught:
                write()
            assert caught.value.code == "store.read_only"
        assert len(reader) == 5
    assert contents(store_path) == before


def test_a_reader_in_a_folder_that_cannot_be_written(stub: Config, store_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    with Memory.open(store_path, config=stub) as memory:
        memory.add("x")
    store_path.parent.chmod(0o500)
    try:
        with Memory.open(store_path, config=stub, read_only=True) as reader:
            assert len(reader) == 1
    finally:
        store_path.parent.chmod(0o700)


def test_reading_what_does_not_exist(stub: Config, store_path: Path) -> None:
    error = refused(store_path, stub, read_only=True)
    assert isinstance(error, NotFoundError)
    assert error.code == "not_found.store"
    assert not store_path.exists()
    with Memory.open(store_path, config=stub) as memory:
        memory.add("x")
    with pytest.raises(NotFoundError) as caught:
        Memory.open(store_path, namespace="nobody", config=stub, read_only=True)
    assert caught.value.code == "not_found.namespace"
    assert "nobody" in str(caught.value)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_folder(stub: Config, tmp_path: Path, read_only: bool) -> None:
    assert refused(tmp_path, stub, read_only=read_only).code == "store.open"


@pytest.mark.parametrize("read_only", [False, True])
def test_sqlites_name_for_memory_is_no_file(
    stub: Config, tmp_path: Path, read_only: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match=r"not a file.*Memory\.in_memory\(\)") as caught:
        Memory.open(":memory:", config=stub, read_only=read_only)
    assert caught.value.code == "store.open"
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder(stub: Config, tmp_path: Path) -> None:
    with pytest.raises(StoreError) as caught:
        Memory.open(tmp_path / "none" / "memory.db", config=stub)
    assert caught.value.code == "store.open"
    assert str(tmp_path / "none") in str(caught.value)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("text", [b"not a database at all, just words\n" * 100, b"x"])
def test_a_file_that_is_no_database(
    stub: Config, store_path: Path, text: bytes, read_only: bool
) -> None:
    store_path.write_bytes(text)
    before = contents(store_path)
    error = refused(store_path, stub, read_only=read_only)
    assert isinstance(error, StoreError)
    assert error.code in ("store.open", "store.corrupt")
    assert "name another file" in str(error)
    assert contents(store_path) == before


@pytest.mark.parametrize("read_only", [False, True])
def test_a_foreign_database_is_left_as_it_was(
    stub: Config, store_path: Path, read_only: bool
) -> None:
    other = sqlite3.connect(store_path)
    other.execute("CREATE TABLE letters (body TEXT)")
    other.execute("INSERT INTO letters VALUES ('dear')")
    other.commit()
    other.close()
    before = contents(store_path)
    error = refused(store_path, stub, read_only=read_only)
    assert isinstance(error, StoreError)
    assert error.code == "store.open"
    assert contents(store_path) == before


@pytest.mark.parametrize("read_only", [False, True])
def test_a_newer_schema_is_left_as_it_was(stub: Config, store_path: Path, read_only: bool) -> None:
    with Memory.open(store_path, config=stub) as memory:
        memory.add("x")
    raw = sqlite3.connect(store_path)
    version = raw.execute("PRAGMA user_version").fetchone()[0]
    raw.execute(f"PRAGMA user_version = {version + 41}")
    raw.commit()
    raw.close()
    before = contents(store_path)
    error = refused(store_path, stub, read_only=read_only)
    assert isinstance(error, SchemaVersionError)
    assert error.code == "schema.version"
    assert str(version + 41) in str(error)
    assert contents(store_path) == before


def test_a_damaged_store_is_a_typed_error(stub: Config, store_path: Path) -> None:
    with Memory.open(store_path, config=stub) as memory:
        memory.add_many(scripted(n) for n in range(200))
    data = bytearray(store_path.read_bytes())
    for page in range(1, len(data) // 4096):
        data[page * 4096 : page * 4096 + 64] = b"\xff" * 64
    store_path.write_bytes(data)
    with pytest.raises(StoreError) as caught, Memory.open(store_path, config=stub) as memory:
        memory.digest()
    assert caught.value.code == "store.corrupt"


def test_one_memory_shared_by_threads(stub: Config, store_path: Path) -> None:
    failures: list[BaseException] = []

    def work(worker: int) -> None:
        try:
            for n in range(20):
                wait = "journalled" if n % 3 == 0 else "complete"
                memory.add(f"worker {worker} turn {n}", external_id=f"{worker}:{n}", wait=wait)
                memory.retrieve(f"turn {n}", limit=3)
        except BaseException as error:
            failures.append(error)

    with Memory.open(store_path, config=stub) as memory:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        turns = list(memory.turns())
        assert [turn.interaction_id for turn in turns] == list(range(80))
        assert {turn.external_id for turn in turns} == {
            f"{w}:{n}" for w in range(4) for n in range(20)
        }
        for worker in range(4):
            own = [t.text for t in turns if t.text.startswith(f"worker {worker} ")]
            assert own == [f"worker {worker} turn {n}" for n in range(20)]


def test_namespaces_share_one_file(stub: Config, store_path: Path) -> None:
    with Store.open(store_path, config=stub) as store:
        for name in ("b", "a"):
            store.memory(name).add(f"for {name}")
        assert store.namespaces() == ["a", "b"]
    with Memory.open(store_path, namespace="a", config=stub) as memory:
        assert [turn.text for turn in memory.turns()] == ["for a"]
        assert [turn.interaction_id for turn in memory.turns()] == [0]
