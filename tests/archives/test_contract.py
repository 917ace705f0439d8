"""What every archive does alike, whatever keeps it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ebbtide import EbbtideError, ExternalError, FingerprintError, InputError, SchemaVersionError
from ebbtide.archives import Archive, Identity, Record, Source, open_archive
from ebbtide.archives.records import BLOCK

from .makers import DIMENSION, IDENTITY, brute, holds, keys, record, vector


@pytest.fixture
def archive(address: str) -> Iterator[Archive]:
    opened = open_archive(address, IDENTITY)
    yield opened
    opened.close()


def test_it_is_an_archive(archive: Archive) -> None:
    assert isinstance(archive, Archive)
    assert archive.namespaces() == []
    assert archive.count() == archive.count("ana") == archive.cursor("ana") == 0
    assert archive.source("ana") is None
    assert archive.inventory("ana") == archive.page("ana", 0, 5) == archive.get("ana", [1]) == []
    assert archive.search(vector("x"), 3) == []


def test_a_record_comes_back_as_it_was_put(archive: Archive) -> None:
    odd = record(
        3,
        passages=3,
        text="tab\t, NUL \0, backslash \\0, 日本語 🦉, quote \" ' ; DROP TABLE",
        speaker="O\0'Ana\\",
        session_id="",
        external_id=None,
        timestamp=None,
        utc_micros=None,
        provenance={"is_user_correction": True},
        metadata='{"a": 1.10, "b": [null, {"c": "\\u0000"}]}',
    )
    odd = replace(odd, writer="who\0\\ever")
    assert archive.put("ana", [odd]) == 1
    (back,) = archive.get("ana", [3, 4])
    assert back.hash == odd.hash
    assert dict(back.raw) == dict(odd.raw)
    assert back.writer == odd.writer
    assert np.array_equal(back.vectors, odd.vectors)
    assert back.turn.metadata == {"a": 1.1, "b": [None, {"c": "\0"}]}
    found = archive.search(vector("x"), 5, filters={"speaker": "o\0'aNa\\", "session_id": ""})
    assert [hit.record.hash for hit in found] == [odd.hash]
    again = archive.search(vector("x"), 5, filters={"writer": "who\0\\ever"})
    assert keys(again) == keys(found)


def test_namespaces_are_told_apart_whatever_they_are_called(archive: Archive) -> None:
    names = ["ana", "ana/1", "ana/1/0", "Ana", "a\0", "a\\0", "", "ä", "%"]
    for name in names:
        archive.put(name, [record(0, name), record(1, name)])
    archive.delete("ana", [1])
    assert archive.namespaces() == sorted(names)
    assert [archive.count(name) for name in names] == [1, *[2] * (len(names) - 1)]
    assert archive.delete_namespace("ana/1") == 2
    assert archive.count() == 2 * len(names) - 3


def test_putting_again_changes_nothing(archive: Archive) -> None:
    records = [record(number, passages=1 + number % 3) for number in range(20)]
    assert archive.put("ana", records[5:15]) == 10
    before = holds(archive)
    assert archive.put("ana", records[5:15]) == 0
    assert holds(archive) == before
    assert archive.put("ana", [*records, *records]) == 10
    assert archive.put("ana", [replace(records[0], writer="somebody else")]) == 0
    assert archive.get("ana", [0])[0].writer == "ana@home"
    assert archive.cursor("ana") == 20
    assert archive.put("ana", []) == 0
    assert [one.interaction_id for one in archive.page("ana", 3, 4)] == [3, 4, 5, 6]


def test_another_record_under_the_same_key_is_refused(archive: Archive) -> None:
    archive.put("ana", [record(1)])
    before = holds(archive)
    for other in (record(1, text="something else"), record(1, passages=2)):
        with pytest.raises(ExternalError) as caught:
            archive.put("ana", [record(0), other, record(2)])
        assert caught.value.code == "archive.conflict"
        assert "turn 1 in 'ana'" in str(caught.value)
    with pytest.raises(ExternalError):
        archive.put("ana", [record(3), record(3, text="twice in one call")])
    assert holds(archive) == before
    assert archive.cursor("ana") == 2


def test_records_that_do_not_belong_are_refused(archive: Archive) -> None:
    with pytest.raises(InputError, match="was put into"):
        archive.put("ana", [record(1, "luis")])
    short = Record("ana", 0, record(0).raw, np.zeros((1, 7), np.int16))
    with pytest.raises(InputError, match="vectors of shape"):
        archive.put("ana", [short])
    for bad in (np.zeros(7, np.int16), np.zeros(DIMENSION, np.int64)):
        with pytest.raises(InputError):
            archive.search(bad, 1)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        archive.search(vector("x"), 0)
    with pytest.raises(InputError):
        archive.search(vector("x"), 1, namespaces="ana")
    with pytest.raises(InputError):
        archive.search(vector("x"), 1, filters={"colour": "red"})


def test_search_is_exact_and_totally_ordered(archive: Archive) -> None:
    names = ["ana", "luis", "zoe"]
    records = {
        name: [record(number, name, passages=1 + number % 3) for number in range(60)]
        for name in names
    }
    # Ties, more of them than are asked for: the same vectors under other keys.
    for name in names:
        twin = records["luis"][7].vectors
        records[name] += [replace(record(n, name), vectors=twin) for n in range(60, 75)]
        archive.put(name, records[name][::-1])
    every = [one for name in names for one in records[name]]
    for seed in ("a", "b", "luis/7/0"):
        query = vector(seed)
        for limit in (1, 5, 40, 500):
            assert keys(archive.search(query, limit)) == brute(every, query, limit)
    query = records["luis"][7].vectors[1]
    assert keys(archive.search(query, 10)) == brute(every, query, 10)
    floats = query.astype(np.float32) * 3
    assert keys(archive.search(floats, 10)) == keys(archive.search(query, 10))
    assert archive.search(np.zeros(DIMENSION, np.int16), 10) == []


FILTERS: list[tuple[dict[str, Any], Callable[[int], Any]]] = [
    ({"role": "assistant"}, lambda n: n % 3 == 0),
    ({"speaker": "LUIS"}, lambda n: n % 2 == 1),
    ({"session_id": "s2"}, lambda n: 20 <= n < 30),
    ({"since": "2024-01-01T00:00:30Z"}, lambda n: n >= 30),
    ({"until": "2024-01-01T00:00:30Z", "role": "user"}, lambda n: n <= 30 and n % 3),
    ({"metadata": {"parity": 1}}, lambda n: n % 2 == 1),
    ({"metadata": {"parity": 1.0}}, lambda n: n % 2 == 1),
    ({"metadata": {"parity": 1.5}}, lambda n: False),
    ({"metadata": {"parity": True}}, lambda n: False),
    ({"writer": "ana@home", "session_id": "s0"}, lambda n: n < 10),
    ({"writer": "nobody"}, lambda n: False),
    ({"role": None}, lambda n: True),
]


def test_filters(archive: Archive) -> None:
    records = [record(number) for number in range(50)]
    archive.put("ana", records)
    archive.put("luis", [record(number, "luis", utc_micros=None) for number in range(5)])
    query = vector("q")
    for filters, lets in FILTERS:
        wanted = [one for one in records if lets(one.interaction_id)]
        found = archive.search(query, 7, namespaces=["ana"], filters=filters)
        assert keys(found) == brute(wanted, query, 7), filters


def test_search_stays_in_the_namespaces_named(archive: Archive) -> None:
    for name in ("ana", "luis", "zoe"):
        archive.put(name, [record(number, name) for number in range(5)])
    found = archive.search(vector("q"), 50, namespaces=["zoe", "ana", "ana", "nobody"])
    assert sorted({hit.record.namespace for hit in found}) == ["ana", "zoe"]
    assert len(found) == 10
    assert archive.search(vector("q"), 50, namespaces=[]) == []


def test_erasing(archive: Archive) -> None:
    records = [record(number, passages=2) for number in range(10)]
    archive.put("ana", records)
    assert archive.delete("ana", [2, 3, 3, 99]) == 2
    assert archive.delete("ana", [2]) == archive.delete("nobody", [2]) == 0
    assert archive.ids("ana", 0, 100) == [0, 1, 4, 5, 6, 7, 8, 9]
    assert archive.ids("ana", 4, 6) == [4, 5]
    assert archive.cursor("ana") == 10
    gone = records[2].vectors[1]
    assert 2 not in [hit.record.interaction_id for hit in archive.search(gone, 50)]
    assert archive.put("ana", [records[2]]) == 1
    assert archive.delete_namespace("ana") == 9
    assert archive.namespaces() == []
    assert archive.cursor("ana") == 0
    assert archive.search(gone, 50) == []


def test_the_inventory_sums_ranges(archive: Archive) -> None:
    numbers = [0, 1, BLOCK - 1, BLOCK, 5 * BLOCK + 3]
    archive.put("ana", [record(number) for number in numbers])
    blocks = archive.inventory("ana")
    assert [(block.first, block.count) for block in blocks] == [
        (0, 3),
        (BLOCK, 1),
        (5 * BLOCK, 1),
    ]
    archive.put("luis", [record(0, "luis"), record(1, "luis"), record(BLOCK - 1, "luis")])
    (other,) = archive.inventory("luis")
    assert other.ids == blocks[0].ids
    assert other.content != blocks[0].content


def test_what_is_known_of_the_memory(archive: Archive) -> None:
    source = Source(3, 9, "spacy;embedder=x", "cl100k_base", ((4, "corrects", 2),))
    archive.set_source("ana", source)
    assert archive.source("ana") == source
    archive.put("ana", [record(6)])
    assert archive.source("ana") == replace(source, cursor=7)
    archive.set_source("ana", replace(source, next_id=10))
    assert archive.source("ana") == replace(source, cursor=7, next_id=10)
    assert archive.namespaces() == ["ana"]


def test_it_opens_again_and_knows_its_model(archive: Archive, address: str) -> None:
    archive.put("ana", [record(1)])
    for identity in (None, IDENTITY):
        again = open_archive(address, identity)
        assert again.identity == IDENTITY
        assert again.get("ana", [1])[0].hash == record(1).hash
        again.close()
    for other in (Identity("hash-33", DIMENSION), Identity("hash-32", 33)):
        with pytest.raises(FingerprintError) as caught:
            open_archive(address, other)
        assert caught.value.code == "fingerprint.analyser"


def test_there_is_none_until_somebody_says_what_it_holds(address: str) -> None:
    with pytest.raises(ExternalError, match="holds no archive yet"):
        open_archive(address)
    open_archive(address, Identity("x", DIMENSION, schema=1)).close()


def test_a_newer_layout_is_refused(address: str) -> None:
    open_archive(address, Identity("x", DIMENSION, schema=2)).close()
    with pytest.raises(SchemaVersionError, match="upgrade ebbtide"):
        open_archive(address, Identity("x", DIMENSION))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("redis://localhost/0", "no archive is reached by redis://"),
        ("chroma://localhost/team", "chroma://host:port/collection"),
        ("chroma://localhost:99999/team", "chroma://host:port/collection"),
        ("chroma://localhost:80/a/b", "chroma://host:port/collection"),
        ("chroma://localhost:80/..", "chroma://host:port/collection"),
        ("chroma://[::1/team", "chroma://host:port/collection"),
        ("chroma://127.0.0.1:1/team", "cannot be used"),
        ("postgresql://nobody:secret@127.0.0.1:1/none", "cannot be used"),
        ("postgresql://127.0.0.1:1/none?nonsense=1", "cannot be read"),
        ("/no/such/folder/archive.db", "cannot be used"),
        ("postgresql://\ud800/none", "cannot be read"),
        ("x" * 300, "cannot be used"),
        ("a\0b", "cannot be used"),
        ("\ud800", "cannot be used"),
        # SQLite's databases that end with the connection.
        (":memory:", "name a file"),
        ("", "name a file"),
    ],
)
def test_addresses_that_lead_nowhere(wrong: str, words: str) -> None:
    for package in ("psycopg", "chromadb"):
        pytest.importorskip(package)
    with pytest.raises(EbbtideError, match=words) as caught:
        open_archive(wrong, IDENTITY)
    assert caught.value.code in ("input.field", "archive.unavailable")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("address", [None, 5, b"archive.db"])
def test_an_address_is_text(address: Any) -> None:
    with pytest.raises(InputError, match="address is text") as caught:
        open_archive(address, IDENTITY)
    assert caught.value.code == "input.field"


@pytest.mark.parametrize(("name", "code"), [("\ud800", "input.unicode"), (5, "input.field")])
def test_a_name_is_text_that_can_be_stored(archive: Archive, name: Any, code: str) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: archive.put(name, []),
        lambda: archive.get(name, [1]),
        lambda: archive.page(name, 0, 1),
        lambda: archive.search(vector("x"), 1, namespaces=[name]),
        lambda: archive.delete(name, [1]),
        lambda: archive.delete_namespace(name),
        lambda: archive.count(name),
        lambda: archive.cursor(name),
        lambda: archive.set_source(name, Source()),
        lambda: archive.ids(name, 0, 1),
        lambda: archive.inventory(name),
        lambda: archive.put("ana", [replace(record(0), writer=name)]),
    ]
    for call in calls:
        with pytest.raises(InputError) as caught:
            call()
        assert caught.value.code == code
    assert archive.count() == 0


def test_filters_are_a_mapping(archive: Archive) -> None:
    wrong: Any = "speaker"
    with pytest.raises(InputError, match="filters must be a mapping, not str"):
        archive.search(vector("x"), 1, filters=wrong)
