"""What recall keeps in memory changes how long it takes and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ebbtide import Config, Memory

QUESTIONS = ("Which port does the invoice service use now?", "Who is on call?", "invoice")


def answers(memory: Memory) -> list[str]:
    # Twice: the second time from what was kept.
    asked = QUESTIONS + QUESTIONS
    return [json.dumps([e.to_dict() for e in memory.retrieve(q)], default=str) for q in asked]


@pytest.mark.parametrize("megabytes", [0, 64])
def test_nothing_kept_gives_the_same(
    stub: Config, example_turns: list[dict[str, Any]], megabytes: int
) -> None:
    with Memory.in_memory(config=stub) as usual:
        usual.add_many(example_turns)
        expected = answers(usual)
    with Memory.in_memory(config=stub.replace(store={"recall_cache_mb": megabytes})) as memory:
        memory.add_many(example_turns)
        assert answers(memory) == expected


@pytest.mark.parametrize("megabytes", [0, 64])
def test_a_reader_passes_over_what_the_writer_erased(
    stub: Config, example_turns: list[dict[str, Any]], store_path: Path, megabytes: int
) -> None:
    config = stub.replace(store={"recall_cache_mb": megabytes})
    with Memory.open(store_path, config=config) as writer:
        writer.add_many(example_turns)
        with Memory.open(store_path, config=config, read_only=True) as reader:
            first = reader.retrieve(QUESTIONS[0])[0].turn.interaction_id
            writer.delete(first)
            for question in QUESTIONS:
                found = reader.retrieve(question, limit=5)
                assert found
                assert first not in [e.turn.interaction_id for e in found]
                assert [e.rank for e in found] == list(range(1, len(found) + 1))
