"""A clock that jumps, and turns that come out of the order of their times."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from reference.stand_ins import scripted

from ebbtide import Config, Memory
from faults.figures import Figures

START = datetime(2024, 1, 1, tzinfo=UTC)


def test_a_clock_that_jumps_changes_nothing(stub: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    promise = (
        "the machine's clock may jump: the state, the answers and retention do not depend on it"
    )
    test = "tests/faults/test_clock.py::test_a_clock_that_jumps_changes_nothing"
    with (
        Figures("clock", promise, test) as figures,
        Memory.in_memory(config=stub) as steady,
        Memory.in_memory(config=stub) as jumping,
    ):
        steady.add_many(scripted(n) for n in range(120))
        chance = random.Random(7)
        for n in range(120):
            moment = chance.choice(
                (0, 1, 10**18, 253_402_300_799 * 10**9, chance.randrange(10**18))
            )
            with monkeypatch.context() as patch:
                patch.setattr(time, "time_ns", lambda moment=moment: moment)
                patch.setattr(time, "time", lambda moment=moment: moment / 1e9)
                jumping.add(**scripted(n), wait=("complete", "journalled")[n % 2])
            figures.counts["jumps of the clock"] += 1
        assert jumping.digest() == steady.digest()
        question = "which port was it last week"
        assert [e.to_dict() for e in jumping.retrieve(question)] == [
            e.to_dict() for e in steady.retrieve(question)
        ]
        now = "2024-01-01T11:00:00Z"
        assert jumping.retain(max_age=1800, now=now) == steady.retain(max_age=1800, now=now)
        assert jumping.digest() == steady.digest()


@pytest.mark.parametrize("seed", range(5))
def test_turns_out_of_order_are_found_by_their_own_times(stub: Config, seed: int) -> None:
    chance = random.Random(seed)
    days = list(range(60))
    chance.shuffle(days)
    turns = [
        {
            "text": f"On day {day} the garden had {day} roses.",
            "timestamp": None if day % 17 == 0 else START + timedelta(days=day),
            "session_id": f"s{day // 10}",
        }
        for day in days
    ]
    with Memory.in_memory(config=stub) as one, Memory.in_memory(config=stub) as two:
        one.add_many(turns)
        for turn in turns:
            two.add(**turn)
        assert one.digest() == two.digest()
        stored = list(one.turns())
        assert [t.text for t in stored] == [t["text"] for t in turns]
        assert any(
            a.utc > b.utc for a, b in pairwise(stored) if a.utc is not None and b.utc is not None
        )
        since, until = START + timedelta(days=20), START + timedelta(days=29)
        found = one.retrieve("roses", limit=60, filters={"since": since, "until": until})
        assert {e.turn.text for e in found} == {
            str(t["text"]) for t in turns if t["timestamp"] and since <= t["timestamp"] <= until
        }
        gone = one.retain(max_age=timedelta(days=10), now=START + timedelta(days=40))
        assert all(t.utc is not None and t.utc < START + timedelta(days=30) for t in gone)
        assert [t.interaction_id for t in gone] == sorted(t.interaction_id or 0 for t in gone)
        left = {t.text for t in one.turns()}
        assert left == {
            str(t["text"])
            for t in turns
            if not t["timestamp"] or t["timestamp"] >= START + timedelta(days=30)
        }
