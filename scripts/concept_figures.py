"""Draw the figures of docs/concepts.md from the engine: decay, a pruning step, the tiers.

python scripts/concept_figures.py writes docs/figures/*.svg; with --check it exits with 1 if
one is stale. Every number in them comes out of a memory that is filled here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ebbtide import Config, Memory
from ebbtide.inspection import gather
from ebbtide.inspection.markup import Html, element, join
from ebbtide.kernels import decay

__all__ = ["FOLDER", "figures", "main"]

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "figures"
EXAMPLE = ROOT / "examples" / "conversation.jsonl"

TIERS = ("healthy", "unstable", "critical")
WIDE = 480
_SHADES = {
    "light": {
        "page": "#fdfcfa",
        "ink": "#22211f",
        "soft": "#5f5d58",
        "line": "#dedcd5",
        "healthy": "#1767c4",
        "unstable": "#c27a00",
        "critical": "#a8285a",
        "gone": "#8a877e",
    },
    "dark": {
        "page": "#1b1a18",
        "ink": "#eceae4",
        "soft": "#b0ada4",
        "line": "#3b3a36",
        "healthy": "#5aa9f5",
        "unstable": "#f0b340",
        "critical": "#e8709c",
        "gone": "#85827a",
    },
}
"""Colours of a figure that stands alone; the site sets the same names for its own schemes."""

_RULES = """
.figure text{font:13px system-ui,sans-serif;fill:var(--ink)}
.figure .small{font-size:11px;fill:var(--soft)}
.figure .paper{fill:var(--page)}
.figure .grid{stroke:var(--line);fill:none}
.figure .rule{stroke:var(--soft);stroke-dasharray:3 4;fill:none}
.figure .curve{fill:none;stroke-width:2}
.figure .healthy{fill:var(--healthy);stroke:var(--healthy)}
.figure .unstable{fill:var(--unstable);stroke:var(--unstable)}
.figure .critical{fill:var(--critical);stroke:var(--critical)}
.figure .gone{fill:var(--gone);stroke:var(--gone)}
.figure .band{fill-opacity:.85;stroke:none}
.figure .strong{font-weight:600}
.figure .curve.healthy,.figure .curve.unstable,.figure .curve.critical{fill:none}
"""


@dataclass(slots=True)
class Drawing:
    """An SVG in the making: a title for those who cannot see it, and its parts."""

    height: int
    title: str
    parts: list[Html] = field(default_factory=list)

    def path(self, style: str, d: str) -> None:
        """A line or an area."""
        self.parts.append(element("path", class_=style, d=d))

    def bar(self, style: str, left: float, top: float, right: float, high: float) -> None:
        """A rectangle from left to right."""
        self.path(style, f"M{_n(left)} {_n(top)}H{_n(right)}v{_n(high)}H{_n(left)}Z")

    def text(self, x: float, y: float, words: str, *, style: str = "", anchor: str = "") -> None:
        """Words with their baseline at y."""
        drawn = element(
            "text", words, class_=style or None, x=_n(x), y=_n(y), text_anchor=anchor or None
        )
        self.parts.append(drawn)

    def svg(self) -> str:
        """The file."""
        shades = {
            name: ";".join(f"--{key}:{value}" for key, value in colours.items())
            for name, colours in _SHADES.items()
        }
        dark = f"@media(prefers-color-scheme:dark){{.figure{{{shades['dark']}}}}}"
        # The site drops what stands before the mark: it has schemes of its own.
        style = f".figure{{{shades['light']}}}{dark}/* rules */{_RULES}"
        paper = element("path", class_="paper", d=f"M0 0H{WIDE}V{self.height}H0Z")
        drawn = element(
            "svg",
            element("title", self.title),
            Html(f"<style>{style}</style>"),
            paper,
            join(*self.parts),
            class_="figure",
            viewBox=f"0 0 {WIDE} {self.height}",
            role="img",
        )
        return f'<svg xmlns="http://www.w3.org/2000/svg"{drawn.removeprefix("<svg")}\n'


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


@contextmanager
def filled(turns: Sequence[dict[str, Any]], budget: int) -> Iterator[Memory]:
    """A memory with these turns and a token budget."""
    config = Config().replace(capacity={"token_budget": budget})
    with Memory.in_memory(config=config) as memory:
        memory.add_many(turns)
        yield memory


def example() -> list[dict[str, Any]]:
    """The turns of the example conversation."""
    return [json.loads(line) for line in EXAMPLE.read_text(encoding="utf-8").splitlines()]


SAID = (
    "Never deploy on Fridays: Helena Duarte wants staging untouched.",
    "I went there after work.",
    "and then we went on and on about it",
)
"""Turns of different weight, each said to a memory that is empty."""


def decay_figure() -> str:
    """Three turns as newer ones come: their effective scores, coloured by tier."""
    drawing = Drawing(420, "Effective scores of three turns, falling as newer turns come.")
    last = 120
    left, right, top, low = 34.0, WIDE - 14.0, 14.0, 300.0
    settings = Config()
    tiers, floor = settings["memory_tiers"], settings["temporal_decay"]["hard_kill_threshold"]

    def at(age: float, score: float) -> tuple[float, float]:
        return left + age / last * (right - left), low - score * (low - top)

    for score, name in (
        (tiers["healthy_min"], "healthy above"),
        (tiers["critical_max"], "critical up to here"),
        (floor, "hard kill below"),
    ):
        y = at(0, score)[1]
        drawing.path("rule", f"M{_n(left)} {_n(y)}H{_n(right)}")
        x, y, anchor = (left + 6, y + 11, "") if score == floor else (right, y - 4, "end")
        drawing.text(x, y, f"{name} {score}", style="small", anchor=anchor)
    for place, text in enumerate(SAID):
        with filled([{"role": "user", "content": text}], 4096) as memory:
            omega = memory.explain(0)["score"]["omega"]
        for name, points in _falling(omega, last):
            line = " ".join(f"{_n(x)} {_n(y)}" for x, y in (at(*point) for point in points))
            drawing.path(f"curve {name}", f"M{line}")
        drawing.text(left - 6, at(0, omega)[1] + 4, f"{omega:.2f}", style="small", anchor="end")
        drawing.text(left, 374 + 18 * place, f"Ω = {omega:.2f}")
        drawing.text(left + 72, 374 + 18 * place, _short(text, 64), style="small")
    _axes(drawing, left, right, top, low)
    for age in range(0, last + 1, 20):
        drawing.text(at(age, 0)[0], low + 17, str(age), style="small", anchor="middle")
    _key(drawing, left, 338, [(f"band {tier}", tier) for tier in TIERS])
    drawing.text(right, 346, "newer turns", style="small", anchor="end")
    return drawing.svg()


def _falling(omega: float, last: int) -> Iterator[tuple[str, list[tuple[int, float]]]]:
    """Tiers that a turn passes, each with its effective scores by age."""
    ages = np.arange(last + 1, dtype=np.int64)
    scores, tiers = decay(np.full(last + 1, omega), ages)
    for code, name in enumerate(reversed(TIERS)):
        held = np.flatnonzero(tiers == code)
        if held.size:
            # To the first age of the next tier, so that the curve has no gap.
            end = min(int(held[-1]) + 1, last)
            yield name, [(age, float(scores[age])) for age in range(int(held[0]), end + 1)]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A turn at a pruning step, with the terms of its S_prune."""

    score: float
    number: int
    text: str
    effective: float
    bonus: float
    leaves: bool


