"""The tables of the report, as data: Markdown and HTML show the same ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ebbtide.evals.metrics import CUTOFFS
from ebbtide.evals.report.cells import (
    Cell,
    Column,
    Table,
    difference_cell,
    interval_cell,
    interval_of,
    make_table,
    mean,
    percentiles,
    plain,
    share,
)
from ebbtide.evals.report.headroom import headroom_table
from ebbtide.evals.report.noise import noise_table
from ebbtide.evals.report.runs import BASE, Run
from ebbtide.evals.results import BUDGETS
from ebbtide.types import KNOWS

__all__ = [
    "HEADLINE",
    "Cell",
    "Column",
    "Table",
    "all_tables",
    "budget_table",
    "category_table",
    "confidence_table",
    "cutoff_table",
    "difference_table",
    "headline_table",
    "mean",
    "percentiles",
    "ranked_categories",
    "timing_table",
]

HEADLINE = (
    ("recall@5", "recall@5"),
    ("recall@10", "recall@10"),
    ("recall_any@10", "recall_any@10"),
    ("recall_all@10", "recall_all@10"),
    ("mrr", "MRR"),
    ("ndcg@10", "nDCG@10"),
    ("session_recall_all@5", "session all@5"),
)
"""Columns of the rows and their labels in the first table."""


def all_tables(run: Run) -> list[Table]:
    """Every table that has a value, in the order of the report."""
    built = (
        headline_table(run),
        difference_table(run),
        noise_table(run),
        budget_table(run),
        category_table(run),
        headroom_table(run),
        cutoff_table(run),
        cutoff_table(run, sessions=True),
        confidence_table(run),
        timing_table(run),
    )
    return [table for table in built if table is not None]


def headline_table(run: Run) -> Table | None:
    """Mean and 95 % bootstrap interval of the main metrics."""
    if not ranked_categories(run):
        return None
    rows = []
    for system in run.systems:
        cells = [plain(len(run.numbers(system, "recall@10")))]
        for name, _ in HEADLINE:
            cells.append(interval_cell(interval_of(run.numbers(system, name))))
        rows.append((Cell(system), *cells))
    return make_table(
        "quality",
        "Retrieval quality",
        "Mean over the questions with evidence and its 95 % bootstrap interval; n counts those "
        "questions. Best of each column in bold.",
        [Column("system"), Column("n"), *(Column(label) for _, label in HEADLINE)],
        rows,
        best=range(2, 2 + len(HEADLINE)),
    )


def difference_table(run: Run) -> Table | None:
    """Paired differences of each system to ``default``, with bootstrap intervals."""
    others = [name for name in run.systems if name != BASE]
    if BASE not in run.systems or not others or not ranked_categories(run):
        return None
    rows = []
    for system in others:
        cells = [Cell(system), plain(len(_differences(run, system, "recall@10")))]
        for name, _ in HEADLINE:
            found = interval_of(_differences(run, system, name))
            cells.append(difference_cell(found))
        rows.append(tuple(cells))
    return make_table(
        "difference",
        f"Paired difference to {BASE}",
        f"System minus {BASE} on the same questions, with its 95 % paired bootstrap interval; "
        "in bold where the interval leaves out zero.",
        [Column("system"), Column("n"), *(Column(label) for _, label in HEADLINE)],
        rows,
    )


def budget_table(run: Run) -> Table | None:
    """Evidence, containment and tokens inside each token budget."""
    groups = (("all", "recall_all"), ("contains", "containment"), ("tokens", "tokens"))
    columns = [Column("system")]
    for _, label in groups:
        columns += [Column(f"{label} ≤{b:,}", label, f"≤{b:,}") for b in BUDGETS]
    rows = []
    for system in run.systems:
        cells = [Cell(system)]
        for kind, _ in groups:
            for budget in BUDGETS:
                value = mean(run.numbers(system, f"budget_{budget}_{kind}"))
                cells.append(plain(value) if kind == "tokens" else share(value))
        rows.append(tuple(cells))
    return make_table(
        "budget",
        "Inside a token budget",
        "recall_all: share of the questions whose evidence is all in the rendered context; "
        "containment: share whose gold answer's content tokens are all in it; tokens: mean "
        "number rendered.",
        columns,
        rows,
        best=range(1, 1 + 2 * len(BUDGETS)),
    )


def category_table(run: Run) -> Table | None:
    """Mean recall@10 of each category of questions."""
    categories = ranked_categories(run)
    rows = []
    for system in run.systems:
        values = run.column(system, "recall@10")
        cells = [Cell(system)]
        for category in categories:
            held = [
                value
                for key, value in values.items()
                if value is not None and run.about[key]["category"] == category
            ]
            cells.append(share(mean(held)))
        rows.append(tuple(cells))
    return make_table(
        "category",
        "recall@10 by category",
        "Mean over the category's questions with evidence; their number in brackets.",
        [Column("system"), *(Column(f"{name} ({n})") for name, n in categories.items())],
        rows,
        best=range(1, 1 + len(categories)),
    )


def cutoff_table(run: Run, *, sessions: bool = False) -> Table | None:
    """Every ranking metric at every cutoff, for turns or for sessions."""
    prefix = "session_" if sessions else ""
    level = "session" if sessions else "turn"
    columns, names = [Column("system")], []
    for kind in ("recall", "recall_any", "recall_all"):
        columns += [Column(f"{kind}@{k}", kind, f"@{k}") for k in CUTOFFS]
        names += [f"{prefix}{kind}@{k}" for k in CUTOFFS]
    columns += [Column("MRR"), Column("nDCG@10")]
    names += [f"{prefix}mrr", f"{prefix}ndcg@10"]
    rows = [
        (Cell(system), *(share(mean(run.numbers(system, name))) for name in names))
        for system in run.systems
    ]
    return make_table(
        f"{level}-cutoffs",
        f"{level.capitalize()} level by cutoff",
        "Means over the questions with evidence; "
        + ("a session stands at its best turn's place." if sessions else "turns are ranked."),
        columns,
        rows,
        best=range(1, 1 + len(names)),
    )


def confidence_table(run: Run) -> Table | None:
    """Confidence on answerable and on unanswerable questions, where a system has one."""
    columns = [Column("system")]
    for group in ("answerable", "unanswerable"):
        columns += [
            Column(f"{group} n", group, "n"),
            Column(f"{group} mean", group, "mean"),
            Column(f"{group} below {KNOWS}", group, f"below {KNOWS}"),
        ]
    rows = []
    for system in run.systems:
        confidence = run.column(system, "confidence")
        if all(value is None for value in confidence.values()):
            continue
        cells = [Cell(system)]
        for abstention in (False, True):
            held = [
                value
                for key, value in confidence.items()
                if value is not None and bool(run.about[key]["abstention"]) is abstention
            ]
            low = mean([float(value < KNOWS) for value in held])
            cells += [plain(len(held)), share(mean(held)), share(low)]
        rows.append(tuple(cells))
    return make_table(
        "confidence",
        "Confidence and abstention",
        f"Mean confidence and the share below {KNOWS}, on questions that the "
        "conversation answers and on those that it does not. The wider apart, the better.",
        columns,
        rows,
    )


def timing_table(run: Run) -> Table | None:
    """Speed, memory, stored bytes and the LLM tokens spent on memory."""
    labels = ("turns/s", "p50 ms", "p95 ms", "p99 ms", "RSS MiB", "bytes/turn", "LLM tokens")
    rows = []
    for system in run.systems:
        held = [row for row in run.conversations if row["system"] == system]
        turns, seconds = _sums(held, "turns", "ingest_s")
        size, stored_turns = _sums(held, "state_bytes", "turns")
        peak = max((row["rss_mb"] for row in held if row["rss_mb"] is not None), default=None)
        cells = [
            plain(turns / seconds if seconds > 0 else None),
            *(plain(v, 1) for v in percentiles(run.numbers(system, "latency_ms"))),
            plain(peak),
            plain(size / stored_turns if stored_turns else None),
            plain(sum(row["llm_tokens"] or 0 for row in held)),
        ]
        rows.append((Cell(system), *cells))
    return make_table(
        "timing",
        "Time, memory and tokens",
        "turns/s over ingestion that was timed; latency of one recall; most resident memory of the "
        "process, which systems may share; stored bytes a turn; LLM tokens spent on memory.",
        [Column("system"), *(Column(label) for label in labels)],
        rows,
    )


def ranked_categories(run: Run) -> dict[str, int]:
    """Categories with a recall, by name, and how many questions of each have one."""
    ranked = {
        key
        for system in run.systems
        for key, value in run.column(system, "recall@10").items()
        if value is not None
    }
    counts: dict[str, int] = {}
    for key in ranked:
        category = run.about[key]["category"]
        counts[category] = counts.get(category, 0) + 1
    return dict(sorted(counts.items()))


def _sums(rows: Sequence[Mapping[str, Any]], *names: str) -> list[float]:
    """Sums of columns over the rows that have them all, so that a ratio is of like to like.

    Conversations whose analyses came from a cache have no ingestion time.
    """
    whole = [row for row in rows if all(row[name] is not None for name in names)]
    return [math.fsum(row[name] for row in whole) for name in names]


def _differences(run: Run, system: str, name: str) -> list[float]:
    base = run.column(BASE, name)
    return [
        float(value - base[key])
        for key, value in run.column(system, name).items()
        if value is not None and base.get(key) is not None
    ]
