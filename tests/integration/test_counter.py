"""The counter of a memory's ids: a damaged one is told and put right, a foreign one refused."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from reference.stand_ins import scripted

from ebbtide import Config, InputError, Memory, Store, StoreError

IDS = 2**40
"""Ids lie below it."""


@pytest.fixture
def filled(stub: Config, store_path: Path) -> Path:
    """Two memories; the newest turn of the first was deleted."""
    with Store.open(store_path, config=stub) as store:
        store.memory("ana").add_many(scripted(n) for n in range(31))
        store.memory("ana").delete(30)
        store.memory("bob").add_many(scripted(n) for n in range(5))
    return store_path


def count(path: Path, change: str) -> None:
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute(f"UPDATE namespace SET {change} WHERE name = 'ana'").rowcount == 1
        raw.commit()


def test_a_counter_behind_the_turns_is_put_right(stub: Config, filled: Path) -> None:
    with Store.open(filled, config=stub) as store:
        for name in store.namespaces():
            store.memory(name).reindex()
        digests = {name: store.memory(name).digest() for name in store.namespaces()}
    count(filled, "next_id = next_id & ~4")  # 31, so 27
    with pytest.raises(StoreError, match="doctor --repair") as caught:
        Memory.open(filled, namespace="ana", config=stub)
    assert caught.value.code == "store.corrupt"
    with Store.open(filled, config=stub) as store:
        (one,) = store.check()
        assert (one.namespace, one.interaction_id, one.repairable) == ("ana", 29, True)
        assert "past the memory's counter" in one.what
        assert store.repair() == []
        assert store.memory("ana").stats()["next_id"] == 30
        assert [t.interaction_id for t in store.memory("ana").turns()] == list(range(30))
        assert store.memory("bob").digest() == digests["bob"]
        store.memory("ana").add("One more.")
        assert list(store.memory("ana").turns())[-1].interaction_id == 30


def test_a_counter_behind_is_put_right_where_turns_are_given_up(stub: Config, filled: Path) -> None:
    count(filled, "next_id = 3")
    with closing(sqlite3.connect(filled)) as raw:
        raw.execute("UPDATE turn SET text = 'Nobody said so.' WHERE key = (1 << 40) + 29")
        raw.commit()
    with Store.open(filled, config=stub) as store:
        assert len(store.repair()) == 2
        assert store.repair(erase_damaged_turns=True) == []
        assert store.memory("ana").stats()["next_id"] == 29
        assert len(store.memory("ana")) == 29


@pytest.mark.parametrize("value", [IDS, IDS + 7, 2**62])
def test_a_counter_past_every_id_is_told_and_put_right(
    stub: Config, filled: Path, value: int
) -> None:
    with Store.open(filled, config=stub) as store:
        before = store.memory("bob").digest()
    count(filled, f"next_id = {value}")
    with Memory.open(filled, namespace="ana", config=stub) as memory:
        assert len(memory) == 30
        with pytest.raises(StoreError, match="doctor --repair") as caught:
            memory.add("It would be another memory's.")
        assert caught.value.code == "store.corrupt"
    with Store.open(filled, config=stub) as store:
        (one,) = store.check()
        assert (one.namespace, one.interaction_id, one.repairable) == ("ana", None, True)
        assert "past every id" in one.what
        assert store.repair() == []
        assert store.memory("bob").digest() == before
        store.memory("ana").add("One more.")
        assert list(store.memory("ana").turns())[-1].interaction_id == 30


def test_repair_leaves_a_sound_counter(stub: Config, filled: Path) -> None:
    """An id that a deleted turn had is not given again."""
    with closing(sqlite3.connect(filled)) as raw:
        raw.execute("UPDATE derived SET facts = x'ff' WHERE key = (SELECT min(key) FROM derived)")
        raw.commit()
    with Store.open(filled, config=stub) as store:
        assert store.repair() == []
        assert store.memory("ana").stats()["next_id"] == 31


def header(lines: list[Any]) -> None:
    lines[0]["next_id"] = IDS


def header_and_turn(lines: list[Any]) -> None:
    lines[0]["next_id"] = 2**44
    next(one for one in lines if one.get("table") == "turn")["row"]["key"] = 4 * IDS + 3


def no_key(lines: list[Any]) -> None:
    last = [one for one in lines if one.get("table") == "turn"][-1]
    del last["row"]["key"]


@pytest.mark.parametrize("change", [header, header_and_turn, no_key])
def test_an_export_cannot_reach_into_another_memory(
    stub: Config, filled: Path, tmp_path: Path, change: Callable[[list[Any]], None]
) -> None:
    out = tmp_path / "bob.jsonl"
    with Store.open(filled, config=stub) as store:
        store.memory("bob").export(out)
    *lines, last = (json.loads(line) for line in out.read_text(encoding="utf-8").splitlines())
    change(lines)
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    last["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    out.write_text(f"{text}{json.dumps(last)}\n", encoding="utf-8")
    with Store.open(filled, config=stub) as store:
        digest = store.memory("ana").digest()
        with pytest.raises(InputError, match="nothing was imported") as caught:
            store.load(out, namespace="copy")
        assert caught.value.code == "input.transcript"
        assert store.namespaces() == ["ana", "bob"]
        assert store.check() == []
        assert store.memory("ana").digest() == digest
