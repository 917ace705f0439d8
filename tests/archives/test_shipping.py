"""A memory shipped, searched, pulled and migrated: nothing lost, nothing doubled."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from reference.stand_ins import HashEmbedder, scripted

from ebbtide import (
    Config,
    ExternalError,
    FingerprintError,
    InputError,
    Memory,
    NotFoundError,
    Store,
)
from ebbtide.archives import (
    Archive,
    Identity,
    identity_of,
    migrate,
    open_archive,
    pull,
    search_archive,
    ship,
)
from ebbtide.archives.reading import Reader
from ebbtide.archives.records import BLOCK

from .conftest import BACKENDS, Fresh
from .makers import holds, record


@pytest.fixture
def config(stub: Config) -> Config:
    return stub.replace(capacity={"token_budget": 256})


@pytest.fixture
def store(config: Config, store_path: Path) -> Iterator[Store]:
    with Store.open(store_path, config=config) as opened:
        yield opened


@pytest.fixture
def archive(address: str, config: Config) -> Iterator[Archive]:
    with Memory.in_memory(config=config) as memory:
        identity = identity_of(memory)
    opened = open_archive(address, identity)
    yield opened
    opened.close()


def filled(store: Store, name: str, count: int) -> Memory:
    memory = store.memory(name)
    memory.add_many(scripted(number) for number in range(count))
    return memory


def same(archive: Archive, memory: Memory, name: str) -> bool:
    """Whether the archive holds just the memory's turns, content and all."""
    mine = {one.interaction_id: one.hash for one in Reader(memory, name, "").all()}
    theirs = {one.interaction_id: one.hash for one in archive.page(name, 0, 10**6)}
    return mine == theirs and list(mine) == memory._handle.ids().tolist()


def test_shipping_keeps_up_with_the_memory(archive: Archive, store: Store) -> None:
    memory = filled(store, "ana", 60)
    counts: list[int] = []
    done = ship(memory, archive, writer="laptop", batch_size=25, progress=counts.append)
    assert (done.shipped, done.erased, done.waiting, done.turns) == (60, 0, 0, 60)
    assert counts == [25, 50, 60]
    assert same(archive, memory, "ana")
    assert archive.get("ana", [0])[0].writer == "laptop"

    assert ship(memory, archive).shipped == 0
    memory.add_many(scripted(number) for number in range(60, 70))
    memory.relate(65, "corrects", 4)
    assert ship(memory, archive).to_dict() == {
        "namespace": "ana",
        "shipped": 10,
        "erased": 0,
        "waiting": 0,
        "turns": 70,
    }
    source = archive.source("ana")
    assert source is not None
    assert source.relations == ((65, "corrects", 4),)
    assert (source.cursor, source.next_id) == (70, 70)
    assert same(archive, memory, "ana")


def test_erasures_are_shipped(archive: Archive, store: Store) -> None:
    memory = filled(store, "ana", 40)
    ship(memory, archive)
    for number in (0, 7, 39):
        memory.delete(number)
    memory.add("after the erasure")
    done = ship(memory, archive)
    assert (done.shipped, done.erased, done.turns) == (1, 3, 38)
    assert same(archive, memory, "ana")
    memory.delete_all()
    # It may as well be another memory: whoever knows better says so.
    with pytest.raises(ExternalError, match="`ebbtide archive erase`") as caught:
        ship(memory, archive)
    assert caught.value.code == "archive.conflict"
    assert archive.count("ana") == 38
    assert archive.delete_namespace("ana") == 38
    memory.add("a new beginning")
    assert ship(memory, archive).shipped == 1
    assert archive.ids("ana", 0, 100) == [41]


def test_what_was_erased_there_comes_back(archive: Archive, store: Store) -> None:
    memory = filled(store, "ana", 30)
    ship(memory, archive)
    archive.delete("ana", [3, 4, 29])
    assert ship(memory, archive, batch_size=2).shipped == 3
    archive.delete_namespace("ana")
    assert ship(memory, archive).shipped == 30
    assert same(archive, memory, "ana")


def test_another_memory_under_the_same_name_is_refused(archive: Archive, store: Store) -> None:
    ship(filled(store, "ana", 30), archive)
    before = holds(archive)
    longer = store.memory("longer")
    longer.add_many({"text": f"something else {number}"} for number in range(50))
    shorter = filled(store, "shorter", 10)
    empty = store.memory("empty")
    for memory in (longer, shorter, empty):
        with pytest.raises(ExternalError) as caught:
            ship(memory, archive, namespace="ana")
        assert caught.value.code == "archive.conflict"
    assert holds(archive) == before
    assert ship(longer, archive).shipped == 50
    assert ship(empty, archive).turns == 0
    assert archive.namespaces() == ["ana", "longer"]


