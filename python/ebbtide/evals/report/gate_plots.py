"""Plots of the gate: its signals over the turns with the tiers, and surprise by utility."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ebbtide.drawing import drawing
from ebbtide.evals.gate import Judged, Measured
from ebbtide.evals.report.plots import png_bytes
from ebbtide.evals.report.runs import require
from ebbtide.files import write_whole, writing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_gate"]

_TIERS = {"skip": "#b5b2aa", "construct_only": "#5a8fd0", "full_evolution": "#c8452d"}
_KINDS = {"noise": ("#b5b2aa", "."), "real": ("#5a8fd0", "o"), "gold": ("#d98c00", "D")}
_SIGNALS = {"utility": "#7a4fd0", "surprise": "#d98c00", "rpe": "#22211f"}
_SMOOTHED = 9
"""Turns of the running mean that is drawn over each signal."""


def draw_gate(measured: Measured, folder: Path) -> list[Path]:
    """Draw every conversation of a source into a folder, made where it is missing.

    Returns:
        The files, in order: ``<source>-<conversation>-signals.png`` and ``-scatter.png``.

    Raises:
        ConfigError: ``config.model_missing``: matplotlib is not installed.
        StoreError: ``store.open``: the folder cannot be written.
    """
    require("matplotlib")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for name, turns in itertools.groupby(measured.turns, key=lambda turn: turn.conversation):
        stem = re.sub(r"[^a-z0-9]+", "-", f"{measured.source} {name}".lower()).strip("-")
        every = list(turns)
        for kind, draw in (("signals", _signals), ("scatter", _scatter)):
            path = folder / f"{stem}-{kind}.png"
            picture = draw(f"{name}, {measured.source}", every)
            with writing(path):
                write_whole(path, picture)
            written.append(path)
    return written


def _signals(title: str, turns: Sequence[Judged]) -> bytes:
    """Utility, surprise and RPE, smoothed over their own values, and the tiers below."""
    with drawing(9.0, 4.6) as figure:
        grid = figure.add_gridspec(2, 1, height_ratios=(12, 1))
        axes, strip = figure.add_subplot(grid[0]), figure.add_subplot(grid[1])
        places = [turn.place for turn in turns]
        for name, colour in _SIGNALS.items():
            values = [getattr(turn, name) for turn in turns]
            axes.plot(places, values, color=colour, alpha=0.25, linewidth=0.6)
            axes.plot(places, _smooth(values), color=colour, linewidth=1.4, label=name)
        axes.legend(loc="upper right", ncols=3)
        axes.set_title(title, loc="left", fontweight="bold", fontsize=11)
        axes.set_ylim(0, 1.05)
        axes.set_xlim(0, len(turns))
        axes.tick_params(labelbottom=False)
        _tier_strip(strip, turns)
        return png_bytes(figure)


def _tier_strip(axes: Axes, turns: Sequence[Judged]) -> None:
    for tier, colour in _TIERS.items():
        spans = [(turn.place, 1) for turn in turns if turn.tier == tier]
        axes.broken_barh(spans, (0, 1), color=colour, linewidth=0, label=tier.replace("_", " "))
    axes.set_xlim(0, len(turns))
    axes.set_yticks([])
    axes.set_xlabel("turn")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -1.6), ncols=3)


def _scatter(title: str, turns: Sequence[Judged]) -> bytes:
    """Every turn by surprise and utility; what it is by colour and mark."""
    with drawing(6.4, 5.0) as figure:
        axes = figure.add_subplot()
        for kind, (colour, marker) in _KINDS.items():
            of_kind = [turn for turn in turns if turn.kind == kind]
            if of_kind:
                axes.scatter(
                    [turn.surprise for turn in of_kind],
                    [turn.utility for turn in of_kind],
                    c=colour,
                    marker=marker,
                    s=14,
                    alpha=0.7,
                    linewidths=0,
                    label=kind,
                )
        axes.set_xlabel("surprise")
        axes.set_ylabel("utility")
        axes.set_xlim(-0.03, 1.03)
        axes.set_ylim(-0.03, 1.03)
        axes.set_title(title, loc="left", fontweight="bold", fontsize=11)
        axes.legend(loc="center left")
        return png_bytes(figure)


def _smooth(values: Sequence[float]) -> list[float]:
    """Running mean, shorter at the ends."""
    half = _SMOOTHED // 2
    windows = (values[max(0, at - half) : at + half + 1] for at in range(len(values)))
    return [sum(window) / len(window) for window in windows]
