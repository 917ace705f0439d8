"""The engine archives the same turns in the same order as the paper's plain loop."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference.engine import Reference, recorded_from
from reference.stand_ins import scripted

from ebbtide import Config, Memory, WriteReport


def check(config: Config, turns: list[dict[str, Any]]) -> list[WriteReport]:
    with Memory.in_memory(config=config) as memory:
        reports = [memory.add(**turn) for turn in turns]
        lives = [memory.explain(i) for i in range(len(turns))]
        states = [turn.state for turn in memory.turns()]
        left = memory.stats()["active_tokens"]
    reference = Reference(config.to_dict())
    expected = reference.replay([recorded_from(life) for life in lives])
    found = [[(e.interaction_id, e.reason) for e in report.evicted] for report in reports]
    assert found == expected
    assert [i for i, state in enumerate(states) if state == "active"] == reference.active
    assert left == reference.tokens()
    budget = config["capacity"]["token_budget"]
    assert reports[-1].over_budget_tokens == max(0, left - budget)
    return reports


@given(
    numbers=st.lists(st.integers(0, 400), min_size=1, max_size=70),
    preset=st.sampled_from(["default", "paper"]),
    policy=st.sampled_from(["keep", "evict_lowest"]),
    budget=st.sampled_from([1, 5, 20, 60, 120, 256, 4096]),
    protect=st.sampled_from([None, 0, 1, 3]),
    every=st.sampled_from([1, 2, 5]),
    decay=st.sampled_from([0.0, 0.035, 0.3]),
    healthy=st.sampled_from([0.5, 0.75]),
)
@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_random_conversations(
    stub: Config,
    numbers: list[int],
    preset: str,
    policy: str,
    budget: int,
    protect: int | None,
    every: int,
    decay: float,
    healthy: float,
) -> None:
    capacity: dict[str, Any] = {
        "token_budget": budget,
        "when_only_healthy": policy,
        "pruning_frequency_x": every,
    }
    if protect is not None:
        capacity["protect_last"] = protect
    config = stub.on_preset(preset).replace(
        capacity=capacity,
        temporal_decay={"lambda_base": decay},
        memory_tiers={"healthy_min": healthy, "unstable_max": 0.45},
    )
    check(config, [{**scripted(n), "external_id": None} for n in numbers])


@pytest.mark.parametrize("budget", [64, 256, 1024])
@pytest.mark.parametrize("preset", ["default", "paper"])
def test_a_long_conversation_meets_every_case(stub: Config, preset: str, budget: int) -> None:
    config = stub.on_preset(preset).replace(capacity={"token_budget": budget})
    reports = check(config, [scripted(n) for n in range(300)])
    reasons = {e.reason for report in reports for e in report.evicted}
    assert "budget" in reasons
    if budget == 1024:
        assert "hard_kill" in reasons
    assert any(report.superseded for report in reports)


def test_only_healthy_entries_left(stub: Config) -> None:
    """Over the budget with healthy entries alone: kept and reported, or the lowest leaves."""
    for policy in ("keep", "evict_lowest"):
        config = stub.replace(
            capacity={"token_budget": 40, "when_only_healthy": policy},
            memory_tiers={"critical_max": 0.001, "unstable_max": 0.002, "healthy_min": 0.003},
            temporal_decay={"lambda_base": 0.0, "hard_kill_threshold": 0.0},
        )
        reports = check(config, [scripted(n) for n in range(20)])
        over = sum(report.over_budget_turns for report in reports)
        evicted = sum(len(report.evicted) for report in reports)
        assert (over > 10 and evicted == 0) if policy == "keep" else (over < 5 and evicted > 10)
