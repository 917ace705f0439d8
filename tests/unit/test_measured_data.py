"""Samples that something is to be measured on: what is unusable in them is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import typer

from ebbtide import InputError
from ebbtide.cli.evaluating import settings
from ebbtide.evals.datasets import (
    Conversation,
    DatasetTurn,
    Question,
    iter_conversations,
    measured_conversations,
    parse_locomo,
    parse_longmemeval,
)
from ebbtide.evals.systems import Options, open_system


def locomo() -> dict[str, Any]:
    return {
        "sample_id": "made",
        "conversation": {
            "speaker_a": "Ada",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [{"speaker": "Ada", "dia_id": "D1:1", "text": "I adopted a cat."}],
        },
        "qa": [{"question": "What?", "answer": "A cat", "evidence": ["D1:1"], "category": 4}],
    }


def longmemeval(**changes: Any) -> dict[str, Any]:
    return {
        "question_id": "q1",
        "question_type": "single",
        "question": "Where?",
        "answer": "Porto",
        "question_date": "2023/05/30 (Tue) 23:54",
        "haystack_dates": ["2023/05/20 (Sat) 02:21"],
        "haystack_session_ids": ["s1"],
        "haystack_sessions": [[{"role": "user", "content": "Porto.", "has_answer": True}]],
        "answer_session_ids": ["s1"],
        **changes,
    }


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s.update(qa=5), "made: field 'qa' must be a list"),
        (lambda s: s.update(qa="none"), "made: field 'qa' must be a list"),
        (lambda s: s.update(qa=[5]), "made:q1: it must be a mapping, not int"),
        (lambda s: s["qa"][0].update(evidence=5), "made:q1: field 'evidence' must be a list"),
        (lambda s: s["qa"][0].update(evidence={}), "made:q1: field 'evidence' must be a list"),
    ],
)
def test_what_is_no_list_of_a_locomo_sample(
    change: Callable[[dict[str, Any]], None], words: str
) -> None:
    sample = locomo()
    assert parse_locomo(sample).questions[0].evidence == ("D1:1",)
    change(sample)
    with pytest.raises(InputError, match=words) as caught:
        parse_locomo(sample)
    assert caught.value.code == "input.field"


@pytest.mark.parametrize("empty", [None, []])
def test_lists_may_be_missing(empty: object) -> None:
    sample = locomo()
    sample["qa"][0]["evidence"] = empty
    assert parse_locomo(sample).questions[0].evidence == ()
    assert parse_locomo({**sample, "qa": empty}).questions == []
    assert parse_longmemeval(longmemeval(answer_session_ids=empty)).questions[0].evidence


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"answer_session_ids": 5}, "q1: field 'answer_session_ids' must be a list"),
        ({"answer_session_ids": "s1"}, "q1: field 'answer_session_ids' must be a list"),
        ({"haystack_sessions": [5]}, "q1: session 's1' must be a list of turns"),
        ({"haystack_sessions": [["x"]]}, "q1 s1:1: it must be a mapping, not str"),
    ],
)
def test_what_is_no_list_of_a_longmemeval_sample(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        parse_longmemeval(longmemeval(**changes))
    assert caught.value.code == "input.field"


def test_two_samples_of_one_id_are_refused_where_they_are_measured(tmp_path: Path) -> None:
    path = tmp_path / "two.json"
    path.write_text(json.dumps([locomo(), locomo()]), encoding="utf-8")
    assert len(list(iter_conversations(path))) == 2
    found = measured_conversations(path)
    assert next(found).id == "made"
    with pytest.raises(InputError, match=r"two\.json: two samples are called 'made'") as caught:
        next(found)
    assert caught.value.code == "input.field"


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.update(sample_id="\ud800"),
        lambda s: s["conversation"]["session_1"][0].update(text="a \ud800"),
        lambda s: s["conversation"]["session_1"][0].update(speaker="\udc00"),
        lambda s: s["conversation"]["session_1"][0].update(dia_id="\udc00"),
        lambda s: s["qa"][0].update(question="\ud800 what"),
        lambda s: s["qa"][0].update(answer="\ud800"),
    ],
)
def test_half_a_pair_is_refused_where_it_is_measured(
    tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    sample = locomo()
    change(sample)
    path = tmp_path / "half.json"
    path.write_text(json.dumps(sample), encoding="utf-8")
    with pytest.raises(InputError, match="lone surrogate") as caught:
        list(measured_conversations(path))
    assert caught.value.code == "input.unicode"


@pytest.mark.parametrize("texts", [[], ["the", "and"]])
@pytest.mark.parametrize("name", ["full", "last_n", "bm25", "dense", "rrf", "default"])
def test_a_conversation_that_says_nothing_is_measured(name: str, texts: list[str]) -> None:
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    turns = [DatasetTurn(f"D1:{n}", t, "user", "", moment, "s") for n, t in enumerate(texts)]
    question = Question("q", "What is the cat called?", "", "single-hop", (), ())
    with open_system(name, Conversation("c", (), turns, [question], []), Options()) as system:
        ranking = system.rank(question, 5)
        assert ranking is None or set(ranking.ids) <= {turn.external_id for turn in turns}
        assert len(system.context(question, 100).shown) <= len(turns)


def test_a_setting_below_another_is_a_usage_error() -> None:
    assert settings(["a.b=1", "a.c.d=2"]) == {"a": {"b": 1, "c": {"d": 2}}}
    with pytest.raises(typer.BadParameter, match=r"'a\.b\.c=2' is below a setting"):
        settings(["a.b=1", "a.b.c=2"])
