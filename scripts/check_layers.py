"""Check that the modules of the Rust core import strictly downward.

Every module has a layer; it may import from lower layers, and within itself.
Two modules of one layer do not know each other. Run it from anywhere:

    python scripts/check_layers.py [SOURCE_FOLDER]

It prints one line a violation (``file:line: message``) and exits with 1 if there
is any.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["LAYERS", "imports", "main", "violations"]

SOURCE = Path(__file__).resolve().parent.parent / "rust" / "core" / "src"

LAYERS: tuple[tuple[str, ...], ...] = (
    ("types", "error"),
    # The integer vectors are plain arithmetic that the indexes share with the scores.
    ("order", "text", "calendar", "score::vector"),
    ("config",),
    ("score", "lineage", "index", "render"),
    ("policy",),
    ("store", "retrieve"),
    ("active",),
    ("engine",),
)
"""Modules by layer, lowest first. A submodule named here is a module of its own."""

_RANKS = {module: rank for rank, names in enumerate(LAYERS) for module in names}
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_PATH = re.compile(r"\bcrate\s*::\s*(\{|[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)?)")
_DECLARED = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;", re.MULTILINE)


def imports(source: str) -> Iterator[tuple[int, str]]:
    """Paths under ``crate::`` that a source names, as ``(line, "module::item")``.

    Comments do not count; a ``use crate::{a, b::c}`` names each of its branches.
    """
    code = _COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), source)
    for match in _PATH.finditer(code):
        line = code.count("\n", 0, match.start()) + 1
        if match.group(1) != "{":
            yield line, re.sub(r"\s", "", match.group(1))
            continue
        for offset, branch in _branches(code, match.end()):
            yield line + code.count("\n", match.start(), offset), branch


def _branches(code: str, start: int) -> Iterator[tuple[int, str]]:
    """First two segments of each branch of the brace group that starts at ``start``."""
    depth, at = 1, start
    for i in range(start, len(code)):
        depth += {"{": 1, "}": -1}.get(code[i], 0)
        if depth == 0 or (depth == 1 and code[i] == ","):
            segments = re.findall(r"\w+", code[at:i].split("{")[0])
            if segments:
                place = at + len(code[at:i]) - len(code[at:i].lstrip())
                yield place, "::".join(segments[:2])
            at = i + 1
        if depth == 0:
            return


def _module_of(path: str) -> str | None:
    """The entry of LAYERS that a path such as ``score::vector`` belongs to."""
    segments = path.split("::")
    for length in range(len(segments), 0, -1):
        name = "::".join(segments[:length])
        if name in _RANKS:
            return name
    return None


def _own_path(file: Path, source: Path) -> str:
    parts = list(file.relative_to(source).with_suffix("").parts)
    if parts[-1] == "mod":
        parts.pop()
    return "::".join(parts)


def violations(source: Path) -> list[str]:
    """Every import that does not go down, and every module without a layer."""
    found: list[str] = []
    for file in sorted(source.rglob("*.rs")):
        text = file.read_text(encoding="utf-8")
        name = file.relative_to(source).as_posix()
        if name == "lib.rs":
            found += [
                f"{name}:{text.count(chr(10), 0, m.start(1)) + 1}: `{m.group(1)}` has no layer"
                for m in _DECLARED.finditer(text)
                if m.group(1) not in _RANKS
            ]
            continue
        own = _module_of(_own_path(file, source))
        if own is None:
            found.append(f"{name}:1: the module has no layer")
            continue
        for line, path in imports(text):
            target = _module_of(path)
            if target is not None and target != own and _RANKS[target] >= _RANKS[own]:
                where = "its own layer" if _RANKS[target] == _RANKS[own] else "a higher layer"
                found.append(f"{name}:{line}: `{own}` imports `{target}` from {where}")
    return found


def main(arguments: list[str]) -> int:
    """Print the violations; 1 if there are any."""
    source = Path(arguments[0]) if arguments else SOURCE
    if not (source / "lib.rs").is_file():
        print(f"{source} is not the source folder of a crate: it has no lib.rs", file=sys.stderr)
        return 2
    found = violations(source)
    for line in found:
        print(line)
    if not found:
        print(f"layers hold: {len(_RANKS)} modules in {len(LAYERS)} layers")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
