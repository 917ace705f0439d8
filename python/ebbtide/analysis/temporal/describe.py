"""Dates as readers and metrics expect them: ``8 May 2023``."""

from __future__ import annotations

from datetime import date, timedelta

from ebbtide.analysis.facts import TimeExpression
from ebbtide.analysis.temporal import dates
from ebbtide.analysis.temporal.vocabulary import MONTH_NAMES

__all__ = ["describe", "format_day"]


def format_day(day: date) -> str:
    """Day, full English month, year: ``8 May 2023``."""
    return f"{day.day} {MONTH_NAMES[day.month - 1]} {day.year}"


def describe(expression: TimeExpression) -> str:
    """The resolved date in words, for brackets beside the expression.

    ``7 May 2023``, ``1–7 May 2023``, ``May 2023``, ``March–May 2023``, ``2022``,
    ``1990–1999``, ``summer 2022``, ``from 1 January 2021``, ``until 7 May 2023``.
    """
    first = date.fromisoformat(expression.first) if expression.first else None
    last = date.fromisoformat(expression.last) if expression.last else None
    if first is None:
        return f"until {format_day(last)}" if last is not None else ""
    if last is None:
        return f"from {format_day(first)}"
    if expression.grain == "season":
        return _season(first, last)
    return _range(first, last)


def _season(first: date, last: date) -> str:
    name = {3: "spring", 6: "summer", 9: "autumn", 12: "winter"}.get(first.month)
    if name is None:
        return _range(first, last)
    years = f"{first.year}" if first.year == last.year else f"{first.year}–{last.year}"
    return f"{name} {years}"


def _range(first: date, last: date) -> str:
    if first == last:
        return format_day(first)
    whole_months = first.day == 1 and last == dates.month_range(last.year, last.month)[1]
    if whole_months and (first.month, last.month) == (1, 12):
        return f"{first.year}" if first.year == last.year else f"{first.year}–{last.year}"
    if whole_months:
        return _months(first, last)
    if (first.year, first.month) == (last.year, last.month):
        return f"{first.day}–{format_day(last)}"
    if first.year == last.year:
        return f"{first.day} {MONTH_NAMES[first.month - 1]} – {format_day(last)}"
    return f"{format_day(first)} – {format_day(last)}"


def _months(first: date, last: date) -> str:
    start, end = MONTH_NAMES[first.month - 1], f"{MONTH_NAMES[last.month - 1]} {last.year}"
    if last - first < timedelta(days=31):
        return end
    return f"{start}–{end}" if first.year == last.year else f"{start} {first.year} – {end}"
