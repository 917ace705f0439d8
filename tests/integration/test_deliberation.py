"""Quality-gated deliberation: what its gates see, what the scan adds, what it leaves alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ebbtide import Config, Memory
from ebbtide.cli.app import main
from ebbtide.errors import ConfigError

TALK = [
    ("Ana", "I live in Lisbon.", "2024-01-03"),
    ("Ben", "I sold my boat yesterday for 900 euros.", "2024-01-05"),
    ("Ana", "I took up pottery. My first bowl came out crooked.", "2024-02-01"),
    ("Ana", "I live in Porto now.", "2024-03-01"),
    ("Ben", "Nice weather. Did you see the game?", "2024-03-01"),
]
POLICIES = ("quality", "majority", "consensus")


def config(policy: str, **keys: Any) -> Config:
    return Config().replace(policy={"deliberation": policy}, deliberation=keys)


def tell(memory: Memory) -> None:
    for speaker, text, day in TALK:
        memory.add(text, speaker=speaker, timestamp=day)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("deliberation") / "memory.db"
    with Memory.open(path) as memory:
        tell(memory)
    return path


def seen(path: Path, question: str, policy: str = "quality", **options: Any) -> dict[str, Any]:
    keys = options.pop("keys", {})
    with Memory.open(path, config=config(policy, **keys), read_only=True) as memory:
        found: dict[str, Any] = memory.trace(question, **options)["deliberation"]
        return found


def failed(found: dict[str, Any]) -> set[str]:
    return {c["check"] for c in found["gates"] if not c["passed"]}


def test_off_changes_nothing_and_says_nothing(store: Path) -> None:
    with Memory.open(store, read_only=True) as memory:
        plain = memory.trace("Where does Ana live now?")
        digest = memory.digest()
    assert plain["deliberation"] is None
    for policy in POLICIES:
        with Memory.open(store, config=config(policy), read_only=True) as memory:
            assert memory.digest() == digest


def test_what_passes_is_answered_as_without_the_policy(store: Path) -> None:
    question = "Where does Ana live now?"
    with Memory.open(store, read_only=True) as memory:
        plain = memory.retrieve(question)
    with Memory.open(store, config=config("quality"), read_only=True) as memory:
        found = memory.trace(question)
        assert memory.retrieve(question) == plain
    assert found["deliberation"]["escalated"] is False
    assert failed(found["deliberation"]) == set()
    assert "scan" not in found["deliberation"]
    facts = {(f["value"], f["operation"], f["stands"]) for f in found["deliberation"]["facts"]}
    assert ("Lisbon", "ADD", False) in facts
    assert ("Porto", "UPDATE", True) in facts


def test_a_question_the_evidence_does_not_cover_escalates(store: Path) -> None:
    found = seen(store, "Which instrument does Rui Costa play in Oslo?")
    assert found["escalated"] is True
    assert {"entities", "coverage", "specificity"} <= failed(found)
    missing = next(c for c in found["gates"] if c["check"] == "entities")["missing"]
    assert "Oslo" in missing
    assert found["scan"]["messages"] == len(TALK)
    assert found["scan"]["low_confidence"] is True


@pytest.mark.parametrize(
    ("question", "check"),
    [
        ("How many boats did Ben sell?", "number"),
        ("When did Ben sell the boat?", "date"),
    ],
)
def test_answer_types_are_asked_for_and_found(store: Path, question: str, check: str) -> None:
    found = seen(store, question)
    assert next(c["passed"] for c in found["gates"] if c["check"] == check) is True


def test_an_answer_must_be_borne_out(store: Path) -> None:
    question = "What did Ben sell?"
    assert "answer" not in failed(seen(store, question, answer="Ben sold a boat for 900 euros."))
    wrong = seen(store, question, answer="Ben sold a boat to Carla for 800 euros.")
    assert wrong["escalated"] is True
    assert next(c["missing"] for c in wrong["gates"] if c["check"] == "answer") == ["Carla", "800"]


def test_a_declared_conflict_is_open_until_it_is_settled() -> None:
    with Memory.in_memory(config=config("quality")) as memory:
        memory.add("The venue is the old library.", speaker="Ana")
        memory.add("The venue is the town hall.", speaker="Ben")
        question = "What is the venue?"
        assert "conflicts" not in failed(memory.trace(question)["deliberation"])
        memory.relate(1, "conflicts_with", 0)
        assert "conflicts" in failed(memory.trace(question)["deliberation"])
        memory.relate(1, "supersedes", 0)
        assert "conflicts" not in failed(memory.trace(question)["deliberation"])


def test_a_conflict_with_what_the_filters_leave_out_is_none() -> None:
    with Memory.in_memory(config=config("quality")) as memory:
        memory.add("The venue is the old library.", speaker="Ana", session_id="s1")
        memory.add("The venue is the town hall.", speaker="Ben", session_id="s2")
        memory.relate(1, "conflicts_with", 0)
        question = "What is the venue?"
        assert "conflicts" in failed(memory.trace(question)["deliberation"])
        of_one = memory.trace(question, filters={"session_id": "s1"})["deliberation"]
        assert "conflicts" not in failed(of_one)
        assert "town hall" not in repr(of_one)


def test_thresholds_decide(store: Path) -> None:
    question = "Where does Ana live now?"
    for key in ("least_answerability", "least_specificity", "least_coverage"):
        others = dict.fromkeys(("least_answerability", "least_specificity", "least_coverage"), 0.0)
        found = seen(store, "What does Ana bake?", keys={**others, key: 1.0})
        assert key.removeprefix("least_") in failed(found), key
        assert key.removeprefix("least_") not in failed(seen(store, question, keys=others)), key


def test_votes_are_shown_and_decide(store: Path) -> None:
    for policy, agreed in (("majority", any), ("consensus", all)):
        for question in ("Where does Ana live now?", "Who likes the zither?"):
            found = seen(store, question, policy)
            assert len(found["votes"]) == 3
            assert set(found["ballots"]) == {"dense", "bm25", "answerability"}
            assert found["escalated"] is not agreed(v["agree"] for v in found["votes"])
            assert found["gates"] == []


def test_the_scan_marks_its_evidence_and_does_not_depend_on_the_chunks(store: Path) -> None:
    question = "What went wrong with the crooked bowl on the wheel of Rui Costa?"
    scans = []
    for chunk in (1, 2, 60):
        with Memory.open(
            store, config=config("quality", chunk_messages=chunk), read_only=True
        ) as memory:
            found = memory.trace(question)
        assert found["deliberation"]["escalated"] is True
        scans.append(found["deliberation"]["scan"]["kept"])
        assert found["deliberation"]["scan"]["chunks"] == -(-len(TALK) // chunk)
        best = found["evidence"][0]
        assert best["turn"]["text"] == TALK[2][1]
        assert best["channels"]["deliberation"] >= 3.0
        assert best["features"]["deliberation"] > 0.0
    assert scans[0] == scans[1] == scans[2]
    kept = scans[0][0]
    assert TALK[2][1][kept["start"] : kept["end"]].strip() == "My first bowl came out crooked."


def test_filters_hold_for_the_scan(store: Path) -> None:
    found = seen(store, "Who sold the crooked bowl of Rui?", filters={"speaker": "ben"})
    assert found["escalated"] is True
    assert {k["interaction_id"] for k in found["scan"]["kept"]} <= {1, 4}


def test_answers_are_the_same_after_a_restart_and_in_a_context(store: Path) -> None:
    question = "Which pottery did Rui sell in Oslo?"
    runs = []
    for _ in range(2):
        with Memory.open(store, config=config("quality"), read_only=True) as memory:
            runs.append((memory.trace(question), memory.context(question, max_tokens=300)))
    assert runs[0] == runs[1]
    assert "pottery" in runs[0][1].text


def test_an_empty_memory_and_an_erased_turn(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m.db", config=config("quality")) as memory:
        assert memory.retrieve("Where does Ana live?") == []
        tell(memory)
        memory.delete(2)
        found = memory.trace("Which crooked bowl did Rui make?")
        assert all(k["interaction_id"] != 2 for k in found["deliberation"]["scan"]["kept"])


def test_a_memory_that_is_only_read_scans_what_was_there_when_it_was_opened(
    tmp_path: Path,
) -> None:
    path, question = tmp_path / "m.db", "Which crooked bowl did Rui make?"
    with Memory.open(path) as memory:
        tell(memory)
    with Memory.open(path, config=config("quality"), read_only=True) as memory:
        before = memory.trace(question)
        with Memory.open(path) as writer:
            writer.add("Rui made a crooked bowl.", speaker="Ana", timestamp="2024-03-02")
        assert memory.trace(question) == before
    assert before["deliberation"]["scan"]["messages"] == len(TALK)


def test_archived_turns_are_scanned_too(tmp_path: Path) -> None:
    settings = config("quality").replace(capacity={"token_budget": 20})
    with Memory.open(tmp_path / "m.db", config=settings) as memory:
        tell(memory)
        assert any(memory.turns(state="archived"))
        found = memory.trace("Which crooked bowl did Rui make?")["deliberation"]
    assert found["scan"]["messages"] == len(TALK)
    assert found["scan"]["kept"][0]["interaction_id"] == 2


def test_both_presets_obey(store: Path) -> None:
    with Memory.open(store, config=config("quality"), read_only=True) as memory:
        for preset in ("default", "paper"):
            found = memory.trace("Which crooked bowl did Rui make in Oslo?", preset=preset)
            assert found["deliberation"]["escalated"] is True
            assert any("deliberation" in e["channels"] for e in found["evidence"]), preset


def test_unknown_policies_and_ranges_are_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        Config().replace(policy={"deliberation": "always"})
    assert caught.value.code == "config.range"
    with pytest.raises(ConfigError):
        config("quality", keep_score=11)


def test_the_command_line_says_why(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["ask", "--store", str(store), "Which crooked bowl did Rui make?"]
    with pytest.raises(SystemExit) as ended:
        main([*ask, "--deliberation", "quality", "--trace"])
    shown = capsys.readouterr().out
    assert not ended.value.code
    assert "Deliberation (quality): escalated for want of" in shown
    assert "My first bowl came out crooked." in shown
    with pytest.raises(SystemExit):
        main([*ask, "--deliberation", "majority", "--trace", "--json"])
    assert len(json.loads(capsys.readouterr().out)["deliberation"]["votes"]) == 3
