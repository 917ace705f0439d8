"""How replays of many transcripts scale with workers, and what a million of them take.

    python benches/replay_many.py --data ../shared/data/locomo/locomo_dev5.json.gz

Wall times mean something on an idle machine only: read the ratios. Every session of the
data is a conversation of its own, so that no worker is left with one that is long; what
a conversation costs by itself comes from the same turns in whole conversations.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

from ebbtide import Turn, replay_many
from ebbtide.transcripts import read_transcripts

ENGINES = ("local", "dask")
LENGTHS = (20, 100, 500)
MILLION = 1_000_000


def cpu_seconds() -> float:
    """Of this process and of those it has waited for."""
    usage = [resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in usage)


def write_transcripts(data: Path, most: int, folder: Path) -> dict[str, Path]:
    """The same turns twice: in whole conversations, and in one for each session."""
    found = {kind: folder / kind for kind in ("whole", "sessions")}
    for path in found.values():
        path.mkdir()
    turns = (
        (transcript.name, turn)
        for transcript in read_transcripts(data, qualified=True)
        for turn in transcript.turns
    )
    for name, turn in islice(turns, most):
        for kind, stem in (("whole", name), ("sessions", f"{name}-{turn.session_id}")):
            with (found[kind] / f"{stem}.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(line(turn)) + "\n")
    return found


def line(turn: Turn) -> dict[str, Any]:
    kept = turn.to_dict()
    names = ("text", "role", "speaker", "timestamp", "session_id", "external_id")
    return {name: kept[name] for name in names if kept[name] is not None}


def replayed(sources: Path, out: Path, **options: Any) -> dict[str, Any]:
    """One replay from nothing, its results deleted."""
    cpu, wall = cpu_seconds(), time.perf_counter()
    report = replay_many([sources], out, **options)
    found = {
        "seconds": time.perf_counter() - wall,
        "cpu_seconds": cpu_seconds() - cpu,
        "conversations": report.conversations,
        "turns": report.turns,
        "digest": report.digest,
        "stores": size(out / "stores"),
        "tables": size(out / "turns") + size(out / "conversations"),
    }
    shutil.rmtree(out)
    return found


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def scaling(sources: Path, out: Path, workers: list[int], rounds: int) -> list[dict[str, Any]]:
    """Medians by engine and number of workers; engines take turns, so that they share what
    else the machine does."""
    runs: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for _ in range(rounds):
        for engine in ENGINES:
            for count in workers:
                one = replayed(sources, out, engine=engine, workers=count, batch=4)
                runs.setdefault((engine, count), []).append(one)
    digests = {run["digest"] for some in runs.values() for run in some}
    assert len(digests) == 1, "two runs do not agree"
    rows = []
    for (engine, count), some in runs.items():
        row: dict[str, Any] = {"engine": engine, "workers": count}
        for name in ("seconds", "cpu_seconds"):
            row[name] = statistics.median(run[name] for run in some)
        first = next((r for r in rows if r["engine"] == engine), row)
        row["times_as_fast"] = first["seconds"] / row["seconds"]
        row["times_the_cpu"] = row["cpu_seconds"] / first["cpu_seconds"]
        rows.append(row)
    return rows


def costs(sources: dict[str, Path], out: Path) -> dict[str, float]:
    """What a turn takes, and what a conversation takes besides its turns."""
    # One before, so that no model is loaded in what is measured.
    replayed(sources["whole"], out, workers=1)
    many, few = (replayed(sources[kind], out, workers=1) for kind in ("sessions", "whole"))
    more = many["conversations"] - few["conversations"]
    found: dict[str, float] = {}
    for name in ("cpu_seconds", "stores", "tables"):
        each = max(0.0, (many[name] - few[name]) / more)
        found[f"{name} a conversation"] = each
        found[f"{name} a turn"] = (few[name] - few["conversations"] * each) / few["turns"]
    return found


def sizing(cost: dict[str, float]) -> list[dict[str, float]]:
    """A million conversations of several lengths."""

    def total(name: str, turns: int) -> float:
        return MILLION * (cost[f"{name} a conversation"] + turns * cost[f"{name} a turn"])

    return [
        {
            "turns": turns,
            "cpu_hours": total("cpu_seconds", turns) / 3600,
            "stores_gb": total("stores", turns) / 1e9,
            "tables_gb": total("tables", turns) / 1e9,
        }
        for turns in LENGTHS
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a LoCoMo file")
    parser.add_argument("--turns", type=int, default=1200, help="the first so many only")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        sources = write_transcripts(options.data, options.turns, Path(name))
        cost = costs(sources, Path(name) / "out")
        rows = scaling(sources["sessions"], Path(name) / "out", options.workers, options.rounds)
    report = {
        "turns": options.turns,
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "scaling": rows,
        "costs": cost,
        "million": sizing(cost),
    }
    text = json.dumps(report, indent=1)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
