"""The memory as a picture: Ω over the turns with the tiers below, and the active tokens."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ebbtide.drawing import INK, drawing
from ebbtide.errors import InputError
from ebbtide.files import write_whole
from ebbtide.inspection.life import Decay
from ebbtide.inspection.series import TIERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FORMATS", "draw_memory"]

FORMATS = ("png", "svg")
_COLOURS = {
    "healthy": "#1767c4",
    "unstable": "#c27a00",
    "critical": "#a8285a",
    "archived": "#b5b2aa",
}
_MARKS = {"healthy": "o", "unstable": "D", "critical": "s", "archived": "."}


def draw_memory(data: Mapping[str, Any], file: Path) -> None:
    """Draw what :func:`ebbtide.inspection.gather` read, as PNG or SVG by the file's name.

    The same data gives the same bytes on one machine.

    Raises:
        InputError: If the name ends with neither, or the memory holds no analysed turn.
        MissingExtraError: If matplotlib is not installed (extra ``plot``).
    """
    kind = file.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        message = f"a plot is a .png or .svg file, not {file.name!r}"
        raise InputError(message, "input.field")
    rows = [row for row in data["turns"] if "omega" in row]
    if not rows:
        message = "the memory holds no analysed turn; there is nothing to draw"
        raise InputError(message, "input.field")
    write_whole(file, _picture(data, rows, kind))


def _picture(data: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], kind: str) -> bytes:
    decay, series = Decay(**data["settings"]), data["series"]
    with drawing(9.6, 6.4) as figure:
        grid = figure.add_gridspec(3, 1, height_ratios=(10, 1, 5))
        scores = figure.add_subplot(grid[0])
        strip = figure.add_subplot(grid[1], sharex=scores)
        tokens = figure.add_subplot(grid[2], sharex=scores)
        _scores(scores, rows, decay)
        _strip(strip, rows)
        _tokens(tokens, series, decay)
        first = series["first"]
        length = len(series["tokens"])
        scores.set_xlim(first - 0.5, first + length - 0.5 + length / 200)
        name = f"Memory {data['memory']['namespace']}"
        scores.set_title(name, loc="left", fontweight="bold", fontsize=11)
        for axes in (scores, strip):
            axes.tick_params(labelbottom=False)
        for axes in (scores, strip, tokens):
            axes.tick_params(which="both", length=0)
        tokens.set_xlabel("turn")
        return _saved(figure, kind)


def _place(row: Mapping[str, Any]) -> str:
    """The tier of an active turn; every other one is archived."""
    return row["fate"] if row["fate"] in TIERS else "archived"


def _scores(axes: Axes, rows: Sequence[Mapping[str, Any]], decay: Decay) -> None:
    for place in reversed(_COLOURS):
        held = [row for row in rows if _place(row) == place]
        if held:
            axes.scatter(
                [row["id"] for row in held],
                [row["omega"] for row in held],
                c=_COLOURS[place],
                marker=_MARKS[place],
                s=16,
                linewidths=0,
                label=f"{place} ({len(held):,})",
            )
    for bound in (decay.healthy_min, decay.critical_max):
        axes.axhline(bound, color=INK["soft"], linewidth=0.8, linestyle=(0, (4, 4)))
    axes.set_ylim(0, 1.02)
    axes.set_ylabel("Ω")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4, borderaxespad=0.2)


def _strip(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    """Where each turn stands now, as a strip of colours."""
    for place, colour in _COLOURS.items():
        spans = [(row["id"] - 0.5, 1) for row in rows if _place(row) == place]
        axes.broken_barh(spans, (0, 1), color=colour, linewidth=0)
    axes.set_ylim(0, 1)
    axes.set_yticks([])
    axes.grid(visible=False)
    axes.set_ylabel("tier", rotation=0, ha="right", va="center")


def _tokens(axes: Axes, series: Mapping[str, Any], decay: Decay) -> None:
    held = series["tokens"]
    edges = [series["first"] - 0.5 + place for place in range(len(held) + 1)]
    axes.stairs(held, edges, fill=True, color=INK["soft"], alpha=0.35, linewidth=0)
    axes.stairs(held, edges, color=INK["ink"], linewidth=1.0)
    top = max(held, default=0)
    if decay.token_budget <= 2 * top:
        axes.axhline(decay.token_budget, color=INK["ink"], linewidth=1.0, linestyle=(0, (4, 4)))
        top = max(top, decay.token_budget)
    axes.set_ylim(0, top * 1.08 or 1)
    axes.set_ylabel("active tokens")


def _saved(figure: Figure, kind: str) -> bytes:
    held = io.BytesIO()
    nothing = {"svg": dict.fromkeys(("Creator", "Date")), "png": {"Software": None}}
    figure.savefig(held, format=kind, dpi=160, metadata=nothing[kind])
    return held.getvalue()
