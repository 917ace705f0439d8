"""Erasing is exact: one turn, one memory, nowhere left on disk, nothing else touched."""

from __future__ import annotations

import logging
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from reference.stand_ins import scripted

from ebbtide import Config, InputError, Memory, NotFoundError, Store, StoreError, Turn

SECRET = "zebrafish"
NAMES = [
    "foo",
    "foobar",
    "fo",
    "foo%",
    "%",
    "foo_",
    "f__",
    "_",
    "o'brien",
    "a/b",
    "a",
    "../x",
    "é",
    "",
]


def on_disk(path: Path, needle: str) -> list[str]:
    """Files beside the store that hold these bytes."""
    return [
        entry.name
        for entry in path.parent.iterdir()
        if entry.is_file() and needle.encode() in entry.read_bytes()
    ]


def filled(path: Path, config: Config) -> Memory:
    memory = Memory.open(path, config=config)
    memory.add_many(scripted(n) for n in range(30))
    memory.add(
        f"The {SECRET} is v1. call the {SECRET}keeper",
        role="user",
        speaker=f"{SECRET} Smith",
        session_id=f"{SECRET}-session",
        external_id=f"{SECRET}-id",
        metadata={SECRET: f"{SECRET}meta"},
        provenance={"source_turn": f"{SECRET}-source"},
        timestamp="2024-02-01",
    )
    memory.add_many(scripted(n) for n in range(30, 60))
    return memory


@pytest.mark.parametrize("budget", [64, 4096])
def test_a_deleted_turn_is_nowhere(stub: Config, store_path: Path, budget: int) -> None:
    config = stub.replace(capacity={"token_budget": budget})
    memory = filled(store_path, config)
    assert on_disk(store_path, SECRET)
    question = f"{SECRET} {SECRET}keeper"
    assert any(SECRET in e.turn.text for e in memory.retrieve(question, limit=10))
    memory.delete(external_id=f"{SECRET}-id")

    assert on_disk(store_path, SECRET) == []
    for opened in (memory, None):
        if opened is None:
            memory.close()
            assert on_disk(store_path, SECRET) == []
            opened = Memory.open(store_path, config=config)
        assert len(opened) == 60
        assert not any(SECRET in e.turn.text for e in opened.retrieve(question, limit=60))
        assert SECRET not in str(opened.trace(f"keeper {question}")["candidates"])
        assert SECRET not in opened.render_context("call the keeper", max_tokens=4000)
        assert SECRET not in str(list(opened.turns()))
        assert SECRET not in str([opened.explain(t.interaction_id) for t in opened.turns()])
        for call in (
            lambda o=opened: o.get(30),
            lambda o=opened: o.explain(30),
            lambda o=opened: o.history(30),
            lambda o=opened: o.delete(30),
            lambda o=opened: o.get(external_id=f"{SECRET}-id"),
        ):
            with pytest.raises(NotFoundError) as caught:
                call()
            assert caught.value.code == "not_found.turn"
    digest = opened.digest()
    opened.close()

    raw = sqlite3.connect(store_path)
    raw.execute("VACUUM")
    raw.close()
    with Memory.open(store_path, config=config) as memory:
        assert memory.digest() == digest
        assert memory.retrieve("call the keeper", limit=3)
        report = memory.add("a new turn", external_id=f"{SECRET}-id")
        assert report.accepted == 1
        assert memory.get(external_id=f"{SECRET}-id").interaction_id == 61


