"""The client against a server on loopback that does what each test tells it to."""

from __future__ import annotations

import base64
import json
import logging
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ebbtide.errors import ConfigError, EbbtideError, ExternalError, InputError, StoreError
from ebbtide.llm import LlmCache, LlmClient, Usage, used
from ebbtide.llm.seam import Meter

pytest.importorskip("openai", reason='openai is not installed: pip install "ebbtide[llm]"')
pytest.importorskip("jsonschema", reason='jsonschema is not installed: pip install "ebbtide[llm]"')

MESSAGES = [{"role": "user", "content": "Who keeps bees?"}]
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}
SECRET = "sk-very-secret-42"
USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


def completion(text: str | None, usage: Any = USAGE, finish: str = "stop", **more: Any) -> bytes:
    choice = {
        "index": 0,
        "finish_reason": finish,
        "message": {"role": "assistant", "content": text, **more},
    }
    body = {"id": "1", "object": "chat.completion", "created": 0, "model": "m"}
    return json.dumps(body | {"choices": [choice], "usage": usage}).encode()


class Endpoint:
    """Replies in order, the last one for ever; remembers what was asked."""

    def __init__(self) -> None:
        self.replies: list[tuple[int, bytes]] = [(200, completion("Ana"))]
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.content_type = "application/json"
        self.delay = 0.0
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                endpoint.requests.append(json.loads(body))
                endpoint.headers.append({k.lower(): v for k, v in self.headers.items()})
                place = min(len(endpoint.requests), len(endpoint.replies)) - 1
                status, reply = endpoint.replies[place]
                time.sleep(endpoint.delay)
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", endpoint.content_type)
                    self.send_header("Content-Length", str(len(reply)))
                    # Keeps the pauses between attempts out of the tests.
                    self.send_header("Retry-After-Ms", "1")
                    self.end_headers()
                    self.wfile.write(reply)
                except ConnectionError:
                    pass  # the client did not wait

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    served = Endpoint()
    yield served
    served.close()


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[LlmCache]:
    opened = LlmCache(tmp_path / "replies.db")
    yield opened
    opened.close()


def code_of(client: LlmClient, **options: Any) -> EbbtideError:
    with pytest.raises(EbbtideError) as caught:
        client.ask(MESSAGES, max_tokens=20, **options)
    return caught.value


def test_a_plain_reply_and_what_was_sent_for_it(endpoint: Endpoint) -> None:
    with LlmClient("m", endpoint.url, api_key=SECRET, seed=5) as client:
        reply = client.ask(MESSAGES, max_tokens=20)
    assert (reply.text, reply.data, reply.finish, reply.cached) == ("Ana", None, "stop", False)
    assert reply.usage == client.logical == client.spent == Usage(7, 3, 1, 0)
    assert endpoint.requests == [
        {"messages": MESSAGES, "max_tokens": 20, "model": "m", "temperature": 0.0, "seed": 5}
    ]
    assert endpoint.headers[0]["authorization"] == f"Bearer {SECRET}"


def test_the_environment_is_asked_for_nothing_but_the_named_variable(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "not-yours")
    monkeypatch.setenv("MY_KEY", SECRET)
    with LlmClient("m", endpoint.url) as client:
        client.ask(MESSAGES, max_tokens=20)
    assert "not-yours" not in str(endpoint.headers)
    with LlmClient("m", endpoint.url, api_key_variable="MY_KEY") as client:
        client.ask(MESSAGES, max_tokens=20)
    assert endpoint.headers[1]["authorization"] == f"Bearer {SECRET}"


