"""A long memory is opened by two threads: it is the same, and what is damaged is said."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from reference.stand_ins import scripted

from ebbtide import Config, Memory, StoreError

TURNS = 1300
"""More than two of the batches that one thread hands to the other."""
QUESTIONS = ("what is the port?", "which tea", "the deploy plan on friday")


def long_store(path: Path, config: Config) -> Path:
    with Memory.open(path, config=config) as memory:
        memory.add_many(scripted(n) for n in range(TURNS))
        memory.delete(700)
    return path


def answers(memory: Memory) -> list[list[tuple[int | None, float]]]:
    found = [memory.retrieve(question, limit=20) for question in QUESTIONS]
    return [[(one.turn.interaction_id, one.score) for one in each] for each in found]


def test_a_long_memory_comes_back_as_it_was(stub: Config, store_path: Path) -> None:
    with Memory.in_memory(config=stub) as fresh:
        fresh.add_many(scripted(n) for n in range(TURNS))
        fresh.delete(700)
        before = fresh.digest(), answers(fresh)
        fresh.add(**scripted(TURNS))
        after = fresh.digest(), answers(fresh)
    long_store(store_path, stub)
    for _ in range(2):
        with Memory.open(store_path, config=stub) as memory:
            assert (memory.digest(), answers(memory)) == before
    with Memory.open(store_path, config=stub) as memory:
        memory.add(**scripted(TURNS))
        assert (memory.digest(), answers(memory)) == after


def test_a_damaged_turn_ends_the_opening(stub: Config, store_path: Path) -> None:
    whole = long_store(store_path, stub).read_bytes()
    for place in (3, 600, 1290):
        store_path.write_bytes(whole)
        with closing(sqlite3.connect(store_path)) as db, db:
            keys = [row[0] for row in db.execute("SELECT key FROM turn ORDER BY key")]
            db.execute("UPDATE turn SET text = 'so it is' WHERE key = ?", (keys[place],))
        with pytest.raises(StoreError, match="is not what was written"):
            Memory.open(store_path, config=stub)