def candidates(newest: int, budget: int) -> list[Candidate]:
    """Every turn at the step that the turn ``newest`` causes, the least S_prune first."""
    found = []
    with filled(example()[: newest + 1], budget) as memory:
        for turn in memory.turns():
            number, text = int(turn.interaction_id or 0), " ".join(turn.text.split())
            life = memory.explain(number)
            gone = [d for d in life["decisions"] if d["kind"] == "evict_budget"]
            if gone and gone[0]["at"] == newest:
                now = gone[0]["detail"]
                terms = (now["effective"], now["bonus"])
                found.append(Candidate(now["score"], number, text, *terms, leaves=True))
            elif turn.state == "active" and number != newest:
                if turn.validity != "current":
                    raise ValueError(f"turn {number} has a penalty that the figure leaves out")
                terms = (life["now"]["effective"], life["now"]["retention_bonus"])
                found.append(Candidate(sum(terms), number, text, *terms, leaves=False))
    return sorted(found, key=lambda one: (one.score, one.number))


def pruning_figure() -> str:
    """The step at which the replaced port leaves, though its score is better than others'."""
    newest, budget, first = 34, 512, 7
    rows = candidates(newest, budget)
    title = f"Turn {newest} exceeds {budget} tokens: the turn with the least S_prune leaves."
    drawing = Drawing(20 + 36 * first + 22 + 58, title)
    y = 20.0
    for row in rows[:first]:
        _row(drawing, y, row)
        y += 36
    between = f"… {len(rows) - first - 1} turns between"
    drawing.text(12, y, between, style="small")
    drawing.text(WIDE - 8, y, "S_prune", style="small", anchor="end")
    _row(drawing, y + 22, rows[-1])
    key = [("band gone", "Ω_eff"), ("band healthy", "+ B_ret"), ("rule", "− P_sup")]
    _key(drawing, 12, y + 54, key)
    return drawing.svg()


