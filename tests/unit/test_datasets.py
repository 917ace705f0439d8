"""Dataset loaders: small handmade files with the known traps, then the real counts."""

from __future__ import annotations

import gzip
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ebbtide.errors import InputError
from ebbtide.evals import datasets, json_stream
from ebbtide.evals.datasets import (
    Conversation,
    iter_conversations,
    load_conversations,
    parse_locomo,
    parse_locomo_date,
    parse_longmemeval,
    parse_longmemeval_date,
)

DATA = Path(os.environ.get("EBBTIDE_DATA", Path(__file__).parents[3] / "shared" / "data"))
needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"no benchmark data in {DATA}; set EBBTIDE_DATA"
)


def turn(dia_id: str, text: str, speaker: str = "Ana", **extra: object) -> dict[str, object]:
    return {"speaker": speaker, "dia_id": dia_id, "text": text, **extra}


def locomo() -> dict[str, Any]:
    """Ten sessions' worth of traps: text order is not numeric order."""
    return {
        "sample_id": "conv-x",
        "conversation": {
            "speaker_a": "Ana",
            "speaker_b": "Luis",
            "session_10_date_time": "12:05 am on 1 February, 2024",
            "session_10": [turn("D10:1", "Hi again")],
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                turn("D1:1", "Hello"),
                turn("NOISE:aa11", "one sec", "Luis"),
                turn("D1:2", "Look", "Luis", blip_caption="a photo of a cat", query="cat"),
                turn("D1:3", "", query="red bike", img_url=["u"]),
                turn("D1:4", "  "),
            ],
            "session_2_date_time": "12:30 pm on 9 May 2023",
            "session_2": [turn("D2:1", "Yes"), turn("D2:02", "No"), turn("D2:1", "Twice")],
            "session_3_date_time": "9:00 am on 1 March, 2024",
            "session_4_date_time": "9:00 am on 2 March, 2024",
            "session_4": [],
        },
        "qa": [
            {"question": "a?", "answer": 7, "evidence": ["D1:1", "D1:1"], "category": 4},
            {"question": "b?", "answer": "x", "evidence": ["D1:2; D2:1"], "category": 1},
            {"question": "c?", "answer": "x", "evidence": ["D1:2 D10:01"], "category": 2},
            {"question": "d?", "answer": "x", "evidence": ["D:2:2", "(D1:3),"], "category": 3},
            {"question": "e?", "adversarial_answer": "x", "evidence": ["D"], "category": 5},
            {"question": "f?", "answer": "x", "evidence": ["D1:1", "D1:99"], "category": 4},
            {"question": "g?", "answer": "x", "evidence": [], "category": 3},
            {"question": "h?", "answer": "x", "evidence": "NOISE:aa11, D1:2,7", "category": 9},
            {"question": "i?", "answer": ["x", 2], "category": 4},
        ],
    }


def longmemeval(**changes: object) -> dict[str, Any]:
    """Dates out of order, one session twice, empty turns, a gold turn that is empty."""
    sample: dict[str, Any] = {
        "question_id": "q1",
        "question_type": "knowledge-update",
        "question": "Which tea?",
        "answer": 3,
        "question_date": "2023/05/30 (Tue) 23:54",
        "answer_session_ids": ["gold", "missing"],
        "haystack_session_ids": ["late", "dup", "gold", "dup", "tie"],
        "haystack_dates": [
            "2023/06/01 (Thu) 10:00",
            "2023/05/24 (Wed) 05:53",
            "2023/05/02 (Tue) 09:30",
            "2023/05/01 (Mon) 05:09",
            "2023/05/02 (Tue) 09:30",
        ],
        "haystack_sessions": [
            [{"role": "user", "content": "after the question"}],
            [{"role": "user", "content": "second copy"}],
            [
                {"role": "user", "content": "green tea", "has_answer": True},
                {"role": "assistant", "content": ""},
                {"role": "user", "content": "and mint", "has_answer": True},
                {"role": "assistant", "content": " \n", "has_answer": True},
                {"role": "assistant", "content": "ok", "has_answer": False},
            ],
            [{"role": "user", "content": "first copy"}],
            [{"role": "user", "content": "same minute as gold"}],
        ],
    }
    return {**sample, **changes}


def test_locomo_sessions_in_numeric_order_with_noise_in_place() -> None:
    conversation = parse_locomo(locomo())
    assert conversation.id == "conv-x"
    assert conversation.speakers == ("Ana", "Luis")
    assert [turn.external_id for turn in conversation.turns] == [
        "D1:1",
        "NOISE:aa11",
        "D1:2",
        "D1:3",
        "D2:1",
        "D2:02",
        "D2:1#2",
        "D10:1",
    ]
    assert [turn.noise for turn in conversation.turns] == [False, True] + [False] * 6
    assert {turn.role for turn in conversation.turns} == {"user"}
    assert conversation.turns[1].speaker == "Luis"
    assert conversation.turns[-1].session_id == "session_10"
    assert conversation.skipped_turns == 1


