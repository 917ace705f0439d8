"""Transcript files: what is read of them, what is left out, and what is wrong where."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from ebbtide import Config, InputError, Memory, Store, Turn
from ebbtide.replay import ReplaySummary, replay
from ebbtide.transcripts import (
    Transcript,
    check_transcript,
    read_lines,
    read_transcripts,
    split_messages,
)


def written(path: Path, *messages: Any) -> Path:
    """Messages one a line; a text stands for the line itself."""
    lines = [m if isinstance(m, str) else json.dumps(m, ensure_ascii=False) for m in messages]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def only(path: Path) -> Transcript:
    (transcript,) = read_transcripts(path)
    return transcript


def turns_of(path: Path) -> list[Turn]:
    return list(only(path).turns)


def sample(name: str, *texts: str) -> dict[str, Any]:
    """A LoCoMo sample with one turn a session."""
    body: dict[str, Any] = {"speaker_a": "Ida", "speaker_b": "Ole"}
    for number, text in enumerate(texts, 1):
        body[f"session_{number}_date_time"] = f"1:56 pm on {number} May, 2023"
        body[f"session_{number}"] = [{"speaker": "Ida", "dia_id": f"D{number}:1", "text": text}]
    return {"sample_id": name, "conversation": body, "qa": []}


def test_every_field_of_a_message_is_read(tmp_path: Path) -> None:
    path = written(
        tmp_path / "chat.jsonl",
        {
            "id": "m1",
            "role": "assistant",
            "content": "Olá",
            "name": "Bot",
            "timestamp": "2024-05-01T10:00:00Z",
            "session_id": 7,
            "model": "x",
            "usage": {"tokens": 3},
        },
        {"id": 12, "text": "hi", "speaker": "Ana"},
    )
    first, second = turns_of(path)
    assert first == Turn(
        text="Olá",
        role="assistant",
        speaker="Bot",
        timestamp="2024-05-01T10:00:00Z",
        session_id="7",
        external_id="m1",
        metadata={"model": "x", "usage": {"tokens": 3}},
    )
    assert (second.external_id, second.role, second.speaker) == ("12", "user", "Ana")


def test_messages_without_an_id_are_numbered_by_line(tmp_path: Path) -> None:
    path = written(
        tmp_path / "my.chat.jsonl",
        {"text": "a"},
        "",
        {"text": "b", "id": ""},
        {"text": "c", "id": "x"},
    )
    assert [turn.external_id for turn in turns_of(path)] == ["my.chat#1", "my.chat#3", "x"]


def test_messages_without_content_are_skipped_and_counted(tmp_path: Path) -> None:
    path = written(
        tmp_path / "chat.jsonl",
        {"role": "user", "content": ""},
        {"role": "user", "content": " \n"},
        {"role": "user", "content": None},
        {"role": "user", "content": []},
        {"role": "user", "content": [{"type": "text", "text": ""}]},
        {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f"}}]},
        {"role": "user", "content": "kept"},
    )
    transcript = only(path)
    for _ in range(2):  # reading it again counts anew
        assert [turn.text for turn in transcript.turns] == ["f()", "kept"]
        assert transcript.turns.skipped == 5
    assert transcript.total == 7


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"text": "cut of', "not JSON: Unterminated string"),
        ("[1]", "not a list"),
        ('"text"', "not text"),
        ("3", "not a number"),
        ('{"role": "user"}', "needs text"),
        ('{"text": 3}', "not int"),
        ('{"text": 0}', "not int"),
        ('{"text": ' + "[" * 100_000 + "]" * 100_000 + "}", "cannot be read"),
        ('{"text": "x", "n": ' + "9" * 5000 + "}", "cannot be read"),
    ],
)
def test_a_bad_line_says_what_is_wrong(tmp_path: Path, line: str, words: str) -> None:
    path = written(tmp_path / "chat.jsonl", {"text": "good"}, line, {"text": "after"})
    transcript = only(path)
    read = iter(transcript.turns)
    assert next(read).text == "good"
    with pytest.raises(InputError, match=words):
        next(read)
    assert transcript.turns.place == f"{path}:2"


def test_a_line_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_bytes(b'{"text": "good"}\n{"text": "caf\xe9"}\n')
    with pytest.raises(InputError, match="not UTF-8 at byte 14"):
        turns_of(path)


def test_a_byte_order_mark_and_windows_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"text": "a"}\r\n{"text": "b"}\r\n')
    assert [turn.text for turn in turns_of(path)] == ["a", "b"]


@pytest.mark.parametrize("before", [b"\xef\xbb\xbf\r\n", b"\n\xef\xbb\xbf", b"\xef\xbb\xbf\n\n"])
def test_a_byte_order_mark_beside_an_empty_line(tmp_path: Path, before: bytes) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_bytes(before + b'{"text": "a", "s": "x"}\n\xef\xbb\xbf{"text": "b", "s": "x"}\n')
    assert only(path).total == 2
    assert [turn.text for turn in turns_of(path)] == ["a", "b"]
    lines = split_messages(path, "s")["x"]
    assert [turn.text for turn in read_lines(path, lines)] == ["a", "b"]


def test_a_file_name_that_is_no_unicode_makes_ids_that_are(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9.jsonl")
    path.write_bytes(b'{"text": "a"}\n')
    assert [turn.external_id for turn in turns_of(path)] == ["caf\\udce9#1"]


def test_gzipped_lines_have_the_same_ids(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"text": "a"}\n{"text": "b"}\n'))
    assert [turn.external_id for turn in turns_of(path)] == ["chat#1", "chat#2"]
    path.write_bytes(path.read_bytes()[:-12])
    transcript = only(path)
    with pytest.raises(InputError, match="cannot be read on"):
        list(transcript.turns)
    assert transcript.turns.place.startswith(f"{path}:")


def test_an_empty_file_is_an_empty_conversation(tmp_path: Path) -> None:
    path = written(tmp_path / "chat.jsonl")
    assert turns_of(path) == []


@pytest.mark.parametrize("packed", [False, True])
def test_a_benchmark_file_holds_several_conversations(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / "some.data"
    raw = json.dumps([sample("one", "hello", "there"), sample("two", "", "bye")]).encode()
    path.write_bytes(gzip.compress(raw) if packed else raw)
    first, second = read_transcripts(path)
    assert (first.name, first.total, second.name, second.total) == ("one", 2, "two", 1)
    read = list(first.turns)
    assert [(t.text, t.speaker, t.session_id, t.external_id) for t in read] == [
        ("hello", "Ida", "session_1", "D1:1"),
        ("there", "Ida", "session_2", "D2:1"),
    ]
    assert "conversation one, turn D2:1" in first.turns.place
    assert second.turns.skipped == 1
    qualified = [next(iter(t.turns)).external_id for t in read_transcripts(path, qualified=True)]
    assert qualified == ["one/D1:1", "two/D2:1"]


def test_the_form_is_told_by_the_content(tmp_path: Path) -> None:
    forms = {
        "lines.json": ('{"text": "a"}\n{"text": "b"}\n', False),
        "broken.jsonl": ('{"text": "a\n', False),
        "list.jsonl": ("  [ ]", True),
        "one.jsonl": (json.dumps(sample("one", "x")), True),
        "pretty.json": (json.dumps(sample("one", "x"), indent=1), True),
        "instances.jsonl": (json.dumps({"haystack_sessions": []}), True),
    }
    for name, (text, several) in forms.items():
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        assert check_transcript(path) is several, name


def test_a_message_may_have_a_field_that_samples_have(tmp_path: Path) -> None:
    file = tmp_path / "c.jsonl"
    file.write_text('{"role": "user", "content": "Hi", "conversation": "c1"}\n')
    assert not check_transcript(file)
    [transcript] = read_transcripts(file)
    [turn] = transcript.turns
    assert turn.metadata == {"conversation": "c1"}


def test_a_path_that_cannot_be_looked_at_is_refused() -> None:
    for read in (check_transcript, lambda file: list(read_transcripts(file))):
        with pytest.raises(InputError) as caught:
            read("a" * 300)
        assert caught.value.code == "input.transcript"


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    told = {tmp_path: "is a folder; name files", tmp_path / "none.jsonl": "there is no transcript"}
    for path, said in told.items():
        with pytest.raises(InputError, match=said) as caught:
            list(read_transcripts(path))
        assert caught.value.code == "input.transcript"


def test_conversations_are_read_one_at_a_time(tmp_path: Path) -> None:
    """What comes before a broken sample is there before the break is met."""
    path = tmp_path / "samples.json"
    path.write_text(json.dumps([sample("one", "x"), {"other": 1}]), encoding="utf-8")
    read = read_transcripts(path)
    assert next(read).name == "one"
    with pytest.raises(InputError, match="sample 2"):
        next(read)


# Replaying them


def test_a_bad_turn_is_placed_and_what_came_before_is_kept(stub: Config, tmp_path: Path) -> None:
    path = written(
        tmp_path / "chat.jsonl",
        {"text": "a"},
        {"text": ""},
        {"text": "b"},
        {"text": "c", "timestamp": "no day"},
        {"text": "d"},
    )
    for batch_size in (1, 2, 100):
        with Memory.in_memory(config=stub) as memory:
            with pytest.raises(InputError) as caught:
                replay(memory, only(path).turns, batch_size=batch_size)
            assert [turn.text for turn in memory.turns()] == ["a", "b"]
        words = str(caught.value)
        assert words.startswith(f"{path}:4: ")
        assert "no day" in words
        assert words.endswith("the 2 before it were kept")
        assert caught.value.code == "input.timestamp"


def test_a_first_bad_turn_says_that_nothing_came_before(stub: Config) -> None:
    with Memory.in_memory(config=stub) as memory, pytest.raises(InputError) as caught:
        replay(memory, [Turn("")])
    assert str(caught.value).startswith("turn 1: ")
    assert str(caught.value).endswith("nothing came before it")


def test_another_file_of_the_same_name_is_not_taken_for_the_first(
    stub: Config, tmp_path: Path
) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    first = written(tmp_path / "one" / "chat.jsonl", {"text": "a"}, {"text": "b"})
    second = written(tmp_path / "two" / "chat.jsonl", {"text": "a"}, {"text": "other"})
    with Memory.in_memory(config=stub) as memory:
        replay(memory, only(first).turns)
        assert replay(memory, only(first).turns).duplicates == 2
        with pytest.raises(InputError, match=r"'chat#2' with another text .* another namespace"):
            replay(memory, only(second).turns)
        assert len(memory) == 2


def test_another_file_is_told_from_what_was_discarded(stub: Config, tmp_path: Path) -> None:
    config = stub.replace(
        ltm={"storage_type": "null"},
        capacity={"token_budget": 12, "protect_last": 1},
        temporal_decay={"lambda_base": 2.0},
    )
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    said = [{"text": f"Turn {n} about the garden."} for n in range(8)]
    first = written(tmp_path / "one" / "chat.jsonl", *said)
    second = written(tmp_path / "two" / "chat.jsonl", *said[:2], {"text": "Another."})
    with Store.open(tmp_path / "a.db", config=config) as store:
        replay(store.memory("ana"), only(first).turns)
        assert len(store.memory("ana")) < 4
        store.memory("ana").export(tmp_path / "ana.jsonl")
    with Store.open(tmp_path / "b.db", config=config) as store:
        memory = store.load(tmp_path / "ana.jsonl")
        assert replay(memory, only(first).turns).duplicates == 8
        with pytest.raises(InputError, match=r"'chat#3' with another text .* another namespace"):
            replay(memory, only(second).turns)


def test_another_state_of_a_conversation_is_not_mixed_in(stub: Config, tmp_path: Path) -> None:
    path = tmp_path / "samples.json"
    with Memory.in_memory(config=stub) as memory:
        path.write_text(json.dumps([sample("one", "x", "y")]), encoding="utf-8")
        replay(memory, only(path).turns)
        path.write_text(json.dumps([sample("one", "x", "noise", "y")]), encoding="utf-8")
        with pytest.raises(InputError, match="turn D2:1: a turn 'D2:1' with another text"):
            replay(memory, only(path).turns)


def test_a_rendered_block_is_counted_as_skipped(stub: Config) -> None:
    with Memory.in_memory(config=stub) as memory:
        memory.add("The port is v1.")
        block = memory.render_context("port")
        summary = replay(memory, [Turn(block, external_id="a"), Turn("new", external_id="b")])
    assert (summary.turns, summary.accepted, summary.skipped) == (1, 1, 1)


def test_stopping_keeps_what_was_read_and_goes_on_later(stub: Config) -> None:
    turns = [Turn(f"turn {n}", external_id=f"t{n}") for n in range(10)]
    with Memory.in_memory(config=stub) as whole:
        digest = replay(whole, turns).digest
    seen: list[int] = []

    def progress(summary: ReplaySummary, report: object) -> None:
        seen.append(summary.turns)

    with Memory.in_memory(config=stub) as memory:
        first = replay(memory, turns, batch_size=3, progress=progress, stop=lambda: len(seen) == 2)
        assert (first.accepted, first.finished, seen) == (6, False, [3, 6])
        second = replay(memory, turns, batch_size=4)
        assert (second.accepted, second.duplicates, second.finished) == (4, 6, True)
        assert second.digest == digest != first.digest


def test_the_summary_adds_up(stub: Config) -> None:
    config = stub.replace(capacity={"token_budget": 256})
    turns = [Turn(f"The port is v{n % 5}. " + "word " * 20, external_id=f"t{n}") for n in range(60)]
    with Memory.in_memory(config=config) as memory:
        data = replay(memory, turns, batch_size=7).to_dict()
        direct = Memory.in_memory(config=config)
        report = direct.add_many(turns)
        direct.close()
    assert data["turns"] == data["accepted"] == 60 == data["active"] + data["archived"]
    assert sum(data["evictions"].values()) == data["archived"] == len(report.evicted) > 0
    assert data["superseded"] == len(report.superseded) > 0
    assert sum(data["tiers"].values()) == data["active"]
    assert data["over_budget_turns"] == report.over_budget_turns
