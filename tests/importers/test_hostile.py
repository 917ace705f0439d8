"""Whatever a file holds, reading it gives turns that can be stored, or an EbbtideError."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ebbtide import EbbtideError
from ebbtide.importers import FORMATS, detect, preview, read
from ebbtide.importers.texts import content_words
from ebbtide.inputs import prepare
from importers.makers import chat, message, written

NAMES = {"whatsapp": "_chat.txt", "slack": "general/2025-01-02.json"}
KEYS = re.findall(
    r"\w+",
    """
    mapping message author role content content_type parts metadata recipient current_node
    parent create_time conversation_id id title uuid name chat_messages sender text
    attachments files parent_message_uuid created_at header time products safeHtmlItem html
    attachedFiles messages conversations from value type data kwargs lc tool_calls refusal
    guild channel timestamp reference messageId forwardedMessage embeds isBot ts subtype
    user thread_ts edited hidden user_profile bot_id profile additional_kwargs
    extracted_content file_name nickname
    """,
)
WORDS = [
    "user", "assistant", "human", "ai", "gpt", "text", "multimodal_text", "message", "Default",
    "Reply", "Gemini Apps", "Prompted x", "2025-01-02T10:00:00Z", "1735800001.000200", "all",
    "a", "b", "root", "", "\ud83d", "\x00", "<p>x</p>", "HumanMessage", "tool_use",
]  # fmt: skip
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from(WORDS), st.text()
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
        st.dictionaries(st.sampled_from(["a", "b", "root", ""]), inner, max_size=4),
    ),
    max_leaves=30,
)


def fitting(name: str) -> st.SearchStrategy[Any]:
    """Values that pass a format's first look, with anything inside."""
    anything = dict.fromkeys(("id", "title", "create_time", "current_node"), values)
    messages = st.lists(st.dictionaries(st.sampled_from(KEYS), values, max_size=8), max_size=5)
    author = st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "tool"])})
    content = st.fixed_dictionaries({"content_type": st.just("text"), "parts": values})
    said = st.fixed_dictionaries(
        {"author": author, "content": content}, optional={"create_time": values, "id": values}
    )
    node = st.fixed_dictionaries({"message": said | values, "parent": st.sampled_from("abc")})
    items: dict[str, st.SearchStrategy[Any]] = {
        "chatgpt": st.fixed_dictionaries(
            {"mapping": st.dictionaries(st.sampled_from("abc"), node | values)}, optional=anything
        ),
        "claude": st.fixed_dictionaries(
            {"chat_messages": messages | st.lists(values)}, optional={"uuid": values}
        ),
        "gemini": st.fixed_dictionaries(
            {"header": st.just("Gemini") | values, "title": values, "time": values},
            optional={"safeHtmlItem": values, "products": values},
        ),
        "sharegpt": st.fixed_dictionaries({"conversations": messages | st.lists(values)}),
        "slack": st.fixed_dictionaries(
            {"ts": st.from_regex(r"\d{1,12}\.\d{6}", fullmatch=True) | values},
            optional=dict.fromkeys(("text", "user", "attachments", "edited", "thread_ts"), values),
        ),
        "openai": st.fixed_dictionaries({"role": st.just("user"), "content": values}),
        "langchain": st.fixed_dictionaries({"type": st.just("human"), "content": values}),
    }
    if name == "discord":
        return st.fixed_dictionaries(
            {"guild": st.just({}), "channel": values | st.just({}), "messages": messages}
        )
    return st.lists(items.get(name, values), max_size=4)


def attempt(name: str, data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / NAMES.get(name, "export.json")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        for call in (
            lambda: [prepare(turn, max_chars=10**9) for turn in read(name, path)],
            lambda: preview(read(name, path, timezone="Europe/Oslo")),
            lambda: detect(path),
        ):
            failure: EbbtideError | None = None
            try:
                call()
            except EbbtideError as error:
                failure = error
            if failure is not None:
                assert failure.code == "input.transcript"
                assert str(path) in str(failure)


calm = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


@pytest.mark.parametrize("name", FORMATS)
def test_values_of_a_fitting_shape(name: str) -> None:
    @calm
    @given(fitting(name))
    def check(value: Any) -> None:
        attempt(name, json.dumps(value).encode())

    check()


@pytest.mark.parametrize("name", FORMATS)
def test_any_json(name: str) -> None:
    @calm
    @given(values)
    @example({"mapping": None, "messages": None})
    def check(value: Any) -> None:
        attempt(name, json.dumps(value).encode())

    check()


@pytest.mark.parametrize("name", FORMATS)
def test_any_bytes(name: str) -> None:
    @calm
    @given(st.binary(max_size=300))
    @example(b"PK\x03\x04")
    @example(b"\x1f\x8b\x08\x00")
    @example(b"\xff\xfe[")
    @example(b"\xef\xbb\xbf")
    def check(data: bytes) -> None:
        attempt(name, data)

    check()


lines = st.lists(
    st.one_of(
        st.from_regex(
            r"\u200e?\[?\d{1,4}[./-]\d{1,2}[./-]\d{1,4},? \d{1,2}[:.]\d\d( [AaPp]\.?[Mm])?"
            r"\]?( - | )"
            r"[A-Za-z\"“: ]{0,9}: ?\u200e?[a-z<> ]{0,12}",
            fullmatch=True,
        ),
        st.text(max_size=30),
    ),
    max_size=8,
)


@calm
@given(lines)
@example(["1/1/25, 10:00 - : x", "1/1/25, 10:00 - \u200e: x", "1/1/25, 10:00 - A: \ud800"])
def test_any_chat(texts: list[str]) -> None:
    attempt("whatsapp", "\n".join(texts).encode("utf-8", "surrogatepass"))
    attempt("whatsapp", "\n".join(texts).encode("utf-8", "replace"))


@pytest.mark.parametrize("piece", [" ", "\n", "<td>"])
def test_a_long_run_takes_no_more_than_its_length(tmp_path: Path, piece: str) -> None:
    # With the square of the length, each of these ran into the time limit of a test.
    text = f"a{piece * 200_000}b"
    gemini = {"header": "Gemini Apps", "title": "Prompted x", "time": "2025-01-02T10:00:00Z"}
    exports: dict[str, Any] = {
        "chatgpt": [chat("x", message("assistant", text))],
        "claude": [{"uuid": "x", "chat_messages": [{"sender": "human", "text": text}]}],
        "gemini": [{**gemini, "safeHtmlItem": [{"html": text}]}],
        "whatsapp": f"1/13/25, 10:00 - A: {text}\n1/13/25, 10:01 - B: c\n",
    }
    for name, value in exports.items():
        path = written(tmp_path / name / NAMES.get(name, "export.json"), value)
        (turn,) = [turn for turn in read(name, path) if turn.text.endswith("b")]
        assert turn.text.startswith("a")


def test_parts_without_number_are_joined_in_one_go() -> None:
    part = {"type": "text", "text": "x" * 1000}
    assert content_words([part] * 20_000).text == "\n".join(["x" * 1000] * 20_000)
