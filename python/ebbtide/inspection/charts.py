"""The page's drawings: inline SVG whose colours are the page's CSS classes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ebbtide.inspection.life import FATES, Decay
from ebbtide.inspection.markup import Html, element
from ebbtide.inspection.series import TIERS

__all__ = ["HORIZON", "active_chart", "fade", "gutter", "omega_chart", "token_chart", "token_top"]

HORIZON = 160
"""Newer turns that a small decay curve is wide; a curve that goes on is cut there."""

_FADE = (96, 26)
_WIDE = 1000
_HIGH = 100
_STEPS = 6
"""Points of a curve's segment behind its first."""

_ROW, _LANE, _DOT = 64, 14, 5
"""Pixels: the height of a turn in a lineage thread, the width of a lane, a dot's radius."""


def fade(row: Mapping[str, Any], newest: int, decay: Decay) -> Html | None:
    """A turn's decay as a small curve, coloured by the tiers it passed.

    None before its analysis, and where it never was in the active memory.
    """
    if "omega" not in row or row["fate"] == "skip":
        return None
    width, height = _FADE
    last = row["left_at"] if row["left_at"] is not None else newest
    lived = min(max(last - row["id"], 0), HORIZON)
    parts: list[str] = []
    for tier, start, end in _segments(row["omega"], decay, lived):
        points = [
            f"{_trim(n / HORIZON * width)} {_trim(_fall(row['omega'], decay, n, height))}"
            for n in _steps(start, end)
        ]
        base = _trim(height)
        line = f"M{points[0]}L{' '.join(points[1:])}"
        area = f"{line}V{base}H{points[0].split()[0]}Z"
        parts.append(element("path", class_=f"area {tier}", d=area))
        parts.append(element("path", class_=f"curve {tier}", d=line))
    if row["left_at"] is not None and lived < HORIZON:
        x = _trim(lived / HORIZON * width)
        parts.append(element("path", class_="end", d=f"M{x} {height - 7}V{height}"))
    return _svg("fade", width, height, parts)


def _fall(omega: float, decay: Decay, newer: float, height: int) -> float:
    return 1.0 + (height - 1.0) * (1.0 - omega * math.exp(-decay.rate(omega) * newer))


def _segments(omega: float, decay: Decay, lived: float) -> Iterator[tuple[str, float, float]]:
    """Tiers that a decaying turn passes, with when each begins and ends, in newer turns."""
    rate = decay.rate(omega)
    start = 0.0
    for tier, floor in zip(TIERS, (decay.healthy_min, decay.critical_max, 0.0), strict=True):
        if omega <= floor and floor > 0.0:
            continue
        never = floor <= 0.0 or rate <= 0.0
        end = lived if never else min(math.log(omega / floor) / rate, lived)
        if end > start or (start == 0.0 and lived == 0.0):
            # A turn without a newer one is a point; half a turn makes it visible.
            yield tier, start, max(end, start + 0.5)
            start = end
        if start >= lived:
            return


def _steps(start: float, end: float) -> list[float]:
    return [start + (end - start) * step / _STEPS for step in range(_STEPS + 1)]


def omega_chart(rows: Sequence[Mapping[str, Any]], decay: Decay) -> Html:
    """Every turn's Ω as a stem over the interaction ids, coloured by where it stands."""
    first, last = _span(rows)
    stems: dict[str, list[str]] = {}
    for row in rows:
        if "omega" in row:
            x = _trim((row["id"] - first + 0.5) / (last - first + 1) * _WIDE)
            high = _trim(_HIGH * (1.0 - row["omega"]))
            stems.setdefault(row["fate"], []).append(f"M{x} {_HIGH}V{high}")
    wide = f"{min(_WIDE / (last - first + 1) * 0.65, 4.0):.3f}"
    parts = [
        element("path", class_=f"stem {fate}", d="".join(stems[fate]), stroke_width=wide)
        for fate in reversed(FATES)
        if fate in stems
    ]
    parts += [_rule(_HIGH * (1.0 - bound)) for bound in (decay.healthy_min, decay.critical_max)]
    return _svg("chart", _WIDE, _HIGH, parts, stretched=True)