def test_parameters_set_and_remove_fields(endpoint: Endpoint) -> None:
    changes = {"temperature": None, "max_tokens": None, "max_completion_tokens": 9}
    with LlmClient("m", endpoint.url, parameters=changes) as client:
        client.ask(MESSAGES, max_tokens=20)
    assert endpoint.requests == [
        {"messages": MESSAGES, "model": "m", "seed": 0, "max_completion_tokens": 9}
    ]


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
def test_a_busy_or_failing_endpoint_is_asked_again(endpoint: Endpoint, status: int) -> None:
    endpoint.replies = [(status, b"{}"), (status, b"{}"), (200, completion("Ana"))]
    with LlmClient("m", endpoint.url) as client:
        assert client.ask(MESSAGES, max_tokens=20).text == "Ana"
    assert len(endpoint.requests) == 3
    assert client.spent.calls == 1


@pytest.mark.parametrize(
    ("status", "code", "asked"),
    [
        (429, "llm.unavailable", 3),
        (500, "llm.unavailable", 3),
        (401, "llm.unavailable", 1),
        (404, "llm.unavailable", 1),
        (400, "llm.request", 1),
        (413, "llm.request", 1),
        (422, "llm.request", 1),
    ],
)
def test_attempts_are_bounded_and_a_refusal_is_not_repeated(
    endpoint: Endpoint, status: int, code: str, asked: int
) -> None:
    body = {"error": {"message": f"no, and your key is {SECRET}"}}
    endpoint.replies = [(status, json.dumps(body).encode())]
    with LlmClient("m", endpoint.url, api_key=SECRET, attempts=3) as client:
        error = code_of(client)
    assert error.code == code
    assert isinstance(error, ExternalError)
    assert f"HTTP {status}" in str(error)
    assert SECRET not in str(error)
    assert error.__cause__ is None
    assert len(endpoint.requests) == asked
    assert client.spent == Usage()


def test_an_endpoint_that_is_gone_is_left_alone_for_a_while(endpoint: Endpoint) -> None:
    endpoint.replies = [(503, b"gone")] * 4 + [(200, completion("Ana"))]
    with LlmClient("m", endpoint.url, attempts=1, failures=3, skipped=5) as client:
        errors = [code_of(client) for _ in range(3 + 5)]
        assert len(endpoint.requests) == 3
        # One is sent again, in vain; after as many more the next one is answered.
        errors += [code_of(client) for _ in range(1 + 5)]
        assert len(endpoint.requests) == 4
        assert {(error.code, str(error)) for error in errors} == {(errors[0].code, str(errors[0]))}
        assert errors[0].code == "llm.unavailable"
        assert [client.ask(MESSAGES, max_tokens=20).text for _ in range(3)] == ["Ana"] * 3
    assert len(endpoint.requests) == 7


def test_what_answers_is_asked_however_badly_it_does(endpoint: Endpoint) -> None:
    refused, gone = (400, b"{}"), (503, b"gone")
    endpoint.replies = [gone, gone, refused, gone, gone, (200, b"no JSON"), gone, gone, refused]
    with LlmClient("m", endpoint.url, attempts=1, failures=3) as client:
        codes = [code_of(client).code for _ in range(20)]
    assert len(endpoint.requests) == 20
    assert codes[8:] == ["llm.request"] * 12
    endpoint.replies = [gone]
    with LlmClient("m", endpoint.url, attempts=1, failures=0) as client:
        for _ in range(10):
            code_of(client)
    assert len(endpoint.requests) == 30


def test_a_silent_endpoint_times_out(endpoint: Endpoint) -> None:
    endpoint.delay = 0.6
    start = time.monotonic()
    with LlmClient("m", endpoint.url, timeout=0.1, attempts=1) as client:
        error = code_of(client)
    assert time.monotonic() - start < 5.0
    assert error.code == "llm.unavailable"
    assert "no reply in time" in str(error)


def test_a_refused_connection_is_unavailable() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://user:{SECRET}@127.0.0.1:{free.getsockname()[1]}/v1"
    with LlmClient("m", url, attempts=1) as client:
        error = code_of(client)
    assert error.code == "llm.unavailable"
    assert SECRET not in str(error) + repr(client) + json.dumps(client.identity())


