"""Where the MCP server listens, and what is said where it cannot."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ebbtide import Memory
from ebbtide.cli import main


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "192.0.2.1", "no-such-host.invalid"])
def test_an_address_that_cannot_be_used(
    store_path: Path, capsys: pytest.CaptureFixture[str], host: str
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        words = ["mcp", "--store", str(store_path), "--http", "--host", host, "--port", str(port)]
        with pytest.raises(SystemExit) as ended:
            main(words)
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert f"port {port} of {host} cannot be used" in said
    assert "[daemon.address]" in said
    assert "serving" not in said
    assert "ERROR" not in said


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_it_says_where_it_serves_once_clients_can_connect(
    store_path: Path, number: signal.Signals, status: int
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-c", "from ebbtide.cli import main; main()"]
    words = [*command, "mcp", "--store", str(store_path), "--http", "--port", str(port)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        assert f"http://127.0.0.1:{port}/mcp" in said
        with socket.create_connection(("127.0.0.1", port), timeout=30):
            pass
        process.send_signal(number)
        assert process.wait(60) == status
    # A store that was closed has no log beside it.
    assert not store_path.with_name(f"{store_path.name}-wal").exists()


@pytest.mark.parametrize(("flags", "warmed"), [([], [False]), (["--no-warm-up"], [])])
def test_models_are_loaded_beside_the_first_messages(
    store_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str], warmed: list[bool]
) -> None:
    calls: list[bool] = []
    monkeypatch.setattr(Memory, "warm_up", lambda self, *, wait: calls.append(wait))
    monkeypatch.setattr("ebbtide.mcp.serve", lambda memory, **options: None)
    with pytest.raises(SystemExit) as ended:
        main(["mcp", "--store", str(store_path), *flags])
    assert ended.value.code in (0, None)
    assert calls == warmed
