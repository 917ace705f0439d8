"""Cells, columns and tables as data, and how numbers are put into them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ebbtide.evals.metrics import Interval, bootstrap_interval

__all__ = [
    "Cell",
    "Column",
    "Table",
    "difference_cell",
    "interval_cell",
    "interval_of",
    "make_table",
    "mean",
    "percentiles",
    "plain",
    "share",
    "signed",
]

_NOTHING = "–"


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell.

    Attributes:
        text: What is shown.
        value: What the column is sorted by; None sorts last.
        strong: Whether it is set in bold.
        interval: Interval of the value, shown smaller; empty for none.
    """

    text: str
    value: float | None = None
    strong: bool = False
    interval: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """The head of a column.

    Attributes:
        label: Its label, full enough to stand alone.
        group: What it is grouped under; empty for none.
        short: Label below the group's; empty where ``label`` serves.
    """

    label: str
    group: str = ""
    short: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """One table; the first cell of a row is its head.

    Attributes:
        key: Stable name, unique within a section.
        title: Caption.
        note: What a reader must know, in a sentence or two.
        columns: Heads, as many as a row has cells.
        rows: Rows, one a system, in display order.
    """

    key: str
    title: str
    note: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


def mean(values: Sequence[float]) -> float | None:
    """Mean with an exactly rounded sum; None of nothing."""
    return math.fsum(values) / len(values) if values else None


def percentiles(values: Sequence[float]) -> tuple[float | None, float | None, float | None]:
    """The 50th, 95th and 99th percentile, interpolated linearly; None of nothing."""
    if not values:
        return (None, None, None)
    p50, p95, p99 = np.percentile(np.asarray(values, dtype=np.float64), [50, 95, 99])
    return (float(p50), float(p95), float(p99))


def interval_of(values: Sequence[float]) -> Interval | None:
    """Mean and 95 % bootstrap interval; None of nothing."""
    return _cached_interval(tuple(values)) if values else None


@lru_cache(maxsize=1024)
def _cached_interval(values: tuple[float, ...]) -> Interval:
    return bootstrap_interval(values)


def interval_cell(found: Interval | None) -> Cell:
    """A mean with its interval."""
    if found is None:
        return Cell(_NOTHING)
    return Cell(f"{found.mean:.3f}", found.mean, interval=f"{found.low:.3f}–{found.high:.3f}")


def difference_cell(found: Interval | None) -> Cell:
    """A difference with its interval, in bold where that leaves out zero."""
    if found is None:
        return Cell(_NOTHING)
    interval = f"{signed(found.low)} to {signed(found.high)}"
    clear = found.low > 0 or found.high < 0
    return Cell(signed(found.mean), found.mean, strong=clear, interval=interval)


def signed(value: float, digits: int = 3) -> str:
    """A number with a sign, which nothing has none of."""
    rounded = round(value, digits)
    return f"{rounded:+.{digits}f}".replace("-", "−") if rounded else f"{0:.{digits}f}"


def share(value: float | None) -> Cell:
    """A share with three decimals."""
    return Cell(_NOTHING if value is None else f"{value:.3f}", value)


def plain(value: float | None, digits: int = 0) -> Cell:
    """A number with thousands separated."""
    return Cell(_NOTHING if value is None else f"{value:,.{digits}f}", value)


def make_table(
    key: str,
    title: str,
    note: str,
    columns: Sequence[Column],
    rows: Sequence[tuple[Cell, ...]],
    best: Sequence[int] = (),
) -> Table | None:
    """A table with the best cells of some columns in bold; None without any value."""
    if all(cell.value is None for row in rows for cell in row):
        return None
    marked = [list(row) for row in rows]
    for place in best:
        held = [row[place].value for row in rows]
        known = [value for value in held if value is not None]
        if len(known) < 2:
            continue
        for row, value in zip(marked, held, strict=True):
            row[place] = replace(row[place], strong=value == max(known))
    return Table(key, title, note, tuple(columns), tuple(tuple(row) for row in marked))
