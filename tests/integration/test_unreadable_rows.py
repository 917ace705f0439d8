"""Rows with a sound checksum that nobody can have written: told from health, never a crash."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from golden.make_golden import config as golden_config
from golden.make_golden import golden_store
from reference.stand_ins import scripted

from ebbtide import Config, InputError, Memory, Store, StoreError

TURN = 20


def blob(value: dict[str, str], change: Callable[[bytes], bytes]) -> dict[str, str]:
    return {"base64": base64.b64encode(change(base64.b64decode(value["base64"]))).decode()}


def rewritten(lines: list[str], table: str, column: str, change: Callable[[Any], Any]) -> list[str]:
    """An export with one value changed, and sums and hash that fit it."""
    out, rows = [lines[0]], 0
    for line in lines[1:-1]:
        read = json.loads(line)
        if (read["table"], read["row"].get("key")) == (table, TURN):
            read["row"][column] = change(read["row"].get(column))
        read["row"].pop("checksum", None)
        out.append(json.dumps(read))
        rows += 1
    text = "".join(f"{line}\n" for line in out)
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    return [*out, json.dumps({"end": True, "rows": rows, "sha256": sha256})]


@pytest.mark.parametrize(
    ("table", "column", "change", "says"),
    [
        ("derived", "vectors", lambda v: blob(v, lambda b: b[:8]), "vectors do not fit"),
        ("derived", "vectors", lambda v: blob(v, lambda b: b[:-1]), "vectors do not fit"),
        ("derived", "vectors", lambda v: blob(v, lambda b: b""), "vectors do not fit"),
        ("derived", "spans", lambda v: blob(v, lambda b: b * 3), "vectors do not fit"),
        ("derived", "spans", lambda v: blob(v, lambda b: b""), "vectors do not fit"),
        ("derived", "card_vectors", lambda v: blob(v, lambda b: b"abcd"), "vectors do not fit"),
        ("derived", "facts", lambda v: blob(v, lambda b: b[:5]), "facts cannot be read"),
        ("turn", "utc", lambda _: 2**63 - 1, "time"),
        ("turn", "utc", lambda _: -(2**63), "time"),
        ("turn", "tokens", lambda _: -1, "wrong kind"),
        ("turn", "metadata", lambda _: '{"a":', "metadata"),
        ("turn", "metadata", lambda _: f'{{"a": {"9" * 5000}}}', "metadata"),
        ("turn", "metadata", lambda _: "[1]", "metadata"),
        ("turn", "provenance", lambda _: "{", "provenance"),
        ("gate", "tier", lambda _: 77, "gate"),
    ],
)
def test_an_import_brings_in_nothing_that_cannot_be_read(
    stub: Config, tmp_path: Path, table: str, column: str, change: Any, says: str
) -> None:
    config = stub.replace(policy={"gate": "rpe"})
    out = tmp_path / "ana.jsonl"
    with Memory.open(tmp_path / "one.db", config=config) as memory:
        memory.add_many(scripted(n) for n in range(40))
        memory.export(out)
    lines = rewritten(out.read_text("utf-8").splitlines(), table, column, change)
    out.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    with Store.open(tmp_path / "two.db", config=config) as store:
        with pytest.raises(InputError, match=says) as caught:
            store.load(out)
        assert caught.value.code == "input.transcript"
        assert store.namespaces() == []
        assert store.memory("ana").add("It goes on.").accepted == 1


@pytest.fixture
def early(stub: Config, tmp_path: Path) -> Path:
    """A store of the first schema: no sums, so that what was damaged is not noticed."""
    path = tmp_path / "memory.db"
    shutil.copyfile(golden_store(1), path)
    return path


def changed(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute(sql).rowcount == 1
        raw.commit()


@pytest.mark.parametrize(
    "change",
    [
        "metadata = '{\"number\": '",
        "utc = 9223372036854775807",
        "utc = -62135596800000001",
        "tokens = -1",
        "text = x'ff'",
    ],
)
def test_a_turn_that_cannot_be_read_is_told_and_can_be_given_up(early: Path, change: str) -> None:
    changed(early, f"UPDATE turn SET {change} WHERE key = (1 << 40) + 5")
    with (
        Store.open(early, config=golden_config(), read_only=True) as store,
        pytest.raises(StoreError, match="turn 5 cannot be read") as caught,
    ):
        list(store.memory("ana").turns())
    assert caught.value.code == "store.corrupt"
    with Store.open(early, config=golden_config()) as store:
        found = [(f.namespace, f.interaction_id, f.repairable) for f in store.check()]
        assert found == [("ana", 5, False)]
        assert store.repair() != []
        assert store.repair(erase_damaged_turns=True) == []
        assert 5 not in [turn.interaction_id for turn in store.memory("ana").turns()]


def test_a_relation_that_there_is_not_is_told_and_given_up(early: Path) -> None:
    changed(early, "UPDATE lineage SET relation = 'befriends' WHERE by_caller = 1")
    with Store.open(early, config=golden_config()) as store:
        with pytest.raises(StoreError, match="befriends") as caught:
            store.memory("ana")
        assert caught.value.code == "store.corrupt"
        assert ["befriends" in f.what for f in store.check()] == [True]
        assert store.repair() == []
        assert store.memory("ana").get(3).validity == "current"


def test_a_number_that_is_not_finite_is_exported_as_it_is(early: Path, tmp_path: Path) -> None:
    changed(early, "UPDATE derived SET z_op = -9e999 WHERE key = (1 << 40) + 5")
    out = tmp_path / "ana.jsonl"
    with Store.open(early, config=golden_config()) as store:
        digest = store.memory("ana").digest()
        store.memory("ana").export(out)
    with Store.open(tmp_path / "two.db", config=golden_config()) as store:
        assert store.load(out).digest() == digest
        assert store.check() == []
        store.memory("ana").export(tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == out.read_bytes()


def disordered(path: Path) -> None:
    """Exchanges the last two turns of a leaf of their table."""
    with closing(sqlite3.connect(path)) as raw:
        (size,) = raw.execute("PRAGMA page_size").fetchone()
        sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'turn'"
        (page,) = raw.execute(sql).fetchone()
    data = bytearray(path.read_bytes())

    def number(at: int, length: int) -> int:
        return int.from_bytes(data[at : at + length], "big")

    while data[start := (page - 1) * size] == 0x05:  # not a leaf: on to its first child
        page = number(start + number(start + 12, 2), 4)
    assert data[start] == 0x0D
    last = start + 8 + 2 * number(start + 3, 2) - 2
    data[last - 2 : last + 2] = data[last : last + 2] + data[last - 2 : last]
    path.write_bytes(data)


def test_turns_out_of_order_are_told_and_end_the_reading(early: Path) -> None:
    disordered(early)
    with (
        Store.open(early, config=golden_config(), read_only=True) as store,
        pytest.raises(StoreError, match="out of order") as caught,
    ):
        list(store.memory("ana").turns())
    assert caught.value.code == "store.corrupt"


def test_a_damaged_file_is_not_brought_to_another_schema(early: Path) -> None:
    disordered(early)
    before = early.read_bytes()
    with pytest.raises(StoreError, match="restore a backup") as caught:
        Store.open(early, config=golden_config())
    assert caught.value.code == "store.corrupt"
    assert early.read_bytes() == before
