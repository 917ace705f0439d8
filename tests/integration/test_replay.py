"""Real conversations go through whole: every turn is active or archived."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ebbtide import Config, Memory
from ebbtide.evals.datasets import Conversation, load_conversations


@pytest.fixture(scope="module")
def conversations(data_folder: Path) -> list[Conversation]:
    return load_conversations(data_folder / "locomo" / "locomo_dev5.json.gz")


def as_mapping(turn: Any) -> dict[str, Any]:
    return {
        "text": turn.text,
        "role": turn.role,
        "speaker": turn.speaker,
        "timestamp": turn.timestamp,
        "session_id": turn.session_id,
        "external_id": turn.external_id,
    }


def replay(memory: Memory, conversation: Conversation) -> dict[str, Any]:
    turns = [as_mapping(turn) for turn in conversation.turns]
    report = memory.add_many(turns)
    assert report.accepted == len(turns) == len(memory)
    assert report.duplicates == 0
    stats = memory.stats()
    active = [turn.interaction_id for turn in memory.turns(state="active")]
    archived = [turn.interaction_id for turn in memory.turns(state="archived")]
    assert sorted(active + archived) == list(range(len(turns)))
    assert sorted(e.interaction_id for e in report.evicted) == archived
    assert (stats["active"], stats["archived"]) == (len(active), len(archived))
    assert stats["pending"] == 0
    assert stats["turns"] == len(turns)
    assert sum(stats["tiers"].values()) == len(active)
    assert stats["active_tokens"] == sum(t.tokens or 0 for t in memory.turns(state="active"))
    assert sum(stats["validity"].values()) == len(turns)
    assert [turn.text for turn in memory.turns()] == [turn["text"] for turn in turns]
    again = memory.add_many(turns)
    assert (again.accepted, again.duplicates, again.evicted) == (0, len(turns), [])
    return stats


def test_one_conversation_at_the_default_budget(conversations: list[Conversation]) -> None:
    with Memory.in_memory() as memory:
        stats = replay(memory, conversations[0])
        assert stats["decisions"]["evict_kill"] > 0
        found = memory.retrieve("When did Caroline go to the LGBTQ support group?", limit=5)
        assert "D1:3" in [item.turn.external_id for item in found]
        context = memory.render_context("When did Caroline go to the LGBTQ support group?")
        assert "[7 May 2023]" in context


@pytest.mark.long
@pytest.mark.parametrize("budget", [1024, 4096])
def test_every_conversation(conversations: list[Conversation], budget: int) -> None:
    config = Config().replace(capacity={"token_budget": budget})
    decisions: Counter[str] = Counter()
    penalised = 0
    for conversation in conversations:
        with Memory.in_memory(config=config) as memory:
            decisions.update(replay(memory, conversation)["decisions"])
            for turn in memory.turns(state="archived"):
                assert turn.interaction_id is not None
                life = memory.explain(turn.interaction_id)["decisions"]
                penalised += any(d["detail"].get("penalty", 0) > 0 for d in life)
    if budget == 1024:
        assert decisions["evict_budget"] > 0
        assert decisions["supersede"] > 0
        assert penalised > 0, "no eviction was hastened by a supersession"


@pytest.mark.parametrize("budget", [256, 1024])
def test_a_small_budget_binds(
    conversations: list[Conversation], cheap: Config, budget: int
) -> None:
    config = cheap.replace(capacity={"token_budget": budget})
    with Memory.in_memory(config=config) as memory:
        turns = [as_mapping(turn) for turn in conversations[1].turns[:200]]
        report = memory.add_many(turns)
        stats = memory.stats()
    assert stats["decisions"]["evict_budget"] > 0
    assert stats["active"] + stats["archived"] == len(turns)
    assert len(report.evicted) == stats["archived"]


def test_what_came_before_a_failing_iterator_is_kept(stub: Config) -> None:
    def turns() -> Iterator[dict[str, str]]:
        yield {"text": "one"}
        yield {"text": "two"}
        raise RuntimeError("the source broke")

    with Memory.in_memory(config=stub) as memory:
        with pytest.raises(RuntimeError, match="the source broke"):
            memory.add_many(turns())
        assert [turn.text for turn in memory.turns()] == ["one", "two"]