def test_every_table_forgets_the_turn(stub: Config, store_path: Path) -> None:
    memory = filled(store_path, stub)
    memory.relate(40, "corrects", 30)
    memory.delete(30)
    memory.close()
    raw = sqlite3.connect(store_path)
    namespace = raw.execute("SELECT id FROM namespace").fetchone()[0]
    key = namespace << 40 | 30
    tables = [row[0] for row in raw.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    assert len(tables) >= 6
    for table in tables:
        columns = [row[1] for row in raw.execute(f"PRAGMA table_info({table})")]
        for column in set(columns) & {"key", "older", "newer"}:
            count = raw.execute(f"SELECT count(*) FROM {table} WHERE {column} = ?", [key])
            assert count.fetchone()[0] == 0, (table, column)
    raw.close()


def test_deleting_while_a_reader_has_the_store_open(stub: Config, store_path: Path) -> None:
    memory = filled(store_path, stub)
    with Memory.open(store_path, config=stub, read_only=True) as reader:
        reader.retrieve("tea", limit=5)
        memory.delete(30)
        assert on_disk(store_path, SECRET) == []
    memory.close()


READER = """
import sqlite3, sys
store = sqlite3.connect(sys.argv[1], uri=True)
for line in sys.stdin:
    store.execute(line).fetchall()
    print(flush=True)
"""


class Reader:
    """Another process with the store open: locks of one process do not keep it out."""

    def __init__(self, path: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", READER, f"{path.as_uri()}?mode=ro"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.does("SELECT count(*) FROM turn")

    def does(self, sql: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(sql, file=self._process.stdin, flush=True)
        self._process.stdout.readline()

    def begins(self) -> None:
        self.does("BEGIN")
        self.does("SELECT count(*) FROM turn")

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()


ERASING: dict[str, Callable[[Memory], object]] = {
    "delete": lambda memory: memory.delete(30),
    "forget": lambda memory: memory.forget(ids=[30]),
    "delete_all": lambda memory: memory.delete_all(),
}


@pytest.mark.parametrize("way", ERASING)
def test_a_log_that_another_reads_is_emptied_by_the_next_write(
    stub: Config, store_path: Path, caplog: pytest.LogCaptureFixture, way: str
) -> None:
    memory = filled(store_path, stub)
    with Reader(store_path) as reader, caplog.at_level(logging.WARNING, "ebbtide.erasing"):
        reader.begins()
        ERASING[way](memory)
        assert [vars(r)["event"] for r in caplog.records] == ["erase.delayed"]
        caplog.clear()
        assert on_disk(store_path, SECRET) == ["memory.db-wal"]
        memory.add("One that the reader does not wait for.")
        assert on_disk(store_path, SECRET) == ["memory.db-wal"]
        reader.does("COMMIT")
        memory.add("One more.")
        assert on_disk(store_path, SECRET) == []
        memory.delete(memory.stats()["next_id"] - 1)
        assert not caplog.records
    memory.close()


def test_a_log_that_another_read_is_emptied_by_closing(stub: Config, store_path: Path) -> None:
    memory = filled(store_path, stub)
    # It stays open to the end, so that closing does not remove the log.
    with Reader(store_path) as reader:
        reader.begins()
        memory.delete(30)
        assert on_disk(store_path, SECRET) == ["memory.db-wal"]
        reader.does("COMMIT")
        memory.close()
        assert on_disk(store_path, SECRET) == []


def test_a_log_that_a_killed_process_left_is_emptied(stub: Config, store_path: Path) -> None:
    memory = filled(store_path, stub)
    names = [f"memory.db{end}" for end in ("", "-wal")]
    left = {name: (store_path.parent / name).read_bytes() for name in names}
    memory.close()
    for name, content in left.items():
        (store_path.parent / name).write_bytes(content)
    with Memory.open(store_path, config=stub) as memory:
        memory.add("A write.")
        assert (store_path.parent / "memory.db-wal").stat().st_size == 0


def test_a_deleted_turn_restores_what_it_superseded(stub: Config) -> None:
    with Memory.in_memory(config=stub) as memory:
        memory.add("The port is v1.", speaker="Ana")
        memory.add("The port is v2.", speaker="Ana")
        assert memory.get(0).validity == "superseded"
        memory.delete(1)
        assert memory.get(0).validity == "current"
        assert memory.history(0) == [memory.get(0)]


def test_what_a_deleted_turn_superseded_may_be_superseded_by_another(
    cheap: Config, store_path: Path
) -> None:
    texts = (
        "I live in Lisbon.",
        "I live in Porto now.",
        "I no longer live in Porto, I live in Braga.",
    )
    with Memory.open(store_path, config=cheap) as memory:
        for text in texts:
            memory.add(text, speaker="Ana")
        assert [e["newer"] for e in memory.explain(0)["newer"]] == [1]
        memory.delete(1)
        assert [t.validity for t in memory.turns()] == ["superseded", "current"]
        edges, decisions = (memory.explain(0)[name] for name in ("newer", "decisions"))
        assert [e["newer"] for e in edges] == [2]
        told = [(d["kind"], d["at"], d["detail"]["by"]) for d in decisions]
        assert told == [("supersede", 2, 2)]
    with Memory.open(store_path, config=cheap) as memory:
        assert memory.explain(0)["newer"] == edges
        assert memory.explain(0)["decisions"] == decisions


def test_reindexing_keeps_what_was_stated_and_when(stub: Config, store_path: Path) -> None:
    with Memory.open(store_path, config=stub) as memory:
        memory.add("The port is v1.", speaker="Ana")
        memory.add("Hello.", speaker="Ana")
        memory.add("The port is v2.", speaker="Ana")
        memory.relate(1, "invalidates", 0)
        memory.add("The port is v3.", speaker="Ana")
        digest, life = memory.digest(), memory.explain(0)
        assert [d["kind"] for d in life["decisions"]] == ["supersede", "relate"]
        memory.reindex()
        assert memory.digest() == digest
        assert memory.explain(0) == life
    with Memory.open(store_path, config=stub) as memory:
        assert memory.explain(0) == life
        memory.delete_all()
    with sqlite3.connect(store_path) as raw:
        assert raw.execute("SELECT count(*) FROM decision").fetchone() == (0,)
    raw.close()


def test_reindexing_leaves_what_was_stated_alone(stub: Config) -> None:
    """Also where the insertion of that moment decides more than it did."""
    config = stub.replace(capacity={"token_budget": 100000, "pruning_frequency_x": 1})
    texts = ("v3. plan plan plan plan hello",) * 2 + ("v1. plan hello", "hello", "v0. plan hello")
    with Memory.in_memory(config=config) as memory:
        for text in texts:
            memory.add(f"The port is {text}" if text != "hello" else text, speaker="Ana")
        memory.relate(0, "supersedes", 1)
        memory.delete(2)
        relations = memory.explain(1)["newer"]
        for _ in range(2):
            memory.reindex()
            assert memory.stats()["decisions"]["relate"] == 1
            assert memory.explain(1)["newer"] == relations


def row_sum(*values: Any) -> int:
    """A row's checksum as the store reckons it, of whole numbers and texts."""
    sums = 0
    for value in values:
        number = isinstance(value, int)
        data = value.to_bytes(8, "little", signed=True) if number else value.encode()
        head = bytes([1 if number else 3]) + len(data).to_bytes(8, "little")
        sums = zlib.crc32(head + data, sums)
    return sums


def test_what_an_earlier_release_noted_is_left_alone_too(stub: Config, store_path: Path) -> None:
    """Its number is one that an insertion may take."""
    with Memory.open(store_path, config=stub) as memory:
        memory.add("The port is v1.", speaker="Ana")
        memory.add("The port is v2.", speaker="Ana")
        memory.relate(1, "conflicts_with", 0)
        memory.relate(1, "invalidates", 0)
        decisions = memory.explain(0)["decisions"]
        assert [d["kind"] for d in decisions] == ["supersede", "relate", "relate"]
    with sqlite3.connect(store_path) as raw:
        raw.create_function("row_sum", -1, row_sum)
        (above,) = raw.execute("SELECT min(seq) - 2 FROM decision WHERE kind = 'relate'").fetchone()
        raw.execute(
            "UPDATE decision SET seq = seq - ?1, checksum = "
            "row_sum(key & ((1 << 40) - 1), at, seq - ?1, kind, detail) WHERE kind = 'relate'",
            [above],
        )
    raw.close()
    fading = stub.replace(temporal_decay={"lambda_base": 3.0})
    with Store.open(store_path, config=fading) as store:
        assert store.check() == []
        memory = store.memory()
        assert memory.explain(0)["decisions"] == decisions
        for _ in range(2):
            memory.reindex()
            found = memory.explain(0)["decisions"]
            assert [d["kind"] for d in found] == ["supersede", "tier", "relate", "relate"]
            assert [d for d in found if d["kind"] != "tier"] == decisions
            assert store.check() == []
        memory.relate(1, "corrects", 0)
        assert memory.explain(0)["decisions"][:4] == found


def test_relations_stand_in_one_order(stub: Config, store_path: Path) -> None:
    with Memory.open(store_path, config=stub) as memory:
        memory.add_many(scripted(n) for n in range(4))
        memory.relate(3, "conflicts_with", 1)
        memory.relate(3, "conflicts_with", 0)
        life = memory.explain(3)
        stated = [e["older"] for e in life["older"] if e["by_caller"]]
        assert stated == [0, 1]
    with Memory.open(store_path, config=stub) as memory:
        assert memory.explain(3) == life


def test_relations_stated_at_one_moment_are_all_written_down(stub: Config) -> None:
    with Memory.in_memory(config=stub) as memory:
        memory.add_many({"text": f"Turn {n}."} for n in range(4))
        memory.relate(2, "conflicts_with", 1)
        memory.relate(2, "conflicts_with", 0)
        memory.delete(1)
        memory.relate(3, "conflicts_with", 0)
        stated = [d for d in memory.explain(0)["decisions"] if d["kind"] == "relate"]
        assert [d["detail"]["by"] for d in stated] == [2, 3]


def test_tiers_are_those_after_a_restart(stub: Config, store_path: Path) -> None:
    """Also where the last turns are gone, and with a reindexing that another process ends."""
    config = stub.replace(capacity={"token_budget": 400})

    def seen(memory: Memory) -> tuple[Any, ...]:
        lives = [memory.explain(turn.interaction_id)["decisions"] for turn in memory.turns()]
        return memory.stats()["tiers"], lives

    def interrupted(done: int) -> None:
        raise RuntimeError(f"after {done}")

    with Memory.open(store_path, config=config) as memory:
        memory.add_many(scripted(n) for n in range(140))
        memory.forget(ids=range(110, 140))
        memory.reindex()
        expected = seen(memory)
    with Memory.open(store_path, config=config) as memory:
        assert seen(memory) == expected
        with pytest.raises(RuntimeError, match="after 64"):
            memory.reindex(progress=interrupted)
    with Memory.open(store_path, config=config) as memory:
        memory.flush()
        assert seen(memory) == expected


def test_an_archive_file_has_a_turn_once_and_keeps_it(stub: Config, tmp_path: Path) -> None:
    path = tmp_path / "archive.jsonl"
    config = stub.replace(
        capacity={"token_budget": 60, "protect_last": 1},
        ltm={"storage_type": "file", "storage_path": str(path)},
    )
    with Memory.in_memory(config=config) as memory:
        memory.add_many(scripted(n) for n in range(20))
        lines = path.read_text().splitlines()
        assert len(lines) == len(list(memory.turns(state="archived"))) > 5
        memory.reindex()
        assert path.read_text().splitlines() == lines
        memory.add_many(scripted(n) for n in range(20, 30))
        grown = path.read_text().splitlines()
        assert len(grown) == len(list(memory.turns(state="archived"))) > len(lines)
        memory.delete_all()
        assert path.read_text().splitlines() == grown


def test_delete_all_keeps_the_counter_and_the_others(stub: Config, store_path: Path) -> None:
    with Store.open(store_path, config=stub) as store:
        ana, luis = store.memory("ana"), store.memory("luis")
        ana.add_many(scripted(n) for n in range(20))
        ana.add(f"my {SECRET}", external_id="x")
        luis.add_many(scripted(n) for n in range(20))
        digest = luis.digest()
        ana.delete_all()
        assert len(ana) == 0
        assert list(ana.turns()) == []
        assert ana.retrieve(SECRET) == []
        assert ana.render_context(SECRET) == ""
        assert ana.stats()["active_tokens"] == 0
        assert on_disk(store_path, SECRET) == []
        assert luis.digest() == digest
        assert ana.add("again", external_id="x").accepted == 1
        assert ana.get(external_id="x").interaction_id == 21
    with Store.open(store_path, config=stub) as store:
        assert store.memory("luis").digest() == digest
        assert [t.text for t in store.memory("ana").turns()] == ["again"]


def test_delete_all_gives_the_digest_of_an_empty_memory(stub: Config) -> None:
    with Memory.in_memory(config=stub) as empty, Memory.in_memory(config=stub) as emptied:
        emptied.add_many(scripted(n) for n in range(20))
        emptied.delete_all()
        assert emptied.digest() == empty.digest()


@pytest.mark.parametrize("victim", NAMES)
def test_namespaces_stay_apart(stub: Config, store_path: Path, victim: str) -> None:
    with Store.open(store_path, config=stub) as store:
        for place, name in enumerate(NAMES):
            store.memory(name).add_many(scripted(n) for n in range(place, place + 4))
            store.memory(name).add(f"only {place}word", external_id="same id")
        assert store.namespaces() == sorted(NAMES)
        before = {name: store.memory(name).digest() for name in NAMES}
        store.delete(victim)
        assert victim not in store.namespaces()
    with Store.open(store_path, config=stub) as store:
        assert store.namespaces() == sorted(set(NAMES) - {victim})
        for place, name in enumerate(NAMES):
            if name == victim:
                continue
            memory = store.memory(name)
            assert memory.digest() == before[name]
            assert memory.retrieve(f"{place}word", limit=1)[0].turn.text == f"only {place}word"
        with pytest.raises(NotFoundError) as caught:
            store.delete(victim)
        assert caught.value.code == "not_found.namespace"
        fresh = store.memory(victim)
        assert len(fresh) == 0
        assert fresh.retrieve("only word", limit=5) == []
        place = NAMES.index(victim)
        assert on_disk(store_path, f"only {place}word") == []


def test_a_deleted_namespace_is_closed(stub: Config, store_path: Path) -> None:
    with Store.open(store_path, config=stub) as store:
        memory = store.memory("ana")
        memory.add("x")
        store.delete("ana")
        with pytest.raises(StoreError) as caught:
            memory.add("y")
        assert caught.value.code == "store.closed"
        assert store.namespaces() == []


def test_a_turn_named_twice_is_refused(stub: Config) -> None:
    """Which of two names counts is nothing to guess where a turn is erased."""
    with Memory.in_memory(config=stub) as memory:
        for n in range(3):
            memory.add(f"turn {n}", external_id=f"e{n}")
        for call in (memory.delete, memory.get, memory.history, memory.explain):
            for named in (0, "e0"):
                for other in ("e2", "e0"):
                    with pytest.raises(InputError, match="not by both") as caught:
                        call(named, external_id=other)
                    assert caught.value.code == "input.field"
        assert len(memory) == 3


def test_turns_from_an_id_on_that_is_gone(stub: Config) -> None:
    with Memory.in_memory(config=stub) as memory:
        memory.add_many(scripted(n) for n in range(6))
        memory.delete(3)
        assert [turn.interaction_id for turn in memory.turns(first=3)] == [4, 5]
        assert list(memory.turns(first=6)) == []
        for wrong in (-1, True, "3"):
            with pytest.raises(InputError):
                list(memory.turns(first=wrong))  # type: ignore[arg-type]


def test_a_reader_does_not_see_the_memory_that_got_the_number_of_its_own(
    stub: Config, store_path: Path
) -> None:
    with Store.open(store_path, config=stub) as store:
        store.memory("ana").add("Mine.")
        with Memory.open(store_path, namespace="ana", config=stub, read_only=True) as reader:
            assert reader.get(0).text == "Mine."
            store.delete("ana")
            store.memory("ben").add("A secret.")
            for read in (
                lambda: reader.get(0),
                lambda: list(reader.turns()),
                lambda: reader.retrieve("What is a secret?"),
                lambda: reader.explain(0),
                reader.digest,
            ):
                with pytest.raises(NotFoundError, match="was deleted") as caught:
                    read()
                assert caught.value.code == "not_found.namespace"


def test_a_reader_has_the_history_without_what_was_erased(stub: Config, store_path: Path) -> None:
    with Memory.open(store_path, config=stub) as memory:
        memory.add_many(Turn(text) for text in ("One.", "Two.", "Three."))
        memory.relate(1, "supersedes", 0)
        memory.relate(2, "supersedes", 1)
        with Memory.open(store_path, config=stub, read_only=True) as reader:
            memory.delete(1)
            assert [turn.text for turn in reader.history(0)] == ["One.", "Three."]


def test_what_is_erased_while_all_is_read_anew_stays_erased(stub: Config) -> None:
    def forget(done: int) -> None:
        if done < 100:
            memory.delete(90)

    with Memory.in_memory(config=stub) as memory:
        memory.add_many(Turn(f"Turn {n}.") for n in range(200))
        memory.reindex(progress=forget)
        assert len(memory) == 199
        digest = memory.digest()
        memory.reindex()
        assert memory.digest() == digest
