"""Export, load, backup and doctor: nothing is lost, and damage is told from health."""

from __future__ import annotations

import json
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference.models import EchoModel
from reference.stand_ins import HashEmbedder, scripted

from ebbtide import (
    Config,
    EbbtideError,
    InputError,
    Memory,
    NotFoundError,
    SchemaVersionError,
    Store,
    StoreError,
    Turn,
    _core,
)
from ebbtide.cli import main
from ebbtide.inputs import prepare
from integration.test_recurrence import conversation

QUESTION = "Which port does the proxy use?"


@pytest.fixture
def filled(stub: Config, store_path: Path) -> Path:
    """A store of two memories, one with deletions and a relation said by the caller."""
    config = stub.replace(capacity={"token_budget": 64})
    with Store.open(store_path, config=config) as store:
        memory = store.memory("ana")
        memory.add_many(scripted(n) for n in range(60))
        memory.add("The proxy's port is 8080.", speaker="Ana", external_id="x", metadata={"a": 1.1})
        memory.add("No, 9090.", speaker="Ana", provenance={"is_user_correction": True})
        memory.delete(7)
        memory.delete(61)
        memory.add("Good.")
        memory.relate(62, "corrects", 60)
        store.memory("anabel").add("Another memory.")
    return store_path


@pytest.fixture
def config(stub: Config) -> Config:
    return stub.replace(capacity={"token_budget": 64})


def test_a_loaded_memory_is_the_exported_one(filled: Path, config: Config, tmp_path: Path) -> None:
    out = tmp_path / "ana.jsonl"
    with Store.open(filled, config=config) as store:
        memory = store.memory("ana")
        digest, stats, rows = memory.digest(), memory.stats(), memory.export(out)
        asked = [e.to_dict() for e in memory.retrieve(QUESTION, limit=20)]
        life = memory.explain(60)
    assert rows > 60
    with Store.open(tmp_path / "other.db", config=config) as other:
        other.memory("first").add("It has the number 1 here.")
        copy = other.load(out)
        assert copy.namespace == "ana"
        assert (copy.digest(), copy.stats()) == (digest, stats)
        assert [e.to_dict() for e in copy.retrieve(QUESTION, limit=20)] == asked
        assert copy.explain(60) == life
        copy.export(tmp_path / "again.jsonl")
        assert (tmp_path / "again.jsonl").read_bytes() == out.read_bytes()
        # It goes on where it was: ids that were used stay used.
        copy.add("One more.")
        assert [t.interaction_id for t in copy.turns()][-1] == 63


def test_a_taken_name_is_refused_and_another_given(
    filled: Path, config: Config, tmp_path: Path
) -> None:
    out = tmp_path / "ana.jsonl"
    with Store.open(filled, config=config) as store:
        store.memory("ana").export(out)
        before = store.memory("ana").digest()
        with pytest.raises(InputError, match='has a memory "ana" already'):
            store.load(out)
        assert store.load(out, namespace="copy").digest() == before
        assert store.namespaces() == ["ana", "anabel", "copy"]


def damaged(lines: list[str], how: str) -> list[str]:
    row = next(i for i, line in enumerate(lines) if '"table":"derived"' in line)
    match how:
        case "cut":
            return lines[:-1]
        case "cut in a line":
            return [*lines[:5], lines[5][:20]]
        case "a row less":
            return lines[:3] + lines[4:]
        case "a bit flipped":
            return [*lines[:2], lines[2].replace("user", "usfr", 1), *lines[3:]]
        case "more after the end":
            return [*lines, lines[1]]
        case "another table":
            return [lines[0], lines[1].replace('"turn"', '"sqlite_schema"', 1), *lines[2:]]
        case "another column":
            return [lines[0], lines[1].replace('"role"', '"x) VALUES (1);--"', 1), *lines[2:]]
        case "an id past the counter":
            line = json.loads(lines[row])
            line["row"]["key"] = 2**41
            return [*lines[:row], json.dumps(line), *lines[row + 1 :]]
        case "no base64":
            line = json.loads(lines[row])
            line["row"]["facts"] = {"base64": "###"}
            return [*lines[:row], json.dumps(line), *lines[row + 1 :]]
        case "another file":
            return ['{"text": "hello"}']
        case "nothing":
            return []
        case "no JSON":
            return ["\x00\xff"]
        case "deep JSON":
            return ["[" * 100_000]
    raise AssertionError(how)


