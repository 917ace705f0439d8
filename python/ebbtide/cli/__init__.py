"""The command line: ``ebbtide COMMAND …``; run it without arguments for help."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; the entry point ``ebbtide``.

    Exits with 0, 1 (an error, or nothing by that name), 2 (usage or
    configuration) or 130 (interrupted).

    Args:
        arguments: Words after the program's name; those of the process by default.
    """
    try:
        # Most of the time to the first word goes into this import; Ctrl-C may come then, too.
        from ebbtide.cli import app

        app.main(arguments)
    except KeyboardInterrupt:
        raise SystemExit(130) from None
