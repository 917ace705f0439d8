"""The sample exports of the data folder give exactly the messages that a reader saw."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ebbtide.importers import FORMATS, detect, read
from importers.makers import said


@pytest.fixture(scope="module")
def exports(data_folder: Path) -> Path:
    folder = data_folder / "exports"
    if not folder.is_dir():
        pytest.skip(f"no sample exports in {folder}")
    return folder


LAUNCH = "Launch moved to <May 3>, see plan (https://ex.am/ple) and ask @Ben Moe in #general @here"
LANGCHAIN = [("user", "look [image]"), ("assistant", "done")]
# File, messages, what was left out. ChatGPT's are in a file of their own.
CASES: list[tuple[str, list[tuple[str, str]], dict[str, int]]] = [
    (
        "claude/synthetic_conversations.json",
        [
            ("user", "My kiln fires at 1220 C."),
            ("assistant", "Cone 6, then."),
            ("user", "Correction: 1222 C."),
            ("assistant", "Noted."),
            ("user", "Pasted glaze recipe: 40% feldspar."),
        ],
        {"branch": 1, "empty": 1},
    ),
    (
        "gemini/synthetic_MyActivity.json",
        [
            ("user", "I live in Lyon"),
            ("user", "and what about trains?"),
            ("assistant", "Trains & buses run hourly.\n- R1"),
        ],
        {"activity": 2, "attachment": 1},
    ),
    (
        "openai/synthetic_messages.jsonl",
        [
            ("ana", "My dog is Rex."),
            ("assistant", "Hi Rex!"),
            ("user", "What is this? [image]"),
            ("assistant", "A dog."),
        ],
        {"system": 1, "tool": 2},
    ),
    (
        "sharegpt/synthetic_sharegpt.json",
        [
            ("user", "hi"),
            ("assistant", "hello"),
            ("assistant", "part 2 of the same chat starts with the bot"),
            ("user", "go on"),
            ("assistant", "42"),
        ],
        {"system": 1, "tool": 2},
    ),
    ("langchain/dumpd_lc1.json", LANGCHAIN, {"system": 1, "tool": 2}),
    ("langchain/messages_to_dict.json", LANGCHAIN, {"system": 1, "tool": 2}),
    (
        "slack/synthetic_export",
        [
            ("ana", LAUNCH),
            ("CI", "build #7 failed"),
            ("Ben Moe", "reply lands in next day file"),
            ("Ben Moe", "also sent to channel"),
        ],
        {"system": 1, "deleted": 1, "attachment": 1},
    ),
    (
        "discord/synthetic_discordchatexporter.json",
        [("ana", "Raid moved to Friday @ben :wave:"), ("ben", "ok"), ("bot", "Score\n3-1")],
        {"system": 1},
    ),
    (
        "whatsapp/synthetic_de_DE.txt",
        [("Ana", "Wir landen am 4. März")],
        {"system": 1, "attachment": 1, "deleted": 1},
    ),
    (
        "whatsapp/synthetic_en_GB_ios_brackets.txt",
        [("Ana", "We land on 4 March"), ("Caro", "hi @47400000000")],
        {"system": 1, "attachment": 2, "deleted": 1},
    ),
    (
        "whatsapp/synthetic_en_US_android_12h.txt",
        [
            ("Ana", "We land on 3/4\nsecond line of the same message"),
            ("Ana", "Note: this has a colon"),
            ("Ana", "I booked Hotel Sol"),
        ],
        {"system": 2, "attachment": 1, "deleted": 1, "empty": 1},
    ),
    ("whatsapp/synthetic_es_12h.txt", [("Ana", "Llegamos el 4 de marzo")], {"attachment": 1}),
    ("whatsapp/synthetic_fi_ios.txt", [("Ana", "Laskeudumme 4.3.")], {}),
    ("whatsapp/synthetic_ko.txt", [("Ana", "포르투 도착")], {}),
]
NAMES = [case[0] for case in CASES]


@pytest.mark.parametrize(("name", "messages", "left_out"), CASES, ids=NAMES)
def test_messages_and_what_is_left_out(
    exports: Path, name: str, messages: list[tuple[str, str]], left_out: dict[str, int]
) -> None:
    kind = name.partition("/")[0]
    assert detect(exports / name) == kind
    export = read(kind, exports / name)
    assert said(export) == messages
    assert dict(export.skips) == left_out
    ids = [turn.external_id for turn in export]
    assert len(set(ids)) == len(ids)
    assert [turn.external_id for turn in read(kind, exports / name)] == ids


def test_chatgpt(exports: Path) -> None:
    expected: dict[str, Any] = json.loads(
        (exports / "chatgpt" / "synthetic_expected.json").read_text(encoding="utf-8")
    )
    path = exports / "chatgpt" / "synthetic_conversations.json"
    assert detect(path) == "chatgpt"
    export = read("chatgpt", path)
    turns = list(export)
    for name in ("c-1", "c-2", "c-3"):
        found = [[turn.role, turn.text] for turn in turns if turn.session_id == name]
        assert found == expected[name], name
    everything = "\n".join(turn.text for turn in turns)
    assert not [text for text in expected["not_to_import"] if text in everything]
    assert dict(export.skips) == {"system": 1, "hidden": 3, "tool": 2, "branch": 2}
    assert turns[0].timestamp == "2025-01-01T00:00:00.123456+00:00"


def test_every_sample_file_has_a_case(exports: Path) -> None:
    covered = {*NAMES, "chatgpt/synthetic_conversations.json", "chatgpt/synthetic_expected.json"}
    files = {f.relative_to(exports).as_posix() for f in exports.rglob("*") if f.is_file()}
    assert {f for f in files if not f.startswith("slack/")} == covered - {"slack/synthetic_export"}
    assert {folder.name for folder in exports.iterdir()} == set(FORMATS)


@pytest.mark.parametrize(
    ("name", "moments"),
    [
        ("de_DE", ["2025-01-02T21:42:00"]),
        ("en_GB_ios_brackets", ["2025-01-02T21:42:00", "2025-01-02T21:45:00"]),
        (
            "en_US_android_12h",
            ["2025-01-02T09:42:00", "2025-01-03T00:05:00", "2025-01-03T00:06:00"],
        ),
        ("es_12h", ["2025-01-02T21:41:00"]),
        ("fi_ios", ["2025-01-02T21:41:07"]),
        ("ko", ["2025-01-02T21:41:00"]),
    ],
)
def test_whatsapp_dates(exports: Path, name: str, moments: list[str]) -> None:
    path = exports / "whatsapp" / f"synthetic_{name}.txt"
    assert [turn.timestamp for turn in read("whatsapp", path)] == moments
    zoned = read("whatsapp", path, timezone="Asia/Seoul")
    assert [turn.timestamp for turn in zoned] == [f"{moment}+09:00" for moment in moments]


def test_threads_and_edits_are_kept_as_metadata(exports: Path) -> None:
    turns = list(read("slack", exports / "slack" / "synthetic_export"))
    assert turns[0].metadata == {
        "source": "slack",
        "title": "#general",
        "edited": "2025-01-02T06:40:50+00:00",
    }
    assert [(t.metadata or {}).get("reply_to") for t in turns[2:]] == [turns[0].external_id] * 2
    assert turns[0].timestamp == "2025-01-02T06:40:01.000200+00:00"
    assert [turn.role for turn in turns] == ["user", "assistant", "user", "user"]
    posts = list(read("discord", exports / "discord" / "synthetic_discordchatexporter.json"))
    assert (posts[1].metadata or {})["reply_to"] == posts[0].external_id


def test_parts_of_a_sharegpt_chat_are_one_conversation(exports: Path) -> None:
    turns = list(read("sharegpt", exports / "sharegpt" / "synthetic_sharegpt.json"))
    assert {turn.session_id for turn in turns} == {"QWJhYvA"}
    assert turns[2].external_id == "sharegpt/QWJhYvA/14"
