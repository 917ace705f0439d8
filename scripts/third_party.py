"""Write the licences of what is linked into the compiled module.

    python scripts/third_party.py [--check]

THIRD-PARTY-LICENSES.txt goes into every wheel. It holds the texts that the crates come with,
for all platforms together; crates with one text share it. It needs cargo, and the crates'
sources, which it fetches where they are missing. With --check nothing is written, and a file
that is not what it would be is an error.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

__all__ = ["PAGE", "crates", "main", "render"]

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "THIRD-PARTY-LICENSES.txt"

_MODULE = "ebbtide-py"
_NAMES = re.compile(r"(LICEN[CS]E|COPYING|COPYRIGHT|NOTICE)", re.IGNORECASE)
_INNER = {
    "libmimalloc-sys": "c_src/mimalloc/v3/LICENSE",
    "rust-stemmers": "algorithms/LICENSE",
}
"""Licences of what a crate carries of others."""

_HEAD = """\
ebbtide's compiled module is linked with the crates below, and with Rust's standard library
(MIT OR Apache-2.0). SQLite, which libsqlite3-sys carries, is in the public domain.
"""

_RULE = "=" * 80


def crates() -> list[dict[str, Any]]:
    """The crates of others that are linked into the module, by name and version."""
    words = ["cargo", "metadata", "--locked", "--format-version", "1"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    read = json.loads(done.stdout)
    packages = {package["id"]: package for package in read["packages"]}
    needed = {node["id"]: node["deps"] for node in read["resolve"]["nodes"]}
    found: dict[str, dict[str, Any]] = {}
    waiting = [one for one, package in packages.items() if package["name"] == _MODULE]
    while waiting:
        one = waiting.pop()
        # What runs in the compiler alone is in no binary.
        if one in found or any("proc-macro" in t["kind"] for t in packages[one]["targets"]):
            continue
        found[one] = packages[one]
        waiting += [
            dependency["pkg"]
            for dependency in needed[one]
            if any(kind["kind"] is None for kind in dependency["dep_kinds"])
        ]
    others = [package for package in found.values() if package["source"] is not None]
    return sorted(others, key=lambda package: (package["name"], package["version"]))


def texts(package: dict[str, Any]) -> list[str]:
    """The licence texts of a crate; of several to choose from, MIT."""
    folder = Path(package["manifest_path"]).parent
    files = sorted(file for file in folder.iterdir() if _NAMES.match(file.name))
    if any("MIT" in file.name.upper() for file in files):
        kept = ("MIT", "UNICODE")
        files = [file for file in files if any(word in file.name.upper() for word in kept)]
    if package["name"] in _INNER:
        files.append(folder / _INNER[package["name"]])
    read = [file.read_text(encoding="utf-8").replace("\r\n", "\n").strip("\n") for file in files]
    lines = ["\n".join(line.rstrip() for line in text.split("\n")) for text in read]
    return lines or [f"{package['license']}; it comes without a text. {package['repository']}"]


def render() -> str:
    """The whole file."""
    shared: dict[str, list[str]] = {}
    for package in crates():
        text = "\n\n".join(texts(package))
        words = f"{package['name']} {package['version']} ({package['license']})"
        shared.setdefault(text, []).append(words)
    parts = ["\n".join([_RULE, *names, _RULE, "", text, ""]) for text, names in shared.items()]
    return "\n".join([_HEAD, *parts])


def main(arguments: list[str] | None = None) -> int:
    """Write the file or check it; returns the exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    text = render()
    if "--check" not in given:
        PAGE.write_text(text, encoding="utf-8", newline="\n")
        return 0
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    print(f"{PAGE.name} is stale, run: python scripts/third_party.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
