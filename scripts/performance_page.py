"""Write docs/performance.md from the JSON files that ``make performance`` leaves in a folder.

    python scripts/performance_page.py runs/performance

Files: ``bench.json`` (ebbtide bench), ``replay.json``, ``scale.json``, ``write_path.json``,
``million.json`` and ``peer.json`` (scripts of the same names in benches/), and in
``criterion`` what ``cargo bench`` left there. What is missing is left out of the page. A
``remark`` in ``peer.json`` says where its rows were measured otherwise.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ebbtide.bench import Machine
from ebbtide.bench.report import read_json, sections, spoken

__all__ = ["main"]

PAGE = Path(__file__).parent.parent / "docs" / "performance.md"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A Markdown table; the first column is text, the others are numbers."""
    yield f"| {' | '.join(head)} |"
    yield f"|---|{'---:|' * (len(head) - 1)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def command(line: str) -> Iterator[str]:
    """How the figures were made."""
    yield from ("```sh", line, "```", "")


def replay(found: dict[str, Any]) -> Iterator[str]:
    """Stages, their bound, and what is reached of it."""
    yield from ("## Replay", "")
    yield from command("python benches/replay.py --data locomo_dev5.json.gz")
    yield (
        f"{found['turns']:,} turns of five LoCoMo conversations, default settings, "
        f"{found['cores']} processors."
    )
    yield ""
    costs = found["cpu_ms_a_turn"]
    rows = [[name, spoken(ms)] for name, ms in costs.items()]
    yield from table(["stage, alone on one thread", "CPU ms a turn"], rows)
    bound = found["bound_turns_per_second"]
    rows = [
        [
            "two threads" if workers == "1" else f"{workers} processes",
            spoken(run["median_turns_per_second"]),
            f"{100 * run['share_of_bound']:.0f} %",
        ]
        for workers, run in found["replay"].items()
    ]
    rows.append(["bound: processors by the summed CPU time", spoken(bound), "100 %"])
    yield from table(["analysis by", "turns/s", "of the bound"], rows)


def scale(found: list[dict[str, Any]]) -> Iterator[str]:
    """Recall as the memory grows."""
    yield from ("## Recall as the memory grows", "")
    sizes = " ".join(str(row["records"]) for row in found)
    yield from command(f"EBBTIDE_DATA=DIR python benches/scale.py --sizes {sizes} --wall --ann")
    yield (
        "Jittered embeddings and facts of real turns; the question is read beforehand. Cold: "
        "nothing of the turns was read yet; warm: each question was asked before. Late "
        "interaction is in all of them."
    )
    yield ""
    rows = [
        [
            f"{row['records']:,}",
            *(spoken(row[state][name]) for state in ("cold", "warm") for name in ("p50", "p99")),
            spoken(row["open_s"]),
            spoken(row["disk_bytes"] / 1024),
        ]
        for row in found
    ]
    head = ["records", "cold p50 ms", "p99", "warm p50 ms", "p99"]
    yield from table([*head, "open s", "KiB on disk a record"], rows)
    graphs = [row for row in found if row.get("ann", {}).get("segments")]
    rows = [
        [
            f"{row['records']:,}",
            spoken(row["ann"]["recall_at_16"]["questions"]),
            spoken(row["ann"]["search_ms"]),
            spoken(row["ann"]["ready_s"]),
            spoken(row["ann"]["disk_bytes"] / 2**20),
            f"{100 * row['ann']['same_evidence']:.0f} %",
            spoken(row["ann"]["warm"]["p50"]),
            spoken(row["ann"]["warm"]["p99"]),
        ]
        for row in graphs
    ]
    if rows:
        yield "With `--ann`: full segments of 65,536 turns searched by graph (HNSW)."
        yield ""
        head = ["records", "recall@16", "search ms", "build s", "MiB", "same evidence"]
        yield from table([*head, "warm p50 ms", "p99"], rows)


def write_path(found: dict[str, Any]) -> Iterator[str]:
    """Memory operations alone."""
    yield from ("## Memory operations alone", "")
    yield from command("python -m benches.write_path")
    yield (
        "Analysed turns given: score, decay, prune, lineage, index, and in a file the journal, "
        "facts, one vector, decisions and postings."
    )
    yield ""
    rows = [
        [
            name,
            str(row["active"]),
            spoken(row["cpu_us_a_turn"]),
            spoken(row["turns_a_second"]),
            spoken(row.get("bytes_a_turn")),
        ]
        for name, row in found.items()
    ]
    yield from table(["where", "active", "CPU µs a turn", "turns/s", "bytes a turn"], rows)


