"""Write docs/reliability.md from the JSON files that ``make reliability`` leaves in a folder.

    python scripts/reliability_page.py runs/reliability

Every file is one suite: ``{"promise": …, "test": "tests/…::…", "figures": {…},
"seconds": …}``, the last where it took the time. The suites write it into the folder that
EBBTIDE_FIGURES names; whatever is there goes onto the page, in the order of the promises.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ebbtide.bench import Machine
from ebbtide.bench.report import spoken

__all__ = ["main"]

PAGE = Path(__file__).parent.parent / "docs" / "reliability.md"

BEYOND = """\
## What is not promised

- A bit that flips in the write-ahead log of a process that was killed looks to SQLite like
  a write that never ended: the turns from there on are gone, those before are right. A
  store that was closed has no such log.
- Every row has a checksum but the names of the memories and the index of external ids.
  `ebbtide doctor` compares these with what they are taken from; opening does not.
- A store does not outlive its disk: `ebbtide backup` makes the copy that does.
- The first 64 GiB of a store are read through a memory map (on 64-bit systems, not on
  Windows). A page that the disk cannot give, or a file that another program cuts off while
  it is open, then ends the process with a bus error; what was acknowledged is as safe as
  after a kill. `ebbtide doctor` reads without the map and names such pages.
- `synchronous = "normal"` survives a killed process; for a power cut set `"full"`.
- An asynchronous memory that was opened before a fork must be left alone by the child.
- A fork waits for the threads that use a store, for a minute at most. Where one takes longer
  (an archive file that is a pipe, and nobody reads it), the child may wait for ever in a memory
  of its own.
- Writing looks for the store's file and its log before it commits: what is deleted after that
  takes the turn with it.
"""


def command(test: str) -> str:
    """How one suite is run by itself."""
    return f"EBBTIDE_FIGURES=DIR python -m pytest '{test}' --timeout 3600"


def figures(found: Mapping[str, Any]) -> Iterator[str]:
    """A list of what was counted; a table of tables stays readable as text."""
    for name, value in found.items():
        if isinstance(value, Mapping):
            inner = ", ".join(f"{key} {said(one)}" for key, one in value.items())
            yield f"- {name}: {inner}"
        else:
            yield f"- {name}: {said(value)}"


def said(value: Any) -> str:
    """A figure as it is read."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return spoken(value)
    return str(value)


def suite(name: str, found: Mapping[str, Any]) -> Iterator[str]:
    """One promise, its test, its command and its figures."""
    yield from (f"## {name.replace('_', ' ').replace('-', ' ').capitalize()}", "")
    promise = str(found["promise"])
    yield from (f"{promise[:1].upper()}{promise[1:].rstrip('.')}.", "")
    yield from ("```sh", command(str(found["test"])), "```", "")
    yield from figures(found["figures"])
    if "seconds" in found:
        yield f"- seconds: {spoken(found['seconds'])}"
    yield ""


def page(folder: Path) -> str:
    """The whole page."""
    suites = {
        file.stem: json.loads(file.read_text(encoding="utf-8"))
        for file in sorted(folder.glob("*.json"))
    }
    lines = [
        "# Reliability",
        "",
        "What ebbtide promises of the turns that it was given, the test of each promise, and what",
        f"the test counted on this machine: {Machine.here().sentence()}.",
        "The everyday tests run smaller versions of the same. This page is generated:",
        "`make reliability`.",
        "",
    ]
    for name, found in suites.items():
        lines += suite(name, found)
    lines.append(BEYOND)
    return "\n".join(lines)


def main() -> int:
    """Command line; returns the exit status."""
    if len(sys.argv) != 2 or not list(Path(sys.argv[1]).glob("*.json")):
        print(__doc__, file=sys.stderr)
        return 2
    PAGE.write_text(page(Path(sys.argv[1])), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
