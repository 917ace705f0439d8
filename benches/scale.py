"""How recall grows with the memory: ``python benches/scale.py [--sizes ...] [--out FILE]``.

For each size it builds a store of jittered real turns (see ``scale_data``), closes it,
and prints, as a table and as JSON:

* build seconds, bytes a record on disk, seconds to open, resident bytes a record;
* recall latency, features given (the question is read beforehand): p50 and p99 in
  milliseconds, *cold* (a fresh memory, nothing of the turns read yet), and *warm* (each
  question was asked before);
* with ``--ann``: the graph index of its full segments: seconds until it is ready (built,
  or loaded with ``--keep``), bytes on disk and resident, recall@16 against the exact
  search for the questions and for turned turns, milliseconds of a search, the share of
  questions with the same evidence as without, and recall latency.

Timings are CPU time of this process (``--wall``: wall time), so that a busy machine
blurs them less. A million records and their store take some 25 GB on disk with token
vectors; ``--no-tokens`` leaves those out.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from scale_data import as_query, batches, jittered, open_handle, read_source

from ebbtide import Config
from ebbtide.ann import Graphs


def resident() -> int:
    """Resident bytes of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def build(source: Any, config: Config, path: Path, size: int, tokens: bool) -> float:
    """Fill a new store; seconds of CPU."""
    started = time.process_time()
    store, handle = open_handle(path, config, source.fingerprint)
    for batch in batches(source, size, tokens=tokens):
        handle.add(batch)
    handle.close()
    store.close()
    return time.process_time() - started


def latencies(
    handle: Any, queries: list[Any], clock: Any, graphs: Graphs | None = None
) -> list[float]:
    """Milliseconds of each recall."""
    taken = []
    for query in queries:
        started = clock()
        graph = None if graphs is None else graphs.search(query[1], writable=True)
        handle.recall(query, limit=None, preset=None, filters=None, trace=False, graph=graph)
        taken.append(1000 * (clock() - started))
    return taken


def spread(taken: list[float]) -> dict[str, float]:
    """Median and 99th percentile."""
    return {"p50": float(np.percentile(taken, 50)), "p99": float(np.percentile(taken, 99))}


def measure(source: Any, config: Config, path: Path, size: int, args: Any) -> dict[str, Any]:
    """One row of the table."""
    clock = time.perf_counter if args.wall else time.process_time
    row: dict[str, Any] = {"records": size}
    if not path.exists():
        row["build_s"] = build(source, config, path, size, not args.no_tokens)
    row["disk_bytes"] = path.stat().st_size / size
    before, started = resident(), clock()
    store, handle = open_handle(path, config, source.fingerprint)
    row["open_s"] = clock() - started
    row["memory_bytes"] = (resident() - before) / size
    queries = [as_query(q) for q in source.questions]
    row["cold"] = spread(latencies(handle, queries, clock))
    warm = []
    for _ in range(args.rounds):
        warm += latencies(handle, queries, clock)
    row["warm"] = spread(warm)
    handle.close()
    store.close()
    if args.ann:
        row["ann"] = approximate(source, config, path, queries, args)
    return row


def approximate(
    source: Any, config: Config, path: Path, queries: list[Any], args: Any
) -> dict[str, Any]:
    """The graph index of a store: what it costs and what it finds."""
    clock = time.perf_counter if args.wall else time.process_time
    config = config.replace(retrieval={"ann_min_vectors": 1})
    store, handle = open_handle(path, config, source.fingerprint)
    graphs = Graphs(handle, "default", path, config["retrieval"])
    before, started = resident(), clock()
    graphs.settle()
    row = {
        **graphs.state,
        "ready_s": clock() - started,
        "memory_bytes": resident() - before,
        "disk_bytes": sum(f.stat().st_size for f in path.parent.glob(f"{path.name}.ann/*/*")),
    }
    vectors = [q[1] for q in queries]
    row["recall_at_16"] = {
        "questions": found_of_best(handle, graphs, vectors),
        "turns": found_of_best(handle, graphs, turned(source, len(vectors))),
    }
    started = clock()
    for vector in vectors:
        graphs.search(vector, writable=True)
    row["search_ms"] = 1000 * (clock() - started) / len(vectors)
    exact = [evidence(handle, q, None) for q in queries]
    found = [evidence(handle, q, graphs.search(q[1], writable=True)) for q in queries]
    row["same_evidence"] = sum(a == b for a, b in zip(exact, found, strict=True)) / len(queries)
    row["warm"] = spread(latencies(handle, queries * args.rounds, clock, graphs))
    handle.close()
    store.close()
    return row


def evidence(handle: Any, query: Any, graph: Any) -> list[int]:
    """Ids of the evidence, best first."""
    found = handle.recall(query, limit=None, preset=None, filters=None, trace=False, graph=graph)
    return [item["turn"]["interaction_id"] for item in found["evidence"]]


def turned(source: Any, count: int) -> list[Any]:
    """Real turns, turned a little: neither in the memory nor far from it."""
    rows = np.stack(
        [a.passages[0].vector for a in source.analyses[:: len(source.analyses) // count]]
    )
    return list(jittered(rows[:count], np.random.default_rng(11)).astype(np.float32))


def found_of_best(handle: Any, graphs: Graphs, vectors: list[Any]) -> float:
    """Share of the 16 nearest turns of the segments that the graphs find."""
    parts = [handle.segment_vectors(first) for first in handle.segments()]
    if not parts:
        return 1.0
    owners = np.concatenate([p[0] for p in parts])
    scores = [np.concatenate([p[1].astype(np.float32) @ v for p in parts]) for v in vectors]
    shares = []
    for vector, score in zip(vectors, scores, strict=True):
        best = owners[np.argpartition(-score, 16)[:16]]
        _, found = graphs.search(vector, writable=True) or ([], [])
        shares.append(np.isin(best, found).mean())
    return float(np.mean(shares))


def main() -> None:
    """Build, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-tokens", action="store_true", help="no token vectors in the stores")
    parser.add_argument("--ann", action="store_true", help="with the graph index too")
    parser.add_argument("--wall", action="store_true", help="wall time instead of CPU time")
    parser.add_argument("--keep", type=Path, help="keep the stores in this folder and reuse them")
    parser.add_argument("--out", type=Path, help="write the figures here as JSON")
    args = parser.parse_args()
    config = Config()
    if args.keep is not None:
        config = config.replace(nlp={"analysis_cache": str(args.keep / "cache")})
    source = read_source(config)
    print(f"{len(source.turns)} real turns, {len(source.questions)} questions")
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for size in args.sizes:
            folder = args.keep or Path(scratch)
            name = f"{size}{'-plain' if args.no_tokens else ''}.db"
            row = measure(source, config, folder / name, size, args)
            rows.append(row)
            print(json.dumps(row))
    if args.out:
        args.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
