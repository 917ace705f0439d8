"""Where things are printed: results to standard output, the rest to standard error."""

from __future__ import annotations

import io
import json
import os
import sys
import unicodedata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["fail", "finish", "plain", "prepare_streams", "print_json", "stderr", "stdout", "write"]

_PIPE_WIDTH = 200
"""Columns of a table that goes into a pipe or a file."""


def prepare_streams() -> None:
    """What the terminal's encoding lacks is printed as an escape, not an exception."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def finish() -> None:
    """Flush; a reader that went away (``ebbtide … | head``) is no error."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes once more at exit and would complain there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
