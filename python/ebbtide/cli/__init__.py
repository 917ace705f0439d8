"""The command line: ``ebbtide COMMAND …``; run it without arguments for help."""

from __future__ import annotations

from ebbtide.cli.app import main

__all__ = ["main"]
