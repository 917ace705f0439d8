"""The nursery as a test holds it: start an operation, end it at a chosen moment."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

PROGRAM = Path(__file__).with_name("nursery.py")


class Nursery:
    """One process that forks a child an operation; see nursery.py."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        assert self._hear() == "ready"

    def start(self, operation: str, *words: object) -> int:
        """Begin one; returns the child's process id."""
        assert self._process.stdin is not None
        self._process.stdin.write("\t".join([operation, *map(str, words)]) + "\n")
        self._process.stdin.flush()
        word, number = self._hear().split()
        assert word == "pid"
        return int(number)

    def end(self) -> tuple[list[str], int]:
        """Wait for the child: what it acknowledged, and its exit status (-9: killed)."""
        done = []
        while True:
            word, what = self._hear().split(maxsplit=1)
            if word == "gone":
                return done, int(what)
            assert word == "ack"
            done.append(what)

    def whole(self, operation: str, *words: object) -> float:
        """Let one end by itself; returns the seconds that it took."""
        began = time.perf_counter()
        self.start(operation, *words)
        _, status = self.end()
        assert status == 0, operation
        return time.perf_counter() - began

    def interrupted(
        self, after: float, with_signal: signal.Signals, operation: str, *words: object
    ) -> tuple[list[str], int]:
        """Send a signal so many seconds after its beginning, unless it ended before."""
        number = self.start(operation, *words)
        time.sleep(after)
        # It may have ended, and waits for nobody: the nursery has reaped it then.
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, with_signal)
        return self.end()

    def _hear(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.endswith("\n"), f"the nursery said {line!r}"
        return line[:-1]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._process.wait()
