"""Where things are printed: results to standard output, the rest to standard error."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["fail", "print_json", "stderr", "stdout"]


def stdout() -> Console:
    """Console for results. Never cuts or wraps what a pipe reads."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=200)
    return console


def stderr() -> Console:
    """Console for progress, notes and errors."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def print_json(document: Any) -> None:
    """One JSON document on standard output."""
    json.dump(document, sys.stdout, ensure_ascii=False, indent=2, default=str)
    sys.stdout.write("\n")


def fail(message: str, code: str, *, as_json: bool) -> None:
    """One sentence on standard error, or one JSON object."""
    if as_json:
        error = {"error": {"code": code, "message": message}}
        sys.stderr.write(json.dumps(error, ensure_ascii=False) + "\n")
    else:
        sys.stderr.write(f"ebbtide: {message} [{code}]\n")
