"""What the daemon turns away, over real sockets."""

from __future__ import annotations

import http.client
import json
import logging
import socket
import stat
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from reference.stand_ins import scripted

from ebbtide import ConfigError, ExternalError, connect
from ebbtide.daemon.guard import Guard
from ebbtide.daemon.listening import loopback, own_token
from ebbtide.daemon.server import Daemon, Settings

from .conftest import Served


@pytest.fixture
def on_port(start: Callable[..., Served]) -> Served:
    return start(port=0, max_body=4096)


def ask(
    served: Served,
    path: str = "/v1/health",
    *,
    method: str = "GET",
    body: Any = None,
    **headers: str | None,
) -> tuple[int, dict[str, Any], http.client.HTTPResponse]:
    """A request with headers of one's own; ``None`` leaves one out."""
    place = served.address.removeprefix("http://")
    sent: dict[str, str | None] = {
        "Host": place,
        "Authorization": f"Bearer {served.token.read_text().strip()}",
        "Content-Type": "application/json",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    connection = http.client.HTTPConnection(place, timeout=30)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    chunked = not isinstance(body, bytes | None)
    for name, value in sent.items():
        if value is not None:
            connection.putheader(name, value)
    if isinstance(body, bytes):
        connection.putheader("Content-Length", str(len(body)))
    if chunked:
        connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders(body, encode_chunked=chunked)
    answer = connection.getresponse()
    found = json.loads(answer.read() or b"{}")
    connection.close()
    return answer.status, found, answer


def code(found: dict[str, Any]) -> str:
    assert set(found) == {"error"}
    assert set(found["error"]) == {"code", "message"}
    assert len(found["error"]["message"]) > 15
    return str(found["error"]["code"])


def test_the_token_is_asked_for(on_port: Served) -> None:
    assert ask(on_port)[0] == 200
    token = on_port.token.read_text().strip()
    for given in (None, "", "Bearer", "Bearer ", "Bearer x", token, f"Basic {token}", "Bearer é"):
        for path in ("/v1/health", "/v1/openapi.json", "/v1/nowhere", "/v1/turns?namespace=x"):
            status, found, answer = ask(on_port, path, Authorization=given)
            assert (status, code(found)) == (401, "daemon.token")
            assert answer.getheader("WWW-Authenticate") == 'Bearer realm="ebbtide"'
    for wrong in (token[:-1], token + "x"):
        with pytest.raises(ExternalError) as caught:
            connect(on_port.address, token=wrong)
        assert caught.value.code == "daemon.token"
    for given in (token, on_port.token.read_text(), f" {token}\r\n", on_port.token):
        with connect(on_port.address, token=given) as memory:
            assert memory.namespaces() == ["default"]


def test_a_token_that_cannot_be_one_is_not_shown(on_port: Served, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.token"
    for token in ("Xq7 secret", "Xq7\nsecret", "Xq7\x00", "Xq7é", "", " \n", 7, b"Xq7"):
        with pytest.raises(ConfigError, match="is no token") as caught:
            connect(on_port.address, token=token)  # type: ignore[arg-type]
        assert caught.value.code == "config.range"
        assert "Xq7" not in "".join(traceback.format_exception(caught.value))
        if isinstance(token, str):
            wrong.write_text(token, encoding="utf-8")
            with pytest.raises(ConfigError, match=r"wrong\.token is no token") as caught:
                connect(on_port.address, token=wrong)
            assert "Xq7" not in "".join(traceback.format_exception(caught.value))


def test_other_names_and_web_pages_are_turned_away(on_port: Served) -> None:
    port = on_port.address.rpartition(":")[2]
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}"):
        assert ask(on_port, Host=host)[0] == 200, host
    for host in (f"rebound.example:{port}", "localhost", "127.0.0.1:1", f"127.0.0.2:{port}", ":"):
        status, found, _ = ask(on_port, Host=host)
        assert (status, code(found)) == (403, "daemon.origin"), host
    for origin in ("http://evil.example", "null", f"http://127.0.0.1:{port}"):
        status, found, _ = ask(on_port, Origin=origin)
        assert (status, code(found)) == (403, "daemon.origin"), origin


def test_a_long_body_is_refused_and_nothing_is_stored(on_port: Served) -> None:
    def parts(count: int) -> Iterator[bytes]:
        yield b'{"text": "'
        for _ in range(count):
            yield b"x" * 1000
        yield b'"}'

    def post(body: Any) -> tuple[int, dict[str, Any]]:
        return ask(on_port, "/v1/turns", method="POST", body=body)[:2]

    assert post(parts(3))[0] == 200
    for body in (parts(5), b'{"text": "' + b"x" * 5000 + b'"}', b"x" * 30_000):
        status, found = post(body)
        assert (status, code(found)) == (413, "input.too_long")
        assert "--max-body" in found["error"]["message"]
    with on_port.connect() as memory:
        for size in (5000, 3_000_000):
            with pytest.raises(Exception, match="longer than 4,096 bytes") as caught:
                memory.add("x" * size)
            assert caught.value.code == "input.too_long"  # type: ignore[attr-defined]
        assert len(memory) == 1


def test_an_endless_body_is_cut_off(on_port: Served) -> None:
    with socket.create_connection(("127.0.0.1", int(on_port.address.rpartition(":")[2]))) as raw:
        token = on_port.token.read_text().strip()
        host = on_port.address.removeprefix("http://")
        raw.sendall(
            f"POST /v1/turns HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n"
            "Transfer-Encoding: chunked\r\n\r\n".encode()
        )
        raw.settimeout(20)
        part = b"400\r\n" + b"x" * 1024 + b"\r\n"
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            raw.sendall(part * 100_000)


def test_every_error_has_one_shape(on_port: Served) -> None:
    assert code(ask(on_port, "/")[1]) == "daemon.route"
    assert code(ask(on_port, "/v1/nowhere")[1]) == "daemon.route"
    assert code(ask(on_port, "/docs")[1]) == "daemon.route"
    status, found, answer = ask(on_port, "/v1/digest", method="POST")
    assert (status, code(found)) == (405, "daemon.route")
    assert answer.getheader("Allow") == "GET"
    for path in ("/v1/stats", "/v1/turns", "/v1/digest", "/v1/turn?interaction_id=0"):
        status, found, _ = ask(on_port, path)
        assert (status, code(found)) == (404, "not_found.namespace")
    for path, method in (("/v1/turn", "DELETE"), ("/v1/turns", "DELETE"), ("/v1/flush", "POST")):
        status, found, _ = ask(on_port, path + "?namespace=nobody", method=method)
        assert (status, code(found)) == (404, "not_found.namespace")
    assert ask(on_port, "/v1/namespaces")[1] == {"namespaces": []}

    def post(body: bytes, path: str = "/v1/turns", **headers: str) -> tuple[int, str]:
        status, found, _ = ask(on_port, path, method="POST", body=body, **headers)
        return status, code(found)

    for body in (
        b"",
        b"{",
        b"[]",
        b"\xff",
        b'{"text": 1}',
        b'{"txt": "x"}',
        b"[" * 4000,
        b'{"text": "x", "metadata": {"a": NaN}}',
        b'{"text": "x", "timestamp": ' + b"9" * 3000 + b"}",
        b'{"text": "x", "timestamp": true}',
        b'{"text": ""}',
    ):
        status, found_code = post(body)
        assert status == 422, body
        assert found_code.startswith("input."), body
    assert post(b'{"text": "\\ud800"}') == (422, "input.unicode")
    assert post(b'{"text": "x"}', Content_Type="text/plain") == (422, "input.field")
    lines = "application/x-ndjson"
    assert post(b"{}", "/v1/turns/lines") == (422, "input.field")
    assert post(b"{", "/v1/turns/lines", Content_Type=lines) == (422, "input.field")
    assert post(b"\xff", "/v1/turns/lines", Content_Type=lines) == (422, "input.unicode")
    status, found, _ = ask(on_port, "/v1/turns?namespace=%FF")
    assert (status, code(found)) == (422, "input.unicode")


def test_a_query_is_not_guessed_at(on_port: Served) -> None:
    with on_port.connect() as memory:
        memory.add("Tea.")
    for path in (
        "/v1/turns?limt=5",
        "/v1/turns?limit=0",
        "/v1/turns?limit=1001",
        "/v1/turns?limit=five",
        "/v1/turns?first=-1",
        "/v1/turns?state=gone",
        "/v1/turns?=",
        "/v1/health?namespace=default",
        "/v1/digest?namespace=default&namespace=other",
        "/v1/turn",
        "/v1/turn?interaction_id=-1",
        "/v1/turn?interaction_id=0.5",
    ):
        status, found, _ = ask(on_port, path)
        assert (status, code(found)) == (422, "input.field"), path
    assert ask(on_port, "/v1/turn?interaction_id=0")[1]["text"] == "Tea."


def test_a_failure_inside_is_an_answer_too(
    on_port: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from ebbtide.memory import Memory

    with on_port.connect() as memory:
        monkeypatch.setattr(Memory, "digest", lambda self: 1 / 0)
        with pytest.raises(ExternalError, match="ZeroDivisionError") as caught:
            memory.digest()
        assert caught.value.code == "daemon.failed"
        assert memory.add(**scripted(0)).accepted == 1
    assert "ZeroDivisionError" in caplog.text
    assert on_port.token.read_text().strip() not in caplog.text


def test_the_token_is_logged_nowhere(
    start: Callable[..., Served],
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    served = start(port=0)
    token = served.token.read_text().strip()
    with served.connect() as memory:
        memory.add("Tea.")
    ask(served, Authorization="Bearer wrong")
    output = capfd.readouterr()
    assert len(token) >= 32
    assert token not in caplog.text + output.out + output.err


def test_files_are_this_users_alone(start: Callable[..., Served], tmp_path: Path) -> None:
    served = start()
    assert stat.S_IMODE(Path(served.address).stat().st_mode) == 0o600
    assert not served.token.exists()
    kept = tmp_path / "kept.token"
    token = own_token(kept)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert own_token(kept) == token
    assert own_token(tmp_path / "other.token") != token
    kept.chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        own_token(kept)
    for words in ("", "short", "a token with spaces in it", "é" * 20):
        kept.chmod(0o600)
        kept.write_text(words)
        with pytest.raises(ConfigError, match="holds no token"):
            own_token(kept)


def test_a_socket_asks_for_a_token_where_one_is_named(
    start: Callable[..., Served], tmp_path: Path
) -> None:
    file = tmp_path / "asked.token"
    served = start(token_file=file)
    with pytest.raises(ExternalError) as caught:
        connect(served.address)
    assert caught.value.code == "daemon.token"
    with connect(served.address, token=file) as memory:
        assert memory.health()["store"] == str(served.store)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", ""])
def test_only_loopback_is_listened_on(host: str, store_path: Path) -> None:
    with pytest.raises(ConfigError, match="loopback") as caught:
        Daemon(Settings(store_path, host=host, port=0))
    assert caught.value.code == "config.range"
    assert not store_path.exists()
    assert [loopback(name) for name in ("localhost", "::1")] == ["127.0.0.1", "::1"]


def test_a_socket_and_a_port_are_two_addresses(store_path: Path) -> None:
    with pytest.raises(ConfigError, match="one of them"):
        Daemon(Settings(store_path, socket=store_path.with_suffix(".sock"), port=0))


async def _unused(*_: Any) -> None:
    raise AssertionError("this must not be reached")


class Endless(list[Any]):
    """One message, again and again."""

    def __init__(self, message: Any) -> None:
        super().__init__([message])

    def pop(self, _: Any = 0) -> Any:
        return self[0]


def run(guard: Guard, messages: list[Any], headers: list[tuple[bytes, bytes]]) -> list[Any]:
    import asyncio

    sent: list[Any] = []

    async def receive() -> Any:
        await asyncio.sleep(0)
        if messages:
            return messages.pop(0)
        await asyncio.sleep(60)
        return None

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "headers": headers, "query_string": b""}
    asyncio.run(guard(scope, receive, send))
    return sent


def test_a_body_that_stops_coming_is_given_up() -> None:
    guard = Guard(_unused, instance="i", token=None, max_body=100, silent_seconds=0.05)
    begun = {"type": "http.request", "body": b"x", "more_body": True}
    sent = run(guard, [begun], [(b"host", b"localhost")])
    assert sent[0]["status"] == 408
    assert (b"connection", b"close") in sent[0]["headers"]
    assert run(guard, [begun, {"type": "http.disconnect"}], [(b"host", b"localhost")]) == []


def test_a_body_that_comes_bit_by_bit_is_given_up() -> None:
    guard = Guard(_unused, instance="i", token=None, max_body=2**40, body_seconds=0.05)
    bit = {"type": "http.request", "body": b"x", "more_body": True}
    sent = run(guard, Endless(bit), [(b"host", b"localhost")])
    assert sent[0]["status"] == 408
    assert b"was not there whole after 0.05 seconds" in sent[1]["body"]


def test_more_requests_than_can_be_answered_are_asked_to_come_back() -> None:
    guard = Guard(_unused, instance="i", token=None, max_body=100, most=0)
    sent = run(guard, [], [(b"host", b"localhost")])
    assert sent[0]["status"] == 503
    assert (b"retry-after", b"1") in sent[0]["headers"]


def test_a_host_is_named_once() -> None:
    guard = Guard(_unused, instance="i", token=None, max_body=100)
    for headers in ([], [(b"host", b"localhost"), (b"host", b"localhost")]):
        assert run(guard, [], headers)[0]["status"] == 403
