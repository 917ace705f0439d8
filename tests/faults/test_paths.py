"""What is written never takes the place of something else, and one path is one store."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from reference.stand_ins import scripted

from ebbtide import Config, Memory, Store, StoreError

SIDES = ("", "-wal", "-shm", "-journal", ".lock")


@pytest.fixture
def path(stub: Config, tmp_path: Path) -> Path:
    path = tmp_path / "memory.db"
    with Memory.open(path, config=stub) as memory:
        memory.add_many(scripted(n) for n in range(5))
    return path


def refused(call: Callable[[], object], *words: str) -> None:
    with pytest.raises(StoreError) as caught:
        call()
    assert caught.value.code == "store.open"
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("end", SIDES)
@pytest.mark.parametrize("through_a_link", [False, True])
@pytest.mark.parametrize("read_only", [False, True])
def test_nothing_is_written_over_a_store(
    stub: Config, path: Path, end: str, through_a_link: bool, read_only: bool
) -> None:
    target = path.with_name(path.name + end)
    if through_a_link:
        (path.parent / "link").symlink_to(target)
        target = path.parent / "link"
    # A reader beside a writer, as `ebbtide export` is beside a daemon.
    with Memory.open(path, config=stub) as writer:
        digest = writer.digest()
        opened = writer if not read_only else Memory.open(path, config=stub, read_only=True)
        refused(lambda: opened.export(target), str(path), "another file")
        with Store.open(path, config=stub, read_only=True) as reader:
            refused(lambda: reader.backup(target), str(path), "another file")
            refused(lambda: reader.memory().export(target))
        opened.close()
    with Store.open(path, config=stub) as store:
        assert store.memory().digest() == digest
        assert store.check() == []


def test_nothing_is_written_over_a_store_named_in_another_way(
    stub: Config, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    (path.parent / "folder").symlink_to(path.parent)
    with Memory.open("memory.db", config=stub, read_only=True) as reader:
        monkeypatch.chdir("/")
        for target in (path, path.parent / "folder" / "memory.db-wal"):
            refused(lambda target=target: reader.export(target), "belongs to the store")


def test_a_store_with_the_name_of_a_file_being_written_stays(stub: Config, tmp_path: Path) -> None:
    path = tmp_path / "x.ebbtide-partial"
    with Store.open(path, config=stub) as store:
        store.memory().add("one")
        for write in (store.memory().export, store.backup):
            refused(lambda write=write: write(tmp_path / "x"), "belongs to the store")
        assert store.check() == []
    assert path.exists()


def test_an_export_gives_way_to_an_export_and_nothing_else(stub: Config, path: Path) -> None:
    folder = path.parent
    out, empty, notes = folder / "out.jsonl", folder / "empty", folder / "notes.jsonl"
    notes.write_text('{"text": "mine"}\n')
    empty.touch()
    other = folder / "other.db"
    with Memory.open(other, config=stub) as memory:
        memory.add("another store")
    stays = {p: p.read_bytes() for p in (notes, other)}
    with Memory.open(path, config=stub) as memory:
        memory.export(out)
        first = out.read_bytes()
        memory.add("one more")
        memory.export(out)
        assert out.read_bytes() != first
        memory.export(empty)
        assert empty.read_bytes() == out.read_bytes()
        for target in stays:
            refused(lambda target=target: memory.export(target), "another file already")
    assert {p: p.read_bytes() for p in stays} == stays


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
@pytest.mark.parametrize("name", ["pipe", "link to a pipe", "folder", "link to a folder"])
def test_what_is_no_file_is_not_replaced(stub: Config, path: Path, name: str) -> None:
    folder = path.parent
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    (folder / "link to a pipe").symlink_to(folder / "pipe")
    (folder / "link to a folder").symlink_to(folder / "folder")

    def there() -> tuple[int, int]:
        found = (folder / name).lstat()
        return found.st_ino, found.st_mode

    before = there()
    with Memory.open(path, config=stub) as memory:
        refused(lambda: memory.export(folder / name), "no regular file")
    assert there() == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
@pytest.mark.parametrize("name", ["pipe", "link to a pipe"])
@pytest.mark.parametrize("read_only", [False, True])
def test_what_is_no_file_is_no_store(
    stub: Config, tmp_path: Path, name: str, read_only: bool
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link to a pipe").symlink_to(tmp_path / "pipe")
    before = sorted(tmp_path.iterdir())
    opened = tmp_path / name
    refused(lambda: Memory.open(opened, config=stub, read_only=read_only), "no regular file")
    assert sorted(tmp_path.iterdir()) == before


def test_a_file_that_is_named_like_a_partial_one_stays(stub: Config, path: Path) -> None:
    mine = path.with_name("out.jsonl.partial")
    mine.write_text("of another program")
    with Store.open(path, config=stub) as store:
        store.memory().export(path.with_name("out.jsonl"))
        path.with_name("copy.db.partial").write_text("of another program")
        store.backup(path.with_name("copy.db"))
    assert mine.read_text() == "of another program"
    assert path.with_name("copy.db.partial").read_text() == "of another program"


@pytest.mark.parametrize(
    "name", ["file:u.db", "file:u.db?mode=memory", "file::memory:", "file:u.db?immutable=1"]
)
def test_a_name_is_no_address(
    stub: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with Store.open("u.db", config=stub) as plain, Store.open(name, config=stub) as store:
        store.memory().add("one")
        assert len(plain.memory()) == 0
        store.backup(f"{name}.copy")
    for kept in (name, f"{name}.copy"):
        assert (tmp_path / kept).is_file()
        for read_only in (True, False):
            with Memory.open(kept, config=stub, read_only=read_only) as memory:
                assert [turn.text for turn in memory.turns()] == ["one"]


@pytest.mark.parametrize("read_only", [False, True])
def test_an_empty_path_is_an_error_that_leaves_nothing(
    stub: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read_only: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(lambda: Memory.open("", config=stub, read_only=read_only), "is empty", "name a file")
    assert list(tmp_path.iterdir()) == []


def test_a_link_to_a_store_that_is_not_there_yet_is_that_store(
    stub: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "inner" / "memory.db"
    path.parent.mkdir()
    (tmp_path / "one").symlink_to("inner/two")
    (path.parent / "two").symlink_to("memory.db")
    with Memory.open("one", config=stub) as memory:
        memory.add("one")
        with pytest.raises(StoreError) as caught:
            Memory.open(path, config=stub)
        assert caught.value.code == "store.locked"
    assert {p.name for p in tmp_path.rglob("*.lock")} == {"memory.db.lock"}
    with Memory.open(path, config=stub) as memory:
        assert len(memory) == 1


def test_a_backup_is_not_put_beside_the_log_of_another_store(
    stub: Config, path: Path, tmp_path: Path
) -> None:
    """SQLite would read that log as the backup's own."""
    folder = tmp_path / "restored"
    folder.mkdir()
    with Memory.open(tmp_path / "old.db", config=stub) as old:
        old.add_many({"text": f"OLD {n}"} for n in range(60))
        # What a killed writer leaves once its file was removed.
        (folder / "memory.db-wal").write_bytes((tmp_path / "old.db-wal").read_bytes())
    target = folder / "memory.db"
    with Store.open(path, config=stub, read_only=True) as store:
        for end in ("-wal", "-shm", "-journal"):
            left = folder / f"memory.db{end}"
            left.touch()
            refused(lambda: store.backup(target), str(left), "remove it")
            assert not target.exists()
            left.unlink()
        store.backup(target)
        digest = store.memory().digest()
    with Memory.open(target, config=stub) as memory:
        assert memory.digest() == digest