def test_another_memory_without_its_oldest_turns_is_refused(archive: Archive, store: Store) -> None:
    """It has no turn in common with what is there, and nothing there is to be erased."""
    ship(filled(store, "ana", 3), archive)
    before = holds(archive)
    other = filled(store, "ben", 30)
    for number in range(3):
        other.delete(number)
    with pytest.raises(ExternalError, match="of which this memory has none") as caught:
        ship(other, archive, namespace="ana")
    assert caught.value.code == "archive.conflict"
    assert holds(archive) == before


def test_memories_that_begin_and_end_alike_are_told_apart(archive: Archive, store: Store) -> None:
    said = ["hello", *(f"words {number}" for number in range(20)), "bye", "more", "and more"]
    memory = store.memory("ana")
    memory.add_many({"text": text} for text in said)
    ship(memory, archive)
    other = store.memory("ben")
    other.add_many({"text": text.replace("words", "things")} for text in said)
    other.delete(4)
    with pytest.raises(ExternalError, match="another turn 1 in 'ana'"):
        ship(other, archive, namespace="ana")
    assert archive.count("ana") == len(said)


def test_pulling_makes_the_same_memory(
    archive: Archive, store: Store, config: Config, tmp_path: Path
) -> None:
    memory = filled(store, "ana", 80)
    memory.add(
        "Odd \0 turn, \\0, 🦉",
        speaker="Ana",
        metadata={"deep": [1.10, None]},
        provenance={"is_user_correction": True},
    )
    memory.relate(70, "invalidates", 3)
    ship(memory, archive)
    with Store.open(tmp_path / "new.db", config=config) as new:
        done = pull(archive, new, "ana")
        assert (done.turns, done.relations) == (81, 1)
        assert done.digest == memory.digest()
        copy = pull(archive, new, "ana", into="copy")
        assert copy.digest == memory.digest()
        question = "Which port?"
        assert new.memory("copy").retrieve(question) == memory.retrieve(question)
        with pytest.raises(InputError):
            pull(archive, new, "ana")
        with pytest.raises(NotFoundError, match="there are: 'ana'"):
            pull(archive, new, "nobody")
        # It goes on where the other left off, and is the same memory to the archive.
        for one in (memory, new.memory("ana")):
            one.add("one more")
        assert ship(new.memory("ana"), archive).shipped == 1
        assert ship(memory, archive).shipped == 0


def test_pulling_keeps_ids_where_turns_were_erased(
    archive: Archive, store: Store, config: Config, tmp_path: Path
) -> None:
    memory = filled(store, "ana", 20)
    ship(memory, archive)
    for number in (0, 5, 19):
        memory.delete(number)
    ship(memory, archive)
    with Store.open(tmp_path / "new.db", config=config) as new:
        assert pull(archive, new, "ana").turns == 17
        copy = new.memory("ana")
        assert [turn.record_id for turn in copy.turns()] == [t.record_id for t in memory.turns()]
        copy.add("next")
        assert copy.get(20).text == "next"
        assert ship(copy, archive).to_dict()["shipped"] == 1


def test_anyone_may_ask_the_archive(archive: Archive, store: Store, config: Config) -> None:
    for name, fact in (("ana", "The proxy uses port 8080"), ("luis", "The cat is called Mog")):
        memory = filled(store, name, 30)
        memory.add(fact, speaker=name.title(), timestamp="2024-03-01")
        ship(memory, archive, writer=f"{name}@work")
    with Memory.in_memory(config=config) as stranger:
        first, *rest = search_archive(stranger, archive, "what is the cat called", limit=5)
        assert (first.rank, first.namespace, first.writer) == (1, "luis", "luis@work")
        assert first.turn.text == "The cat is called Mog"
        assert first.turn.interaction_id == 30
        assert first.to_dict()["turn"]["speaker"] == "Luis"
        assert len(rest) == 4
        # Both memories hold the scripted turns: equal scores are in order of name.
        found = search_archive(stranger, archive, "tea garden", limit=6)
        assert [one.namespace for one in found] == ["ana", "luis"] * 3
        only = search_archive(
            stranger, archive, "the cat", namespaces=["ana"], filters={"speaker": "ana"}, limit=99
        )
        assert {(one.namespace, one.turn.speaker) for one in only} == {("ana", "Ana")}
        with pytest.raises(InputError):
            search_archive(stranger, archive, " ")
    other = config.with_embedder(HashEmbedder(32, "another"))
    with Memory.in_memory(config=other) as stranger:
        for work in (
            lambda: search_archive(stranger, archive, "the cat"),
            lambda: ship(stranger, archive),
        ):
            with pytest.raises(FingerprintError):
                work()


def test_turns_that_wait_for_their_analysis_are_shipped_later(
    archive: Archive, store: Store, config: Config
) -> None:
    memory = filled(store, "ana", 5)
    memory._handle.journal([_journalled("later")])
    with Memory.open(
        store._handle.path() or "", namespace="ana", config=config, read_only=True
    ) as reading:
        done = ship(reading, archive)
        assert (done.shipped, done.waiting) == (5, 1)
    assert ship(memory, archive).shipped == 1
    assert same(archive, memory, "ana")