@pytest.mark.parametrize(
    "how",
    [
        "cut",
        "cut in a line",
        "a row less",
        "a bit flipped",
        "more after the end",
        "another table",
        "another column",
        "an id past the counter",
        "no base64",
        "another file",
        "nothing",
        "no JSON",
        "deep JSON",
    ],
)
def test_a_damaged_file_leaves_nothing_behind(
    filled: Path, config: Config, tmp_path: Path, how: str
) -> None:
    out = tmp_path / "ana.jsonl"
    with Store.open(filled, config=config) as store:
        store.memory("ana").export(out)
    lines = out.read_text(encoding="utf-8").splitlines()
    out.write_text("\n".join([*damaged(lines, how), ""]), encoding="utf-8")
    with Store.open(tmp_path / "other.db", config=config) as other:
        with pytest.raises(InputError) as caught:
            other.load(out)
        assert caught.value.code == "input.transcript"
        assert str(out) in str(caught.value)
        assert other.namespaces() == []


@given(cuts=st.lists(st.tuples(st.integers(0, 2**20), st.binary(max_size=6)), min_size=1))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_file_does_more_than_be_refused(
    stub: Config, tmp_path: Path, cuts: list[tuple[int, bytes]]
) -> None:
    out = tmp_path / "small.jsonl"
    out.unlink(missing_ok=True)  # what was damaged before is no export to be written over
    with Memory.in_memory(config=stub) as memory:
        memory.add("The port is 8080.", external_id="x")
        memory.export(out)
    data = bytearray(out.read_bytes())
    for place, new in cuts:
        at = place % len(data)
        data[at : at + len(new)] = new
    changed = bytes(data) != out.read_bytes()
    out.write_bytes(data)
    store = Store(
        _core.StoreHandle(None, read_only=False, holder="", synchronous_full=False),
        stub,
        read_only=False,
    )
    try:
        store.load(out)
        assert not changed
    except EbbtideError:
        assert changed
        assert store.namespaces() == []
    finally:
        store.close()


def test_a_newer_release_s_file_says_so(filled: Path, config: Config, tmp_path: Path) -> None:
    out = tmp_path / "ana.jsonl"
    with Store.open(filled, config=config) as store:
        store.memory("ana").export(out)
        text = out.read_text(encoding="utf-8")
        out.write_text(text.replace('"version":1', '"version":9', 1), encoding="utf-8")
        with pytest.raises(SchemaVersionError, match="newer release"):
            store.load(out, namespace="x")


@pytest.mark.parametrize("field", ["version", "schema", "namespace", "next_id", "rows", "sha256"])
def test_a_field_that_is_not_there_is_an_error(
    filled: Path, config: Config, tmp_path: Path, field: str
) -> None:
    out = tmp_path / "ana.jsonl"
    with Store.open(filled, config=config) as store:
        store.memory("ana").export(out)
        text = out.read_text(encoding="utf-8")
        out.write_text(text.replace(f'"{field}":', '"other":'), encoding="utf-8")
        with pytest.raises(EbbtideError):
            store.load(out, namespace="x")
        assert store.namespaces() == ["ana", "anabel"]


def test_an_export_that_fails_leaves_the_former_file(filled: Path, config: Config) -> None:
    with Memory.open(filled, namespace="ana", config=config) as memory:
        with pytest.raises(StoreError, match=r"ana\.jsonl cannot be written: .*name another"):
            memory.export(filled.parent / "no folder" / "ana.jsonl")
        folder = filled.parent / "folder"
        folder.mkdir()
        with pytest.raises(StoreError, match="cannot be written"):
            memory.export(folder)
        assert not list(filled.parent.glob("*-partial"))


def test_pending_turns_are_exported_as_pending_from_a_reader(
    filled: Path, config: Config, tmp_path: Path
) -> None:
    with Memory.open(filled, namespace="anabel", config=config) as memory:
        waiting = prepare(Turn("Waiting for its analysis."), max_chars=100)
        memory._handle.journal([waiting])
        with Memory.open(filled, namespace="anabel", config=config, read_only=True) as reader:
            reader.export(tmp_path / "x.jsonl")
        memory.flush()
        digest = memory.digest()
    with Store.open(tmp_path / "other.db", config=config) as other:
        copy = other.load(tmp_path / "x.jsonl")
        assert copy.stats()["pending"] == 1
        assert copy.digest() == digest  # which analyses first