@pytest.mark.parametrize(
    ("structured", "sent"), [("json_schema", "json_schema"), ("json_object", "json_object")]
)
def test_a_structured_reply_is_asked_for_and_validated(
    endpoint: Endpoint, structured: Any, sent: str
) -> None:
    endpoint.replies = [(200, completion('```json\n{"name": "Ana"}\n```'))]
    with LlmClient("m", endpoint.url, structured=structured) as client:
        reply = client.ask(MESSAGES, max_tokens=20, schema=SCHEMA)
    assert reply.data == {"name": "Ana"}
    assert endpoint.requests[0]["response_format"]["type"] == sent


def test_no_structure_is_asked_for_where_the_endpoint_knows_none(endpoint: Endpoint) -> None:
    endpoint.replies = [(200, completion('{"name": "Ana"}'))]
    with LlmClient("m", endpoint.url, structured="none") as client:
        assert client.ask(MESSAGES, max_tokens=20, schema=SCHEMA).data == {"name": "Ana"}
    assert "response_format" not in endpoint.requests[0]


@pytest.mark.parametrize(
    "wrong",
    [
        "Ana",
        '{"name": ',
        '{"name": 3}',
        '{"other": "Ana"}',
        '{"name": NaN}',
        r'{"name": "Ana \ud83d"}',
        "",
        "[" * 100_000,
    ],
)
def test_an_unusable_reply_is_pointed_out_and_asked_for_again(
    endpoint: Endpoint, wrong: str
) -> None:
    endpoint.replies = [(200, completion(wrong)), (200, completion('{"name": "Ana"}'))]
    with LlmClient("m", endpoint.url) as client:
        reply = client.ask(MESSAGES, max_tokens=20, schema=SCHEMA)
    assert reply.data == {"name": "Ana"}
    assert reply.usage == client.spent == Usage(14, 6, 2, 0)
    first, second = (request["messages"] for request in endpoint.requests)
    assert second[: len(first)] == first
    assert [message["role"] for message in second[len(first) :]] == ["assistant", "user"]


def test_unusable_replies_end_with_their_tokens_counted(
    endpoint: Endpoint, cache: LlmCache
) -> None:
    endpoint.replies = [(200, completion('{"name": "An', finish="length"))]
    with LlmClient("m", endpoint.url, attempts=3, cache=cache) as client:
        error = code_of(client, schema=SCHEMA)
        assert client.spent == client.logical == Usage(21, 9, 3, 0)
        assert error.code == "llm.answer"
        assert "length" in str(error)
        # Nothing unusable is kept.
        endpoint.replies = [(200, completion('{"name": "Ana"}'))]
        assert client.ask(MESSAGES, max_tokens=20, schema=SCHEMA).cached is False


def test_fields_that_the_package_does_not_know_are_sent_too(endpoint: Endpoint) -> None:
    with LlmClient("m", endpoint.url, parameters={"top_k": 1, "extra_body": {"a": 2}}) as client:
        client.ask(MESSAGES, max_tokens=20)
    assert endpoint.requests[0]["top_k"] == 1
    assert endpoint.requests[0]["extra_body"] == {"a": 2}


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"null",
        b"[1]",
        b"\xff\xfe",
        b"[" * 200_000,
        b'{"error": {"message": "busy"}}',
        b'{"choices": []}',
        b'{"choices": null}',
        b'{"choices": 3}',
        b'{"choices": {"0": 1}}',
        b'{"choices": [null]}',
        b'{"choices": [{"message": "Ana"}]}',
        b'{"choices": [{"message": {"content": ["Ana"]}}]}',
    ],
)
def test_a_body_that_is_no_completion_is_asked_for_again(endpoint: Endpoint, body: bytes) -> None:
    endpoint.replies = [(200, body), (200, completion("Ana"))]
    with LlmClient("m", endpoint.url) as client:
        assert client.ask(MESSAGES, max_tokens=20).text == "Ana"
    assert len(endpoint.requests) == 2