def active_chart(series: Mapping[str, Any]) -> Html:
    """Turns of the active memory by tier, stacked, after each insertion."""
    length = len(series["tokens"])
    below = [0] * length
    top = max((sum(column) for column in zip(*(series[t] for t in TIERS), strict=True)), default=0)
    parts = []
    for tier in TIERS:
        above = [low + count for low, count in zip(below, series[tier], strict=True)]
        parts.append(element("path", class_=f"band {tier}", d=_band(below, above, top)))
        below = above
    return _svg("chart", _WIDE, _HIGH, parts, stretched=True)


def token_chart(series: Mapping[str, Any], decay: Decay) -> Html:
    """Tokens of the active memory after each insertion, under their budget."""
    tokens = series["tokens"]
    top = token_top(series, decay)
    parts = [element("path", class_="band tokens", d=_band([0] * len(tokens), tokens, top))]
    if decay.token_budget <= top:
        parts.append(_rule(_HIGH * (1.0 - decay.token_budget / top)))
    return _svg("chart", _WIDE, _HIGH, parts, stretched=True)


def token_top(series: Mapping[str, Any], decay: Decay) -> int:
    """The upper end of the token axis: the budget, unless it is far above every value."""
    most = max(series["tokens"], default=0)
    near = max(most, decay.token_budget) if most * 2 >= decay.token_budget else most
    return max(near, 1)


def _band(below: Sequence[int], above: Sequence[int], top: int) -> str:
    """A step-shaped area between two rows of values."""
    if not above or top <= 0:
        return ""
    wide = _WIDE / len(above)

    def edge(values: Sequence[int]) -> list[tuple[float, float]]:
        corners: list[tuple[float, float]] = []
        for place, value in enumerate(values):
            y = _HIGH * (1.0 - value / top)
            if corners and corners[-1][1] == y:
                corners[-1] = ((place + 1) * wide, y)
                continue
            corners += [(place * wide, y), ((place + 1) * wide, y)]
        return corners

    path = [*edge(above), *reversed(edge(below))]
    return "M" + "L".join(f"{_trim(x)} {_trim(y)}" for x, y in path) + "Z"


def gutter(turns: Sequence[int], edges: Sequence[Mapping[str, Any]]) -> Html:
    """Relations of a lineage thread as arcs beside its turns, a row a turn."""
    places = {number: place for place, number in enumerate(turns)}
    lanes = max((edge["lane"] for edge in edges), default=0) + 1
    width = lanes * _LANE + 2 * _DOT + 4
    middle = width - _DOT - 2
    parts: list[str] = []
    for edge in edges:
        upper = places[edge["older"]] * _ROW + _ROW / 2
        lower = places[edge["newer"]] * _ROW + _ROW / 2
        side = middle - (edge["lane"] + 1) * _LANE
        turn = min(10, (lower - upper) / 2)
        path = (
            f"M{middle} {_trim(upper)}H{side + turn}Q{side} {_trim(upper)} {side} "
            f"{_trim(upper + turn)}V{_trim(lower - turn)}Q{side} {_trim(lower)} "
            f"{side + turn} {_trim(lower)}H{middle}"
        )
        parts.append(element("path", class_=f"edge {edge['relation']}", d=path))
    for place in range(len(places)):
        y = _trim(place * _ROW + _ROW / 2)
        parts.append(element("circle", class_="node", cx=middle, cy=y, r=_DOT))
    return _svg("gutter", width, len(places) * _ROW, parts, sized=True)


def _rule(y: float) -> Html:
    return element("path", class_="rule", d=f"M0 {_trim(y)}H{_WIDE}")


def _span(rows: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    return (rows[0]["id"], rows[-1]["id"]) if rows else (0, 0)


def _svg(
    name: str,
    width: float,
    height: float,
    parts: Sequence[str],
    *,
    stretched: bool = False,
    sized: bool = False,
) -> Html:
    return element(
        "svg",
        *parts,
        class_=name,
        viewBox=f"0 0 {_trim(width)} {_trim(height)}",
        width=_trim(width) if sized else None,
        height=_trim(height) if sized else None,
        preserveAspectRatio="none" if stretched else None,
        aria_hidden="true",
        focusable="false",
    )


def _trim(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
