"""The analysis cache: the same results, read once."""

from __future__ import annotations

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


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.db").write_text("not a database, and long enough to be read as one" * 50)
    with pytest.raises(StoreError, match="analysis cache") as caught:
        AnalysisCache(tmp_path / "c.db", facts="a", passages="b")
    assert caught.value.code == "store.open"


def test_a_memory_is_the_same_with_and_without_it(tmp_path: Path) -> None:
    turns = [{"text": "I moved to Porto in May.", "speaker": "Ana"}, {"text": "Nice!"}] * 2
    config = Config().replace(nlp={"analysis_cache": str(tmp_path / "c.db")})
    digests = set()
    for settings in (Config(), config, config):
        with Memory.in_memory(config=settings) as memory:
            memory.add_many(turns)
            digests.add(memory.digest())
    assert len(digests) == 1