def _journalled(text: str) -> Any:
    from ebbtide.inputs import prepare
    from ebbtide.types import Turn

    return prepare(Turn(text), max_chars=100)


@pytest.mark.parametrize(("old", "new"), list(itertools.permutations(BACKENDS, 2)))
def test_migration_between_each_pair(old: str, new: str, fresh_address: Fresh) -> None:
    identity = Identity("hash-32", 32)
    source = open_archive(fresh_address(old), identity)
    for name, numbers in (("ana", range(50)), ("a\0", (0, BLOCK - 1, BLOCK, 3 * BLOCK))):
        source.put(name, [record(number, name, 1 + number % 3) for number in numbers])
    source.set_source("ana", source_with_relations := _related(source))
    target = open_archive(fresh_address(new), source.identity)
    target.put("ana", [record(number, "ana", 1 + number % 3) for number in range(10)])
    done = {one.namespace: one for one in migrate(source, target)}
    assert (done["ana"].copied, done["ana"].records) == (40, 50)
    assert (done["a\0"].copied, done["a\0"].records) == (4, 4)
    assert holds(target) == holds(source)
    assert target.source("ana") == source.source("ana") == source_with_relations
    assert target.get("ana", [1])[0].writer == "ana@home"
    # Again: nothing to do. After changes: only those.
    assert [one.copied for one in migrate(source, target)] == [0, 0]
    source.put("ana", [record(99)])
    source.delete("ana", [3])
    (again,) = migrate(source, target, namespaces=["ana"])
    assert (again.copied, again.erased, again.records) == (1, 1, 50)
    assert holds(target) == holds(source)
    source.close()
    target.close()


def _related(archive: Archive) -> Any:
    from dataclasses import replace

    source = archive.source("ana")
    assert source is not None
    return replace(source, next_id=60, relations=((4, "corrects", 2),))


def test_migration_does_not_mix_two_memories(fresh_address: Fresh) -> None:
    identity = Identity("hash-32", 32)
    source = open_archive(fresh_address("file"), identity)
    target = open_archive(fresh_address("file"), identity)
    source.put("ana", [record(number) for number in range(5)])
    target.put("ana", [record(number, text="another") for number in range(3)])
    before = holds(target)
    with pytest.raises(ExternalError) as caught:
        migrate(source, target)
    assert caught.value.code == "archive.conflict"
    target.put("ana", [record(99)])
    with pytest.raises(ExternalError):
        migrate(source, target)
    target.delete("ana", [99])
    assert holds(target) == before
    other = open_archive(fresh_address("file"), Identity("other", 32))
    with pytest.raises(FingerprintError):
        migrate(source, other)
    for opened in (source, target, other):
        opened.close()


def test_migration_does_not_mix_two_memories_without_a_common_turn(fresh_address: Fresh) -> None:
    identity = Identity("hash-32", 32)
    source = open_archive(fresh_address("file"), identity)
    target = open_archive(fresh_address("file"), identity)
    source.put("ana", [record(number) for number in range(30)])
    source.delete("ana", [0, 1, 2])
    target.put("ana", [record(number, text="another") for number in range(3)])
    before = holds(target)
    with pytest.raises(ExternalError, match="of which this memory has none") as caught:
        migrate(source, target)
    assert caught.value.code == "archive.conflict"
    assert holds(target) == before
    for opened in (source, target):
        opened.close()


def test_a_namespace_that_is_not_there_is_not_migrated(fresh_address: Fresh) -> None:
    identity = Identity("hash-32", 32)
    source = open_archive(fresh_address("file"), identity)
    target = open_archive(fresh_address("file"), identity)
    source.put("ana", [record(0)])
    with pytest.raises(NotFoundError, match="no namespace 'anna'; there are: 'ana'") as caught:
        migrate(source, target, namespaces=["ana", "anna"])
    assert caught.value.code == "not_found.namespace"
    assert target.namespaces() == []
    with pytest.raises(InputError, match="list of names"):
        migrate(source, target, namespaces="ana")
    for opened in (source, target):
        opened.close()


@pytest.mark.parametrize(("name", "code"), [("\ud800", "input.unicode"), (5, "input.field")])
def test_names_that_cannot_be_stored_are_refused(
    store: Store, config: Config, fresh_address: Fresh, name: Any, code: str
) -> None:
    memory = filled(store, "ana", 3)
    archive = open_archive(fresh_address("file"), identity_of(memory))
    for call in (
        lambda: ship(memory, archive, namespace=name),
        lambda: ship(memory, archive, writer=name),
        lambda: pull(archive, store, name),
        lambda: pull(archive, store, "ana", into=name),
    ):
        with pytest.raises(InputError) as caught:
            call()
        assert caught.value.code == code
    assert archive.namespaces() == []
    archive.close()