def test_a_web_page_is_no_completion(endpoint: Endpoint) -> None:
    endpoint.content_type = "text/html"
    endpoint.replies = [(200, b"<html>welcome</html>")]
    with LlmClient("m", endpoint.url, attempts=2) as client:
        error = code_of(client)
    assert error.code == "llm.answer"
    assert len(endpoint.requests) == 2


@pytest.mark.parametrize(
    "usage",
    [
        None,
        "7",
        [7],
        {},
        {"prompt_tokens": 7},
        {"prompt_tokens": -7, "completion_tokens": 3},
        {"prompt_tokens": True, "completion_tokens": 3},
        {"prompt_tokens": 7, "completion_tokens": [3]},
        {"prompt_tokens": float("nan"), "completion_tokens": 3},
        {"prompt_tokens": 10**30, "completion_tokens": 3},
        {"prompt_tokens": 7, "completion_tokens": 2**40 + 1},
    ],
)
def test_tokens_that_are_not_reported_are_estimated_and_marked(
    endpoint: Endpoint, usage: Any
) -> None:
    endpoint.replies = [(200, completion("Ana", usage=usage))]
    with LlmClient("m", endpoint.url) as client:
        cost = client.ask(MESSAGES, max_tokens=20).usage
    assert cost.estimated == cost.calls == 1
    assert cost.prompt > 0
    assert cost.completion > 0


def test_half_a_surrogate_pair_is_not_sent(endpoint: Endpoint, cache: LlmCache) -> None:
    with (
        LlmClient("m", endpoint.url, cache=cache) as client,
        pytest.raises(ExternalError) as caught,
    ):
        client.ask([{"role": "user", "content": "bees \ud83d"}], max_tokens=20)
    assert caught.value.code == "llm.request"
    assert endpoint.requests == []


def test_half_a_surrogate_pair_does_not_reach_the_caller(
    endpoint: Endpoint, cache: LlmCache
) -> None:
    endpoint.replies = [(200, completion("bees \ud83d"))]
    with LlmClient("m", endpoint.url, cache=cache) as client:
        assert client.ask(MESSAGES, max_tokens=20).text == "bees ?"


def test_a_cached_reply_costs_logically_and_spends_nothing(
    endpoint: Endpoint, cache: LlmCache
) -> None:
    endpoint.replies = [(200, completion("no")), (200, completion('{"name": "Ana"}'))]
    with LlmClient("m", endpoint.url, cache=cache) as client:
        fresh = client.ask(MESSAGES, max_tokens=20, schema=SCHEMA)
    with LlmClient("m", endpoint.url, cache=cache) as client:
        again = client.ask(MESSAGES, max_tokens=20, schema=SCHEMA)
        assert (again.text, again.data, again.usage) == (fresh.text, fresh.data, fresh.usage)
        assert again.cached
        assert client.logical == Usage(14, 6, 2, 0)
        assert client.spent == Usage()
    assert len(endpoint.requests) == 2


@pytest.mark.parametrize(
    ("client_change", "ask_change"),
    [
        ({"model": "other"}, {}),
        ({"seed": 1}, {}),
        ({"parameters": {"top_p": 0.5}}, {}),
        ({"structured": "none"}, {}),
        ({}, {"max_tokens": 21}),
        ({}, {"schema": SCHEMA | {"title": "person"}}),
        ({}, {"messages": [{"role": "system", "content": "Be brief."}, *MESSAGES]}),
    ],
)
def test_the_whole_request_is_the_key(
    endpoint: Endpoint,
    cache: LlmCache,
    client_change: dict[str, Any],
    ask_change: dict[str, Any],
) -> None:
    endpoint.replies = [(200, completion('{"name": "Ana"}'))]
    asked: dict[str, Any] = {"messages": MESSAGES, "max_tokens": 20, "schema": SCHEMA}
    made: dict[str, Any] = {"model": "m", "base_url": endpoint.url, "cache": cache}
    with LlmClient(**made) as client:
        client.ask(**asked)
    with LlmClient(**(made | client_change)) as client:
        assert not client.ask(**(asked | ask_change)).cached
        assert client.ask(**(asked | ask_change)).cached