def _row(drawing: Drawing, y: float, row: Candidate) -> None:
    left, scale = 12.0, (WIDE - 64.0) / 1.05
    said = f"{_short(row.text, 38)} → archived" if row.leaves else _short(row.text, 50)
    drawing.text(left, y, f"{row.number}  {said}", style="strong" if row.leaves else "")
    drawing.text(WIDE - 8, y + 15, f"{row.score:.2f}", anchor="end")
    whole = row.effective + row.bonus
    kept = min(row.effective, row.score)
    drawing.bar("band gone", left, y + 6, left + kept * scale, 9)
    if row.score > row.effective:
        drawing.bar("band healthy", left + kept * scale, y + 6, left + row.score * scale, 9)
    if row.score < whole:
        drawing.bar("rule", left + row.score * scale, y + 6, left + whole * scale, 9)


def _short(words: str, most: int) -> str:
    return words if len(words) <= most else f"{words[: most - 1].rstrip()}…"


def _key(drawing: Drawing, x: float, y: float, entries: Sequence[tuple[str, str]]) -> None:
    """What the colours mean."""
    for style, name in entries:
        drawing.bar(style, x, y, x + 14, 9)
        drawing.text(x + 20, y + 9, name, style="small")
        x += 36 + 7 * len(name)


def tiers_figure() -> str:
    """The example conversation, turn by turn: the active turns, and their tokens."""
    budget = 1024
    with filled(example(), budget) as memory:
        data = gather(memory)
    series = data["series"]
    drawing = Drawing(356, "Active turns by tier, and active tokens, after each turn.")
    left, right = 40.0, WIDE - 14.0
    count = len(series["tokens"])
    below = [0] * count
    most = max(sum(column) for column in zip(*(series[t] for t in TIERS), strict=True))
    drawing.text(left, 14, "active turns")
    for tier in reversed(TIERS):
        above = [low + more for low, more in zip(below, series[tier], strict=True)]
        drawing.path(f"band {tier}", _band(below, above, most, left, right, 24, 164))
        below = above
    _axes(drawing, left, right, 24, 164, top_label=str(most))
    drawing.text(left, 194, "active tokens")
    tokens = series["tokens"]
    top = max(*tokens, budget)
    drawing.path("band gone", _band([0] * count, tokens, top, left, right, 204, 304))
    y = 304 - budget / top * 100
    drawing.path("rule", f"M{_n(left)} {_n(y)}H{_n(right)}")
    drawing.text(right, y - 4, f"budget {budget:,}", style="small", anchor="end")
    _axes(drawing, left, right, 204, 304, top_label=f"{top:,}")
    for turn in range(0, count, 50):
        x = left + turn / count * (right - left)
        drawing.text(x, 320, str(turn), style="small", anchor="middle")
    drawing.text(right, 320, "turn", style="small", anchor="end")
    _key(drawing, left, 338, [(f"band {tier}", tier) for tier in TIERS])
    return drawing.svg()


def _band(
    below: Sequence[int],
    above: Sequence[int],
    most: int,
    left: float,
    right: float,
    top: float,
    low: float,
) -> str:
    """A step-shaped area between two rows of values."""
    step = (right - left) / len(above)

    def edge(values: Sequence[int], places: Iterable[int], first: str) -> str:
        steps, y = "", ""
        for place in places:
            reached = _n(low - values[place] / most * (low - top))
            if reached != y:
                # Backwards, a step begins at the right end of its place.
                x = left + (place + (first == "L")) * step
                steps += f"H{_n(x)}V{reached}" if y else f"{first}{_n(x)} {reached}"
                y = reached
        return steps

    forth, back = range(len(above)), reversed(range(len(above)))
    return f"{edge(above, forth, 'M')}H{_n(right)}{edge(below, back, 'L')}H{_n(left)}Z"


def _axes(
    drawing: Drawing, left: float, right: float, top: float, low: float, top_label: str = "1"
) -> None:
    drawing.path("grid", f"M{_n(left)} {_n(top)}V{_n(low)}H{_n(right)}")
    drawing.text(left - 6, top + 8, top_label, style="small", anchor="end")
    drawing.text(left - 6, low + 1, "0", style="small", anchor="end")


def figures() -> dict[str, str]:
    """Every figure by its file's name."""
    return {
        "decay.svg": decay_figure(),
        "pruning.svg": pruning_figure(),
        "tiers.svg": tiers_figure(),
    }


def main(arguments: list[str]) -> int:
    """Write the figures, or with ``--check`` say whether they are fresh."""
    stale = 0
    FOLDER.mkdir(exist_ok=True)
    for name, drawn in figures().items():
        file = FOLDER / name
        if "--check" not in arguments:
            file.write_text(drawn, encoding="utf-8")
        elif not file.is_file() or file.read_text(encoding="utf-8") != drawn:
            print(f"docs/figures/{name} is stale; run: python scripts/concept_figures.py")
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