def test_locomo_captions_and_dates() -> None:
    turns = {turn.external_id: turn for turn in parse_locomo(locomo()).turns}
    assert turns["D1:1"].text == "Hello"
    assert turns["D1:2"].text == "Look [shares an image: a photo of a cat]"
    assert turns["D1:3"].text == "[shares an image: red bike]"
    assert turns["D1:1"].timestamp == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert turns["D2:1"].timestamp == datetime(2023, 5, 9, 12, 30, tzinfo=UTC)
    assert turns["D10:1"].timestamp == datetime(2024, 2, 1, 0, 5, tzinfo=UTC)


def test_locomo_evidence_strings() -> None:
    conversation = parse_locomo(locomo())
    assert [question.evidence for question in conversation.questions] == [
        ("D1:1",),
        ("D1:2", "D2:1"),
        ("D1:2", "D10:1"),
        ("D2:02", "D1:3"),
        (),
        ("D1:1",),
        (),
        ("D1:2", "NOISE:aa11"),
        (),
    ]
    assert conversation.unresolved == [
        "conv-x:q5: D",
        "conv-x:q6: D1:99",
        "conv-x:q8: 7",
    ]
    assert conversation.questions[2].evidence_sessions == ("session_1", "session_10")


def test_locomo_categories_and_answers() -> None:
    questions = parse_locomo(locomo()).questions
    assert [question.category for question in questions] == [
        "single-hop",
        "multi-hop",
        "temporal",
        "open-domain",
        "adversarial",
        "single-hop",
        "open-domain",
        "category-9",
        "single-hop",
    ]
    assert [question.abstention for question in questions] == [n == 4 for n in range(9)]
    assert [question.answer for question in questions][:5] == ["7", "x", "x", "x", ""]
    assert questions[8].answer == "x, 2"
    assert questions[0].query_time is None
    assert len({question.id for question in questions}) == 9


@pytest.mark.parametrize(
    ("text", "hour"),
    [
        ("12:00 am on 3 June, 2023", 0),
        ("1:00 am on 3 June, 2023", 1),
        ("12:00 pm on 3 June, 2023", 12),
        ("11:00 PM on 3 jun 2023", 23),
    ],
)
def test_locomo_clock(text: str, hour: int) -> None:
    assert parse_locomo_date(text) == datetime(2023, 6, 3, hour, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "8 May, 2023",
        "1:56 pm on 31 June, 2023",
        "13:00 pm on 1 May, 2023",
        "1:00 pm on 1 Foo, 2023",
    ],
)
def test_locomo_bad_dates(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_locomo_date(text)
    assert caught.value.code == "input.timestamp"


def test_locomo_session_without_date_is_refused_by_name() -> None:
    sample = locomo()
    del sample["conversation"]["session_2_date_time"]
    with pytest.raises(InputError, match="session_2_date_time") as caught:
        parse_locomo(sample)
    assert caught.value.code == "input.field"


def test_longmemeval_order_ids_and_empty_turns() -> None:
    conversation = parse_longmemeval(longmemeval())
    assert [turn.external_id for turn in conversation.turns] == [
        "dup:1",
        "gold:1",
        "gold:3",
        "gold:5",
        "tie:1",
        "dup#2:1",
        "late:1",
    ]
    assert conversation.turns[0].text == "first copy"
    assert conversation.turns[5].text == "second copy"
    assert conversation.turns[5].session_id == "dup#2"
    assert conversation.skipped_turns == 2
    assert conversation.speakers == ()
    assert conversation.turns[1].timestamp == datetime(2023, 5, 2, 9, 30, tzinfo=UTC)
    assert conversation.turns[3].role == "assistant"
    assert not any(turn.noise for turn in conversation.turns)


def test_longmemeval_gold() -> None:
    conversation = parse_longmemeval(longmemeval())
    (question,) = conversation.questions
    assert question.evidence == ("gold:1", "gold:3")
    assert question.evidence_sessions == ("gold",)
    assert conversation.unresolved == ["q1: gold:4", "q1: missing"]
    assert question.answer == "3"
    assert question.category == "knowledge-update"
    assert question.query_time == datetime(2023, 5, 30, 23, 54, tzinfo=UTC)
    assert not question.abstention


def test_longmemeval_abstention() -> None:
    (question,) = parse_longmemeval(longmemeval(question_id="q1_abs")).questions
    assert question.abstention


def test_longmemeval_bad_samples() -> None:
    with pytest.raises(InputError, match="5 sessions, 5 session ids, 1 dates"):
        parse_longmemeval(longmemeval(haystack_dates=["2023/05/30 (Tue) 23:54"]))
    with pytest.raises(InputError, match="question_type"):
        parse_longmemeval(longmemeval(question_type=None))
    with pytest.raises(InputError) as caught:
        parse_longmemeval_date("2023/05/32 (Tue) 23:54")
    assert caught.value.code == "input.timestamp"
    assert parse_longmemeval_date("2023/05/30 23:54").minute == 54


def ids(conversations: list[Conversation]) -> list[str]:
    return [conversation.id for conversation in conversations]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
def test_file_shapes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool, chunk: int
) -> None:
    monkeypatch.setattr(json_stream, "_CHUNK", chunk)
    one, two = longmemeval(question_id="é1"), longmemeval(question_id="q2")
    shapes = {
        "list": (json.dumps([one, two], indent=1, ensure_ascii=False), ["é1", "q2"]),
        "lines": ("\n".join(json.dumps(s) for s in (one, two)) + "\n\n", ["é1", "q2"]),
        "mark": ("\ufeff" + json.dumps(one), ["é1"]),
        "single": (json.dumps(locomo()), ["conv-x"]),
        "samples": (json.dumps([locomo()]), ["conv-x"]),
        "none": ("[]", []),
        "empty": ("", []),
    }
    for name, (text, expected) in shapes.items():
        # The name says nothing about the compression on purpose.
        path = tmp_path / f"{name}.json"
        data = text.encode()
        path.write_bytes(gzip.compress(data) if packed else data)
        assert ids(load_conversations(path)) == expected, name


