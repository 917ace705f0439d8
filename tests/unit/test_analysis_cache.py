"""The analysis cache: the same results, read once."""

from __future__ import annotations

import gc
import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference.stand_ins import stub_facts

from ebbtide import Config, Memory, StoreError
from ebbtide.analysis.cache import AnalysisCache
from ebbtide.analysis.canonical import CanonicalPassage
from ebbtide.analysis.facts import CardFacts, Entity, TimeExpression, TurnFacts, TurnText

RICH = TurnFacts(
    density=0.1 + 0.2,
    sentiment=1 / 3,
    entity_count=1,
    entities=(Entity("Zoë", "PERSON", 0, 3),),
    signals=frozenset({"constraint", "correction"}),
    times=(TimeExpression("May", 3, 6, "2023-05-01", None, "month"),),
    cards=(CardFacts("fact", "zoë", "be", "late", terms=("be", "late")),),
)


def passages(seed: int) -> tuple[CanonicalPassage, ...]:
    numbers = np.random.PCG64(seed).random_raw(16).astype(np.int64)
    vector = (numbers[:8] % 60_000 - 30_000).astype(np.int16)
    tokens = (numbers % 250 - 125).astype(np.int8).reshape(2, 8)
    return (CanonicalPassage(0, 5, vector, tokens), CanonicalPassage(4, 9, vector[::-1], None))


def same(one: tuple[CanonicalPassage, ...], other: tuple[CanonicalPassage, ...]) -> bool:
    def flat(p: CanonicalPassage) -> tuple[Any, ...]:
        tokens = None if p.tokens is None else p.tokens.tolist()
        return p.start, p.end, p.vector.tolist(), p.vector.dtype, tokens

    return list(map(flat, one)) == list(map(flat, other))


def test_what_comes_back_is_what_was_read(tmp_path: Path) -> None:
    turns = [TurnText("one is two"), TurnText("one is two", speaker="Ana"), TurnText("rich")]
    made = {turn: RICH if turn.text == "rich" else stub_facts(turn) for turn in turns}
    asked: list[list[TurnText]] = []

    def read(missing: list[TurnText]) -> list[TurnFacts]:
        asked.append(missing)
        return [made[turn] for turn in missing]

    for _ in range(2):
        cache = AnalysisCache(tmp_path / "c.db", facts="a", passages="b")
        assert cache.facts([*turns, turns[0]], read) == [made[t] for t in [*turns, turns[0]]]
        texts = cache.passages(["x", "y"], lambda missing: [passages(len(t)) for t in missing])
        assert all(same(found, passages(1)) for found in texts)
        cache.close()
    assert asked == [turns]


def test_another_fingerprint_sees_nothing(tmp_path: Path) -> None:
    asked: list[int] = []

    def read(missing: list[TurnText]) -> list[TurnFacts]:
        asked.append(len(missing))
        return [stub_facts(turn) for turn in missing]

    for facts in ("a", "b", "a"):
        cache = AnalysisCache(tmp_path / "c.db", facts=facts, passages="p")
        cache.facts([TurnText("x")], read)
        cache.close()
    assert asked == [1, 1]


def test_the_file_is_let_go_with_its_last_user(tmp_path: Path) -> None:
    cache = AnalysisCache(tmp_path / "cache", facts="a", passages="b")
    database = cache._db
    del cache
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        database.execute("SELECT 1")


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.db").write_text("not a database, and long enough to be read as one" * 50)
    with pytest.raises(StoreError, match="analysis cache") as caught:
        AnalysisCache(tmp_path / "c.db", facts="a", passages="b")
    assert caught.value.code == "store.open"


def test_a_database_of_another_kind_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    for application in (0, 77):
        with closing(sqlite3.connect(path)) as database:
            database.execute(f"PRAGMA application_id = {application}")
            database.execute("CREATE TABLE IF NOT EXISTS notes (text)")
        before = path.read_bytes()
        with pytest.raises(StoreError, match="another kind"):
            AnalysisCache(path, facts="a", passages="b")
        assert path.read_bytes() == before


def facts_of(cache: AnalysisCache, texts: list[str], asked: list[str]) -> list[TurnFacts]:
    def read(missing: list[TurnText]) -> list[TurnFacts]:
        asked.extend(turn.text for turn in missing)
        return [stub_facts(turn) for turn in missing]

    return cache.facts([TurnText(text) for text in texts], read)


