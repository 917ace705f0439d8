"""An archive that was changed by something else: what it says, and that it says so."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ebbtide import ExternalError
from ebbtide.archives import Archive, FileArchive, Identity, Source
from ebbtide.archives.chroma_entries import entries_of, record_of

from .makers import IDENTITY, record, vector


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file archive with ten turns."""
    with closing(FileArchive(tmp_path / "archive.db", IDENTITY)) as archive:
        archive.put("ana", [record(number) for number in range(10)])
    return tmp_path / "archive.db"


def changed(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()


def refused(work: Callable[[], Any], words: str) -> None:
    with pytest.raises(ExternalError, match=words) as caught:
        work()
    assert caught.value.code == "archive.damaged"


def test_damage_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "archive.db"
    archive = FileArchive(path, IDENTITY)
    archive.put("ana", [record(0), record(1)])
    connection = sqlite3.connect(path)
    connection.execute("UPDATE record SET body = replace(body, 'says 1', 'says 7') WHERE id = 1")
    connection.commit()
    connection.close()
    assert archive.get("ana", [0])[0].turn.text == "ana says 0"
    for read in (
        lambda: archive.get("ana", [1]),
        lambda: archive.search(vector("q"), 2),
    ):
        with pytest.raises(ExternalError) as caught:
            read()
        assert caught.value.code == "archive.damaged"
        assert "turn 1 of 'ana'" in str(caught.value)
    archive.close()
    with pytest.raises(ExternalError, match="cannot be used"):
        archive.count()


@pytest.mark.parametrize(
    "value",
    ["substr(vectors, 1, 63)", "substr(vectors, 1, 62)", "'abc'", "CAST(vectors || 'ab' AS BLOB)"],
)
def test_vectors_of_another_length_are_named(path: Path, value: str) -> None:
    changed(path, f"UPDATE record SET vectors = {value} WHERE id = 3")
    with closing(FileArchive(path)) as archive:
        reads: list[Callable[[], Any]] = [
            lambda: archive.search(vector("q"), 1),
            lambda: archive.search(vector("q"), 1, filters={"metadata": {"parity": 1}}),
            lambda: archive.page("ana", 0, 99),
        ]
        for read in reads:
            refused(read, "turn 3 of 'ana' is damaged")
        assert archive.get("ana", [2])[0].turn.text == "ana says 2"


def test_a_body_that_is_no_sensible_json_is_named(path: Path) -> None:
    changed(path, f"UPDATE record SET body = CAST('{'[' * 100_000}' AS BLOB) WHERE id = 3")
    with closing(FileArchive(path)) as archive:
        refused(lambda: archive.get("ana", [3]), "turn 3 of 'ana' is damaged")


@pytest.mark.parametrize("change", ["hash = 5", "writer = x'ff'", "id = 'x'"])
def test_a_value_of_another_kind_is_noticed(path: Path, change: str) -> None:
    changed(path, f"UPDATE record SET {change} WHERE id = 3")
    with closing(FileArchive(path)) as archive:
        refused(lambda: archive.page("ana", 0, 99), "is damaged")
        if not change.startswith("writer"):
            refused(lambda: archive.inventory("ana"), "is damaged")


def test_a_name_that_is_no_text_is_noticed(path: Path) -> None:
    changed(path, "UPDATE namespace SET name = x'ff'")
    with closing(FileArchive(path)) as archive:
        refused(archive.namespaces, "is damaged")


SOURCES = [
    None,
    5,
    "x",
    "{}",
    "[]",
    '{"cursor": "x"}',
    Source().to_json().replace("[]", "[[1, 2]]"),
    Source().to_json().replace("[]", "5"),
    Source().to_json().replace('"cursor": 0', '"cursor": -1'),
    Source().to_json().replace('"cursor": 0', '"cursor": true'),
    "[" * 100_000,
]


@pytest.mark.parametrize("text", SOURCES)
def test_what_is_known_of_a_memory_is_checked(text: object) -> None:
    refused(lambda: Source.from_json(text, "ana"), "'ana' is damaged; erase that namespace")
    known = Source(3, 4, "a", "b", ((2, "corrects", 1),))
    assert Source.from_json(known.to_json(), "ana") == known


IDENTITIES = [
    None,
    "x",
    "[]",
    '{"a": 1}',
    IDENTITY.to_json().replace("32", '"32"', 1),
    Identity("x", 0).to_json(),
]


@pytest.mark.parametrize("text", IDENTITIES)
def test_what_an_archive_says_of_itself_is_checked(text: object) -> None:
    refused(lambda: Identity.from_json(text, "there"), "there is damaged")
    assert Identity.from_json(IDENTITY.to_json(), "there") == IDENTITY


def test_a_damaged_namespace_can_be_erased_and_shipped_again(path: Path) -> None:
    changed(path, "UPDATE namespace SET source = '{}'")
    with closing(FileArchive(path)) as archive:
        reads: list[Callable[[Archive], Any]] = [
            lambda archive: archive.source("ana"),
            lambda archive: archive.cursor("ana"),
            lambda archive: archive.put("ana", [record(1)]),
        ]
        for read in reads:
            refused(lambda read=read: read(archive), "erase that namespace")  # type: ignore[misc]
        assert archive.delete_namespace("ana") == 10
        assert archive.put("ana", [record(1)]) == 1


@pytest.mark.parametrize("change", ["DELETE FROM archive", "UPDATE archive SET identity = 'x'"])
def test_a_file_that_does_not_say_what_it_holds_is_not_opened(path: Path, change: str) -> None:
    changed(path, change)
    for identity in (IDENTITY, None):
        refused(lambda identity=identity: FileArchive(path, identity), "is damaged")  # type: ignore[misc]


@pytest.mark.parametrize(
    "change", [{"hash": "no hex"}, {"body": '"'}, {"id": "x"}, {"writer": None}, {"vectors": "a"}]
)
def test_a_damaged_entry_of_chroma_is_named(change: dict[str, Any]) -> None:
    (_, _, fields), *_ = entries_of(record(3))
    assert record_of(fields, IDENTITY.dimension).hash == record(3).hash
    refused(lambda: record_of({**fields, **change}, IDENTITY.dimension), "is damaged")
    for name in change:
        left = {key: value for key, value in fields.items() if key != name}
        refused(lambda left=left: record_of(left, IDENTITY.dimension), "is damaged")  # type: ignore[misc]
