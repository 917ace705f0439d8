"""A small memory in which everything that the page shows has happened."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ebbtide import Config, Memory
from ebbtide.inspection import gather

SCRIPT = '<script>alert("turn")</script> & <b>bold</b>'
QUESTIONS = ["port is v3", "garden </script><!-- cat"]


@pytest.fixture
def quick(stub: Config) -> Config:
    """Turns fade within some thirty others, and few of them fit the budget."""
    return stub.replace(temporal_decay={"lambda_base": 0.15}, capacity={"token_budget": 240})


def turns(count: int = 70) -> list[dict[str, Any]]:
    texts = [
        "the port is v1",
        "tea in the garden with the cat",
        "thanks",
        "we deploy on friday and the log is long, so the plan is to move it to monday morning",
    ]
    said = [
        {
            "content": texts[place % len(texts)],
            "name": "Ana" if place % 2 == 0 else "Ole",
            "id": f"s:{place}",
            "session_id": f"s{place // 20}",
            "timestamp": 1_700_000_000 + place * 600,
        }
        for place in range(count)
    ]
    said[4]["content"] = "the port is v2, not v1"
    said[8]["content"] = "the port is now v3"
    said[count - 5]["content"] = SCRIPT
    said[count - 4] |= {"name": "<i>Mallory</i>", "session_id": '"><svg onload=x>'}
    return said


@pytest.fixture
def memory(quick: Config) -> Iterator[Memory]:
    with Memory.in_memory(config=quick) as opened:
        opened.add_many(turns())
        opened.relate(60, "conflicts_with", 51)
        opened.relate(62, "invalidates", 61)
        yield opened


@pytest.fixture
def data(memory: Memory) -> dict[str, Any]:
    return gather(memory, questions=QUESTIONS, store="memory.db")
