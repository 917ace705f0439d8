"""Talking to a peer in a process of its own: one JSON object a line, each way.

A request is ``{"n": NUMBER, "op": NAME, ...}``; its answer repeats ``n`` and says in
``seconds`` how long it took inside the peer. An answer with ``error`` leaves the
process usable. Silence past the time-out, an end, or a line that is no answer ends it.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ebbtide.closing import Closing
from ebbtide.errors import ExternalError

__all__ = ["PeerError", "PeerProcess"]

_LAST_WORDS = 300
"""Characters of what the process last wrote to standard error, for error messages."""


class PeerError(ExternalError):
    """A peer refused a request, fell silent, ended, or answered nonsense."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "peer.failed")


class PeerProcess(Closing):
    """A peer's worker process.

    Not safe to use from several threads at once.

    Attributes:
        seconds: For each operation, the seconds that the peer says it took, in order.
    """

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        *,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Start the process.

        Args:
            command: Program and arguments.
            log: Where its standard error goes; kept afterwards.
            env: Its environment variables, or None for this process's own.

        Raises:
            PeerError: It cannot be started.
        """
        self.seconds: dict[str, list[float]] = {}
        self._log = log
        self._asked = 0
        try:
            with log.open("wb") as errors:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env=env,
                    text=True,
                    encoding="utf-8",
                )
        except OSError as error:
            message = f"the peer cannot be started: {error}; prepare its environment anew"
            raise PeerError(message) from error

    @property
    def pid(self) -> int:
        """Process id of the worker."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the worker can still be asked."""
        return self._process.poll() is None

    def ask(self, op: str, timeout: float, **fields: Any) -> dict[str, Any]:
        """Send a request and wait for its answer.

        Args:
            op: The operation.
            timeout: Seconds until the process is killed, above 0.
            fields: What else the request holds; as JSON.

        Returns:
            The answer, without ``n`` and ``seconds``.

        Raises:
            PeerError: The answer is an error (the process can still be asked), there
                is no answer in time, or what came is none (it is killed).
        """
        if not self.running:
            raise self._failure(f"cannot {op}: it has ended")
        self._asked += 1
        line = self._exchange({"n": self._asked, "op": op, **fields}, timeout)
        answer = self._parse(op, line)
        self.seconds.setdefault(op, []).append(answer.pop("seconds"))
        if "error" in answer:
            raise PeerError(f"the peer failed to {op}: {answer['error']}")
        return answer

    def _exchange(self, request: Mapping[str, Any], timeout: float) -> str:
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            self._process.kill()

        # Killing it ends both a blocked write and a blocked read.
        timer = threading.Timer(timeout, expire)
        timer.start()
        line = ""
        try:
            # A dead process is seen by the empty line.
            with contextlib.suppress(OSError, ValueError):
                self._input.write(json.dumps(request) + "\n")
                self._input.flush()
                line = self._output.readline()
        finally:
            timer.cancel()
            timer.join()
        # An answer that came together with the time-out is from a dead process.
        if expired.is_set():
            self._end()
            raise self._failure(f"did not answer {request['op']!r} in {timeout:g} s")
        return line

    def _parse(self, op: str, line: str) -> dict[str, Any]:
        if not line.endswith("\n"):
            self._end()
            raise self._failure(f"ended during {op!r} with status {self._process.returncode}")
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        sound = isinstance(answer, dict) and isinstance(answer.get("seconds"), float)
        if not sound or answer.pop("n", None) != self._asked:
            self._end()
            raise self._failure(f"answered {op!r} with {line[:80]!r}")
        found: dict[str, Any] = answer
        return found

    def close(self, timeout: float = 30.0) -> None:
        """End the process: it is asked to close, and killed if it does not.

        Args:
            timeout: Seconds it has for that.
        """
        if self.running:
            with contextlib.suppress(PeerError, subprocess.TimeoutExpired):
                self.ask("close", timeout)
                self._process.wait(timeout)
        self._end()

    @property
    def _input(self) -> Any:
        return self._process.stdin

    @property
    def _output(self) -> Any:
        return self._process.stdout

    def _end(self) -> None:
        if self.running:
            self._process.kill()
        self._process.wait()
        # Closing flushes what the dead process did not take.
        with contextlib.suppress(OSError):
            self._input.close()
        self._output.close()

    def _failure(self, what: str) -> PeerError:
        words = self._log.read_text(encoding="utf-8", errors="replace").strip()
        last = f"; its last words: {words[-_LAST_WORDS:]}" if words else ""
        return PeerError(f"the peer {what}{last}")
