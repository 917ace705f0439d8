"""What all formats share: files, JSON of any size, errors with their place, previews."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ebbtide import InputError
from ebbtide.cli.importing import DateOrder, Format
from ebbtide.importers import FORMATS, REASONS, detect, preview, read
from ebbtide.importers.html import _MARKUP, from_html
from ebbtide.importers.jsonstream import JsonStream
from ebbtide.importers.texts import clean, content_words, identifier, moment
from ebbtide.importers.whatsapp_dates import ORDERS
from importers.makers import chat, message, written, zipped

ROOT = Path(__file__).resolve().parents[2]


def stream(text: str, step: int) -> JsonStream:
    return JsonStream((text[i : i + step] for i in range(0, len(text), step)), "x.json")


@pytest.mark.parametrize("step", [1, 2, 7, 1000])
def test_values_come_out_whatever_the_pieces(step: int) -> None:
    values: list[Any] = [{"a": [1, '\\"é\u2028', None]}, 12, [], "", {}, [[True]], -1.5e3, "x" * 99]
    assert list(stream(json.dumps(values, indent=1), step).documents()) == values
    lines = "\r\n".join(json.dumps(v) for v in values if not isinstance(v, list))
    documents = list(stream(f"\n{lines}\n\n", step).documents())
    assert documents == [v for v in values if not isinstance(v, list)]
    pairs = {
        name: list(value) if isinstance(value, Iterator) else value
        for name, value in stream('{"a":1 , "m":[1,[2]],"z":{"m":[]} }', step).pairs(("m",))
    }
    assert pairs == {"a": 1, "m": [1, [2]], "z": {"m": []}}
    skipped = [name for name, _ in stream('{"m":[1,2],"b":2}', step).pairs(("m",))]
    assert skipped == ["m", "b"]


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ('[{"a":1},\n {"a":]}', "line 2, column 7", "Expecting value"),
        ('[{"a":1}\n {"b":2}]', "line 2, column 2", "',' or ']' is expected, not '{'"),
        ('[{"a":1},', "line 1, column 10", "Expecting value"),
        ('[{"a":"b', "line 1, column 7", "Unterminated string"),
        ("[" * 100_000, "line 1, column 2", "nested too deeply"),
        ("[" + "9" * 5000 + "]", "line 1, column 2", "unreadable JSON"),
        ('[{"a": 1}] x', "line 1, column 12", "Expecting value"),
    ],
)
@pytest.mark.parametrize("step", [1, 1000])
def test_broken_json_is_named_by_its_place(text: str, place: str, words: str, step: int) -> None:
    if step == 1 and len(text) > 10_000:
        step = 5000
    with pytest.raises(InputError) as caught:
        list(stream(text, step).documents())
    assert str(caught.value).startswith(f"x.json, {place}: ")
    assert words in str(caught.value)


def test_a_large_value_is_read_in_linear_time() -> None:
    text = json.dumps([{"a": "word " * 200_000}] * 3)
    reads = 0

    def chunks() -> Iterator[str]:
        nonlocal reads
        for i in range(0, len(text), 4096):
            reads += 1
            yield text[i : i + 4096]

    reader = JsonStream(chunks(), "x")
    tries = 0
    decode = reader._decode

    def counted(source: str, at: int) -> Any:
        nonlocal tries
        tries += 1
        return decode(source, at)

    reader._decode = counted  # type: ignore[assignment]
    assert len(list(reader.documents())) == 3
    assert tries < 20 < reads


def test_conversations_before_a_break_are_given_first(tmp_path: Path) -> None:
    good = [chat("b", message("user", "2"), time=2e9), chat("a", message("user", "1"), time=1e9)]
    good[0]["mapping"]["b-0"]["message"]["create_time"] = 2e9
    text = json.dumps(good)[:-1] + ', {"mapping": oops'
    path = written(tmp_path / "conversations.json", text)
    export = read("chatgpt", path)
    turns: list[str] = []
    with pytest.raises(InputError) as caught:
        turns.extend(turn.text for turn in export)
    assert turns == ["1", "2"]
    assert str(caught.value).startswith(f"{path}, line 1, column ")
    assert type(caught.value) is InputError


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("content", ["[3]", '{"a": 1}', "nonsense", "<html>", '[{"x": 1}]'])
def test_a_file_of_another_kind_is_refused_with_a_remedy(
    tmp_path: Path, name: str, content: str
) -> None:
    path = written(tmp_path / ("general/2025-01-02.json" if name == "slack" else "f.json"), content)
    with pytest.raises(InputError) as caught:
        list(read(name, path))
    assert caught.value.code == "input.transcript"
    assert str(path) in str(caught.value)
    assert type(caught.value) is InputError


@pytest.mark.parametrize("name", [*FORMATS, "auto"])
def test_files_that_cannot_be_opened(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    broken = zipped(tmp_path / "b.zip", {"conversations.json": "[" + " " * 99_999 + "]"})
    broken.write_bytes(broken.read_bytes()[:60] + b"\0" * 20 + broken.read_bytes()[80:])
    half = written(tmp_path / "h.zip", broken.read_bytes()[:100])
    with pytest.raises(InputError, match=r"h\.zip: it is a zip that is cut short or damaged"):
        list(read(name, half))
    cut = written(tmp_path / "c.json.gz", gzip.compress(b"[" + bytes(range(32, 91)) * 99)[:-99])
    for path in (tmp_path / "none.json", tmp_path / "empty", broken, cut):
        with pytest.raises(InputError) as caught:
            list(read(name, path))
        assert caught.value.code == "input.transcript"


def test_packed_files_are_read(tmp_path: Path) -> None:
    value = json.dumps([chat("a", message("user", "hi"))]).encode()
    path = written(tmp_path / "conversations.json.gz", gzip.compress(value))
    assert detect(path) == "chatgpt"
    assert [turn.text for turn in read("chatgpt", path)] == ["hi"]
    assert read("chatgpt", path).fraction is None


def test_one_conversation_by_id_or_title(tmp_path: Path) -> None:
    path = written(
        tmp_path / "c.json", [chat(name, message("user", name)) for name in ("one", "two")]
    )
    for name in ("two", "Two"):
        assert [turn.text for turn in read("chatgpt", path, conversation=name)] == ["two"]
    with pytest.raises(InputError, match=re.escape("there are: one (One), two (Two)")):
        list(read("chatgpt", path, conversation="three"))


def test_arguments_are_checked(tmp_path: Path) -> None:
    path = written(tmp_path / "c.json", "[]")
    for options in ({"timezone": "Mars/Olympus"}, {"timezone": "../x"}, {"date_order": "dym"}):
        with pytest.raises(InputError) as caught:
            read("chatgpt", path, **options)
        assert caught.value.code == "input.field"
    with pytest.raises(InputError, match="there are auto, chatgpt, claude"):
        read("myspace", path)


def test_peeking_reads_nothing_twice(tmp_path: Path) -> None:
    path = written(tmp_path / "c.json", [chat("a", message("user", "1"), message("user", "2"))])
    export = read("chatgpt", path)
    first = export.peek()
    assert first is not None
    assert first.text == "1"
    assert export.place == f"{path}, message chatgpt/a/a-0"
    assert [turn.text for turn in export] == ["1", "2"]
    assert [turn.text for turn in export] == ["1", "2"]
    assert export.fraction == 1.0
    assert read("chatgpt", written(tmp_path / "e.json", "[]")).peek() is None


def test_a_preview_counts(tmp_path: Path) -> None:
    long = chat("a", *(message("user", f"{n} " + "x" * 1000, time=1e9 + n) for n in range(5)))
    path = written(tmp_path / "c.json", [long, chat("b", message("assistant", "hi"), title=None)])
    one, two = preview(read("chatgpt", path), keep=2)
    assert (one.id, one.title, one.turns, two.title) == ("a", "A", 5, None)
    assert (one.first, one.last) == ("2001-09-09T01:46:40+00:00", "2001-09-09T01:46:44+00:00")
    assert [len(turn.text) for turn in one.beginning] == [300, 300]
    assert one.beginning[0].text.endswith("…")
    assert json.dumps(two.to_dict())


def test_half_surrogates_are_joined_or_replaced(tmp_path: Path) -> None:
    assert clean(" \ud83d\ude00 ") == "😀"
    assert clean("a\ud83db") == "a\ufffdb"
    text = '[{"mapping":{"\\ud800":{"message":{"author":{"role":"user","name":"\\udc00"},'
    text += '"content":{"content_type":"text","parts":["\\ud83d", "x"]}}}},"id":"\\ud801"}]'
    (turn,) = read("chatgpt", written(tmp_path / "c.json", text))
    assert (turn.text, turn.speaker, turn.session_id) == ("\ufffd\nx", "\ufffd", "\ufffd")
    assert json.dumps(turn.to_dict()).encode()


def test_small_readers() -> None:
    assert moment("2025-02-01T09:00:01.5Z") == "2025-02-01T09:00:01.500000+00:00"
    assert [moment(v) for v in (0, -1, float("nan"), "x" * 9, None, [], 10**400, True)] == [
        None
    ] * 8
    assert moment("9999-12-31T23:59:59-23:00") is None
    # Milliseconds are no date of the eighteenth century, and eight digits are a day.
    assert moment("1701010112000") == moment(1_701_010_112) == "2023-11-26T14:48:32+00:00"
    assert moment(" 1701010112.5 ") == "2023-11-26T14:48:32.500000+00:00"
    assert moment("20231126") == "2023-11-26T00:00:00"
    assert moment("1" * 40) is None
    assert identifier(None, True, "", " a ") == "a"
    assert identifier(7) == "7"
    assert len(identifier("x" * 500) or "") == 16
    assert content_words({"type": "text", "text": "x"}).text == "x"
    assert content_words(None).reason == "empty"
    assert from_html("<p>a</p>\n<p>b &amp; c</p><ol><li><p>d</p></li></ol>") == "a\nb & c\n- d"
    assert from_html("<![weird[<b>x</b>") == "x"
    assert from_html("<table><tr><td>a</td><td>b</td></tr></table>") == "a b"
    assert from_html("<script>if (a < b) { '<p>' }</script >a <3 b<style>x") == "a <3 b"
    assert from_html("a<!-- <p> > -->b<a title='x > y' href=c>d</a>") == "abd"
    assert from_html(f"<b>&#{'9' * 5000}; a &lt; b") == f"&#{'9' * 5000}; a &lt; b"


@pytest.mark.parametrize(
    "mark", ["<!--", "<!-- >", "<a ", "<a b='", '<a b="', "<a b=", "<a/", "</a ", "<?", "<![CDATA["]
)
def test_markup_that_never_closes_is_looked_at_once(mark: str) -> None:
    hostile = f"<p>before {mark * 300_000}<b>after"
    assert [found[0] for found in _MARKUP.finditer(hostile)][2:] == []
    text = from_html(hostile)
    assert text.startswith("before")
    assert text.endswith("after")


def test_the_command_line_knows_the_formats() -> None:
    assert list(Format) == ["auto", *FORMATS]
    assert list(DateOrder) == list(ORDERS)


def test_the_page_explains_every_reason_and_format() -> None:
    page = (ROOT / "docs" / "importing.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.MULTILINE))
    assert {name: listed.get(name) for name in REASONS} == REASONS
    assert set(FORMATS) <= set(listed)
