from __future__ import annotations

import json
import re
from collections import Counter
from datetime import datetime
from typing import Any

import numpy as np
import pytest

from .baselines import CASES, Case, bm25_rank, dense_rank, load_cases, passes

FAMILIES = {
    "hard": {
        "advice-versus-acts",
        "code",
        "coreference",
        "correction-chains",
        "dates-absolute",
        "dates-relative",
        "duplicates",
        "former-state",
        "lists",
        "logs",
        "long-turns",
        "multi-hop",
        "multi-speaker",
        "near-duplicates",
        "negation",
        "no-answer",
        "non-english",
        "order",
        "original-value",
        "quantities",
        "reasons",
        "supersession",
        "system-prompts",
        "third-persons",
        "tool-json",
        "vocabulary-mismatch",
    },
    "plain": {
        "code",
        "correction-chains",
        "dates-absolute",
        "dates-relative",
        "former-state",
        "lists",
        "logs",
        "long-turns",
        "multi-speaker",
        "near-duplicates",
        "negation",
        "no-answer",
        "non-english",
        "original-value",
        "pronouns",
        "supersession",
        "third-persons",
        "tool-json",
    },
}
CASE_KEYS = {"name", "family", "turns", "question", "k", "right", "wrong"}
OPTIONAL_CASE_KEYS = {"query_time", "no_answer", "min_confidence"}
TURN_KEYS = {"id", "role", "text"}
OPTIONAL_TURN_KEYS = {"speaker", "timestamp", "session_id"}
ROLES = {"user", "assistant", "system", "tool"}

SUITES = {suite: load_cases(suite) for suite in sorted(FAMILIES)}
ALL = [case for cases in SUITES.values() for case in cases]
each_suite = pytest.mark.parametrize("suite", sorted(SUITES))
every_case = pytest.mark.parametrize("case", ALL, ids=[case["name"] for case in ALL])


def _texts(case: Case, ids: list[str]) -> set[tuple[Any, ...]]:
    return {(t["role"], t.get("speaker"), t["text"]) for t in case["turns"] if t["id"] in ids}


@each_suite
def test_there_are_enough_cases(suite: str) -> None:
    assert len(SUITES[suite]) >= 120


def test_names_are_unique() -> None:
    repeated = [name for name, n in Counter(case["name"] for case in ALL).items() if n > 1]
    assert repeated == []


@each_suite
def test_every_family_is_there_in_its_own_file(suite: str) -> None:
    cases, files = SUITES[suite], list((CASES / suite).glob("*.json"))
    sizes = Counter(case["family"] for case in cases)
    assert set(sizes) == FAMILIES[suite] == {path.stem for path in files}
    assert min(sizes.values()) >= 5
    assert sizes["no-answer"] >= 9
    for path in files:
        stored = json.loads(path.read_text(encoding="utf-8"))
        assert {case["family"] for case in stored} == {path.stem}


def test_no_conversation_is_there_twice() -> None:
    texts = Counter(tuple(turn["text"] for turn in case["turns"]) for case in ALL)
    assert max(texts.values()) == 1


@each_suite
def test_there_are_cases_that_ask_for_confidence(suite: str) -> None:
    # Without them, a memory that is never sure would pass all of no-answer.
    assert sum("min_confidence" in case for case in SUITES[suite]) >= 20


@every_case
def test_shape_of_the_case(case: Case) -> None:
    assert set(case) >= CASE_KEYS
    assert set(case) <= CASE_KEYS | OPTIONAL_CASE_KEYS
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", case["name"])
    assert case["question"].strip() == case["question"] != ""
    assert 10 <= len(case["turns"]) <= 30
    assert case["k"] in range(1, 6)
    assert len(case["right"]) == len(set(case["right"]))
    assert 0 < case.get("min_confidence", 0.5) <= 1
    assert (case["family"] == "no-answer") == case.get("no_answer", False)


@every_case
def test_shape_of_the_turns(case: Case) -> None:
    ids = [turn["id"] for turn in case["turns"]]
    assert len(set(ids)) == len(ids)
    for turn in case["turns"]:
        assert set(turn) >= TURN_KEYS
        assert set(turn) <= TURN_KEYS | OPTIONAL_TURN_KEYS
        assert all(isinstance(value, str) and value.strip() for value in turn.values())
        assert turn["role"] in ROLES


@every_case
def test_right_and_wrong_are_turns_and_differ(case: Case) -> None:
    ids = {turn["id"] for turn in case["turns"]}
    assert set(case["right"]) | set(case["wrong"]) <= ids
    # By text as well: an id stands for all turns that say the same.
    assert not _texts(case, case["right"]) & _texts(case, case["wrong"])
    if case.get("no_answer", False):
        assert case["right"] == case["wrong"] == []
        assert "min_confidence" not in case
    else:
        assert 1 <= len(_texts(case, case["right"])) <= case["k"]