def test_a_damaged_entry_is_read_anew_and_mended(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    right = [stub_facts(TurnText(text)) for text in ("one", "two")]
    asked: list[str] = []
    with closing(AnalysisCache(path, facts="a", passages="b")) as cache:
        assert facts_of(cache, ["one", "two"], asked) == right
    with closing(sqlite3.connect(path)) as database, database:
        # One figure changed: still good JSON, but no longer what was read.
        for key, value in database.execute("SELECT key, value FROM facts LIMIT 1").fetchall():
            changed = value.replace(b'"entity_count": ', b'"entity_count": 1')
            assert changed != value
            database.execute("UPDATE facts SET value = ? WHERE key = ?", (changed, key))
    asked.clear()
    for left in (1, 0):
        with closing(AnalysisCache(path, facts="a", passages="b")) as cache:
            assert facts_of(cache, ["one", "two"], asked) == right
        assert len(asked) == left
        asked.clear()


def test_a_damaged_file_is_done_without(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "c.db"
    texts = [f"turn {number}" for number in range(200)]
    with closing(AnalysisCache(path, facts="a", passages="b")) as cache:
        right = facts_of(cache, texts, [])
    with path.open("r+b") as file:
        for page in range(2, path.stat().st_size // 4096):
            file.seek(page * 4096)
            file.write(b"\xff" * 512)
    asked: list[str] = []
    with closing(AnalysisCache(path, facts="a", passages="b")) as cache:
        for _ in range(2):
            assert facts_of(cache, texts, asked) == right
    assert asked == texts * 2
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert str(path) in caplog.text


@pytest.mark.parametrize("where", ["the version of its schema's form", "its schema"])
def test_a_file_with_a_damaged_schema_is_done_without(tmp_path: Path, where: str) -> None:
    path = tmp_path / "c.db"
    with closing(AnalysisCache(path, facts="a", passages="b")) as cache:
        right = facts_of(cache, ["one"], [])
    data = bytearray(path.read_bytes())
    at = 47 if where.startswith("the version") else data.index(b"CREATE TABLE")
    data[at] |= 0x80  # in the text of an error it is no letter
    path.write_bytes(data)
    asked: list[str] = []
    with closing(AnalysisCache(path, facts="a", passages="b")) as cache:
        assert facts_of(cache, ["one"], asked) == right
    assert asked == ["one"]


def test_a_busy_file_is_done_without(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ebbtide.analysis.cache._WAIT_SECONDS", 0.05)
    path = tmp_path / "c.db"
    with (
        closing(AnalysisCache(path, facts="a", passages="b")) as cache,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        asked: list[str] = []
        for _ in range(2):
            facts_of(cache, ["one"], asked)
        assert asked == ["one", "one"]
    assert len(caplog.records) == 1
    assert "locked" in caplog.text


def test_vectors_of_odd_widths_come_back_aligned(tmp_path: Path) -> None:
    def odd(texts: list[str]) -> list[tuple[CanonicalPassage, ...]]:
        vector, tokens = np.arange(7, dtype=np.int16), np.ones((3, 7), np.int8)
        return [(CanonicalPassage(0, 1, vector, tokens),) * 3 for _ in texts]

    for _ in range(2):
        with closing(AnalysisCache(tmp_path / "c.db", facts="a", passages="b")) as cache:
            (found,) = cache.passages(["x"], odd)
        assert all(same((one,), odd(["x"])[0][:1]) for one in found)
        assert all(p.vector.flags.aligned and p.vector.flags.owndata for p in found)


def test_a_memory_is_the_same_with_and_without_it(tmp_path: Path) -> None:
    turns = [{"text": "I moved to Porto in May.", "speaker": "Ana"}, {"text": "Nice!"}] * 2
    config = Config().replace(nlp={"analysis_cache": str(tmp_path / "c.db")})
    digests = set()
    for settings in (Config(), config, config):
        with Memory.in_memory(config=settings) as memory:
            memory.add_many(turns)
            digests.add(memory.digest())
    assert len(digests) == 1


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_does_without_it(tmp_path: Path) -> None:
    turns = [TurnText("one is two")]
    with closing(AnalysisCache(tmp_path / "cache.db", facts="f", passages="p")) as cache:
        cache.facts(turns, lambda missing: [stub_facts(turn) for turn in missing])
        # As if another thread had been at it.
        with cache._lock:
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                status = 1
                try:
                    read = cache.facts(turns, lambda missing: [RICH for _ in missing])
                    cache.close()
                    status = 0 if read == [RICH] else 2
                finally:
                    os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        assert cache.facts(turns, lambda missing: [RICH for _ in missing]) != [RICH]
