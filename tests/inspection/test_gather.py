"""What is read from a memory: true to what explain, stats and trace say."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from ebbtide import Config, InputError, Memory
from ebbtide.inspection import gather
from ebbtide.inspection.life import Decay
from ebbtide.inspection.lineage import threads
from ebbtide.inspection.series import TIERS

from .conftest import QUESTIONS, turns


def test_every_turn_has_its_fate_and_a_reason(memory: Memory, data: dict[str, Any]) -> None:
    fates = {row["fate"] for row in data["turns"]}
    assert {"hard_kill", "budget"} <= fates
    assert fates & set(TIERS)
    for row in data["turns"]:
        life = memory.explain(row["id"])
        assert row["text"] == life["turn"]["text"]
        assert math.isclose(row["omega"], life["score"]["omega"], abs_tol=1e-4)
        if row["state"] == "active":
            assert row["fate"] == life["now"]["tier"]
            assert row["why"].startswith("In the active memory")
            assert row["left_at"] is None
        else:
            assert f"Archived after turn {row['left_at']}:" in row["why"]


def test_the_terms_of_the_score_add_up_to_omega(data: dict[str, Any]) -> None:
    for row in data["turns"]:
        total = sum(term["value"] for term in row["score"])
        assert math.isclose(1 / (1 + math.exp(-total)), row["omega_raw"], abs_tol=1e-3)


def test_the_series_end_where_the_memory_stands(memory: Memory, data: dict[str, Any]) -> None:
    series, stats = data["series"], memory.stats()
    assert series["tokens"][-1] == stats["active_tokens"]
    assert {tier: series[tier][-1] for tier in TIERS} == {
        tier: stats["tiers"].get(tier, 0) for tier in TIERS
    }
    assert sum(series["evicted"]) == stats["archived"]
    assert min(min(series[name]) for name in ("tokens", *TIERS)) >= 0


def test_the_series_are_those_that_a_replay_turn_by_turn_sees(quick: Config) -> None:
    with Memory.in_memory(config=quick) as memory:
        seen = [memory.add_many([turn]) for turn in turns()]
        series = gather(memory)["series"]
    assert series["tokens"] == [report.active_tokens for report in seen]
    for tier in TIERS:
        assert series[tier] == [report.tiers.get(tier, 0) for report in seen]


def test_a_limit_shows_the_newest_turns_and_the_same_series(
    memory: Memory, data: dict[str, Any]
) -> None:
    part = gather(memory, limit=20)
    assert part["left_out"] == 50
    assert [row["id"] for row in part["turns"]] == list(range(50, 70))
    assert part["series"]["first"] == 50
    for name in ("tokens", "evicted", *TIERS):
        assert part["series"][name] == data["series"][name][50:]


def test_a_limit_counts_turns_where_some_were_erased(memory: Memory) -> None:
    for number in (69, 66, 60):
        memory.delete(number)
    part = gather(memory, limit=10)
    assert [row["id"] for row in part["turns"]] == [57, 58, 59, 61, 62, 63, 64, 65, 67, 68]
    assert part["left_out"] == 57


def test_lineage_is_threads_with_lanes_that_do_not_overlap(data: dict[str, Any]) -> None:
    found = {tuple(thread["turns"]) for thread in data["threads"]}
    assert (51, 60) in found
    assert (61, 62) in found
    for thread in data["threads"]:
        assert thread["turns"] == sorted(thread["turns"])
        lanes: dict[int, list[tuple[int, int]]] = {}
        for edge in thread["edges"]:
            for start, end in lanes.setdefault(edge["lane"], []):
                assert edge["newer"] <= start or edge["older"] >= end
            lanes[edge["lane"]].append((edge["older"], edge["newer"]))


def test_threads_join_and_leave_out_what_is_not_there() -> None:
    def row(number: int, *older: int) -> dict[str, Any]:
        edges = [{"turn": o, "relation": "corrects", "topic": "", "by_caller": True} for o in older]
        return {"id": number, "older": edges}

    (thread,) = threads([row(1), row(2), row(3, 1), row(5, 0), row(7, 2, 3)])
    assert thread["turns"] == [1, 2, 3, 7]
    assert [(e["older"], e["newer"], e["lane"]) for e in thread["edges"]] == [
        (1, 3, 0),
        (2, 7, 1),
        (3, 7, 0),
    ]
    assert threads([]) == []


def test_questions_are_kept_as_trace_answers_them(memory: Memory, data: dict[str, Any]) -> None:
    assert [trace["question"] for trace in data["questions"]] == QUESTIONS
    for trace in data["questions"]:
        found = memory.trace(trace["question"])
        assert [row["turn"] for row in trace["evidence"]] == [
            row["turn"]["interaction_id"] for row in found["evidence"]
        ]
        assert sum(trace["fates"].values()) == len(found["candidates"])
        assert len(trace["candidates"]) + trace["left_out"] == len(found["candidates"])
        assert all(row["terms"] for row in trace["evidence"])


def test_a_question_twice_is_one_and_an_empty_one_is_refused(memory: Memory) -> None:
    assert len(gather(memory, questions=["port", "port"])["questions"]) == 1
    with pytest.raises(InputError, match="needs text"):
        gather(memory, questions=[" "])


@pytest.mark.parametrize("limit", [0, -1, True, 2.5])
def test_a_limit_is_a_whole_number(memory: Memory, limit: Any) -> None:
    with pytest.raises(InputError, match="at least 1"):
        gather(memory, limit=limit)


def test_the_data_is_json_and_the_same_each_time(memory: Memory, data: dict[str, Any]) -> None:
    again = gather(memory, questions=QUESTIONS, store="memory.db")
    assert json.dumps(again) == json.dumps(data)


def test_an_empty_memory_has_data_too(stub: Config) -> None:
    with Memory.in_memory(config=stub) as memory:
        empty = gather(memory)
    assert (empty["turns"], empty["threads"], empty["left_out"]) == ([], [], 0)


def test_a_turn_that_waits_says_so(stub: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ebbtide.pipeline.BackgroundFlush.wake", lambda self: None)
    monkeypatch.setattr("ebbtide.writing.Writing._drain", lambda self, progress=None: 0)
    with Memory.in_memory(config=stub) as memory:
        memory.add("the port is v1")
        memory.add("later", wait="journalled")
        first, second = gather(memory)["turns"]
    assert first["fate"] in TIERS
    assert (second["fate"], second["why"]) == ("pending", "It waits for its analysis.")


def test_the_gate_and_its_verdicts_are_shown(cheap: Config) -> None:
    config = cheap.replace(policy={"gate": "rpe"})
    with Memory.in_memory(config=config) as memory:
        memory.add("My sister Ana moved to Porto in May.", speaker="Joe")
        memory.add("Haha, that sounds great!", speaker="Joe")
        found = gather(memory)
    kept, skipped = found["turns"]
    assert kept["gate"]["tier"] != "skip"
    assert skipped["fate"] == "skip"
    assert skipped["why"].startswith("Kept out of recall by the gate: transient (phatic)")
    assert sum(found["series"][tier][-1] for tier in TIERS) == 1


def test_decay_is_that_of_the_engine(memory: Memory) -> None:
    decay = Decay.of(memory.config)
    for turn in memory.turns(state="active"):
        assert turn.interaction_id is not None
        life = memory.explain(turn.interaction_id)
        omega, now = life["score"]["omega"], life["now"]
        assert math.isclose(decay.effective(omega, now["newer_turns"]), now["effective"])
        assert decay.tier(now["effective"]) == now["tier"]
        whole = decay.life(omega)
        assert whole is not None
        assert decay.effective(omega, whole) < decay.floor <= decay.effective(omega, whole - 1)


def test_without_decay_nothing_ever_fades(stub: Config) -> None:
    config = stub.replace(temporal_decay={"lambda_base": 0.0})
    assert Decay.of(config).life(0.5) is None
    assert Decay.of(config).reach() is None
    with Memory.in_memory(config=config) as memory:
        memory.add_many(turns(12))
        found = gather(memory, limit=3)
    assert "never decays" in found["turns"][0]["why"]
    assert found["turns"][0]["half_life"] is None
