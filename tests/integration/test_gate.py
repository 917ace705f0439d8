"""The RPE gate in a memory: what it keeps out, and that nothing else can tell when it ran."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from reference.stand_ins import scripted, stub_facts

from ebbtide import Config, Memory, Store, Turn
from ebbtide.analysis.facts import TurnText

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
        traced = memory.trace("wow cool thanks", limit=8)
        rows = sorted((c for c in traced["candidates"] if c["rank"]), key=lambda c: c["rank"])
        assert [c["interaction_id"] for c in rows] == [e.turn.interaction_id for e in found]
        assert [c["rank"] for c in rows] == list(range(1, 9))
        assert {c["fate"] for c in rows[: -len(shadow)]} == {"kept"}
        assert {c["fate"] for c in rows[-len(shadow) :]} == {"shadow"}
    sure = gated(stub, fallback_below=-1.0)
    with Memory.in_memory(config=sure) as memory:
        memory.add_many(talk(20))
        assert {e.kind for e in memory.retrieve("wow cool thanks", limit=40)} <= {"raw", "card"}


@pytest.mark.parametrize("deliberation", ["off", "quality"])
def test_the_fallback_gives_each_turn_once(stub: Config, deliberation: str) -> None:
    config = gated(stub, fallback_below=1.0, fallback_similarity=-1.0).replace(
        policy={"deliberation": deliberation}
    )
    with Memory.in_memory(config=config) as memory:
        memory.add_many(talk(20))
        for speaker in ("Joe", "Kim"):
            memory.add("brb, someone is at the door", speaker=speaker)
        asked = memory.retrieve("Is someone at the door, brb?", limit=9)
        found = [e.turn.interaction_id for e in asked]
        assert len(found) == len(set(found)) == 9
        # Two people who say the same are two.
        assert {40, 41} <= set(found)


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
    with closing(sqlite3.connect(store_path)) as rows:
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
        memory.add(SMALL_TALK[0], speaker="Joe", metadata={"user": "joe"})
        for filters in ({"speaker": "Ana"}, {"metadata": {"user": "ana"}}):
            found = memory.retrieve("wow cool", limit=9, filters=filters)
            assert not [e for e in found if e.kind == "shadow"]
        found = memory.retrieve("wow cool", filters={"metadata": {"user": "joe"}})
        assert [(e.kind, e.turn.interaction_id) for e in found] == [("shadow", 40)]


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


def test_nothing_is_written_of_a_skipped_turn_that_is_discarded(
    stub: Config, store_path: Path
) -> None:
    config = gated(stub).replace(
        ltm={"enabled": False}, capacity={"token_budget": 5, "protect_last": 3}
    )
    with Store.open(store_path, config=config) as store:
        report = store.memory("joe").add_many(talk(20))
        assert report.over_budget_turns
        assert "skip" in {e.reason for e in report.evicted}
        assert store.check() == []


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


class Plane:
    """Texts as directions: what stands behind ``@`` is an angle, its digits from ``a`` on."""

    dimension = 2
    fingerprint = "plane"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), 2), np.float32)
        for row, text in zip(rows, texts, strict=True):
            digits = "".join(str(ord(letter) - ord("a")) for letter in text.rpartition("@")[2])
            angle = math.radians(int(digits)) if "@" in text else 0.0
            row[:] = math.cos(angle), math.sin(angle)
        return rows


def at(angle: int) -> str:
    """An angle as :class:`Plane` reads it: a number would be something to look up."""
    return "@" + "".join(chr(ord("a") + int(digit)) for digit in str(angle))


def small_talk(angle: int) -> str:
    """Thanks without a signal; the stand-in reads signals off the text's hash."""
    every = (f"thanks{'!' * n} {at(angle)}" for n in range(99))
    return next(text for text in every if not stub_facts(TurnText(text, "user", None)).signals)


def degrees(angle: float) -> float:
    return math.cos(math.radians(angle))


def test_surprise_and_rpe_match_hand_worked_values(stub: Config) -> None:
    """D-MEM, section 4.1, through the whole engine."""
    config = gated(stub).with_embedder(Plane())
    with Memory.in_memory(config=config) as memory:
        # Each note lies 10, 20, 10, 20, 10, 20 degrees past the one before it.
        for number, angle in enumerate((0, 10, 30, 40, 60, 70, 90)):
            memory.add(f"The kettle number {number} stands on the shelf {at(angle)}")
        memory.add(f"The eighth kettle stands on the shelf {at(130)}")
        past = [degrees(a) for a in (10, 20, 10, 20, 10, 20)]
        mean = sum(past) / 6
        sigma = math.sqrt(sum((x - mean) ** 2 for x in past) / 6)
        raw = degrees(40)
        surprise = 1 / (1 + math.exp(-(mean - raw) / sigma))
        verdict = memory.explain(7)["gate"]
        assert verdict["similarity"] == pytest.approx(raw, abs=1e-3)
        assert verdict["surprise"] == pytest.approx(surprise, abs=1e-3)
        assert verdict["rpe"] == pytest.approx(
            min(1, verdict["utility"] * (surprise + 0.4)), abs=1e-3
        )
        # Five similarities of six notes are enough; of five notes there are four.
        assert memory.explain(4)["gate"]["surprise"] == 1.0
        assert memory.explain(6)["gate"]["surprise"] != 1.0


@pytest.mark.parametrize(("angle", "links"), [(59, 1), (61, 0)])
def test_a_link_needs_a_cosine_of_a_half(stub: Config, angle: int, links: int) -> None:
    config = gated(stub, warmup=0, theta_high=0.3).with_embedder(Plane())
    with Memory.in_memory(config=config) as memory:
        memory.add(f"The kettle stands on the shelf {at(0)}")
        memory.add(f"The other kettle stands on the shelf {at(angle)}")
        assert len(memory.explain(1)["gate"]["links"]) == links


@pytest.mark.parametrize(
    ("question", "shadow"),
    # The note is at 0 degrees: 0.342 falls back, 0.358 does not. The skipped turn is near.
    [(70, True), (69, False)],
)
def test_the_fallback_matches_its_thresholds(stub: Config, question: int, shadow: bool) -> None:
    config = gated(stub).with_embedder(Plane())
    with Memory.in_memory(config=config) as memory:
        memory.add(f"The kettle stands on the shelf {at(0)}")
        memory.add(small_talk(90))
        assert memory.explain(1)["gate"]["tier"] == "skip"
        kinds = [e.kind for e in memory.retrieve(f"What is it {at(question)}", limit=5)]
        assert ("shadow" in kinds) is shadow


@pytest.mark.parametrize(("place", "shadow"), [(148, True), (149, False)])
def test_a_skipped_turn_is_shown_above_a_fifth(stub: Config, place: int, shadow: bool) -> None:
    config = gated(stub).with_embedder(Plane())
    with Memory.in_memory(config=config) as memory:
        memory.add(f"The kettle stands on the shelf {at(0)}")
        memory.add(small_talk(place))
        assert memory.explain(1)["gate"]["tier"] == "skip"
        # cos 78 = 0.208 is above 0.2, cos 79 = 0.191 is not.
        kinds = [e.kind for e in memory.retrieve(f"What is it {at(70)}", limit=5)]
        assert ("shadow" in kinds) is shadow