def test_a_backup_is_one_state_of_a_store_in_use(
    stub: Config, store_path: Path, tmp_path: Path
) -> None:
    stop = threading.Event()

    def write(memory: Memory) -> None:
        n = 0
        while not stop.is_set():
            memory.add_many(scripted(i) for i in range(n, n + 10))
            n += 10

    with Store.open(store_path, config=stub) as store:
        store.memory().add_many(scripted(n) for n in range(200))
        writer = threading.Thread(target=write, args=(store.memory(),))
        writer.start()
        try:
            with Store.open(store_path, config=stub, read_only=True) as reader:
                reader.backup(tmp_path / "copy.db")
        finally:
            stop.set()
            writer.join()
        with pytest.raises(StoreError, match="there already"):
            store.backup(tmp_path / "copy.db")
        full = [t.text for t in store.memory().turns()]
    assert not (tmp_path / "copy.db-wal").exists()
    with Store.open(tmp_path / "copy.db", config=stub) as copy:
        texts = [t.text for t in copy.memory().turns()]
        assert len(texts) >= 200
        assert len(texts) % 10 == 0
        assert texts == full[: len(texts)]
        assert copy.check() == []


def test_a_backup_ends_though_others_write_all_the_time(
    stub: Config, store_path: Path, tmp_path: Path
) -> None:
    big = "word " * 400
    with Store.open(store_path, config=stub) as store:
        memory = store.memory()
        # More pages than are copied in one go, so that commits come between.
        memory.add_many(Turn(f"{big}{n}") for n in range(4_000))
        stop = threading.Event()
        written = 0

        def write() -> None:
            nonlocal written
            while not stop.is_set():
                memory.add("More.")
                written += 1

        writer = threading.Thread(target=write)
        writer.start()
        try:
            with Store.open(store_path, config=stub, read_only=True) as reader:
                before = written
                reader.backup(tmp_path / "copy.db")
                during = written - before
        finally:
            stop.set()
            writer.join()
    assert during > 0
    with Store.open(tmp_path / "copy.db", config=stub, read_only=True) as copy:
        # The state at its beginning, not one of those that came while it was copied.
        assert 4_000 <= len(copy.memory()) <= 4_000 + before + 2
        assert copy.check() == []


def changed(path: Path, *statements: str) -> None:
    """Change a store's file behind the engine's back."""
    with closing(sqlite3.connect(path)) as raw, raw:
        for statement in statements:
            raw.execute(statement)


def test_a_memory_that_cannot_be_read_again_takes_nothing_more(
    stub: Config, store_path: Path
) -> None:
    with Memory.open(store_path, config=stub) as memory:
        memory.add_many(scripted(n) for n in range(30))
        refused = "CREATE TRIGGER full BEFORE INSERT ON turn BEGIN SELECT RAISE(FAIL, 'full'); END"
        changed(store_path, DAMAGE["facts"], refused)
        # What went wrong first is told, and then that the memory is closed.
        with pytest.raises(StoreError, match="full"):
            memory.add("One more.")
        with pytest.raises(StoreError, match="open it again"):
            memory.add("One more.")
        with pytest.raises(StoreError, match="open it again"):
            memory.retrieve("What is next?")


def test_a_relation_that_cannot_be_is_refused_and_nothing_is_read(
    stub: Config, store_path: Path
) -> None:
    with Memory.open(store_path, config=stub) as memory:
        memory.add_many(scripted(n) for n in range(30))
        changed(store_path, DAMAGE["facts"])
        with pytest.raises(InputError, match="itself"):
            memory.relate(7, "supersedes", 7)
        # Read again, it would have been closed for the damage.
        assert memory.get(7).validity == "current"


DAMAGE = {
    "facts": "UPDATE derived SET facts = x'ff' WHERE key = (SELECT min(key) + 3 FROM derived)",
    "vectors": "UPDATE derived SET vectors = x'00' WHERE key = (SELECT max(key) FROM derived)",
    "orphan": "DELETE FROM turn WHERE key = (SELECT min(key) + 5 FROM turn)",
}


