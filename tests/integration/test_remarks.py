"""Remarks that the talk is not about: found without the gate, ranked lower, never lost."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from ebbtide import Config, Memory

TALK = [
    "The tomatoes need more water this week.",
    "The soil in the tomato bed dries out quickly.",
    "The tomato plants get sun until the evening.",
    "Some tomatoes have yellow leaves at the bottom.",
    "The tomato seedlings by the wall grow slowly.",
    "The compost is ready for the tomato bed.",
    "Slugs ate the smaller tomato seedlings.",
    "The tomatoes by the fence carry green fruit.",
    "The garden hose for the tomatoes leaks.",
    "The tomato bed needs straw against the heat.",
    "The first tomatoes turn red already.",
    "The tomatoes taste sweet when the soil is dry.",
]
ASIDE = "the radio is far too loud again"
QUESTION = "What is too loud?"


def remarks(memory: Memory, question: str = QUESTION) -> set[str]:
    """Turns that the term takes something from."""
    rows = memory.trace(question, limit=50)["candidates"]
    of = {row["interaction_id"] for row in rows if row["terms"].get("remark", 0.0) < 0}
    return {turn.text for turn in memory.turns() if turn.interaction_id in of}


@pytest.fixture
def garden() -> Memory:
    memory = Memory.in_memory()
    memory.add_many([{"text": text, "speaker": "Ana"} for text in TALK])
    return memory


def test_what_has_nothing_to_do_with_the_talk_is_a_remark(garden: Memory) -> None:
    with garden as memory:
        memory.add(ASIDE, speaker="Ana")
        memory.add("the tomato leaves are far too dry again", speaker="Ana")
        assert remarks(memory) == {ASIDE}
        (best, *_) = memory.retrieve(QUESTION)
        assert best.turn.text == ASIDE, "asked for, it is found all the same"


def test_a_name_a_number_or_a_fact_makes_it_none(garden: Memory) -> None:
    with garden as memory:
        said = ("the radio of Mr Kovacs is too loud", "the radio is at volume 11 again")
        memory.add_many([{"text": text, "speaker": "Ana"} for text in said])
        assert remarks(memory) == set()


def test_the_first_turns_are_no_thread_yet() -> None:
    with Memory.in_memory() as memory:
        memory.add_many([{"text": text} for text in (*TALK[:9], ASIDE)])
        assert remarks(memory) == set()


def test_a_short_answer_is_none(garden: Memory) -> None:
    """Two words on the matter; of thanks any are a remark."""
    with garden as memory:
        said = ("Which tomatoes are the sweetest?", "yellow tomatoes", "thanks a lot!")
        memory.add_many([{"text": text, "speaker": "Ana"} for text in said])
        assert remarks(memory, "sweetest tomatoes") == {"thanks a lot!"}


def test_without_weight_they_are_as_any(garden: Memory) -> None:
    with garden as memory:
        memory.add(ASIDE)
        texts = [turn.text for turn in memory.turns()]
    with Memory.in_memory(config=Config().replace(ranking={"remark": 0.0})) as plain:
        plain.add_many([{"text": text} for text in texts])
        assert remarks(plain) == set()


def test_restarts_and_erased_turns_leave_no_trace(tmp_path: Path) -> None:
    """The thread follows from the turns that are there, in whatever way they went in."""
    draw = random.Random(7)
    small = [ASIDE, "my back hurts today", "there goes the doorbell", "haha, lovely", "so sleepy"]
    path = tmp_path / "memory.db"

    def asked(memory: Memory) -> list[dict[str, Any]]:
        rows = memory.trace("loud tomatoes", limit=200)["candidates"]
        return [{key: row[key] for key in ("interaction_id", "terms")} for row in rows]

    for _ in range(3):
        with Memory.open(path) as memory:
            for text in draw.sample(TALK, 10):
                memory.add(text, speaker="Ana")
                if draw.random() < 0.4:
                    memory.add(draw.choice(small), speaker="Ben")
            ids = [turn.interaction_id for turn in memory.turns()]
            for number in draw.sample(ids, 5):
                memory.delete(number)
            before = asked(memory)
            found = remarks(memory, "loud tomatoes")
        with Memory.open(path) as memory:
            assert asked(memory) == before
    assert found & set(small)
