"""A long replay: does the cost of a turn stay flat, and the memory bounded?

    python -m benches.million --turns 1000000 --json million.json

Generated turns with a cheap analysis are stored in batches through the engine, as a
replay does. For every ``--every`` turns the CPU and elapsed seconds of storing alone
(not of generating), resident memory and the size of the store are recorded; at the
end the slopes over the run.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benches.cheap import turns
from ebbtide import Config, _core


def resident_mb() -> float:
    """Resident memory of this process, MB (Linux)."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return float("nan")


def replay(path: Path, count: int, every: int, batch: int) -> list[dict[str, Any]]:
    """Store ``count`` turns; one row for every ``every`` of them."""
    config = Config().replace(capacity={"token_budget": 1900})
    store = _core.StoreHandle(path, read_only=False, holder="bench", synchronous_full=False)
    memory = _core.MemoryHandle(
        store, "long", config=config.to_json(), presets={}, analyser="cheap", reindexing=False
    )
    rows: list[dict[str, Any]] = []
    cpu = wall = 0.0
    done = 0
    for chunk in turns(count):
        for start in range(0, len(chunk), batch):
            part = chunk[start : start + batch]
            before = time.process_time(), time.perf_counter()
            memory.add(part)
            cpu += time.process_time() - before[0]
            wall += time.perf_counter() - before[1]
        done += len(chunk)
        if done % every == 0 or done == count:
            rows.append(
                {
                    "turns": done,
                    "cpu_us_a_turn": round(cpu / (done - _last(rows)) * 1e6, 2),
                    "seconds": round(wall, 3),
                    "rss_mb": round(resident_mb(), 1),
                    "store_mb": round(path.stat().st_size / 2**20, 1),
                }
            )
            print(json.dumps(rows[-1]), flush=True)
            cpu = wall = 0.0
    memory.close()
    store.close()
    return rows


def _last(rows: list[dict[str, Any]]) -> int:
    return int(rows[-1]["turns"]) if rows else 0


def slopes(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Growth over the run, by least squares; the first row is the warming up."""
    rest = rows[1:] if len(rows) > 2 else rows
    at = np.array([r["turns"] for r in rest], float)
    cost = np.array([r["cpu_us_a_turn"] for r in rest])
    memory = np.array([r["rss_mb"] for r in rest])
    if len(rest) < 2:
        return {}
    return {
        "cpu_us_a_turn_mean": round(float(cost.mean()), 2),
        "cpu_us_a_turn_per_100k_turns": round(float(np.polyfit(at, cost, 1)[0] * 1e5), 3),
        "rss_bytes_a_turn": round(float(np.polyfit(at, memory, 1)[0] * 2**20)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=1_000_000)
    parser.add_argument("--every", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--json", type=Path, help="write rows and slopes there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = replay(Path(folder, "long.db"), options.turns, options.every, options.batch)
    result = {"rows": rows, "slopes": slopes(rows)}
    print(json.dumps(result["slopes"]))
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
