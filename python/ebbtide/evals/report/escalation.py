"""How often questions escalate, by category: the bars of `ebbtide eval deliberation`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ebbtide.evals.deliberation import Outcome
from ebbtide.evals.report.plots import INKS
from ebbtide.evals.report.runs import require
from ebbtide.files import writing

__all__ = ["PAPER_RATE", "draw_escalation"]

PAPER_RATE = 0.241
"""Questions of LoCoMo that escalate in the D-Mem paper, table 2 (quality, GPT-4o-mini)."""


def draw_escalation(found: Mapping[str, Mapping[str, Outcome]], path: Path) -> None:
    """Draw the rates into a PNG file.

    Args:
        found: Outcomes by policy and category.
        path: The file.

    Raises:
        ConfigError: ``config.model_missing``: matplotlib is not installed.
        StoreError: ``store.open``: the file cannot be written.
    """
    require("matplotlib")
    from matplotlib.figure import Figure

    categories = list(dict.fromkeys(name for each in found.values() for name in each))
    figure = Figure(figsize=(7.2, 3.6), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(found)
    for place, (policy, by_category) in enumerate(found.items()):
        at = [i - 0.4 + width * (place + 0.5) for i in range(len(categories))]
        rates = [100 * by_category[name].rate if name in by_category else 0 for name in categories]
        colour = INKS[f"plot-other-{place % 4}"][0]
        bars = axes.bar(at, rates, width, label=policy, color=colour)
        axes.bar_label(bars, fmt="%.0f", fontsize=8)
    axes.axhline(100 * PAPER_RATE, color="#66645f", linewidth=1, linestyle="--")
    axes.annotate("D-Mem paper, quality: 24.1 %", (-0.45, 100 * PAPER_RATE + 1), fontsize=8)
    axes.set_xticks(range(len(categories)), categories)
    axes.set_ylabel("questions that escalate, %")
    axes.set_ylim(0, 105)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, ncols=len(found), loc="upper right")
    with writing(path):
        figure.savefig(path, format="png", dpi=150, metadata={"Software": None})
