"""Windows of recall: what is beside the point does not part a question and its answer."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebbtide import Config, Memory

QUESTION = "Which harbour?"


ASIDES = ("", "beach", "rain", "pigeon")


class Topics:
    """One axis for each of the asides, one for everything else."""

    dimension = 8
    fingerprint = "topics"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        axes = np.eye(self.dimension, dtype=np.float32)
        return axes[[max(n for n, word in enumerate(ASIDES) if word in text) for text in texts]]


def told(*remarks: str, before: int = 30) -> list[dict[str, Any]]:
    """Talk, a question, remarks, the answer, more talk."""
    talk = [f"talk number{n}" for n in range(before)]
    rest = ["the northern one", "fine then", "on we go"]
    return [{"text": text} for text in (*talk, "the harbour question", *remarks, *rest)]


def beside(memory: Memory, text: str) -> float:
    """BM25 of the best neighbour of a turn, weighed."""
    rows = memory.trace(QUESTION)["candidates"]
    ids = {t.interaction_id for t in memory.turns() if t.text == text}
    (row,) = [r for r in rows if r["interaction_id"] in ids]
    return float(row["terms"].get("bm25_neighbours", 0.0))


def by_vectors(stub: Config) -> Config:
    """Nothing is a remark by its words."""
    return stub.with_embedder(Topics()).replace(ranking={"remark": 0.0})


def test_remarks_between_are_stepped_over(stub: Config) -> None:
    config = by_vectors(stub)
    with Memory.in_memory(config=config) as memory:
        memory.add_many(told("beach", "rain"))
        assert beside(memory, "the northern one") > 0
    plain = config.replace(retrieval={"aside_below": 0.0})
    with Memory.in_memory(config=plain) as memory:
        memory.add_many(told("beach", "rain"))
        assert beside(memory, "the northern one") == 0


def test_in_a_small_memory_nothing_is(stub: Config) -> None:
    with Memory.in_memory(config=by_vectors(stub)) as memory:
        memory.add_many(told("beach", "rain", before=23))
        assert len(memory) == 29
        assert beside(memory, "the northern one") == 0
        memory.add("and on")
        assert beside(memory, "the northern one") > 0


def test_what_is_taken_up_is_no_remark(stub: Config) -> None:
    with Memory.in_memory(config=by_vectors(stub)) as memory:
        memory.add_many(told("beach one", "beach two"))
        assert beside(memory, "the northern one") == 0, "they speak to each other"


def test_restarts_and_erased_turns_leave_no_trace(stub: Config, tmp_path: Path) -> None:
    """What is kept beside the turns is what a new start makes of them."""
    config = stub.replace(retrieval={"aside_below": 1.0, "aside_margin": -0.02})
    draw = random.Random(4)
    words = ["port", "tea", "garden", "cat", "log", "harbour", "plan", "friday"]
    path = tmp_path / "memory.db"

    def asked(memory: Memory) -> list[dict[str, Any]]:
        rows = memory.trace("which port and garden harbour", limit=50)["candidates"]
        return [{key: row[key] for key in ("interaction_id", "terms")} for row in rows]

    for round_ in range(4):
        with Memory.open(path, config=config) as memory:
            for n in range(16):
                text = " ".join(draw.sample(words, 3))
                memory.add(f"{text} {round_} {n}", session_id=draw.choice("aab"))
            ids = [turn.interaction_id for turn in memory.turns()]
            for number in draw.sample(ids, 4):
                memory.delete(number)
            before = asked(memory)
        with Memory.open(path, config=config) as memory:
            assert asked(memory) == before
