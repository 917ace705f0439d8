"""The engine on the behaviour suite: pass rates of both presets, printed and held.

The floors lie a little under what was measured when they were set. The suite is
written against retrievers (see README.md): what it measures is how far the engine
is from reading.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tests.behaviour.baselines import load_cases, passes

from ebbtide import Memory, Turn

FLOORS = {"default": 0.32, "paper": 0.39}


@pytest.fixture(scope="module")
def verdicts() -> dict[str, dict[str, tuple[str, bool]]]:
    """For each preset and case, its family and whether it is passed."""
    found: dict[str, dict[str, tuple[str, bool]]] = {name: {} for name in FLOORS}
    for case in load_cases():
        with Memory.in_memory() as memory:
            memory.add_many(map(_turn, case["turns"]))
            for preset, results in found.items():
                evidence = memory.retrieve(
                    case["question"],
                    limit=len(case["turns"]),
                    query_time=case.get("query_time"),
                    preset=preset,
                )
                ids = [str(item.turn.external_id) for item in evidence]
                sure = evidence[0].confidence if evidence else 0.0
                results[case["name"]] = case["family"], passes(case, ids, sure)[0]
    return found


def _turn(turn: dict[str, Any]) -> Turn:
    return Turn(
        text=turn["text"],
        role=turn.get("role", "user"),
        speaker=turn.get("speaker"),
        timestamp=turn.get("timestamp"),
        session_id=turn.get("session_id"),
        external_id=turn["id"],
    )


@pytest.mark.parametrize("preset", sorted(FLOORS))
def test_pass_rate(
    preset: str,
    verdicts: dict[str, dict[str, tuple[str, bool]]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    results = verdicts[preset].values()
    passed = Counter(family for family, good in results if good)
    sizes = Counter(family for family, _ in results)
    rate = sum(passed.values()) / len(results)
    with capsys.disabled():
        families = ", ".join(f"{name} {passed[name]}/{sizes[name]}" for name in sorted(sizes))
        print(f"\nbehaviour suite, {preset}: {rate:.1%} of {len(results)} cases ({families})")  # noqa: T201
    assert rate >= FLOORS[preset]
