"""``python -m ebbtide``: the command line, where its script is on no path."""

from __future__ import annotations

from ebbtide.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