def test_the_cache_holds_neither_key_nor_prompt(endpoint: Endpoint, tmp_path: Path) -> None:
    path = tmp_path / "folder" / "replies.db"
    cache = LlmCache(path)
    with LlmClient("m", endpoint.url, api_key=SECRET, cache=cache) as client:
        client.ask(MESSAGES, max_tokens=20)
    with LlmClient("m", endpoint.url, api_key="another", cache=cache) as client:
        assert client.ask(MESSAGES, max_tokens=20).cached
    cache.close()
    held = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert b"Ana" in held
    assert SECRET.encode() not in held
    assert b"bees" not in held


@pytest.mark.parametrize("value", ["{", "[]", '{"text": "{}"}', '{"text": 3, "finish": "stop"}'])
def test_a_damaged_row_is_asked_for_anew(endpoint: Endpoint, tmp_path: Path, value: str) -> None:
    path = tmp_path / "replies.db"
    for cached in False, True, False:
        cache = LlmCache(path)
        with LlmClient("m", endpoint.url, cache=cache) as client:
            assert client.ask(MESSAGES, max_tokens=20).cached is cached
        cache.close()
        if cached:
            database = sqlite3.connect(path)
            database.execute("UPDATE replies SET value = ?", (value,))
            database.commit()
            database.close()


def test_a_row_with_something_else_in_a_field_is_asked_for_anew(
    endpoint: Endpoint, tmp_path: Path
) -> None:
    usage = {"prompt": 7, "completion": 3}
    whole = {"text": "Ana", "finish": "stop", "usage": usage}
    changes: list[dict[str, Any]] = [
        {"text": None},
        {"text": "\ud83d"},
        {"text": " "},
        {"finish": 3},
        {"usage": None},
        *({"usage": usage | {"prompt": wrong}} for wrong in ("7", -7, 1.5, True, [7], 2**41)),
    ]
    rows = ['{"text": ' + "[" * 100_000, *(json.dumps(whole | change) for change in changes)]
    cache = LlmCache(tmp_path / "replies.db")
    database = sqlite3.connect(tmp_path / "replies.db", isolation_level=None)
    with closing(cache), closing(database), LlmClient("m", endpoint.url, cache=cache) as client:
        client.ask(MESSAGES, max_tokens=20)
        for row in rows:
            database.execute("UPDATE replies SET value = ?", (row,))
            assert not client.ask(MESSAGES, max_tokens=20).cached, row[:80]
        database.execute("UPDATE replies SET value = ?", (json.dumps(whole),))
        assert client.ask(MESSAGES, max_tokens=20).cached


def test_a_cache_that_is_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, and long enough to look like one " * 50)
    with pytest.raises(StoreError) as caught:
        LlmCache(path)
    assert caught.value.code == "store.open"


def test_a_cache_that_fails_later_says_so(endpoint: Endpoint, cache: LlmCache) -> None:
    cache.close()
    with LlmClient("m", endpoint.url, cache=cache) as client:
        assert code_of(client).code == "store.sqlite"


