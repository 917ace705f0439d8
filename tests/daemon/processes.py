"""Daemons in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SCRIPT = Path(__file__).with_name("stub_daemon.py")


@contextmanager
def daemon(
    store: Path, address: str = "", *, command: list[str] | None = None
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running daemon's process and address; killed at the end if it is still there."""
    words = command or [sys.executable, str(SCRIPT), str(store), *([address] if address else [])]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            said = process.stdout if command is None else process.stderr
            first = said.readline().strip()
            assert first, process.stderr.read()
            yield process, first
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()