@pytest.mark.parametrize("what", DAMAGE)
def test_doctor_finds_and_repairs_derived_data(filled: Path, config: Config, what: str) -> None:
    with Store.open(filled, config=config) as store:
        assert store.check() == []
        texts = [t.text for t in store.memory("ana").turns()]
        store.memory("ana").reindex()
        digest = store.memory("ana").digest()
    changed(filled, DAMAGE[what])
    with Store.open(filled, config=config) as store:
        found = store.check()
        assert found
        assert all(f.repairable for f in found)
        assert store.repair() == []
        if what != "orphan":
            assert [t.text for t in store.memory("ana").turns()] == texts
            assert store.memory("ana").digest() == digest


EMPTY = {"token_vector", "assessment", "writing", "wording"}
"""Tables that no stand-in for the models fills without a language model."""


def gathered(config: Config, path: Path) -> Config:
    """A memory with rows in every other table; returns its settings."""
    config = config.replace(
        policy={
            "gate": "rpe",
            "consolidation": "recurrence",
            "recurrence": {"theta_sim": 0.6, "theta_count": 3},
        }
    )
    with Store.open(path, config=config) as store:
        memory = store.memory("all")
        memory.add_many(conversation(20))
        memory.add_many(scripted(n) for n in range(60))
        memory.add_many(
            {"text": f"The cake is v{n}. lemon sugar oven {n}", "external_id": f"c{n}"}
            for n in range(12)
        )
        memory.relate(40, "corrects", 3)
    return config


def tables(path: Path) -> list[str]:
    with sqlite3.connect(path) as raw:
        found = raw.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1")
        names = [name for (name,) in found if name not in ("namespace", "turn")]
    raw.close()
    return names


def rows_of(path: Path, table: str) -> int:
    with sqlite3.connect(path) as raw:
        (count,) = raw.execute(f"SELECT count(*) FROM {table}").fetchone()
    raw.close()
    return int(count)


def test_doctor_finds_orphans_and_strays_in_every_table(stub: Config, store_path: Path) -> None:
    config = gathered(stub, store_path)
    with Store.open(store_path, config=config) as store:
        assert store.check() == []
        memory = store.memory("all")
        memory.reindex()
        digest = memory.digest()
    for table in tables(store_path):
        if not rows_of(store_path, table):
            assert table in EMPTY, f"{table} is empty: nothing is tested"
            continue
        with sqlite3.connect(store_path) as raw:
            columns = [row[1] for row in raw.execute(f"PRAGMA table_info({table})")]
            listed = ", ".join(columns)
            for whose in ("a turn", "a memory"):
                changed = {
                    "key": "key + 100000" if whose == "a turn" else "key + (9 << 40)",
                    "newer": "newer + 100000" if whose == "a turn" else "newer + (9 << 40)",
                    "older": "older + 200000" if whose == "a turn" else "older + (9 << 40)",
                    "namespace": "namespace" if whose == "a turn" else "namespace + 9",
                    "external_id": "external_id || 'x'",
                }
                if whose == "a turn":
                    changed["id"] = "id + 1000"
                values = ", ".join(changed.get(c, c) for c in columns)
                if whose == "a turn" and not {"key", "older"} & set(columns):
                    continue
                raw.execute(f"INSERT INTO {table} ({listed}) SELECT {values} FROM {table} LIMIT 1")
        raw.close()
        with Store.open(store_path, config=config) as store:
            found = store.check()
            assert any(f.namespace is None and table in f.what for f in found), table
            if {"key", "older"} & set(columns):
                assert any(f.interaction_id is not None for f in found), table
            assert all(f.repairable for f in found), found
            assert store.repair() == []
            assert store.memory("all").digest() == digest, table


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("assessment", "utility = 0.5"),
        ("writing", "text = 'It never went on.'"),
        ("wording", "text = 'Fact: none'"),
    ],
)
def test_doctor_tells_what_a_language_model_never_said(
    stub: Config, store_path: Path, table: str, change: str
) -> None:
    recurrence = {"theta_sim": 0.6, "theta_count": 3, "writer": "llm"}
    config = stub.replace(
        policy={
            "gate": "rpe",
            "rpe": {"utility": "llm"},
            "consolidation": "recurrence",
            "recurrence": recurrence,
        }
    )
    with Memory.open(store_path, config=config, llm=EchoModel()) as memory:
        memory.add_many(conversation(20))
    with closing(sqlite3.connect(store_path)) as raw:
        row = f"SELECT rowid FROM {table} LIMIT 1" if table == "assessment" else None
        where = f"rowid = ({row})" if row else "1"
        assert raw.execute(f"UPDATE {table} SET {change} WHERE {where}").rowcount
        raw.commit()
    with Store.open(store_path, config=config) as store:
        found = store.check()
        assert {f.what for f in found} == {"what a language model said is not what was written"}
        assert all(f.repairable for f in found)
        assert store.repair() == []
    with Memory.open(store_path, config=config, llm=EchoModel()) as memory:
        assert len(list(memory.turns())) == len(conversation(20))