@pytest.mark.parametrize(
    "wrong",
    [
        {"model": ""},
        {"base_url": "localhost:8080"},
        {"base_url": "http://"},
        {"base_url": "http://[bad/v1"},
        {"base_url": "http://127.0.0.1:no/v1"},
        {"base_url": "http://127.0.0.1:99999/v1"},
        {"base_url": "http://127.0.0.1:9/v1\n"},
        {"base_url": "http://127.0.0.1:9/v\ud8001"},
        {"base_url": "http://\uff11\uff12\uff17.0.0.1:9/v1"},
        {"base_url": "http://[v1.x]:9/v1"},
        {"base_url": "http://127.0.0.1:9/" + 70_000 * "v"},
        {"base_url": "http://127.0.0.1:9/v1?api-version=1"},
        {"base_url": "http://127.0.0.1:9/v1#there"},
        {"base_url": "http://user:password@127.0.0.1:9/v1", "api_key": "a"},
        {"parameters": {"stream": True}},
        {"parameters": {"top_p": float("nan")}},
        {"parameters": {"stop": object()}},
        {"attempts": 0},
        {"failures": -1},
        {"skipped": -1},
        {"timeout": 0.0},
        {"timeout": float("inf")},
        {"timeout": float("nan")},
        {"api_key_variable": "EBBTIDE_TEST_NO_SUCH_VARIABLE"},
        {"api_key": "a", "api_key_variable": "HOME"},
    ],
)
def test_arguments_that_cannot_be_used_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        LlmClient(**({"model": "m", "base_url": "http://127.0.0.1:9/v1"} | wrong))
    assert caught.value.code == "input.field"


@pytest.mark.parametrize("key", [f"{SECRET}\n", f" {SECRET}", f"{SECRET}é", f"{SECRET}\ud83d"])
def test_a_key_that_no_header_can_hold_is_refused_without_being_shown(
    key: str,
) -> None:
    with pytest.raises(InputError) as caught:
        LlmClient("m", "http://127.0.0.1:9/v1", api_key=key)
    assert caught.value.code == "input.field"
    assert SECRET not in str(caught.value)


def test_a_schema_that_is_none_is_refused_before_anything_is_sent(endpoint: Endpoint) -> None:
    with LlmClient("m", endpoint.url) as client:
        assert code_of(client, schema={"type": "no such type"}).code == "input.field"
    assert endpoint.requests == []


def test_a_schema_that_refers_to_nothing_is_refused(endpoint: Endpoint) -> None:
    endpoint.replies = [(200, completion("{}"))]
    with LlmClient("m", endpoint.url) as client:
        assert code_of(client, schema={"$ref": "#/$defs/nothing"}).code == "input.field"


def test_a_reply_too_deep_for_its_schema_is_no_answer(endpoint: Endpoint) -> None:
    endpoint.replies = [(200, completion("[" * 300 + "]" * 300))]
    schema = {"anyOf": [{"type": "array", "items": {"$ref": "#"}}, {"type": "string"}]}
    with LlmClient("m", endpoint.url, attempts=1) as client:
        assert code_of(client, schema=schema).code == "llm.answer"


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(ConfigError, match=r"ebbtide\[llm\]") as caught:
        LlmClient("m", "http://127.0.0.1:9/v1")
    assert caught.value.code == "config.model_missing"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("ALL_PROXY", f"foo://user:{SECRET}@127.0.0.1:9"),
        ("HTTPS_PROXY", "http://[::1"),
        ("SSL_CERT_FILE", "/no/such/file"),
    ],
)
def test_what_the_environment_makes_impossible_is_named_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ExternalError, match=variable) as caught:
        LlmClient("m", "http://127.0.0.1:9/v1")
    assert caught.value.code == "llm.unavailable"
    assert SECRET not in str(caught.value)


