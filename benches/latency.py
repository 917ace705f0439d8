"""How long single calls take: add in both modes, questions, import, the first add; memory too.

    python benches/latency.py --data ../shared/data/locomo/locomo_dev5.json.gz --out latency.json

Times are wall-clock milliseconds, with CPU milliseconds beside them: the first mean
something on an idle machine only.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from ebbtide import Config, Memory, Turn
from ebbtide.inputs import prepare
from ebbtide.pipeline import text_of
from ebbtide.transcripts import read_transcripts

QUESTIONS = (
    "What does Melanie do to relax?",
    "When did Caroline go to the support group?",
    "Where did Jon open his studio last month?",
    "Which book did they talk about?",
)

IMPORT = """
import json, time
wall, cpu = time.perf_counter(), time.process_time()
import ebbtide
print(json.dumps([1000 * (time.perf_counter() - wall), 1000 * (time.process_time() - cpu)]))
"""
FIRST_ADD = """
import json, time
import ebbtide
wall, cpu = time.perf_counter(), time.process_time()
with ebbtide.Memory.in_memory() as memory:
    memory.add("I moved to Porto in May.", speaker="Ana", timestamp="2024-06-01")
    print(json.dumps([1000 * (time.perf_counter() - wall), 1000 * (time.process_time() - cpu)]))
"""
RESIDENT = """
import json, sys
from itertools import cycle, islice
from pathlib import Path
import ebbtide
from ebbtide.transcripts import read_transcripts
file, count, cache = sys.argv[1], int(sys.argv[2]), sys.argv[3]
turns = [t.text for found in read_transcripts(file, qualified=True) for t in found.turns]
config = ebbtide.Config().replace(nlp={"analysis_cache": cache})
def resident():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20
with ebbtide.Memory.open(cache + ".store", config=config) as memory:
    memory.warm_up()
    loaded = resident()
    memory.add_many({"text": text} for text in islice(cycle(turns), count))
    memory.retrieve("Who moved to Porto?")
    print(json.dumps([loaded, resident()]))
"""


def spread(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {
        name: ordered[min(len(ordered) - 1, int(share * len(ordered)))]
        for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
    }


def timed(work: Callable[[Any], object], items: Iterable[Any]) -> dict[str, Any]:
    wall, cpu = [], []
    for item in items:
        at, used = time.perf_counter(), time.process_time()
        work(item)
        cpu.append(1000 * (time.process_time() - used))
        wall.append(1000 * (time.perf_counter() - at))
    return {"calls": len(wall), "wall_ms": spread(wall), "cpu_ms": spread(cpu)}


def script(code: str, *arguments: str) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    found: list[float] = json.loads(done.stdout)
    return found


def calls(turns: list[Turn], folder: Path) -> dict[str, Any]:
    names = ("text", "role", "speaker", "timestamp", "session_id")
    given = [{name: getattr(turn, name) for name in names} for turn in turns]
    found: dict[str, Any] = {}
    with Memory.open(folder / "complete.db") as memory:
        memory.warm_up()
        analyser = memory._analyser
        texts = [text_of(p) for p in (prepare(t, max_chars=10**6) for t in turns) if p]
        found["analysis alone"] = timed(lambda text: analyser.analyse([text]), texts)
        found["add, complete"] = timed(lambda turn: memory.add(**turn), given)
        asked = list(islice(cycle(QUESTIONS), 100))
        speakers = memory._handle.speakers()
        found["question analysis alone"] = timed(
            lambda text: analyser.question(text, query_time=None, speakers=speakers, bare=False),
            asked,
        )
        found["retrieve"] = timed(memory.retrieve, asked)
    for synchronous in ("normal", "full"):
        config = Config().replace(store={"synchronous": synchronous})
        with Memory.open(folder / f"{synchronous}.db", config=config) as memory:
            memory.warm_up()
            found[f"add, journalled, synchronous {synchronous}"] = timed(
                lambda turn, memory=memory: memory.add(**turn, wait="journalled"), given
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a transcript file")
    parser.add_argument("--turns", type=int, default=400)
    parser.add_argument("--records", type=int, default=10_000, help="0: leave memory out")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    turns = [
        turn
        for transcript in read_transcripts(options.data, qualified=True)
        for turn in transcript.turns
    ][: options.turns]
    with tempfile.TemporaryDirectory() as folder:
        report: dict[str, Any] = {"load": os.getloadavg()[0], "calls": calls(turns, Path(folder))}
        for name, code in (("import ebbtide", IMPORT), ("first add", FIRST_ADD)):
            script(code)  # once for the file cache
            wall, cpu = min(script(code) for _ in range(3))
            report[name] = {"wall_ms": wall, "cpu_ms": cpu}
        if options.records:
            arguments = (str(options.data), str(options.records), f"{folder}/cache.db")
            loaded, after = script(RESIDENT, *arguments)
            report["resident_mb"] = {"models loaded": loaded, f"{options.records} records": after}
    text = json.dumps(report, indent=1)
    print(text)
    if options.out is not None:
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