def transitions(folder: Path) -> Iterator[str]:
    """The state transitions without a store, from what criterion wrote."""
    rows = []
    for name in ("state alone", "state and indexes"):
        run = folder / "criterion" / "write_path" / name / "new"
        if not run.is_dir():
            return
        batch = json.loads((run / "benchmark.json").read_text(encoding="utf-8"))
        turns = batch["throughput"]["Elements"]
        estimates = json.loads((run / "estimates.json").read_text(encoding="utf-8"))
        nanoseconds = estimates["median"]["point_estimate"] / turns
        rows.append([name, spoken(nanoseconds / 1e3), f"{1e9 / nanoseconds:,.0f}"])
    yield from command("cargo bench -p ebbtide-core --bench write_path -- state")
    yield (
        "The same without a store, in Rust: divergence, score, lineage, decay, tiers and pruning "
        "of some 60 active turns alone; and with what a turn adds to the indexes of recall "
        "(vectors, postings, cards). The rest of a turn in memory is SQLite, the count of "
        "tokens, and the way from Python."
    )
    yield ""
    yield from table(["what", "µs a turn", "turns/s"], rows)


def million(found: dict[str, Any]) -> Iterator[str]:
    """A long replay: flat cost, memory by the turn."""
    rows = found["rows"]
    yield from ("## A long replay", "")
    yield from command(f"python -m benches.million --turns {rows[-1]['turns']}")
    slopes = found["slopes"]
    yield (
        f"Generated turns with a cheap analyser. Mean cost {slopes['cpu_us_a_turn_mean']} µs of "
        f"CPU a turn; it changes by {slopes['cpu_us_a_turn_per_100k_turns']} µs with every "
        f"100,000 turns. Resident memory grows by {slopes['rss_bytes_a_turn']:,} bytes a turn: "
        "a vector in memory, what recall must know of the turn, and the part of the file that is "
        "mapped, which the system takes back when it wants it."
    )
    yield ""
    chosen = [rows[round(i * (len(rows) - 1) / 9)] for i in range(min(10, len(rows)))]
    body = [[f"{r['turns']:,}", spoken(r["cpu_us_a_turn"]), spoken(r["rss_mb"])] for r in chosen]
    yield from table(["turns", "CPU µs a turn", "resident MB"], body)


def peer(found: dict[str, Any]) -> Iterator[str]:
    """Side by side with the authors' package."""
    yield from ("## Beside the DMF authors' package", "")
    line = "python benches/peer.py --data locomo_dev5.json.gz --peer DIR"
    yield from command(line + (" --peer-model DIR" if "8-bit" not in found["peer_model"] else ""))
    model = found["peer_model"]
    named = model if "8-bit" in model else "its own precision, float32"
    yield (
        "The same turns and questions in one run, alternating; medians. Embedding model of "
        f"`dmf-memory`: {named}. {found.get('remark', '')}".rstrip()
    )
    yield ""
    pairs = [("replay, turns/s", found["replay"])]
    pairs += [(f"recall at {row['records']:,} records, ms", row) for row in found["recall"]]
    rows = [
        [name, spoken(row["ebbtide"]), spoken(row["dmf_memory"]), f"{row['ratio']} ×"]
        for name, row in pairs
    ]
    yield from table(["", "ebbtide", "dmf-memory", "ratio"], rows)


def page(folder: Path) -> str:
    """The whole page."""
    lines = [
        "# Performance",
        "",
        f"{Machine.here().sentence()}.",
        "Times are medians unless a column says otherwise, on a machine with little else to do.",
        "This page is generated: `make performance`.",
        "",
    ]
    bench = folder / "bench.json"
    if bench.is_file():
        figures, _, line = read_json(bench)
        lines += ["## On this machine", "", *command(line), sections(figures)]
    for name, write in (
        ("replay", replay),
        ("scale", scale),
        ("write_path", write_path),
        ("million", million),
        ("peer", peer),
    ):
        file = folder / f"{name}.json"
        if file.is_file():
            lines += write(json.loads(file.read_text(encoding="utf-8")))
        if name == "write_path":
            lines += transitions(folder)
    lines += ["The kernels have a [page of their own](kernels.md).", ""]
    return "\n".join(lines)


def main() -> int:
    """Command line; returns the exit status."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    PAGE.write_text(page(Path(sys.argv[1])), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