def test_doctor_tells_a_changed_row_of_any_table(stub: Config, store_path: Path) -> None:
    config = gathered(stub, store_path)
    with Store.open(store_path, config=config) as store:
        memory = store.memory("all")
        memory.reindex()
        digest = memory.digest()
    for table in tables(store_path):
        if not rows_of(store_path, table):
            continue
        with sqlite3.connect(store_path) as raw:
            columns = {row[1]: row[2] for row in raw.execute(f"PRAGMA table_info({table})")}
            last = [c for c in columns if c != "checksum"][-1]
            value = "'x'" if columns[last] == "TEXT" else "x'00'"
            value = "7" if columns[last] in ("INTEGER", "REAL") else value
            where = next(c for c in ("key", "older", "namespace") if c in columns)
            raw.execute(
                f"UPDATE {table} SET {last} = {value} "
                f"WHERE {where} = (SELECT min({where}) FROM {table})"
            )
        raw.close()
        with Store.open(store_path, config=config) as store:
            found = store.check()
            assert found, table
            assert all(f.repairable for f in found)
            assert store.repair() == []
            if table == "lineage":  # what a caller stated is lost with it, and said so
                assert any("stated by a caller" in f.what for f in found)
                store.memory("all").relate(40, "corrects", 3)
            assert store.memory("all").digest() == digest, table


def test_a_damaged_turn_is_named_and_can_be_given_up(filled: Path, config: Config) -> None:
    with sqlite3.connect(filled) as raw:
        where = "text = 'The proxy''s port is 8080.'"
        assert raw.execute(f"UPDATE turn SET text = 'Nobody said so.' WHERE {where}").rowcount == 1
    raw.close()
    with pytest.raises(StoreError, match="turn 60 is not what was written") as caught:
        Memory.open(filled, namespace="ana", config=config)
    assert caught.value.code == "store.corrupt"
    with Store.open(filled, config=config) as store:
        digest = store.memory("anabel").digest()
        found = store.check()
        (one,) = found
        assert (one.namespace, one.interaction_id, one.repairable) == ("ana", 60, False)
        assert store.repair() == found
        with pytest.raises(StoreError, match="turn 60"):
            store.memory("ana")
        assert store.repair(erase_damaged_turns=True) == []
        memory = store.memory("ana")
        assert "Nobody" not in str(list(memory.turns()))
        assert len(memory) == 60
        assert store.memory("anabel").digest() == digest


