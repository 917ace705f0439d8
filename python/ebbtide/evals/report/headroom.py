"""What a better order, or nothing but the evidence, could still gain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ebbtide.evals.report.cells import Cell, Column, Table, make_table, mean, plain, share
from ebbtide.evals.report.runs import Run
from ebbtide.evals.results import DEPTH

__all__ = ["headroom_table"]

_K = 10
_BUDGET = 2048


def headroom_table(run: Run) -> Table | None:
    """Recall with the ideal order of what was found; containment with all the evidence."""
    rows = []
    for system in run.systems:
        whole, parts = _containment(run, system)
        rows.append(
            (
                Cell(system),
                share(mean(run.numbers(system, f"recall@{_K}"))),
                share(_ideal(run, system)),
                plain(len(whole) or None),
                share(mean(whole)),
                share(mean(parts)),
            )
        )
    return make_table(
        "headroom",
        "What is left to gain",
        f"Ideal order: recall@{_K} if the first {DEPTH} turns of the ranking were put in the best "
        "order there is. Containment by whether all evidence of the question is in the context: "
        "where it is, what is missing is worded otherwise or must be inferred, and no ranking "
        "brings it.",
        [
            Column("system"),
            Column(f"recall@{_K}"),
            Column(f"ideal order of {DEPTH}"),
            Column(f"contexts ≤{_BUDGET:,} with all evidence"),
            Column("containment in these"),
            Column("containment in the others"),
        ],
        rows,
    )


def _ideal(run: Run, system: str) -> float | None:
    ranked, evidence = run.column(system, "ranked"), run.column(system, "evidence")
    defined = _defined(run.column(system, f"recall@{_K}"))
    best = []
    for key in defined:
        wanted = set(evidence[key] or ())
        if wanted and ranked[key]:
            held = wanted & set(list(ranked[key])[:DEPTH])
            best.append(min(_K, len(held)) / len(wanted))
    return mean(best)


def _containment(run: Run, system: str) -> tuple[list[float], list[float]]:
    """Whether the answer is in the context, with all evidence there and without."""
    contains = run.column(system, f"budget_{_BUDGET}_contains")
    every = run.column(system, f"budget_{_BUDGET}_all")
    whole: list[float] = []
    parts: list[float] = []
    for key in _defined(contains):
        if every[key] is not None:
            (whole if every[key] else parts).append(float(contains[key]))
    return whole, parts


def _defined(column: Mapping[Any, Any]) -> list[Any]:
    return [key for key, value in column.items() if value is not None]
