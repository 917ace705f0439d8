"""Where things are printed: results to standard output, the rest to standard error."""

from __future__ import annotations

import io
import json
import os
import sys
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "OutputError",
    "fail",
    "finish",
    "plain",
    "prepare_streams",
    "print_json",
    "stderr",
    "stdout",
    "write",
]

_PIPE_WIDTH = 200
"""Columns of a table that goes into a pipe or a file."""


class OutputError(OSError):
    """Standard output takes nothing more, since the disk is full, say."""


class _Bytes(io.RawIOBase):
    """The bytes of standard output; what nobody reads any more is dropped.

    So a reader that went away (``ebbtide … | head``) is no error, and the status is that of
    the command, wherever in it the reader went.
    """

    def __init__(self, stream: io.TextIOWrapper, file: io.FileIO) -> None:
        self._stream = stream  # it closes its file when it goes
        self._file = file
        self._over = False

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._file.fileno()

    def isatty(self) -> bool:
        return self._file.isatty()

    def write(self, data: Any) -> int | None:
        size = memoryview(data).nbytes
        if self._over:
            return size
        try:
            return self._file.write(data)
        except BrokenPipeError:
            self._over = True
            return size
        except OSError as error:
            self._over = True  # said once: Python flushes again at exit
            raise OutputError(error.errno, error.strerror) from error


def prepare_streams() -> None:
    """What the terminal's encoding lacks is printed as an escape, not an exception."""
    # A stream that was closed before the start (``>&-``) is one that nobody reads.
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if isinstance(sys.stdout, io.TextIOWrapper):
        file = getattr(sys.stdout.buffer, "raw", sys.stdout.buffer)
        if isinstance(file, io.FileIO):
            sys.stdout.flush()
            sys.stdout = io.TextIOWrapper(
                io.BufferedWriter(_Bytes(sys.stdout, file)),
                encoding=sys.stdout.encoding,
                errors=sys.stdout.errors,
                line_buffering=sys.stdout.line_buffering,
                write_through=sys.stdout.write_through,
            )


def finish() -> None:
    """Print what is not printed yet.

    Raises:
        OutputError: If it cannot be.
    """
    sys.stdout.flush()


def stdout() -> Console:
    """Console for results; as wide as the terminal, or fixed for a pipe."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    if console.is_terminal or "COLUMNS" in os.environ:
        return console
    return Console(highlight=False, markup=False, emoji=False, width=_PIPE_WIDTH)


def stderr() -> Console:
    """Console for progress and notes."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def write(text: str) -> None:
    """Text as it is, and a line end, on standard output."""
    sys.stdout.write(f"{text}\n")


def print_json(document: Any) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(_json(document, sys.stdout.encoding, indent=2) + "\n")


def fail(message: str, code: str, *, as_json: bool) -> None:
    """One sentence on standard error, on one line, or one JSON object."""
    message = " ".join(message.splitlines())
    if as_json:
        error = {"error": {"code": code, "message": message}}
        sys.stderr.write(_json(error, sys.stderr.encoding) + "\n")
    else:
        sys.stderr.write(f"ebbtide: {plain(message)} [{code}]\n")


def plain(text: str) -> str:
    """Text without control characters: a stored turn must not steer the terminal."""
    return "".join(
        "\N{REPLACEMENT CHARACTER}"
        if unicodedata.category(character) == "Cc" and character not in "\n\t"
        else character
        for character in text
    )


def _json(document: Any, encoding: str | None, indent: int | None = None) -> str:
    unicode = (encoding or "").lower().replace("-", "").startswith("utf")
    return json.dumps(document, ensure_ascii=not unicode, indent=indent, default=str)
