"""The self-contained HTML page of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import groupby
from typing import Any

from ebbtide.evals.report.plots import INKS, Plot
from ebbtide.evals.report.runs import BASE, Run, require
from ebbtide.evals.report.tables import Table, mean

__all__ = ["Explorer", "explorer", "report_page"]

_MEASURE = "recall@10"


@dataclass(frozen=True, slots=True)
class Head:
    """A cell of the upper row of a table's head.

    Attributes:
        text: Its text.
        span: Columns it covers.
        grouped: Whether short labels come below it; without, it covers both rows.
    """

    text: str
    span: int
    grouped: bool


@dataclass(frozen=True, slots=True)
class Explorer:
    """Questions where two systems differ in recall@10.

    Attributes:
        systems: Systems with a recall, in display order.
        chosen: The two that are compared first.
        categories: Categories of the questions, sorted.
        questions: A mapping a question: ``conversation``, ``id``, ``category``,
            ``question``, ``answer`` and ``values``, recall@10 by system, None where
            not defined.
    """

    systems: list[str]
    chosen: tuple[str, str]
    categories: list[str]
    questions: list[dict[str, Any]]


def report_page(
    runs: Sequence[Run],
    tables: Mapping[str, Sequence[Table]],
    plots: Mapping[str, Sequence[Plot]],
) -> str:
    """One HTML page that needs no other file, no network and no script to be read.

    Args:
        runs: What is reported, in order.
        tables: Tables of each run, by slug.
        plots: Plots of each run, by slug.

    Raises:
        ConfigError: ``config.model_missing``: Jinja is not installed.
    """
    jinja, markup = require("jinja2"), require("markupsafe")
    environment = jinja.Environment(
        autoescape=True,
        undefined=jinja.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    sections = [
        {
            "run": run,
            "tables": tables[run.slug],
            "plots": [(plot, markup.Markup(plot.svg)) for plot in plots[run.slug]],
            "explorer": explorer(run),
        }
        for run in runs
    ]
    page: str = environment.from_string(_file("page.html.jinja")).render(
        sections=sections,
        heads=_heads,
        inks=INKS,
        style=markup.Markup(_file("page.css")),
        script=markup.Markup(_file("page.js")),
    )
    return page


def explorer(run: Run) -> Explorer | None:
    """The questions of a run where systems differ; None where there are none."""
    values = {name: run.column(name, _MEASURE) for name in run.systems}
    means = {name: mean(run.numbers(name, _MEASURE)) for name in run.systems}
    ranked = [name for name in run.systems if means[name] is not None]
    questions = []
    for key in run.questions:
        held = {name: values[name].get(key) for name in ranked}
        if len({value for value in held.values() if value is not None}) < 2:
            continue
        questions.append(
            {"conversation": key[0], "id": key[1], **run.about[key], "values": list(held.values())}
        )
    if not questions:
        return None
    first = BASE if BASE in ranked else ranked[-1]
    rivals = [name for name in ranked if name != first]
    second = max(rivals, key=lambda name: (means[name] or 0.0, -ranked.index(name)))
    categories = sorted({str(question["category"]) for question in questions})
    return Explorer(ranked, (first, second), categories, questions)


def _heads(table: Table) -> list[Head] | None:
    """The upper row of a head of two rows; None where one row is enough."""
    if not any(column.group for column in table.columns):
        return None
    heads: list[Head] = []
    for group, columns in groupby(table.columns, key=lambda column: column.group):
        members = list(columns)
        if group:
            heads.append(Head(group, len(members), grouped=True))
        else:
            heads += [Head(column.label, 1, grouped=False) for column in members]
    return heads


def _file(name: str) -> str:
    return resources.files("ebbtide.evals.report").joinpath(name).read_text(encoding="utf-8")
