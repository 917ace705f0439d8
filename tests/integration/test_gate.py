"""The RPE gate in a memory: what it keeps out, and that nothing else can tell when it ran."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from reference.stand_ins import scripted

from ebbtide import Config, Memory, Turn

SMALL_TALK = ("Thanks!", "ok, sure", "Haha nice", "yeah, right", "brb", "wow, cool")


def gated(config: Config, **rpe: Any) -> Config:
    """The gate on, for an embedder whose cosines mean little."""
    return config.replace(policy={"gate": "rpe", "rpe": rpe})


def talk(count: int) -> list[Turn | dict[str, Any]]:
    """Turns that state something, with small talk between them."""
    turns: list[Turn | dict[str, Any]] = []
    for n in range(count):
        turns.append(scripted(n))
        said = SMALL_TALK[n % len(SMALL_TALK)]
        turns.append(Turn(f"{said}", "user", speaker="Joe", external_id=f"talk-{n}"))
    return turns


def verdicts(memory: Memory, count: int) -> list[dict[str, Any]]:
    return [memory.explain(n)["gate"] for n in range(count)]


def skipped(memory: Memory, count: int) -> list[int]:
    return [n for n, v in enumerate(verdicts(memory, count)) if v["tier"] == "skip"]


def test_without_a_gate_nothing_speaks_of_one(stub: Config) -> None:
    with Memory.in_memory(config=stub) as memory:
        memory.add_many(talk(5))
        assert "gate" not in memory.explain(0)
        assert "gate" not in memory.stats()


def test_skipped_turns_are_kept_listed_and_not_recalled(stub: Config) -> None:
    with Memory.in_memory(config=gated(stub)) as memory:
        report = memory.add_many(talk(20))
        out = skipped(memory, 40)
        assert len(out) > 5
        assert len(list(memory.turns())) == len(memory) == 40
        assert [e.interaction_id for e in report.evicted if e.reason == "skip"] == out
        assert {memory.get(n).state for n in out} == {"archived"}
        found = memory.retrieve("Thanks nice cool right sure", limit=40)
        assert not {e.turn.interaction_id for e in found if e.kind != "shadow"} & set(out)
        stats = memory.stats()
        assert stats["turns"] == 40
        assert stats["gate"]["skip"] == stats["decisions"]["skip"] == len(out)
        assert stats["active"] + stats["archived"] == 40


@pytest.mark.parametrize("split", [1, 2, 7, 40])
def test_batches_and_restarts_change_nothing(stub: Config, tmp_path: Path, split: int) -> None:
    config = gated(stub, link_similarity=0.1).replace(capacity={"token_budget": 128})
    turns = talk(20)
    with Memory.in_memory(config=config) as whole:
        whole.add_many(turns, batch_size=64)
        expected = whole.digest(), verdicts(whole, 40), whole.stats()
        asked = [e.to_dict() for e in whole.retrieve("the port", limit=9)]
        assert whole.stats()["gate"]["links"] > 0
    path = tmp_path / "memory.db"
    for start in range(0, 40, split):
        with Memory.open(path, config=config) as memory:
            memory.add_many(turns[start : start + split], batch_size=3)
    with Memory.open(path, config=config) as memory:
        assert (memory.digest(), verdicts(memory, 40)) == expected[:2]
        assert memory.stats() == expected[2]
        assert [e.to_dict() for e in memory.retrieve("the port", limit=9)] == asked


def test_the_digest_knows_the_gate(stub: Config) -> None:
    digests = set()
    for config in (stub, gated(stub), gated(stub, theta_high=0.9, beta=0.3)):
        with Memory.in_memory(config=config) as memory:
            memory.add_many(talk(15))
            digests.add(memory.digest())
    assert len(digests) == 3


def test_a_conflict_surprises_and_evolves(stub: Config) -> None:
    with Memory.in_memory(config=gated(stub)) as memory:
        memory.add_many(scripted(n) for n in range(12))
        memory.add("The kettle is red", speaker="Ana")
        report = memory.add("The kettle is blue", speaker="Ana")
        verdict = memory.explain(13)["gate"]
        assert report.superseded == [12]
        assert verdict["conflict"] is True
        assert verdict["surprise"] >= 0.9
        assert (verdict["tier"], verdict["lifecycle"]) == ("full_evolution", "persistent")
        assert 12 in [link["interaction_id"] for link in verdict["links"]]
        assert memory.explain(12)["gate"]["overlay"]["kettle"] == [13]


def test_nothing_evolves_while_the_memory_warms_up(stub: Config) -> None:
    with Memory.in_memory(config=gated(stub)) as memory:
        memory.add_many(talk(10))
        tiers = [v["tier"] for v in verdicts(memory, 20)]
        assert "full_evolution" not in tiers[:10]
        assert "full_evolution" in tiers[10:]


def test_the_fallback_reaches_the_newest_skipped_turns(stub: Config) -> None:
    config = gated(stub, fallback_below=1.0, fallback_similarity=-1.0, shadow_size=4)
    with Memory.in_memory(config=config) as memory:
        memory.add_many(talk(20))
        out = skipped(memory, 40)
        assert memory.stats()["gate"]["shadow"] == 4
        found = memory.retrieve("wow cool thanks", limit=8)
        shadow = [e for e in found if e.kind == "shadow"]
        assert len(found) == 8
        assert 0 < len(shadow) <= 3
        assert found[-len(shadow) :] == shadow
        assert {e.turn.interaction_id for e in shadow} <= set(out[-4:])
        assert all(list(e.channels) == ["shadow"] for e in shadow)
        assert memory.retrieve("wow cool thanks", limit=1)[0].kind == "shadow"
        fates = [c["fate"] for c in memory.trace("wow cool thanks")["candidates"]]
        assert "shadow" in fates
    sure = gated(stub, fallback_below=-1.0)
    with Memory.in_memory(config=sure) as memory:
        memory.add_many(talk(20))
        assert {e.kind for e in memory.retrieve("wow cool thanks", limit=40)} <= {"raw", "card"}


def test_erasing_a_skipped_turn_and_a_note(stub: Config, store_path: Path) -> None:
    config = gated(stub, link_similarity=0.1)
    with Memory.open(store_path, config=config) as memory:
        memory.add_many(talk(20))
        linked = next(n for n in range(39, 0, -1) if memory.explain(n)["gate"]["links"])
        for gone in (skipped(memory, 40)[-1], linked):
            memory.delete(gone)
        memory.add("The kettle is red", speaker="Ana")
        digest, stats = memory.digest(), memory.stats()
        asked = [e.to_dict() for e in memory.retrieve("the kettle", limit=9)]
    with sqlite3.connect(store_path) as rows:
        ends = rows.execute("SELECT count(*) FROM link WHERE newer = ?1 OR older = ?1", [linked])
        assert rows.execute("SELECT count(*) FROM gate").fetchone() == (39,)
        assert (ends.fetchone()[0] & 1) == 0
    with Memory.open(store_path, config=config) as memory:
        assert (memory.digest(), memory.stats()) == (digest, stats)
        assert [e.to_dict() for e in memory.retrieve("the kettle", limit=9)] == asked
        memory.delete_all()
        assert "gate" not in memory.stats()


def test_a_memory_opened_without_the_gate_sees_every_turn(stub: Config, store_path: Path) -> None:
    with Memory.open(store_path, config=gated(stub)) as memory:
        memory.add_many(talk(20))
        out, digest = skipped(memory, 40), memory.digest()
    with Memory.open(store_path, config=stub, read_only=True) as memory:
        assert memory.digest() == digest
        found = {e.turn.interaction_id for e in memory.retrieve("wow thanks", limit=40)}
        assert found & set(out)


def test_reindexing_judges_anew(stub: Config, store_path: Path) -> None:
    with Memory.open(store_path, config=stub) as memory:
        memory.add_many(talk(12))
    with Memory.in_memory(config=gated(stub)) as memory:
        memory.add_many(talk(12))
        expected = memory.digest()
    with Memory.open(store_path, config=gated(stub)) as memory:
        memory.reindex()
        assert memory.digest() == expected


def test_filters_hold_for_the_fallback(stub: Config) -> None:
    config = gated(stub, fallback_below=1.0, fallback_similarity=-1.0)
    with Memory.in_memory(config=config) as memory:
        memory.add_many(talk(20))
        found = memory.retrieve("wow cool", limit=9, filters={"speaker": "Ana"})
        assert not [e for e in found if e.kind == "shadow"]


@pytest.mark.parametrize("storage", ["null", "file"])
def test_what_the_archive_forgets_is_not_fallen_back_on(
    stub: Config, tmp_path: Path, storage: str
) -> None:
    config = gated(stub, fallback_below=1.0, fallback_similarity=-1.0).replace(
        ltm={"storage_type": storage, "storage_path": str(tmp_path / "out.jsonl")}
    )
    with Memory.in_memory(config=config) as memory:
        memory.add_many(talk(20))
        found = memory.retrieve("wow cool", limit=40)
        assert not [e for e in found if e.kind == "shadow"]


def test_fusion_ranks_by_place_and_brings_linked_notes(stub: Config) -> None:
    config = gated(stub, link_similarity=0.1).replace(retrieval={"fusion": "rrf"})
    with Memory.in_memory(config=config) as memory:
        memory.add_many(talk(20))
        found = memory.retrieve("the port and the garden", limit=5)
        assert len(found) == 5
        assert found[0].score <= 2 / 61
        assert [e.score for e in found] == sorted((e.score for e in found), reverse=True)
        assert all(set(e.channels) <= {"raw_semantic", "bm25"} for e in found)
        relations = {s.relation for e in found for s in e.support}
        assert "linked" in relations


def test_the_real_models_keep_small_talk_out() -> None:
    config = Config().replace(policy={"gate": "rpe"})
    with Memory.in_memory(config=config) as memory:
        said = [
            "I moved to Porto in May and work at the harbour office now.",
            "Thanks!",
            "My sister Ana is allergic to peanuts.",
            "brb, someone is at the door",
            "We adopted a dog called Rex last Saturday.",
            "Haha, that sounds great!",
        ]
        memory.add_many(Turn(text, "user", speaker="Joe") for text in said)
        assert skipped(memory, 6) == [1, 3, 5]
        assert memory.retrieve("Who is allergic to peanuts?")[0].turn.interaction_id == 2
