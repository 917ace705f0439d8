"""Traps of each format that the sample exports do not have."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from ebbtide import InputError
from ebbtide.importers import detect, read
from ebbtide.importers.chatgpt import _NAMES, _SOURCE, _without_citations
from importers.makers import chat, message, only, said, written, zipped

# ChatGPT


def test_conversations_come_oldest_first_and_undated_ones_before(tmp_path: Path) -> None:
    def one(name: str, time: Any) -> dict[str, Any]:
        return chat(name, message("user", name, time=time), time=time)

    path = written(tmp_path / "c.json", [one("new", 3e8), one("old", 1e8), one("undated", None)])
    assert [turn.text for turn in read("chatgpt", path)] == ["undated", "old", "new"]


def test_marks_of_links_and_sources_leave_the_words(tmp_path: Path) -> None:
    text = (
        "See \ue200url\ue202the page\ue202turn0\ue201 in "
        '\ue200entity\ue202["city","Porto","Portugal"]\ue201.\ue200cite\ue202turn0search1\ue201'
        "【12†source】【4:0†file.pdf】 And 【this】 stays."
    )
    path = written(tmp_path / "c.json", [chat("a", message("assistant", text))])
    assert only("chatgpt", path).text == "See the page in Porto. And 【this】 stays."
    # What a person wrote stays as it is.
    path = written(tmp_path / "u.json", [chat("a", message("user", "【1†source】"))])
    assert only("chatgpt", path).text == "【1†source】"


def test_voice_images_and_attachments(tmp_path: Path) -> None:
    image = {"content_type": "image_asset_pointer", "asset_pointer": "x"}
    voice = {"content_type": "audio_transcription", "text": "Said aloud."}
    sound = {"content_type": "audio_asset_pointer"}
    parts = {"content_type": "multimodal_text"}
    attached = {"attachments": [{"name": "a.pdf"}]}
    path = written(
        tmp_path / "c.json",
        [
            chat(
                "a",
                message("user", content={**parts, "parts": [voice, sound]}),
                message("user", content={**parts, "parts": [image]}),
                message("user", content={**parts, "parts": ["Look:", image, "and say."]}),
                message("user", "", metadata=attached),
                message("user", "first", "second", metadata=attached),
                message("assistant", content={"content_type": "hologram", "parts": ["x"]}),
                message("assistant", "thinking", channel="analysis"),
                message("assistant", "to python", recipient="python"),
                message("narrator", "who?"),
            )
        ],
    )
    export = read("chatgpt", path)
    assert [turn.text for turn in export] == [
        "Said aloud.",
        "Look: [image] and say.",
        "first\nsecond",
    ]
    assert dict(export.skips) == {"attachment": 2, "unknown": 2, "hidden": 1, "tool": 1}


def test_chatgpt_marks_that_never_close_are_looked_at_once() -> None:
    hostile = "【1†" * 300_000
    assert len(_SOURCE.findall(hostile)) == 1
    assert _without_citations(f"{hostile}\nSee 【2†x】.") == f"{hostile}\nSee."
    names = '"' + '\\"' * 300_000
    assert len(_NAMES.findall(names)) == 1
    assert _without_citations(f"a\ue200entity\ue202{names}\ue201b") == "ab"


def test_a_tree_that_is_broken_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    loop = chat("loop", message("user", "a"), message("assistant", "b"))
    loop["mapping"]["loop-0"]["parent"] = "loop-1"
    lost = chat("lost", message("user", "c"), message("user", "d", time=1.8e9))
    lost["mapping"]["lost-1"]["parent"] = "gone"
    lost["current_node"] = "nowhere"
    path = written(tmp_path / "c.json", [loop, lost])
    assert {turn.text for turn in read("chatgpt", path)} == {"a", "b", "d"}


def test_dates_as_text_and_dates_that_are_none(tmp_path: Path) -> None:
    path = written(
        tmp_path / "c.json",
        [
            chat(
                "a",
                message("user", "1", time="2024-05-01T10:00:00Z"),
                message("user", "2", time=1e300),
                message("user", "3", time="soon"),
                message("user", "4", time=True),
                message("user", "5", time=1_714_557_700_000),
                time=None,
            )
        ],
    )
    stamps = [turn.timestamp for turn in read("chatgpt", path)]
    assert stamps == ["2024-05-01T10:00:00+00:00"] * 4 + ["2024-05-01T10:01:40+00:00"]


def test_zip_folder_and_split_files(tmp_path: Path) -> None:
    one, two = [chat("one", message("user", "1"))], [chat("two", message("user", "2"))]
    files = {
        "export/conversations-000.json": one,
        "export/conversations-001.json": two,
        "export/shared_conversations.json": [{"id": "x"}],
        "export/user.json": {"id": "u"},
        "export/chat.html": "<html>",
        "__MACOSX/export/._conversations-000.json": b"\x00\x05",
    }
    path = zipped(tmp_path / "export.zip", files)
    assert detect(path) == "chatgpt"
    assert [turn.text for turn in read("auto", path)] == ["1", "2"]
    for name, value in files.items():
        written(tmp_path / "folder" / name, value)
    assert [turn.text for turn in read("auto", tmp_path / "folder")] == ["1", "2"]


# Claude


def claude(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    base = {"uuid": "k", "name": "Kiln", "created_at": "2025-01-01T00:00:00Z"}
    return {**base, "chat_messages": list(messages), **fields}


def test_claude_exports_without_parts_and_parents(tmp_path: Path) -> None:
    block = "```\nThis block is not supported on your current device yet.\n```"
    path = written(
        tmp_path / "conversations.json",
        [
            claude(
                {"uuid": "1", "text": "Hi", "sender": "human"},
                {"uuid": "2", "text": f"Here:\n\n{block}\n\nDone.", "sender": "assistant"},
                {"uuid": "3", "text": "", "sender": "human", "files": [{"file_name": "x.png"}]},
                {
                    "uuid": "4",
                    "text": "",
                    "sender": "human",
                    "attachments": [{"file_name": "a.txt", "extracted_content": "not said"}],
                },
                {"uuid": "5", "text": "beep", "sender": "robot"},
            )
        ],
    )
    export = read("claude", path)
    assert said(export) == [("user", "Hi"), ("assistant", "Here:\nDone.")]
    assert dict(export.skips) == {"attachment": 2, "unknown": 1}


def test_claude_tool_only_and_named_leaf(tmp_path: Path) -> None:
    def one(name: str, parent: str, text: str, sender: str = "human") -> dict[str, Any]:
        content = [{"type": "text", "text": text}] if text else [{"type": "tool_use"}]
        return {"uuid": name, "parent_message_uuid": parent, "sender": sender, "content": content}

    messages = (
        one("a", "0", "question"),
        one("b", "a", "", "assistant"),
        one("c", "a", "left"),
        one("d", "a", "right"),
    )
    path = written(tmp_path / "c.json", [claude(*messages)])
    export = read("claude", path)
    assert [turn.text for turn in export] == ["question", "right"]
    assert dict(export.skips) == {"tool": 1, "branch": 1}
    path = written(tmp_path / "c.json", [claude(*messages, current_leaf_message_uuid="c")])
    assert [turn.text for turn in read("claude", path)] == ["question", "left"]


# Gemini


def activity(title: str, time: str, html: str = "", header: str = "Gemini Apps") -> dict[str, Any]:
    answer = {"safeHtmlItem": [{"html": html}]} if html else {}
    return {"header": header, "title": title, "time": time, "products": [header], **answer}


def test_gemini_other_languages_days_and_html(tmp_path: Path) -> None:
    entries = [
        activity("Prompted late", "2025-03-01T23:30:00Z", "<p>a<br>b</p><script>x</script>"),
        activity("Eingegebener Prompt: hallo", "2025-03-01T10:00:00Z", "<b>Tag</b>"),
        activity("Prompted same moment, earlier", "2025-02-01T10:00:00Z"),
        activity("Created Gemini Canvas titled x", "2025-01-01T10:00:00Z", "<p>x</p>"),
    ]
    path = zipped(
        tmp_path / "takeout.zip",
        {
            "Takeout/My Activity/Search/MyActivity.json": [{"no": "message"}],
            "Takeout/My Activity/Gemini Apps/MyActivity.json": entries,
        },
    )
    assert detect(path) == "gemini"
    export = read("gemini", path, timezone="Asia/Tokyo")
    turns = list(export)
    assert [turn.text for turn in turns] == [
        "same moment, earlier",
        "Eingegebener Prompt: hallo",
        "Tag",
        "late",
        "a\nb",
    ]
    assert [turn.session_id for turn in turns[-2:]] == ["gemini-2025-03-02"] * 2
    assert [turn.external_id for turn in read("gemini", path)] == [t.external_id for t in turns]
    assert dict(export.skips) == {"activity": 1}


def test_gemini_times_without_a_zone_are_no_matter_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "MyActivity.json", [activity("Prompted x", "2025-01-02T02:00:00")])
    try:
        for zone in ("America/Lima", "Asia/Tokyo"):
            monkeypatch.setenv("TZ", zone)
            time.tzset()
            turn = only("gemini", path)
            assert (turn.session_id, turn.timestamp) == (
                "gemini-2025-01-02",
                "2025-01-02T02:00:00",
            )
    finally:
        monkeypatch.undo()
        time.tzset()


def test_takeout_as_html_says_what_to_do(tmp_path: Path) -> None:
    path = written(tmp_path / "MyActivity.html", "<html>")
    with pytest.raises(InputError, match="choose JSON"):
        list(read("gemini", path))


# OpenAI, LangChain, ShareGPT


@pytest.mark.parametrize("layout", ["list", "lines", "object", "response", "thought", "page"])
def test_openai_layouts(tmp_path: Path, layout: str) -> None:
    import json

    messages: list[Any] = [
        {"role": "system", "content": "sys"},
        {"role": "user", "content": "hi", "id": "m1"},
        {"role": "assistant", "content": None, "refusal": "I cannot."},
    ]
    if layout == "response":
        messages[1] = {
            "type": "message",
            "role": "user",
            "id": "m1",
            "content": [{"type": "input_text", "text": "hi"}],
        }
        messages.insert(1, {"type": "function_call", "name": "f", "arguments": "{}"})
        messages.insert(1, {"type": "reasoning", "summary": []})
    elif layout == "thought":
        messages[0] = {"type": "reasoning", "summary": []}
    value: Any = messages
    if layout == "lines":
        value = "\ufeff" + "\r\n".join(json.dumps(m) for m in messages) + "\r\n\r\n"
    elif layout == "object":
        value = {"messages": messages}
    elif layout == "page":
        value = {"object": "list", "data": messages}
    path = written(tmp_path / "chat.jsonl", value)
    assert detect(path) == "openai"
    export = read("openai", path)
    assert said(export) == [("user", "hi"), ("assistant", "I cannot.")]
    name = "chat#1" if layout in ("object", "page") else "chat"
    assert next(iter(export)).external_id == f"openai/{name}/m1"
    assert {turn.session_id for turn in export} == {name}


def test_pages_of_an_assistants_thread_are_turned_round(tmp_path: Path) -> None:
    def one(text: str, at: int) -> dict[str, Any]:
        content = [{"type": "text", "text": {"value": text, "annotations": []}}]
        return {"id": f"m{at}", "role": "user", "created_at": at, "content": content}

    page = {"object": "list", "data": [one("second", 1_700_000_060), one("first", 1_700_000_000)]}
    path = written(tmp_path / "t.json", page)
    turns = list(read("openai", path))
    assert [turn.text for turn in turns] == ["first", "second"]
    assert turns[0].timestamp == "2023-11-14T22:13:20+00:00"


def test_langchain_kinds(tmp_path: Path) -> None:
    def one(kind: str, content: Any, **data: Any) -> dict[str, Any]:
        return {"type": kind, "data": {"content": content, **data}}

    path = written(
        tmp_path / "l.json",
        [
            one("HumanMessageChunk", "a", name="Ana"),
            one("chat", "b", role="assistant"),
            one("AIMessageChunk", [{"type": "reasoning", "text": "x"}]),
            one("ai", [{"type": "tool_use", "id": "1"}, {"type": "text", "text": "c"}]),
            one("remove", "", id="z"),
            one("alien", "x"),
            {"type": "human", "content": "d", "additional_kwargs": {"timestamp": "2024-01-01"}},
        ],
    )
    export = read("langchain", path)
    assert said(export) == [("Ana", "a"), ("assistant", "b"), ("assistant", "c"), ("user", "d")]
    assert dict(export.skips) == {"hidden": 1, "deleted": 1, "unknown": 1}
    assert list(export)[-1].timestamp == "2024-01-01T00:00:00"


def test_sharegpt_keeps_html_that_is_talked_about(tmp_path: Path) -> None:
    talk = [
        {"from": "human", "value": "<p>How do I write this?</p>"},
        {"from": "gpt", "value": "Write <p>x</p>, then close it."},
        {"from": "gpt", "value": "<div><pre>a  b\n c</pre><ul><li><p>one</p></li></ul></div>"},
    ]
    path = written(tmp_path / "s.jsonl", {"conversations": talk})
    assert [turn.text for turn in read("sharegpt", path)] == [
        "<p>How do I write this?</p>",
        "Write <p>x</p>, then close it.",
        "a  b\n c\n- one",
    ]


@pytest.mark.parametrize(
    ("items", "chats"),
    [
        # Cut into parts, the last of them after one that is missing.
        ([("QWJhYvA_0", 2), ("QWJhYvA_2", 2), ("QWJhYvA_9", 1)], {"QWJhYvA": [1, 2, 3, 4, 10]}),
        ([("my-chat_0", 2), ("my-chat_2", 1)], {"my-chat": [1, 2, 3]}),
        # Chats that are numbered, in several ways.
        (
            [("identity_0", 2), ("identity_1", 2), ("identity_3", 1)],
            {"identity": [1, 2], "identity_1": [1, 2], "identity_3": [1]},
        ),
        ([("example_0", 2), ("example_1", 2)], {"example": [1, 2], "example_1": [1, 2]}),
        ([("train_000000", 1), ("train_000001", 1)], {"train_000000": [1], "train_000001": [1]}),
        (
            [("my-chat_0", 2), ("other", 1), ("my-chat_2", 1)],
            {"my-chat": [1, 2], "other": [1], "my-chat_2": [1]},
        ),
    ],
)
def test_sharegpt_parts_and_numbered_chats(
    tmp_path: Path, items: list[tuple[str, int]], chats: dict[str, list[int]]
) -> None:
    value = [
        {"id": name, "conversations": [{"from": "human", "value": "x"}] * count}
        for name, count in items
    ]
    found: dict[str, list[int]] = {}
    for turn in read("sharegpt", written(tmp_path / "s.json", value)):
        chat_, _, number = str(turn.external_id).removeprefix("sharegpt/").rpartition("/")
        assert turn.session_id == chat_
        found.setdefault(chat_, []).append(int(number))
    assert found == chats


def test_dates_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    def one(date: Any, **fields: Any) -> dict[str, Any]:
        return {"role": "user", "content": "x", "timestamp": date, **fields}

    given = ["Jan 2, 2025", "1735800001", None, "", 0, "2025-01-02 10:00 UTC", "2025-01-02"]
    path = written(tmp_path / "c.json", [one(date) for date in given])
    export = read("openai", path)
    assert [turn.timestamp for turn in export] == [
        None,
        "2025-01-02T06:40:01+00:00",
        *[None] * 4,
        "2025-01-02T00:00:00",
    ]
    assert export.notes == ["2 dates could not be read, the first: 'Jan 2, 2025'"]
    # One that can be read will do.
    path = written(tmp_path / "d.json", [one("2025-01-02", created_at="soon"), one("later")])
    export = read("openai", path)
    assert [turn.timestamp for turn in export] == ["2025-01-02T00:00:00", None]
    assert export.notes == ["a date could not be read: 'later'"]
    path = written(tmp_path / "g.json", [activity("Prompted x", "yesterday")])
    export = read("gemini", path)
    assert only("gemini", path).session_id == "gemini-undated"
    assert len(list(export)) == len(export.notes) == 1


# Slack, Discord


def test_slack_zip_direct_messages_bots_and_marks(tmp_path: Path) -> None:
    def post(text: str, second: int, **fields: Any) -> dict[str, Any]:
        return {"type": "message", "text": text, "ts": f"{1_735_800_000 + second}.000100", **fields}

    path = zipped(
        tmp_path / "export.zip",
        {
            "ws/users.json": [{"id": "U1", "name": "ana", "profile": {}}],
            "ws/channels.json": [],
            "ws/dms.json": [{"id": "D1", "members": ["U1", "U9"]}],
            "ws/integration_logs.json": [],
            "ws/D1/2025-01-02.json": [
                post("later", 9, user="U9", user_profile={"real_name": "Zoe"}),
                post("<mailto:a@b.c|a@b.c> <!subteam^S1|@team> <!date^1^{d}|May 1> &amp;lt;", 1),
                post("a link", 2, user="U1", attachments=[{"text": "its preview"}]),
                post("gone", 3, user="U1", hidden=True),
                post("waves", 4, user="U1", subtype="me_message"),
                post("huddle", 5, subtype="huddle_thread"),
                post("hi", 6, bot_id="B", bot_profile={"name": "Robo"}),
            ],
        },
    )
    assert detect(path) == "slack"
    export = read("slack", path)
    assert said(export) == [
        ("user", "a@b.c @team May 1 &lt;"),
        ("ana", "a link"),
        ("ana", "waves"),
        ("Robo", "hi"),
        ("Zoe", "later"),
    ]
    assert dict(export.skips) == {"hidden": 1, "system": 1}
    assert {(t.metadata or {})["title"] for t in export} == {"ana, U9"}


def test_discord_folder_and_wrong_files(tmp_path: Path) -> None:
    def channel(name: str, *texts: str) -> dict[str, Any]:
        posts = [
            {
                "id": f"{name}{n}",
                "type": "Default",
                "content": text,
                "timestamp": "2025-01-02T10:00:00+02:00",
                "author": {"name": "ana", "nickname": "Ana L."},
                "attachments": [{}],
            }
            for n, text in enumerate(texts)
        ]
        return {"guild": {"name": "G"}, "channel": {"id": name, "name": name}, "messages": posts}

    written(tmp_path / "d" / "1.json", channel("a", "one", ""))
    written(tmp_path / "d" / "2.json", channel("b", "two"))
    export = read("auto", tmp_path / "d")
    assert said(export) == [("Ana L.", "one"), ("Ana L.", "two")]
    assert dict(export.skips) == {"attachment": 1}
    assert [turn.timestamp for turn in export] == ["2025-01-02T10:00:00+02:00"] * 2
    assert [t.text for t in read("discord", tmp_path / "d", conversation="G / b")] == ["two"]
    for value in ({"messages": []}, {"guild": {}, "channel": {}}, [], {"guild": {}, "messages": 1}):
        path = written(tmp_path / "x.json", value)
        with pytest.raises(InputError, match="DiscordChatExporter"):
            list(read("discord", path))
