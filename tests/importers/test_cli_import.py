"""``ebbtide import``: into a store, again, interrupted, previewed, reported."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ebbtide import Config, InputError, Memory, Store
from ebbtide.cli import main
from ebbtide.importers import read
from ebbtide.replay import replay
from ebbtide.types import Turn
from importers.makers import chat, message, written


def run(*words: str | Path) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return int(left.value.code or 0)


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """Two conversations, the newer first, of two and three messages."""
    value = [
        chat("new", *(message("user", f"new {n}", time=2e9 + n) for n in range(3)), time=2e9),
        chat(
            "old",
            message("user", "old 0", time=1e9),
            message("tool", "{}"),
            message("assistant", "old 1", time=1e9 + 1),
            time=1e9,
        ),
    ]
    return written(tmp_path / "conversations.json", value)


def texts(store: Path, namespace: str = "default") -> list[str]:
    with Memory.open(store, namespace=namespace, read_only=True) as memory:
        return [turn.text for turn in memory.turns()]


ALL = ["old 0", "old 1", "new 0", "new 1", "new 2"]


@pytest.mark.usefixtures("stub")
def test_import_and_import_again(
    export: Path, store_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.json"
    assert run("import", "chatgpt", export, "--store", store_path, "--report", report) == 0
    printed = capsys.readouterr().out
    assert "Imported" in printed
    assert "tool calls and what they returned" in printed
    assert texts(store_path) == ALL
    document = json.loads(report.read_text(encoding="utf-8"))
    assert (document["accepted"], document["skipped"]) == (5, {"tool": 1})
    digest = document["imports"][0]["digest"]
    assert run("import", "auto", export, "--store", store_path, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["accepted"], document["duplicates"]) == (0, 5)
    assert (document["format"], document["finished"]) == ("chatgpt", True)
    assert document["imports"][0]["digest"] == digest
    with Memory.open(store_path, read_only=True) as memory:
        turn = memory.get(external_id="chatgpt/old/old-2")
        assert (turn.session_id, turn.metadata) == ("old", {"source": "chatgpt", "title": "Old"})


@pytest.mark.usefixtures("stub")
def test_a_memory_a_conversation(export: Path, store_path: Path) -> None:
    words = ("import", "chatgpt", export, "--store", store_path)
    assert run(*words, "--namespace-per-conversation") == 0
    with Store.open(store_path, read_only=True) as store:
        assert store.namespaces() == ["new", "old"]
    assert texts(store_path, "old") == ["old 0", "old 1"]
    assert run(*words, "--conversation", "New", "--namespace", "x") == 0
    assert texts(store_path, "x") == ["new 0", "new 1", "new 2"]


def test_a_dry_run_stores_nothing(
    export: Path, store_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("import", "chatgpt", export, "--store", store_path, "--dry-run")
    assert run(*words) == 0
    printed = capsys.readouterr().out
    assert "5 turns in 2 conversations" in printed
    assert "user: old 0" in printed
    assert run(*words, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert [(c["id"], c["turns"], c["last"]) for c in document["conversations"]] == [
        ("old", 2, "2001-09-09T01:46:41+00:00"),
        ("new", 3, "2033-05-18T03:33:22+00:00"),
    ]
    assert not store_path.exists()


def test_mistakes_leave_no_store_behind(
    export: Path, store_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = ("--store", store_path)
    assert run("import", "chatgpt", export) == 2
    assert run("import", "myspace", export, *to) == 2
    assert run("import", "claude", export, *to) == 1
    assert run("import", "chatgpt", tmp_path / "none", *to) == 1
    assert run("import", "chatgpt", export, *to, "--timezone", "Mars") == 1
    assert run("import", "chatgpt", export, *to, "--conversation", "x") == 1
    assert "there are: new (New), old (Old)" in capsys.readouterr().err
    assert run("import", "chatgpt", written(tmp_path / "empty.json", "[]"), *to) == 0
    assert "no message to import" in capsys.readouterr().err
    lines = written(tmp_path / "lines.jsonl", '{"role": "user", "text": "Hi"}\n' * 2)
    assert run("import", "auto", lines, *to) == 0
    assert "`ebbtide replay`" in capsys.readouterr().err
    assert not store_path.exists()


@pytest.mark.usefixtures("stub")
@pytest.mark.parametrize("per_conversation", [False, True])
def test_what_came_before_a_break_is_kept(
    export: Path,
    store_path: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    per_conversation: bool,
) -> None:
    broken = written(tmp_path / "broken.json", export.read_text(encoding="utf-8")[:-1] + ", {oops")
    words = ["import", "chatgpt", broken, "--store", store_path, "--report", tmp_path / "r.json"]
    assert run(*words, *(["--namespace-per-conversation"] if per_conversation else [])) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"ebbtide: {broken}, line 1, column ")
    assert error.count(str(broken)) == 1
    kept = texts(store_path, "new") if per_conversation else texts(store_path)
    assert kept == (ALL[2:] if per_conversation else ALL)
    report = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert report["error"]["code"] == "input.transcript"
    assert (report["finished"], report["accepted"]) == (False, 5)


@pytest.mark.usefixtures("stub")
def test_a_message_that_is_too_long_is_named(
    tmp_path: Path, store_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(
        tmp_path / "c.json", [chat("a", message("user", "ok"), message("user", "x" * 99))]
    )
    config = written(tmp_path / "c.toml", "[limits]\nmax_turn_chars = 50\n")
    assert run("import", "chatgpt", path, "--store", store_path, "--config", config) == 1
    assert f"{path}, message chatgpt/a/a-1: the turn has 99 characters" in capsys.readouterr().err
    assert texts(store_path) == ["ok"]
    assert run("import", "chatgpt", path, "--store", store_path) == 0
    assert len(texts(store_path)) == 2


@pytest.mark.usefixtures("stub")
def test_ctrl_c_and_again(
    export: Path,
    store_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from ebbtide.importers import chatgpt

    whole = chatgpt.turns

    def interrupted(reading: Any) -> Iterator[Turn]:
        for number, turn in enumerate(whole(reading)):
            if number == 3:
                os.kill(os.getpid(), signal.SIGINT)
            yield turn

    monkeypatch.setattr(chatgpt, "turns", interrupted)
    words = ("import", "chatgpt", export, "--store", store_path, "--batch-size", "2")
    assert run(*words) == 130
    said = re.search(r"at least (\d) turns were stored; run the same", capsys.readouterr().err)
    # It ends after the batch at hand; what was read ahead is read again.
    assert said is not None
    stored = int(said[1])
    assert 0 < stored <= 4
    assert texts(store_path) == ALL[:stored]
    monkeypatch.setattr(chatgpt, "turns", whole)
    assert run(*words, "--json") == 0
    assert json.loads(capsys.readouterr().out)["duplicates"] == stored
    assert texts(store_path) == ALL


@pytest.mark.usefixtures("stub")
def test_ctrl_c_while_conversations_are_put_into_order(
    export: Path, store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ebbtide.importers import chatgpt

    whole = chatgpt._turns

    def interrupted(*arguments: Any) -> list[Turn]:
        os.kill(os.getpid(), signal.SIGINT)
        return whole(*arguments)

    monkeypatch.setattr(chatgpt, "_turns", interrupted)
    assert run("import", "chatgpt", export, "--store", store_path) == 130
    assert not store_path.exists()


def test_the_memory_is_the_same_whatever_the_order_of_the_file(
    export: Path, tmp_path: Path, stub: Config
) -> None:
    turned = written(tmp_path / "turned.json", json.loads(export.read_text(encoding="utf-8"))[::-1])
    digests = set()
    for path in (export, turned):
        with Memory.in_memory(config=stub) as memory:
            digests.add(replay(memory, read("chatgpt", path), batch_size=2).digest)
    assert len(digests) == 1


def test_a_position_that_holds_another_text_is_refused(tmp_path: Path, stub: Config) -> None:
    path = written(tmp_path / "chat.jsonl", [{"role": "user", "content": "one"}])
    with Memory.in_memory(config=stub) as memory:
        replay(memory, read("openai", path))
        written(path, [{"role": "user", "content": "other"}])
        with pytest.raises(Exception, match="with another text is stored"):
            replay(memory, read("openai", path))
        # With an id of its own it is the same message, whatever its text.
        written(path, [{"role": "user", "content": "other", "id": "m"}])
        assert replay(memory, read("openai", path)).accepted == 1


@pytest.mark.parametrize("between", [0, 1, 200])
@pytest.mark.parametrize("same", [True, False])
def test_a_conversation_id_that_comes_twice(
    tmp_path: Path, stub: Config, between: int, same: bool
) -> None:
    said = ["My cat is Tom.", *(f"It is {n}." for n in range(between))]
    said.append("My cat is Tom." if same else "My dog is Rex.")
    names = ["s", *map(str, range(between)), "s"]
    chats = [
        {"id": name, "conversations": [{"from": "human", "value": text}]}
        for name, text in zip(names, said, strict=True)
    ]
    path = written(tmp_path / "chats.json", chats)
    with Memory.in_memory(config=stub) as memory:
        if same:
            summary = replay(memory, read("sharegpt", path))
            assert (summary.accepted, summary.duplicates) == (between + 1, 1)
        else:
            with pytest.raises(InputError, match="another text is stored"):
                replay(memory, read("sharegpt", path))
            assert len(memory) == between + 1


@pytest.mark.usefixtures("stub")
def test_a_file_name_that_is_no_unicode(
    store_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "r.json"
    path = written(tmp_path / os.fsdecode(b"caf\xe9.json"), [{"role": "user", "content": "hi"}])
    chat_ = written(tmp_path / os.fsdecode(b"caf\xe9.txt"), "31/12/24, 21:41 - Ana: We land")
    assert run("import", "whatsapp", chat_, "--dry-run", "--report", report) == 0
    assert json.loads(report.read_text(encoding="utf-8"))["file"] == str(chat_)
    assert run("import", "openai", path, "--store", store_path, "--report", report) == 0
    capsys.readouterr()
    with Memory.open(store_path, read_only=True) as memory:
        assert [turn.external_id for turn in memory.turns()] == ["openai/caf\\udce9/1"]
    written(tmp_path / "ws" / os.fsdecode(b"caf\xe9") / "2025-01-02.json", POSTS)
    (turn,) = read("slack", tmp_path / "ws")
    assert turn.session_id == "caf\\udce9"


POSTS = [{"type": "message", "text": "hi", "ts": "1735800000.000100", "user": "U1"}]
