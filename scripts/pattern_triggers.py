"""Write python/ebbtide/analysis/triggers.json: what is read off every guarded pattern.

python scripts/pattern_triggers.py, after a pattern or `triggers` has changed. A pattern that is
not in the file is read when it is imported, which takes longer and gives the same.
"""

from __future__ import annotations

import gc
import importlib
import json
import pkgutil
import platform

import ebbtide.analysis
from ebbtide.analysis.patterns import READ_OFF, GuardedPattern, key_of
from ebbtide.analysis.triggers import triggers

__all__ = ["main", "render"]


def render() -> str:
    """The file's text."""
    for module in pkgutil.walk_packages(ebbtide.analysis.__path__, "ebbtide.analysis."):
        importlib.import_module(module.name)
    lazies = (thing.lazy for thing in gc.get_objects() if isinstance(thing, GuardedPattern))
    patterns = {
        key_of(lazy.source, lazy.flags): [
            sorted(pieces) for pieces in triggers(lazy.source, lazy.flags)
        ]
        for lazy in lazies
    }
    lines = (f'"{key}": {json.dumps(needs)}' for key, needs in sorted(patterns.items()))
    # What Python's own parser makes of a pattern differs a little between its versions.
    version = ".".join(platform.python_version_tuple()[:2])
    return f'{{"python": "{version}",\n"patterns": {{\n' + ",\n".join(lines) + "\n}}\n"


def main() -> None:
    """Command line."""
    READ_OFF.write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
