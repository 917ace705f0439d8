"""Lost answers: what is sent again is never carried out twice."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ebbtide import ExternalError, StoreError, connect
from ebbtide.daemon import connections, transport
from ebbtide.daemon.connections import Connections, LostError, Reply

from .conftest import Served
from .processes import daemon


@pytest.fixture
def losing(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[str]]:
    """The next answers are lost after the daemon gave them; lists what was sent."""
    monkeypatch.setattr(transport, "_PAUSES", (0.01, 0.02, 0.05))

    def lose(count: int) -> list[str]:
        sent: list[str] = []
        whole = Connections.exchange

        def exchange(self: Any, method: str, target: str, body: Any, headers: Any) -> Reply:
            sent.append(f"{method} {target.partition('?')[0]}")
            answer = whole(self, method, target, body, headers)
            if len(sent) <= count:
                raise LostError("lost by the test")
            return answer

        monkeypatch.setattr(Connections, "exchange", exchange)
        return sent

    return lose


def test_a_retried_add_is_stored_once(
    start: Callable[..., Served], losing: Callable[[int], list[str]]
) -> None:
    with start().connect() as memory:
        memory.add("before")
        sent = losing(2)
        report = memory.add("The port is v1.")
        assert report.accepted == 1
        assert len(sent) == 3
        assert [turn.text for turn in memory.turns()] == ["before", "The port is v1."]
        losing(3)
        many = memory.add_many({"text": f"turn {n}"} for n in range(300))
        assert many.accepted == 300
        assert len(memory) == 302


def test_a_failed_write_fails_alike_again(
    start: Callable[..., Served], losing: Callable[[int], list[str]]
) -> None:
    with start().connect() as memory:
        losing(1)
        with pytest.raises(Exception, match=r"turn 3 of this call: .* the 2 before it were kept"):
            memory.add_many([{"text": "a"}, {"text": "b"}, {"text": "x" * 3_000_000}])
        assert [turn.text for turn in memory.turns()] == ["a", "b"]


def test_a_write_without_a_key_is_not_sent_again(
    start: Callable[..., Served], losing: Callable[[int], list[str]]
) -> None:
    with start().connect() as memory:
        memory.add("a")
        memory.add("b")
        for call in (
            lambda: memory.delete(0),
            lambda: memory.relate(1, "corrects", 1),
            memory.delete_all,
            lambda: memory.delete_namespace("default"),
        ):
            sent = losing(1)
            with pytest.raises(ExternalError, match="may or may not") as caught:
                call()
            assert caught.value.code == "daemon.uncertain"
            assert len(sent) == 1


def test_reads_are_sent_again(
    start: Callable[..., Served], losing: Callable[[int], list[str]]
) -> None:
    with start().connect() as memory:
        memory.add("The port is v1.")
        sent = losing(3)
        assert memory.retrieve("the port", limit=1)[0].turn.text == "The port is v1."
        assert sent == ["POST /v1/retrieve"] * 4
        losing(9)
        with pytest.raises(ExternalError) as caught:
            memory.digest()
        assert caught.value.code == "daemon.unavailable"


def test_two_calls_are_two_turns(start: Callable[..., Served]) -> None:
    with start().connect() as memory:
        assert [memory.add("same").accepted for _ in range(3)] == [1, 1, 1]


def post(served: Served, body: bytes, key: str, **headers: str) -> tuple[int, dict[str, Any]]:
    sent = {"Idempotency-Key": key, "Content-Type": "application/json", **headers}
    with closing(Connections(served.address, 30)) as connection:
        answer = connection.exchange("POST", "/v1/turns", body, sent)
    return answer.status, json.loads(answer.body)


def test_a_key_belongs_to_one_request(start: Callable[..., Served]) -> None:
    served = start()
    first = post(served, b'{"text": "a"}', "k1")
    assert first[0] == 200
    assert post(served, b'{"text": "a"}', "k1") == first
    status, found = post(served, b'{"text": "b"}', "k1")
    assert (status, found["error"]["code"]) == (422, "input.field")
    assert post(served, b'{"text": ""}', "k2") == post(served, b'{"text": ""}', "k2")
    assert post(served, b'{"text": "a"}', "")[0] == 422
    with served.connect() as memory:
        assert len(memory) == 1


def test_the_same_key_at_the_same_time_is_one_write(start: Callable[..., Served]) -> None:
    served = start()
    answers: list[tuple[int, dict[str, Any]]] = []
    threads = [
        threading.Thread(target=lambda: answers.append(post(served, b'{"text": "a"}', "k")))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8
    assert all(answer == answers[0] for answer in answers)
    with served.connect() as memory:
        assert len(memory) == 1


def test_another_process_refuses_what_was_sent_to_the_first(start: Callable[..., Served]) -> None:
    served = start()
    status, found = post(served, b'{"text": "a"}', "k", **{"Ebbtide-Instance": "another"})
    assert (status, found["error"]["code"]) == (409, "daemon.uncertain")


@pytest.mark.parametrize("external_id", [None, "m1"])
def test_an_add_whose_daemon_was_killed_is_not_guessed(
    store_path: Path, monkeypatch: pytest.MonkeyPatch, external_id: str | None
) -> None:
    """The daemon dies in the middle of an add, and another takes its place meanwhile."""
    monkeypatch.setattr(transport, "_PAUSES", (0.2,) * 200)
    outcome: list[Any] = []
    with daemon(store_path) as (first, address), connect(address) as memory:
        memory.add("before")

        def add() -> None:
            try:
                outcome.append(memory.add("wait 1 then go on", external_id=external_id))
            except ExternalError as error:
                outcome.append(error.code)

        thread = threading.Thread(target=add)
        thread.start()
        assert first.stdout is not None
        assert first.stdout.readline() == "analysing\n"
        first.kill()
        first.wait(30)
        with daemon(store_path):
            thread.join(60)
            texts = [turn.text for turn in memory.turns()]
    if external_id is None:
        # It may have been stored before the end, for all the client knows: that is said.
        assert outcome == ["daemon.uncertain"]
        assert texts == ["before"]
    else:
        # With an id of its own it is sent again, and is there once.
        assert outcome[0].accepted == 1
        assert texts == ["before", "wait 1 then go on"]


def test_a_connection_that_the_daemon_closed_is_not_used(
    start: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    served = start(port=0)
    with served.connect() as memory:
        memory.add("a")
        pool = memory._transport._connections._idle
        (since, idle) = pool._connections[0]
        assert idle.sock is not None
        idle.sock.shutdown(2)
        memory.delete(0)
        assert pool._connections[0][1] is not idle
        monkeypatch.setattr(connections, "_IDLE_SECONDS", 0.0)
        old = pool._connections[0][1]
        assert memory.namespaces() == ["default"]
        assert pool._connections[0][1] is not old
        assert since <= pool._connections[0][0]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("way", ["socket", "port"])
def test_a_fork_has_connections_of_its_own(start: Callable[..., Served], way: str) -> None:
    served = start() if way == "socket" else start(port=0)
    with served.connect() as memory:
        memory.add("a")
        pool = memory._transport._connections._idle
        (_, idle) = pool._connections[0]
        with pool._lock:  # as another thread may have it, which the fork has not
            child = os.fork()
            if child == 0:
                signal.alarm(20)  # where the lock is waited for
                status = 1
                with contextlib.suppress(BaseException):
                    right = memory.get(0).text == "a" and memory.namespaces() == ["default"]
                    (_, own) = memory._transport._connections._idle._connections[0]
                    status = 0 if right and own is not idle and idle.sock is None else 2
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        # The child's end is not the end of the parent's connection.
        assert memory.get(0).text == "a"
        assert pool._connections[0][1] is idle
    child = os.fork()
    if child == 0:
        status = 1
        with contextlib.suppress(BaseException):
            try:
                memory.get(0)
            except StoreError as error:
                status = 0 if error.code == "store.closed" else 2
        os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


def test_what_is_no_daemon_is_said(tmp_path: Path) -> None:
    for reply in (Reply(200, {}, b"<html>"), Reply(404, {}, b"<html>"), Reply(500, {}, b"{}")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Connections, "exchange", lambda *_, reply=reply: reply)
            with pytest.raises(ExternalError) as caught:
                connect(tmp_path / "x.sock")
            assert caught.value.code == "daemon.failed"
