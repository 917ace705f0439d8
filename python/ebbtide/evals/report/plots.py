"""The plots of the report, drawn by matplotlib: PNG files, and SVG for the page.

The same rows give the same bytes: settings are matplotlib's own defaults and not
the user's, ids are hashed with a fixed salt, and the files carry no date.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ebbtide.drawing import INK, drawing
from ebbtide.evals.metrics import CUTOFFS
from ebbtide.evals.report.runs import BASE, Run, require, system_order
from ebbtide.evals.report.tables import mean, percentiles, ranked_categories
from ebbtide.evals.results import BUDGETS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["INKS", "Plot", "Style", "draw_plots", "png_bytes", "system_styles"]

_DARK = {"ink": "#eceae4", "soft": "#a9a69d", "grid": "#3b3a36", "paper": "#1b1a18"}
_COLOURS = {
    "full": ("#85827a", "#928f87"),
    "last_n": ("#8f6b3f", "#c39a66"),
    "bm25": ("#7a4fd0", "#a98bf5"),
    "dense": ("#d98c00", "#f0b340"),
    "rrf": ("#c2569b", "#e38fc2"),
    "paper": ("#12865c", "#35c08c"),
    "default": ("#1767c4", "#5aa9f5"),
    "dmf-memory": ("#d1481f", "#f5825c"),
}
_OTHERS = (
    ("#1a8f99", "#45c3cd"),
    ("#73820f", "#aebd4a"),
    ("#a3364e", "#ea8397"),
    ("#4b5b8f", "#93a5de"),
)
_MARKERS = ("s", "v", "D", "^", "P", "X", "o", "*", "<", ">", "p", "h")
_DASHES = ((0, ()), (0, (5, 2)), (0, (1.5, 1.5)), (0, (5, 1.5, 1.5, 1.5)))

INKS: dict[str, tuple[str, str]] = {
    **{f"plot-{name}": (INK[name], _DARK[name]) for name in INK},
    **{f"plot-{name.replace('_', '-')}": pair for name, pair in _COLOURS.items()},
    **{f"plot-other-{place}": pair for place, pair in enumerate(_OTHERS)},
}
"""Colours of the plots for a light and a dark page, by CSS variable (without ``--``)."""

_PERCENTILE_MARKS = (("o", "p50"), ("D", "p95"), ("|", "p99"))
_LEAST_SHOWN = 0.01
"""Milliseconds: a logarithmic axis has no place for a latency of zero."""


@dataclass(frozen=True, slots=True)
class Plot:
    """One plot.

    Attributes:
        key: Stable name, unique within a section.
        title: Caption.
        alt: What it shows, in words and numbers.
        file: Name of the PNG file.
        png: That file's bytes.
        svg: An ``svg`` element for HTML, with text as text and CSS variables as
            colours (:data:`INKS`), without a reference to anything outside.
    """

    key: str
    title: str
    alt: str
    file: str
    png: bytes
    svg: str


@dataclass(frozen=True, slots=True)
class Style:
    """How a system is drawn, the same in every plot of a run."""

    colour: str
    marker: str
    dashes: Any
    width: float


def draw_plots(run: Run) -> list[Plot]:
    """Draw every plot that has something to show.

    Raises:
        ConfigError: ``config.model_missing``: matplotlib is not installed.
    """
    require("matplotlib")
    plots = []
    for key, title, draw in _PLOTS:
        found = _draw(run, key, title, draw)
        if found is not None:
            plots.append(found)
    return plots


def system_styles(systems: Sequence[str]) -> dict[str, Style]:
    """A style for each system: colour, marker and dashes tell any twelve apart."""
    styles: dict[str, Style] = {}
    known = list(_COLOURS)
    spare = 0
    for system in system_order(systems):
        if system in _COLOURS:
            place, colour = known.index(system), _COLOURS[system][0]
        else:
            place, colour = len(known) + spare, _OTHERS[spare % len(_OTHERS)][0]
            spare += 1
        dashes = _DASHES[0] if system == BASE else _DASHES[place % len(_DASHES)]
        width = 2.6 if system == BASE else 1.5
        styles[system] = Style(colour, _MARKERS[place % len(_MARKERS)], dashes, width)
    return styles


_Draw = Callable[["Axes", Run, dict[str, Style]], str]
"""Draws onto axes and returns the numbers in words; empty where there is nothing."""


def _draw(run: Run, key: str, title: str, draw: _Draw) -> Plot | None:
    with drawing(7.6, 4.2) as figure:
        axes = figure.add_subplot()
        said = draw(axes, run, system_styles(run.systems))
        if not said:
            return None
        axes.set_title(title, loc="left", fontweight="bold", fontsize=11)
        for spine in axes.spines.values():
            spine.set_linewidth(0.8)
        axes.tick_params(which="both", length=0)
        name = f"{run.slug}-{key}"
        png = png_bytes(figure)
        return Plot(key, title, f"{title}. {said}", f"{name}.png", png, _svg(figure, name))


def png_bytes(figure: Figure) -> bytes:
    """A figure as a PNG file without a date."""
    held = io.BytesIO()
    figure.savefig(held, format="png", dpi=160, metadata={"Software": None})
    return held.getvalue()


def _svg(figure: Figure, name: str) -> str:
    held = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(held, format="svg", transparent=True, metadata=nothing)
    text = held.getvalue()
    text = text[text.index("<svg") :].strip()
    # A style sheet inside an inline SVG would apply to the whole page, and the
    # declarations of namespaces are for XML alone.
    for pattern in (r"<metadata>.*?</metadata>\s*", r"<style.*?</style>\s*", r"<!--.*?-->\s*"):
        text = re.sub(pattern, "", text, flags=re.DOTALL)
    head, rest = text.split(">", 1)
    head = re.sub(r' (?:xmlns(?::\w+)?|version|width|height)="[^"]*"', "", head)
    text = f"{head}>{rest}"
    text = text.replace("xlink:href=", "href=")
    text = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", text)
    text = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', text)
    text = re.sub(r"font: (?:(\w+) )?([\d.]+)px [^;\"]+", _font, text)
    for variable, (light, _) in INKS.items():
        text = text.replace(light, f"var(--{variable})")
    return text.replace("<svg", '<svg aria-hidden="true" focusable="false"', 1)


def _font(found: re.Match[str]) -> str:
    weight = f"; font-weight: {found[1]}" if found[1] else ""
    return f"font-size: {found[2]}px{weight}"


def _recall(axes: Axes, run: Run, styles: dict[str, Style]) -> str:
    curves = {
        name: [mean(run.numbers(name, f"recall@{k}")) for k in CUTOFFS] for name in run.systems
    }
    axes.set_xlabel("turns returned (k)")
    axes.set_ylabel("mean recall@k")
    said = _curves(axes, curves, styles, CUTOFFS)
    axes.set_xticks(CUTOFFS, [str(k) for k in CUTOFFS])
    return said and f"Lines over k = {', '.join(str(k) for k in CUTOFFS)}: {said}."


def _containment(axes: Axes, run: Run, styles: dict[str, Style]) -> str:
    curves = {
        name: [mean(run.numbers(name, f"budget_{b}_contains")) for b in BUDGETS]
        for name in run.systems
    }
    axes.set_xscale("log", base=2)
    axes.set_xlabel("budget in tokens of rendered context")
    axes.set_ylabel("share with the answer in the context")
    said = _curves(axes, curves, styles, BUDGETS)
    axes.set_xticks(BUDGETS, [f"{b:,}" for b in BUDGETS])
    axes.minorticks_off()
    return said and f"Lines over budgets of {', '.join(str(b) for b in BUDGETS)} tokens: {said}."


def _curves(
    axes: Axes,
    curves: dict[str, list[float | None]],
    styles: dict[str, Style],
    places: Sequence[int],
) -> str:
    known = {
        name: [(x, y) for x, y in zip(places, ys, strict=True) if y is not None]
        for name, ys in curves.items()
    }
    known = {name: points for name, points in known.items() if points}
    for name, points in known.items():
        style = styles[name]
        axes.plot(
            [x for x, _ in points],
            [y for _, y in points],
            color=style.colour,
            linestyle=style.dashes,
            linewidth=style.width,
            marker=style.marker,
            markersize=6 if name == BASE else 5,
            label=name,
            zorder=3 if name == BASE else 2,
        )
    axes.set_ylim(0.0, 1.02)
    if known:
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), handlelength=3.2)
    return "; ".join(
        f"{name} {', '.join(f'{y:.3f}' for _, y in points)}" for name, points in known.items()
    )


def _categories(axes: Axes, run: Run, styles: dict[str, Style]) -> str:
    categories = list(ranked_categories(run))
    if not categories:
        return ""
    breadth = 0.84 / len(run.systems)
    said = []
    for place, name in enumerate(run.systems):
        heights = [_category_mean(run, name, category) or 0.0 for category in categories]
        offset = (place - (len(run.systems) - 1) / 2) * breadth
        axes.bar(
            [at + offset for at in range(len(categories))],
            heights,
            width=breadth * 0.92,
            color=styles[name].colour,
            label=name,
        )
        pairs = zip(categories, heights, strict=True)
        said.append(f"{name}: " + ", ".join(f"{c} {h:.3f}" for c, h in pairs))
    labels = ["\n".join(textwrap.wrap(c, 11)) for c in categories]
    axes.set_xticks(range(len(categories)), labels, color=INK["ink"], fontsize=9)
    axes.set_ylabel("mean recall@10")
    axes.set_ylim(0.0, 1.02)
    axes.grid(visible=False, axis="x")
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), handlelength=1.0)
    return f"Bars, a group a category. {'; '.join(said)}."


def _category_mean(run: Run, system: str, category: str) -> float | None:
    values = run.column(system, "recall@10")
    return mean(
        [
            float(value)
            for key, value in values.items()
            if value is not None and run.about[key]["category"] == category
        ]
    )


def _latency(axes: Axes, run: Run, styles: dict[str, Style]) -> str:
    known = {name: percentiles(run.numbers(name, "latency_ms")) for name in run.systems}
    spans = {
        name: [float(v) for v in found if v is not None]
        for name, found in known.items()
        if None not in found
    }
    if not spans:
        return ""
    for at, (name, span) in enumerate(spans.items()):
        _span(axes, at, span, styles[name])
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_yticks(range(len(spans)), list(spans), color=INK["ink"])
    axes.set_ylim(len(spans) - 0.4, -0.6)
    axes.set_xlabel("milliseconds, logarithmic: p50 / p95 / p99 of one recall")
    axes.grid(visible=False, axis="y")
    lowest = max(min(min(span) for span in spans.values()), _LEAST_SHOWN)
    highest = max(*(max(span) for span in spans.values()), lowest)
    # The figures stand to the right of the slowest system's mark.
    axes.set_xlim(lowest / 1.8, highest * 4.0 * (highest / lowest) ** 0.2)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    said = [f"{name} {_span_text(span)}" for name, span in spans.items()]
    return f"p50 / p95 / p99 in milliseconds: {'; '.join(said)}."


def _span(axes: Axes, at: int, span: Sequence[float], style: Style) -> None:
    """One system's percentiles: three marks on a line, and the figures."""
    shown = [max(value, _LEAST_SHOWN) for value in span]
    axes.plot(shown, [at] * 3, color=style.colour, linewidth=style.width, solid_capstyle="butt")
    for value, (marker, label) in zip(shown, _PERCENTILE_MARKS, strict=True):
        axes.plot(
            [value],
            [at],
            color=style.colour,
            marker=marker,
            markersize=11 if marker == "|" else 6,
            markeredgewidth=2,
            linestyle="none",
            label=label if at == 0 else None,
        )
    axes.annotate(
        _span_text(span),
        (shown[-1], at),
        (9, 0),
        textcoords="offset points",
        va="center",
        fontsize=8.5,
    )


def _span_text(span: Sequence[float]) -> str:
    return " / ".join(f"{value:,.1f}" for value in span)


_PLOTS: tuple[tuple[str, str, _Draw], ...] = (
    ("recall-by-k", "Recall by number of turns", _recall),
    ("containment-by-budget", "Answer containment by token budget", _containment),
    ("recall-by-category", "recall@10 by category", _categories),
    ("latency", "Recall latency", _latency),
)