def test_a_flipped_page_is_found(filled: Path, config: Config) -> None:
    data = bytearray(filled.read_bytes())
    page = 4096 * (len(data) // 4096 // 2)
    data[page : page + 512] = bytes(255 - b for b in data[page : page + 512])
    filled.write_bytes(data)
    with Store.open(filled, config=config, read_only=True) as store:
        found = store.check()
    assert any("SQLite" in f.what or "malformed" in f.what for f in found)
    assert any(not f.repairable for f in found)


def test_from_the_command_line(
    filled: Path, config: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*words: object) -> int:
        with pytest.raises(SystemExit) as end:
            main([str(w) for w in words])
        return int(end.value.code or 0)

    copy = tmp_path / "copy.db"
    assert run("backup", "--store", filled, copy) == 0
    assert run("doctor", "--store", copy) == 0
    assert "nothing wrong in 2 memories" in capsys.readouterr().out
    with sqlite3.connect(copy) as raw:
        raw.execute(DAMAGE["facts"])
    raw.close()
    assert run("doctor", "--store", copy) == 1
    assert "can be put right" in capsys.readouterr().out
    # The program's own analyser is the real one: the stand-in's memories are not its to read.
    assert run("export", "--store", copy, "--namespace", "nobody", tmp_path / "x.jsonl") == 1
    assert "nobody" in capsys.readouterr().err
    assert run("load", "--store", copy, tmp_path / "x.jsonl") == 1
    assert "cannot be read" in capsys.readouterr().err
    assert run("doctor", "--store", copy) == 1  # a store that was there stays


def test_a_file_that_is_refused_leaves_no_store(
    filled: Path, config: Config, tmp_path: Path
) -> None:
    whole, cut = tmp_path / "ana.jsonl", tmp_path / "cut.jsonl"
    with Store.open(filled, config=config) as store:
        store.memory("ana").export(whole)
    cut.write_bytes(whole.read_bytes()[:-200])
    (tmp_path / "new").mkdir()
    made = tmp_path / "new" / "other.db"
    for file in (tmp_path / "missing.jsonl", cut):
        with pytest.raises(SystemExit) as end:
            main(["load", "--store", str(made), str(file)])
        assert end.value.code == 1
        assert list(made.parent.iterdir()) == []
    # Another model's is kept, for reindexing; so is a store that was there, though empty.
    with pytest.raises(SystemExit) as end:
        main(["load", "--store", str(made), str(whole)])
    with Store.open(made, read_only=True) as store:
        assert store.namespaces() == ["ana"]
    empty = tmp_path / "new" / "empty.db"
    Store.open(empty, config=config).close()
    with pytest.raises(SystemExit):
        main(["load", "--store", str(empty), str(cut)])
    assert empty.exists()


def test_another_model_s_export_is_kept_for_reindexing(
    filled: Path, config: Config, tmp_path: Path
) -> None:
    out = tmp_path / "ana.jsonl"
    with Store.open(filled, config=config) as store:
        store.memory("ana").export(out)
    other = config.with_embedder(HashEmbedder(16))
    with Store.open(tmp_path / "other.db", config=other) as store:
        with pytest.raises(StoreError, match="reindex"):
            store.load(out)
        assert store.namespaces() == ["ana"]
    with Memory.open(
        tmp_path / "other.db", namespace="ana", config=other, reindexing=True
    ) as memory:
        assert memory.reindex() == len(memory)


def test_the_ids_of_discarded_turns_are_kept_and_exported(stub: Config, tmp_path: Path) -> None:
    config = stub.replace(
        capacity={"token_budget": 30, "protect_last": 1}, ltm={"storage_type": "null"}
    )
    turns = [{"text": f"turn {n} about the garden", "external_id": f"e{n}"} for n in range(12)]
    with Store.open(tmp_path / "a.db", config=config) as store:
        memory = store.memory("ana")
        memory.add_many(turns)
        assert len(memory) < 12
        memory.export(tmp_path / "ana.jsonl")
        digest = memory.digest()
    with Store.open(tmp_path / "b.db", config=config) as store:
        assert store.load(tmp_path / "ana.jsonl").digest() == digest
        assert store.check() == []
        for _ in range(2):
            assert store.memory("ana").add_many(turns).duplicates == 12
            assert store.memory("ana").digest() == digest
            store.repair()


def test_a_repair_keeps_the_ids_of_discarded_turns(stub: Config, store_path: Path) -> None:
    config = stub.replace(
        capacity={"token_budget": 30, "protect_last": 1}, ltm={"storage_type": "null"}
    )
    turns = [{"text": f"turn {n} about the garden", "external_id": f"e{n}"} for n in range(12)]
    with Store.open(store_path, config=config) as store:
        memory = store.memory("ana")
        memory.add_many(turns)
        memory.forget(ids=[turn.interaction_id for turn in memory.turns()])
    with closing(sqlite3.connect(store_path)) as raw:
        raw.execute("UPDATE namespace SET next_id = 1 << 41")
        raw.commit()
    with Store.open(store_path, config=config) as store:
        assert store.repair() == []
        memory = store.memory("ana")
        memory.add("The first number is given again.", external_id="x")
        assert memory.get(0).external_id == "x"
        assert memory.add_many(turns[:2]).duplicates == 2
        for call in (memory.get, memory.delete):
            with pytest.raises(NotFoundError, match="discarded"):
                call(external_id="e0")
        assert memory.get(0).external_id == "x"
