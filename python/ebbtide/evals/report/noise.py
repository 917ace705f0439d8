"""What noise costs: the same questions with and without it, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ebbtide.evals.report.cells import (
    Cell,
    Column,
    Table,
    interval_cell,
    interval_of,
    make_table,
    plain,
    signed,
)
from ebbtide.evals.report.runs import Run

__all__ = ["noise_table"]

_METRICS = (
    ("recall@5", "recall@5"),
    ("recall@10", "recall@10"),
    ("recall_any@10", "recall_any@10"),
    ("recall_all@10", "recall_all@10"),
    ("mrr", "MRR"),
    ("ndcg@10", "nDCG@10"),
    ("budget_2048_all", "all ≤2,048"),
    ("budget_2048_contains", "contains ≤2,048"),
)


def noise_table(run: Run) -> Table | None:
    """Means without noise, with it, and the loss in points, a row each for every system."""
    clean = run.clean
    if clean is None:
        return None
    rows = []
    for system in (name for name in run.systems if name in clean.systems):
        pairs = {name: _pairs(run, clean, system, name) for name, _ in _METRICS}
        if not pairs["recall@10"]:
            continue
        count = plain(len(pairs["recall@10"]))
        for side, label in enumerate(("none", _ratio(run))):
            cells = [
                interval_cell(interval_of([pair[side] for pair in held])) for held in pairs.values()
            ]
            rows.append((Cell(system), Cell(label), count, *cells))
        lost = [_loss([pair[1] - pair[0] for pair in held]) for held in pairs.values()]
        rows.append((Cell(system), Cell("points"), count, *lost))
    if not rows:
        return None
    return make_table(
        "noise",
        "What noise costs",
        "The same questions about the same conversations without and with noise, means with "
        "95 % bootstrap intervals; points: with minus without, in hundredths, paired by question, "
        "in bold where the interval leaves out zero. n counts the questions with evidence.",
        [Column("system"), Column("noise"), Column("n"), *(Column(label) for _, label in _METRICS)],
        rows,
    )


def _pairs(run: Run, clean: Run, system: str, name: str) -> list[tuple[float, float]]:
    """Values without and with noise of the questions that have both."""
    before = clean.column(system, name)
    return [
        (float(before[key]), float(value))
        for key, value in run.column(system, name).items()
        if value is not None and before.get(key) is not None
    ]


def _loss(differences: list[float]) -> Cell:
    found = interval_of([100 * value for value in differences])
    if found is None:
        return interval_cell(None)
    interval = f"{signed(found.low, 1)} to {signed(found.high, 1)}"
    clear = found.low > 0 or found.high < 0
    return Cell(signed(found.mean, 1), found.mean, strong=clear, interval=interval)


def _ratio(run: Run) -> str:
    """The share of noise, as it was asked for, or as it is in the file."""
    options: Mapping[str, Any] = run.manifest.get("options", {})
    if options.get("noise") is not None:
        return f"{100 * options['noise']:g} % of the {options.get('ratio_of', 'timeline')}"
    held = {row["conversation"]: row for row in run.conversations}.values()
    turns = sum(row["turns"] or 0 for row in held)
    noise = sum(row["noise_turns"] or 0 for row in held)
    return f"{100 * noise / turns:.0f} % of the timeline" if turns else "noise"