@every_case
def test_times_parse_and_never_run_backwards(case: Case) -> None:
    stamps = [datetime.fromisoformat(t["timestamp"]) for t in case["turns"] if "timestamp" in t]
    assert stamps == sorted(stamps)
    assert len(stamps) in (0, len(case["turns"]))
    if "query_time" in case and stamps:
        assert datetime.fromisoformat(case["query_time"]) >= stamps[-1]


def test_families_have_what_their_name_says() -> None:
    for case in ALL:
        family, turns = case["family"], case["turns"]
        right = [turn for turn in turns if turn["id"] in case["right"]]
        if family == "long-turns":
            assert all(len(turn["text"].split()) > 600 for turn in right)
        elif family == "lists":
            assert 2 <= len(right) <= 4
        elif family == "multi-hop":
            assert len(right) == 2
        elif family == "dates-relative":
            assert "query_time" in case
            assert "timestamp" in turns[0]
        elif family == "duplicates":
            assert len(_texts(case, [turn["id"] for turn in turns])) < len(turns)
        elif family == "multi-speaker":
            assert len({turn["speaker"] for turn in turns}) >= 3
        elif family == "system-prompts":
            assert turns[0]["role"] == "system"
        elif family == "tool-json":
            assert any(turn["role"] == "tool" for turn in turns)


def _toy(**changes: object) -> Case:
    turns = [
        {"id": "1", "role": "user", "text": "Rome is hot"},
        {"id": "2", "role": "user", "text": "the train leaves at nine"},
        {"id": "3", "role": "user", "text": "Rome is hot"},
        {"id": "4", "role": "user", "text": "trains are late"},
    ]
    case: Case = {"turns": turns, "question": "Which train at nine?", "k": 1}
    return {**case, "right": ["2"], "wrong": ["4"], **changes}


@pytest.mark.parametrize(
    ("changes", "ranked", "confidence", "expected"),
    [
        ({}, ["2", "4"], None, True),
        ({}, ["4", "2"], None, False),
        ({"k": 2}, ["4", "2"], None, False),
        ({"k": 2, "wrong": []}, ["4", "2"], None, True),
        ({}, [], None, False),
        ({"right": ["1"]}, ["3"], None, True),
        ({"right": ["1", "3"], "wrong": []}, ["3", "2"], None, True),
        ({"right": ["1", "2"], "k": 2, "wrong": ["4"]}, ["1", "4", "2"], None, False),
        ({"right": ["1", "2"], "k": 3, "wrong": ["4"]}, ["1", "4", "2"], None, True),
        ({"min_confidence": 0.5}, ["2"], 0.4, False),
        ({"min_confidence": 0.5}, ["2"], 0.5, True),
        ({"no_answer": True, "right": [], "wrong": []}, ["2"], None, False),
        ({"no_answer": True, "right": [], "wrong": []}, ["2"], 0.5, False),
        ({"no_answer": True, "right": [], "wrong": []}, ["2"], 0.49, True),
        ({"no_answer": True, "right": [], "wrong": []}, [], 0.0, True),
    ],
)
def test_judge(
    changes: dict[str, object], ranked: list[str], confidence: float | None, expected: bool
) -> None:
    verdict, reason = passes(_toy(**changes), ranked, confidence)
    assert verdict is expected
    assert (reason == "") is expected


def test_bm25_prefers_the_rarer_words_and_keeps_the_order_of_equals() -> None:
    assert bm25_rank(_toy()) == ["2", "4", "1", "3"]


def test_bm25_reads_scripts_without_spaces() -> None:
    turns = [
        {"id": "1", "role": "user", "text": "今天下雨"},
        {"id": "2", "role": "user", "text": "他在成都工作"},
    ]
    assert bm25_rank(_toy(turns=turns, question="谁在成都?"))[0] == "2"


class _Letters:
    """Counts a, b and c; a stand-in for an embedder."""

    def embed(self, texts: list[str]) -> np.ndarray:
        return np.array([[text.count(c) for c in "abc"] for text in texts], np.float32)

    def embed_query(self, text: str) -> np.ndarray:
        return self.embed([text])[0]


def test_dense_ranks_by_direction_and_survives_empty_vectors() -> None:
    turns = [
        {"id": "1", "role": "user", "text": "xyz"},
        {"id": "2", "role": "user", "text": "aaaab"},
        {"id": "3", "role": "user", "text": "b"},
    ]
    assert dense_rank(_toy(turns=turns, question="bb"), _Letters()) == ["3", "2", "1"]


@each_suite
def test_bm25_fails_at_least_a_third(suite: str) -> None:
    cases = SUITES[suite]
    failed = sum(not passes(case, bm25_rank(case))[0] for case in cases)
    assert failed >= 0.35 * len(cases)