def test_a_user_and_a_password_are_sent_and_nowhere_to_be_seen(
    endpoint: Endpoint, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    basic = base64.b64encode(f"us:er:{SECRET}@".encode()).decode()
    address = endpoint.url.replace("http://", f"http://us%3Aer:{SECRET}%40@")
    endpoint.replies = [
        (200, completion("Ana")),
        (401, json.dumps({"error": {"message": f"no {SECRET}@, no {basic}"}}).encode()),
    ]
    with LlmClient("m", address) as client:
        client.ask(MESSAGES, max_tokens=20)
        error = code_of(client)
    assert endpoint.headers[0]["authorization"] == f"Basic {basic}"
    shown = str(error) + repr(client) + json.dumps(client.identity()) + caplog.text
    assert SECRET not in shown
    assert basic not in shown


@pytest.mark.parametrize("text", [None, "", " \n"])
def test_an_empty_reply_is_no_answer_and_is_not_kept(
    endpoint: Endpoint, cache: LlmCache, text: str | None
) -> None:
    empty = completion(text, finish="content_filter", refusal="I will not.")
    endpoint.replies = [(200, empty), (200, completion("Ana"))]
    with LlmClient("m", endpoint.url, cache=cache) as client:
        error = code_of(client)
        assert error.code == "llm.answer"
        assert "content_filter" in str(error)
        assert "I will not." in str(error)
        assert client.spent == Usage(7, 3, 1, 0)
        assert not client.ask(MESSAGES, max_tokens=20).cached


def test_an_error_that_comes_as_a_reply_is_quoted(endpoint: Endpoint) -> None:
    endpoint.replies = [(200, b'{"error": {"message": "quota \\ud83d exceeded"}}')]
    with LlmClient("m", endpoint.url, attempts=2) as client:
        error = code_of(client)
    assert error.code == "llm.answer"
    assert "the endpoint says: quota ? exceeded" in str(error)


@pytest.mark.parametrize("charset", ["hex", "rot13", "no-such-charset"])
def test_a_reply_is_utf8_whatever_its_header_says(endpoint: Endpoint, charset: str) -> None:
    endpoint.content_type = f"application/json; charset={charset}"
    endpoint.replies = [(200, completion("Ana"))]
    with LlmClient("m", endpoint.url) as client:
        assert client.ask(MESSAGES, max_tokens=20).text == "Ana"


def test_what_the_package_does_not_foresee_is_no_answer(endpoint: Endpoint) -> None:
    endpoint.content_type = "application/json; charset=hex"
    endpoint.replies = [(401, b"no")]
    with LlmClient("m", endpoint.url, attempts=1) as client:
        assert isinstance(code_of(client), ExternalError)


def test_a_closed_client_is_unavailable(endpoint: Endpoint) -> None:
    client = LlmClient("m", endpoint.url)
    client.close()
    error = code_of(client)
    assert error.code == "llm.unavailable"
    assert "closed" in str(error)


@pytest.mark.parametrize(
    "wrong", [Usage(-5, 0, 1), Usage(2**40 + 1), Usage(calls=True), Usage(1.5), Usage("7"), 7]
)
def test_no_model_can_have_used_what_is_no_count(wrong: Any) -> None:
    with pytest.raises(InputError) as caught:
        used(wrong)
    assert caught.value.code == "input.field"


def test_threads_that_share_a_client_pay_each_for_their_own(endpoint: Endpoint) -> None:
    endpoint.replies = [(200, completion('{"name": "Ana"}'))]
    asks = {"one": 1, "three": 3}
    begun, done = threading.Barrier(len(asks)), threading.Barrier(len(asks))
    used: dict[str, Usage] = {}

    def work(name: str, client: LlmClient) -> None:
        meter = Meter(client)
        begun.wait(10)
        for _ in range(asks[name]):
            meter.complete_json("Who?", name, SCHEMA)
        done.wait(10)
        used[name] = meter.usage

    with LlmClient("m", endpoint.url) as client:
        threads = [threading.Thread(target=work, args=(name, client)) for name in asks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert client.logical == Usage(28, 12, 4, 0)
    assert used == {"one": Usage(7, 3, 1, 0), "three": Usage(21, 9, 3, 0)}


def test_replies_that_were_of_no_use_were_paid_for(endpoint: Endpoint) -> None:
    endpoint.replies = [(200, completion("Ana"))]
    with LlmClient("m", endpoint.url, attempts=2) as client:
        meter = Meter(client)
        with pytest.raises(ExternalError):
            meter.complete_json("Who?", "Ana", SCHEMA)
    assert meter.usage == Usage(14, 6, 2, 0)
