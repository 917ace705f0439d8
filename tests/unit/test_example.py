"""The example conversation keeps the shape that its README promises."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def turns() -> list[dict[str, Any]]:
    lines = (EXAMPLES / "conversation.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def questions() -> list[dict[str, Any]]:
    loaded = json.loads((EXAMPLES / "questions.json").read_text(encoding="utf-8"))
    assert isinstance(loaded, list)
    return loaded


def when(turn: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(turn["timestamp"])


def by_session(turns: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    sessions: dict[str, list[dict[str, Any]]] = {}
    for turn in turns:
        sessions.setdefault(turn["session_id"], []).append(turn)
    return sessions


def test_every_line_is_a_message(turns: list[dict[str, Any]]) -> None:
    assert len(turns) >= 230
    keys = {"id", "role", "speaker", "text", "timestamp", "session_id"}
    for turn in turns:
        assert set(turn) <= keys
        assert keys - set(turn) <= {"speaker"}
        assert turn["text"] == turn["text"].strip() != ""
        assert turn["timestamp"].endswith("Z")
    assert len({turn["id"] for turn in turns}) == len(turns)


def test_sessions_are_dated_in_order_and_numbered(turns: list[dict[str, Any]]) -> None:
    sessions = by_session(turns)
    assert len(sessions) >= 9
    assert [turn for session in sessions.values() for turn in session] == turns
    for name, session in sessions.items():
        assert [turn["id"] for turn in session] == [
            f"{name}:{n}" for n in range(1, len(session) + 1)
        ]
        assert len({when(turn).date() for turn in session}) == 1
    for earlier, later in pairwise(turns):
        assert when(earlier) < when(later), later["id"]
    assert (when(turns[-1]) - when(turns[0])).days >= 140
    assert {when(turn).year for turn in turns} == {2024}


def test_roles_and_speakers(turns: list[dict[str, Any]]) -> None:
    roles = Counter(turn["role"] for turn in turns)
    assert roles["system"] == roles["tool"] == 1
    assert roles["user"] > roles["assistant"] > 100
    assert set(roles) == {"user", "assistant", "system", "tool"}
    tool = next(turn for turn in turns if turn["role"] == "tool")
    assert json.loads(tool["text"])["rows"]
    with_luis = {turn["session_id"] for turn in turns if turn.get("speaker") == "Luis"}
    assert len(with_luis) == 2
    people = {turn.get("speaker") for turn in turns if turn["role"] == "user"}
    assert people == {"Ana", "Luis"}


def test_long_log_code_and_short_turns(turns: list[dict[str, Any]]) -> None:
    by_lines = max(turns, key=lambda turn: turn["text"].count(" worker."))
    assert by_lines["text"].count("\n") >= 20
    words = sorted(len(turn["text"].split()) for turn in turns)
    assert 650 <= words[-1] <= 850
    assert sum(count <= 3 for count in words) >= 30
    assert any("```python" in turn["text"] for turn in turns)
    assert sum("\n- " in turn["text"] for turn in turns) >= 1
    texts = Counter(turn["text"].casefold() for turn in turns if turn["role"] == "user")
    assert max(texts.values()) <= 2


def test_languages(turns: list[dict[str, Any]]) -> None:
    japanese = [turn for turn in turns if any("\u3040" <= c <= "\u30ff" for c in turn["text"])]
    portuguese = [turn for turn in turns if any(c in "ãõ" for c in turn["text"])]
    assert any(turn["role"] == "user" for turn in japanese)
    assert len(portuguese) >= 4


def test_questions(turns: list[dict[str, Any]], questions: list[dict[str, Any]]) -> None:
    known = {turn["id"]: turn["text"] for turn in turns}
    assert len(questions) == 12
    assert len({question["kind"] for question in questions}) == 12
    for question in questions:
        assert set(question) <= {"kind", "question", "query_time", "answer", "evidence", "stale"}
        assert question["question"].endswith("?")
        assert question["answer"]
        assert question["evidence"]
        assert len(set(question["evidence"])) == len(question["evidence"])
        cited = question["evidence"] + question.get("stale", [])
        assert known.keys() >= set(cited)
        assert not set(question["evidence"]) & set(question.get("stale", []))
        if "query_time" in question:
            assert datetime.fromisoformat(question["query_time"]) > when(turns[-1])
    kinds = {question["kind"]: question for question in questions}
    assert len(kinds["list"]["evidence"]) == 2
    assert kinds["current state"]["stale"]


def test_the_evidence_says_the_answer(
    turns: list[dict[str, Any]], questions: list[dict[str, Any]]
) -> None:
    known = {turn["id"]: turn for turn in turns}
    for question in questions:
        said = " ".join(known[cited]["text"] for cited in question["evidence"]).casefold()
        if question["kind"] == "date":
            # "last Saturday", said on Tuesday 26 March.
            assert "last saturday" in said
            assert when(known[question["evidence"][0]]).strftime("%a %d %b") == "Tue 26 Mar"
            continue
        wanted = question["answer"].casefold().replace(",", " ").split()
        missing = [word for word in wanted if word not in said and word not in {"and", "no"}]
        assert missing == [], question["question"]


def test_the_needles_are_said_once(turns: list[dict[str, Any]]) -> None:
    assert [t["id"] for t in turns if "45 days" in t["text"]] == ["s4:18"]
    assert [t["id"] for t in turns if "talho-moreira" in t["text"]] == ["s2:3"]
    note = next(t["text"] for t in turns if t["id"] == "s4:18")
    assert note.index("45 days") > 0.95 * len(note)


def test_the_readme_gives_the_right_counts(turns: list[dict[str, Any]]) -> None:
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert f"{len(turns)} turns in ten sessions" in readme
    assert len(by_session(turns)) == 10
