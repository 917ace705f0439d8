"""A table of the kernels' times from pytest-benchmark's JSON.

pytest benches/test_kernels.py --benchmark-json FILE
python benches/kernel_table.py FILE
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

RIVALS = ("rust", "numpy", "numba", "loop")


def table(path: Path) -> str:
    """Markdown: the best time of each, and how many times slower the others are."""
    times: dict[tuple[str, int], dict[str, float]] = {}
    for bench in json.loads(path.read_text(encoding="utf-8"))["benchmarks"]:
        info = bench["extra_info"]
        times.setdefault((info["kernel"], info["n"]), {})[info["rival"]] = bench["stats"]["min"]
    lines = [
        "| kernel | rows | Rust, µs | numpy | numba | plain loop |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for (kernel, n), by in times.items():
        ours = by["rust"]
        others = [f"{by[r] / ours:.1f}×" if r in by else "" for r in RIVALS[1:]]
        lines.append(f"| {kernel} | {n:,} | {ours * 1e6:,.1f} | {' | '.join(others)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(Path(sys.argv[1])))
