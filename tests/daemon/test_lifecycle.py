"""From the start of a daemon to its end, and what a killed one leaves."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from reference.stand_ins import HashEmbedder, scripted

from ebbtide import Config, ExternalError, Memory, Store, StoreError, WriteReport, connect
from ebbtide import serving as serving_in_order
from ebbtide.daemon import patience
from ebbtide.daemon.server import Daemon, Settings
from ebbtide.daemon.service import Service

from .conftest import Served, serving
from .processes import SCRIPT, daemon

COMMAND = [sys.executable, "-c", "from ebbtide.cli import main; main()", "serve"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_lets_running_requests_finish(
    store_path: Path, stub: Config, number: signal.Signals
) -> None:
    with daemon(store_path) as (process, address):
        failures: list[BaseException] = []

        def add() -> None:
            try:
                with connect(address) as memory:
                    assert memory.add("wait 1 for this").accepted == 1
            except BaseException as error:
                failures.append(error)

        with connect(address) as memory:
            memory.add(**scripted(0))
            memory.add(**scripted(1), wait="journalled")
        thread = threading.Thread(target=add)
        thread.start()
        assert process.stdout is not None
        assert process.stdout.readline() == "analysing\n"
        with connect(address) as idle:  # its open connection holds nothing up
            process.send_signal(number)
            thread.join(30)
            assert failures == []
            assert process.wait(30) == 0
            assert idle.namespace == "default"
        assert process.stdout.readline() == "ended\n"
        assert not Path(address).exists()
    with Memory.open(store_path, config=stub, read_only=True) as memory:
        assert memory.stats()["pending"] == 0
        assert [turn.text for turn in memory.turns()][2] == "wait 1 for this"


def asked(served: Served, request: bytes) -> socket.socket:
    """A client over a Unix socket that said so much, and reads nothing."""
    client = socket.socket(socket.AF_UNIX)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    client.settimeout(30)
    client.connect(served.address)
    client.sendall(request)
    return client


def test_clients_that_do_nothing_do_not_keep_it_from_ending(
    stub: Config, store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving_in_order, "_PARTING_SECONDS", 0.2)
    with contextlib.ExitStack() as clients:
        with serving(Settings(store_path, config=stub)) as served:
            with served.connect() as memory:
                memory.add_many({"text": "x" * 20_000 + str(number)} for number in range(40))
            for request in (
                b"GET /v1/turns?limit=100 HTTP/1.1\r\nHost: localhost\r\n\r\n",
                b"POST /v1/turns HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
            ):
                client = clients.enter_context(asked(served, request))
                if request.startswith(b"GET"):
                    assert client.recv(1) == b"H"  # it is being answered
        # It has ended, and they are still there.
        assert not store_path.with_name(f"{store_path.name}.sock").exists()


def test_what_is_worked_for_is_answered_however_long_it_takes(
    stub: Config, store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving_in_order, "_PARTING_SECONDS", 0.0)
    monkeypatch.setattr(serving_in_order, "_LOOK_SECONDS", 0.01)
    begun, spared, go_on = threading.Event(), threading.Event(), threading.Event()
    is_worked_for = serving_in_order._is_worked_for

    def looked(connection: Any) -> bool:
        found = is_worked_for(connection)
        if found:
            spared.set()
        return found

    class Slow(HashEmbedder):
        def embed(self, texts: Sequence[str]) -> Any:
            begun.set()
            assert go_on.wait(30)
            return super().embed(texts)

    monkeypatch.setattr(serving_in_order, "_is_worked_for", looked)
    daemon, ready = (
        Daemon(Settings(store_path, config=stub.with_embedder(Slow()))),
        threading.Event(),
    )
    running = threading.Thread(target=daemon.run, args=[lambda _: ready.set()])
    running.start()
    assert ready.wait(30)
    reports: list[WriteReport] = []
    with connect(f"{store_path}.sock") as memory:
        adding = threading.Thread(target=lambda: reports.append(memory.add("slow")))
        adding.start()
        assert begun.wait(30)
        daemon.stop()
        assert spared.wait(30)
        go_on.set()
        adding.join(30)
    running.join(30)
    assert [report.accepted for report in reports] == [1]


def test_connections_without_a_request_are_ended(
    start: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "_SILENT_SECONDS", 0.1)
    served = start()
    for said in (b"", b"GET /v1/health HTTP/1.1\r\nHo"):
        with asked(served, said) as client:
            assert client.recv(1) == b""
    whole = b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with asked(served, whole) as client:
        assert client.recv(9) == b"HTTP/1.1 "


def test_idle_connections_make_room_for_others(
    start: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "_most", lambda: 4)
    served = start()
    with contextlib.ExitStack() as kept:
        idle = [kept.enter_context(asked(served, b"")) for _ in range(12)]
        with served.connect() as memory:
            assert memory.add("Tea.").accepted == 1
        # The first of them made room; the last are there.
        assert idle[0].recv(1) == b""
        idle[-1].sendall(b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert idle[-1].recv(9) == b"HTTP/1.1 "


def test_a_loop_that_cannot_accept_says_so_once_a_second() -> None:
    told: list[str] = []

    class Loop:
        now = 100.0

        def time(self) -> float:
            return self.now

        def default_exception_handler(self, context: dict[str, Any]) -> None:
            told.append(context["message"])

    loop, report = Loop(), serving_in_order._Reports()
    for _ in range(5):
        report(loop, {"message": "socket.accept() out of system resource"})  # type: ignore[arg-type]
        report(loop, {"message": "something else"})  # type: ignore[arg-type]
    loop.now += 1
    report(loop, {"message": "socket.accept() out of system resource"})  # type: ignore[arg-type]
    assert [message[:6] for message in told] == ["socket", *["someth"] * 5, "socket"]


def test_reads_that_wait_leave_threads_to_other_memories(stub: Config, store_path: Path) -> None:
    go_on = threading.Event()

    def waiting(memory: Memory) -> int:
        assert go_on.wait(30)
        return len(memory)

    async def main() -> list[int]:
        service = Service(Store.open(store_path, config=stub))
        for name in "ab":
            await service.write(name, lambda _: b"", create=True)
        tasks = [asyncio.create_task(service.read("a", waiting)) for _ in range(100)]
        await asyncio.sleep(0)  # they are all on their way
        try:
            assert await asyncio.wait_for(service.read("b", len), 20) == 0
        finally:
            go_on.set()
        found = await asyncio.gather(*tasks)
        await service.close()
        return found

    assert asyncio.run(main()) == [0] * 100


def test_a_killed_daemon_loses_nothing_and_its_socket_is_replaced(store_path: Path) -> None:
    with daemon(store_path) as (process, address):
        with connect(address) as memory:
            memory.add_many(scripted(n) for n in range(20))
            digest = memory.digest()
        process.kill()
        process.wait(30)
        assert Path(address).exists()
        with daemon(store_path) as (_, again), connect(again) as memory:
            assert again == address
            assert memory.digest() == digest


def test_a_store_has_one_daemon(store_path: Path, tmp_path: Path, stub: Config) -> None:
    with daemon(store_path) as (process, address):
        second = subprocess.run(
            [sys.executable, str(SCRIPT), str(store_path), str(tmp_path / "other.sock")],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert second.returncode == 1
        assert f"process {process.pid}" in second.stderr
        with pytest.raises(StoreError) as caught:
            Memory.open(store_path, config=stub)
        assert caught.value.code == "store.locked"
        # Readers need no daemon.
        with connect(address) as memory:
            memory.add("Tea.")
        with Memory.open(store_path, config=stub, read_only=True) as memory:
            assert len(memory) == 1


def test_a_socket_in_use_is_refused_and_its_holder_named(
    start: Callable[..., Served], tmp_path: Path
) -> None:
    place = tmp_path / "one.sock"
    first = start(socket=place)
    with (
        pytest.raises(ExternalError, match=f"process {os.getpid()} listens on") as caught,
        serving(Settings(tmp_path / "second.db", socket=place)),
    ):
        pass
    assert caught.value.code == "daemon.address"
    with first.connect() as memory:
        assert memory.namespaces() == ["default"]


def test_what_is_no_socket_is_not_replaced(tmp_path: Path, stub: Config) -> None:
    file = tmp_path / "precious.txt"
    file.write_text("words")
    for place in (file, tmp_path, tmp_path / "missing" / "x.sock", tmp_path / ("x" * 120)):
        with (
            pytest.raises(ExternalError, match="--socket") as caught,
            serving(Settings(tmp_path / "m.db", config=stub, socket=place)),
        ):
            pass
        assert caught.value.code == "daemon.address"
    assert file.read_text() == "words"


def test_a_port_in_use_is_refused(tmp_path: Path, stub: Config) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(ExternalError, match=f"port {port}") as caught,
            serving(Settings(tmp_path / "m.db", config=stub, port=port)),
        ):
            pass
    assert caught.value.code == "daemon.address"
    with serving(Settings(tmp_path / "m.db", config=stub, host="::1", port=0)) as served:
        assert served.address.startswith("http://[::1]:")
        with served.connect() as memory:
            assert memory.health()["status"] == "ok"


def test_a_socket_that_was_taken_over_is_left_alone(start: Callable[..., Served]) -> None:
    served = start()
    place = Path(served.address)
    place.unlink()
    place.write_text("somebody else's")
    # The end of the test stops the daemon; what is there now is not the daemon's.


def test_memories_that_nobody_uses_are_closed(
    start: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ebbtide.daemon import service

    monkeypatch.setattr(service, "_OPEN", 2)
    served = start()
    for round_ in range(2):
        for name in "abcde":
            with served.connect(name) as memory:
                memory.add(f"turn {round_} of {name}")
                assert len(memory) == round_ + 1


def test_a_memory_is_erased_once_nobody_uses_it(start: Callable[..., Served]) -> None:
    """Deleting waits for running requests, and adds after it begin anew."""
    served = start()
    stop = time.monotonic() + 1.5
    failures: list[BaseException] = []

    def write(number: int) -> None:
        try:
            with served.connect("busy") as memory:
                while time.monotonic() < stop:
                    memory.add(f"turn of {number}")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=[n]) for n in range(3)]
    for thread in threads:
        thread.start()
    with served.connect("other") as memory:
        while any(thread.is_alive() for thread in threads):
            if "busy" in memory.namespaces():
                memory.delete_namespace("busy")
            time.sleep(0.05)
    for thread in threads:
        thread.join(30)
    assert failures == []
    with served.connect("busy") as memory:
        ids = [turn.interaction_id for turn in memory.turns()]
        assert ids == list(range(len(ids)))


def test_the_command(store_path: Path) -> None:
    with daemon(store_path, command=[*COMMAND, "--store", str(store_path), "--port", "0"]) as (
        process,
        said,
    ):
        token = Path(f"{store_path}.token")
        assert token.read_text().strip() not in said
        assert str(token) in said
        address = said.partition(" at ")[2].partition(",")[0]
        with connect(address, token=token, namespace="ana") as memory:
            memory.add("I live in Lisbon.", speaker="Ana")
            memory.add("I live in Porto now.", speaker="Ana")
            assert memory.retrieve("Where does Ana live?")[0].turn.text == "I live in Porto now."
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    refused = subprocess.run(
        [*COMMAND, "--store", str(store_path), "--port", "0", "--host", "0.0.0.0"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert refused.returncode == 2
    assert "loopback" in refused.stderr
    nothing = subprocess.run(COMMAND, capture_output=True, text=True, timeout=60)
    assert nothing.returncode == 2
    assert "--store" in nothing.stderr


def test_models_are_loaded_at_the_start_unless_that_is_not_wanted(
    store_path: Path, stub: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    warmed: list[bool] = []
    monkeypatch.setattr(Store, "warm_up", lambda self, *, wait: warmed.append(wait))
    with serving(Settings(store_path)):
        assert warmed == [False]
    with serving(Settings(store_path, warm_up=False)):
        pass
    with serving(Settings(store_path, config=stub)):  # an embedder of one's own is left alone
        pass
    assert warmed == [False]