def test_samples_come_before_the_file_is_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_stream, "_CHUNK", 64)
    path = tmp_path / "cut.jsonl"
    path.write_text(json.dumps(longmemeval()) + "\n" + json.dumps(longmemeval())[:-200])
    stream = iter_conversations(path)
    assert next(stream).id == "q1"
    with pytest.raises(InputError) as caught:
        next(stream)
    assert caught.value.code == "input.transcript"


@pytest.mark.parametrize(
    "data",
    [
        b'[{"conversation": {}',
        b"[",
        b"nonsense",
        b'{"a": 1}',
        b"[1, 2]",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        gzip.compress(b"[" + b" " * 4000, mtime=0)[:-12],
    ],
)
def test_broken_files_are_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        load_conversations(path)
    assert caught.value.code == "input.transcript"


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_conversations(tmp_path / "none.json")


@needs_data
def test_the_five_locomo_conversations() -> None:
    loaded = load_conversations(DATA / "locomo" / "locomo_dev5.json.gz")
    assert ids(loaded) == ["conv-26", "conv-30", "conv-41", "conv-42", "conv-43"]
    assert [len(one.turns) for one in loaded] == [419, 369, 663, 629, 680]
    assert [one.skipped_turns for one in loaded] == [0] * 5
    questions = [question for one in loaded for question in one.questions]
    assert len(questions) == 999
    counts = dict.fromkeys(datasets.LOCOMO_CATEGORIES.values(), 0)
    for question in questions:
        counts[question.category] += 1
    assert counts == {
        "multi-hop": 142,
        "temporal": 156,
        "open-domain": 46,
        "single-hop": 418,
        "adversarial": 237,
    }
    unresolved = [reference.split(": ", 1)[1] for one in loaded for reference in one.unresolved]
    assert unresolved == ["D10:19", "D"]
    for one in loaded:
        known = {turn.external_id for turn in one.turns}
        assert len(known) == len(one.turns)
        assert all(known.issuperset(question.evidence) for question in one.questions)
        times = [turn.timestamp for turn in one.turns]
        assert times == sorted(times)
    split = next(q for q in loaded[0].questions if "D9:17" in q.evidence and "D8:6" in q.evidence)
    assert split.evidence_sessions == ("session_8", "session_9")
    assert any("D11:26" in question.evidence for question in loaded[4].questions)


@needs_data
def test_locomo_noise() -> None:
    (noisy,) = load_conversations(DATA / "locomo" / "locomo_noise_conv26.json.gz")
    plain = next(iter_conversations(DATA / "locomo" / "locomo_dev5.json.gz"))
    assert sum(turn.noise for turn in noisy.turns) == 308
    assert [turn.external_id for turn in noisy.turns if not turn.noise] == [
        turn.external_id for turn in plain.turns
    ]
    assert noisy.unresolved == []


@needs_data
def test_longmemeval_files() -> None:
    loaded = list(iter_conversations(DATA / "longmemeval" / "lme_s_dev72.jsonl.gz"))
    assert len(loaded) == 72
    assert sum(len(one.turns) for one in loaded) == 35_802 - 3
    assert sum(one.skipped_turns for one in loaded) == 3
    assert sum(one.questions[0].abstention for one in loaded) == 4
    repeated = [one for one in loaded if any("#2" in turn.session_id for turn in one.turns)]
    assert len(repeated) == 2
    without_gold = [one.id for one in loaded if not one.questions[0].evidence]
    assert without_gold == ["a96c20ee_abs", "6aeb4375_abs"]
    for one in loaded:
        assert one.unresolved == []
        times = [turn.timestamp for turn in one.turns]
        assert times == sorted(times)
        assert len({turn.external_id for turn in one.turns}) == len(one.turns)
