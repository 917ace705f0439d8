"""How replays of many transcripts scale with workers, and what a million of them take.

    python benches/replay_many.py --data ../shared/data/locomo/locomo_dev5.json.gz

Rates are those between the first part and the last, without the loading of models, and
mean something on an idle machine only: read the ratios, and the load beside them. Every
session of the data is a conversation of its own, so that no worker is left with one that
is long; what a conversation costs by itself comes from the same turns in whole ones.

`bound_by_cpu` is what the processors' time allows, whatever else the machine does:
workers × (CPU seconds of one) ÷ (CPU seconds of all of them), start-up taken off.
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
import tracemalloc
from itertools import islice
from pathlib import Path
from typing import Any

from ebbtide import Turn, replay_many
from ebbtide.distributed.sources import find_files, list_sources
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
    told: list[tuple[int, float]] = []
    cpu = cpu_seconds()
    report = replay_many(
        sources, out, progress=lambda done, _: told.append((done, time.perf_counter())), **options
    )
    (before, start), (done, end) = told[1], told[-1]  # the first is before any part
    found = {
        "conversations_a_second": (done - before) / max(end - start, 1e-9),
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


def starting(sources: Path, out: Path, engine: str, workers: int) -> float:
    """CPU seconds until every worker has its models: one short conversation for each."""
    short = sorted(sources.iterdir())[:workers]
    texts = [path.read_text(encoding="utf-8").splitlines(keepends=True)[0] for path in short]
    with tempfile.TemporaryDirectory() as name:
        for number, text in enumerate(texts):
            Path(name, f"{number}.jsonl").write_text(text, encoding="utf-8")
        one = replayed(Path(name), out, engine=engine, workers=workers, batch=1)
    return float(one["cpu_seconds"])


def scaling(sources: Path, out: Path, workers: list[int], rounds: int) -> list[dict[str, Any]]:
    """Medians by engine and number of workers; engines take turns, so that they share what
    else the machine does."""
    runs: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for _ in range(rounds):
        for engine in ENGINES:
            for count in workers:
                one = replayed(sources, out, engine=engine, workers=count, batch=2)
                one["start_cpu_seconds"] = starting(sources, out, engine, count)
                one["work_cpu_seconds"] = one["cpu_seconds"] - one["start_cpu_seconds"]
                runs.setdefault((engine, count), []).append(one)
    digests = {run["digest"] for some in runs.values() for run in some}
    assert len(digests) == 1, "two runs do not agree"
    rows: list[dict[str, Any]] = []
    for (engine, count), some in runs.items():
        row: dict[str, Any] = {"engine": engine, "workers": count}
        for name in ("conversations_a_second", "start_cpu_seconds", "work_cpu_seconds"):
            row[name] = statistics.median(run[name] for run in some)
        first = next((r for r in rows if r["engine"] == engine), row)
        row["times_as_fast"] = row["conversations_a_second"] / first["conversations_a_second"]
        spent = first["work_cpu_seconds"] / row["work_cpu_seconds"]
        row["bound_by_cpu"] = spent * count / first["workers"]
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


def listing(folder: Path, count: int = 2000) -> dict[str, float]:
    """What the process that asks takes for a conversation, before any is replayed."""
    for number in range(count):
        path = folder / f"{number // 100}" / f"conversation-{number}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{"text": "hello"}\n', encoding="utf-8")
    list(list_sources(find_files([folder / "0"])))  # what is imported for it is not for each
    tracemalloc.start()
    cpu = time.process_time()
    sources = list(list_sources(find_files([folder])))
    found = {
        "cpu_seconds a conversation": (time.process_time() - cpu) / len(sources),
        "memory bytes a conversation": tracemalloc.get_traced_memory()[0] / len(sources),
    }
    tracemalloc.stop()
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
        listed = listing(Path(name) / "small")
        rows = scaling(sources["sessions"], Path(name) / "out", options.workers, options.rounds)
    report = {
        "turns": options.turns,
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "scaling": rows,
        "costs": cost,
        "listing": listed,
        "million": sizing(cost),
    }
    text = json.dumps(report, indent=1)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
