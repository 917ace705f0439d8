"""Markdown of the report, and of the results page of the documentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ebbtide.evals.report.plots import Plot
from ebbtide.evals.report.runs import Run, load_runs
from ebbtide.evals.report.tables import Cell, Table, all_tables

__all__ = ["report_markdown", "results_page", "table_markdown"]

_INTRODUCTION = (
    "Every figure below a heading comes from the command under it. Intervals are 95 % "
    "bootstrap intervals; – stands where something is not defined."
)


def report_markdown(
    runs: Sequence[Run],
    tables: Mapping[str, Sequence[Table]],
    plots: Mapping[str, Sequence[Plot]],
) -> str:
    """The whole report.

    Args:
        runs: What is reported, in order.
        tables: Tables of each run, by slug.
        plots: Plots of each run, by slug; their files lie beside the report.
    """
    parts = ["# Evaluation report", _INTRODUCTION]
    for run in runs:
        parts += [f"## {_plain(run.title)}", run.counts, _provenance(run)]
        parts += [f"![{_plain(plot.alt)}]({plot.file})" for plot in plots[run.slug]]
        source = f"Source: {_code(' && '.join(run.command.splitlines()))}; {_plain(run.machine)}."
        for table in tables[run.slug]:
            parts += [f"### {_plain(table.title)}", _plain(table.note)]
            parts += [table_markdown(table), source]
    return "\n\n".join(parts) + "\n"


def results_page(run_dirs: Sequence[Path]) -> str:
    """The results page of the documentation: tables only, a heading a run.

    The command is shown without the folders of the machine it ran on.

    Args:
        run_dirs: What ``ebbtide eval --out`` wrote, in the order of the page.

    Returns:
        Markdown that ends with a line break.

    Raises:
        InputError: ``input.transcript``: a file of a run is missing or unreadable;
            ``input.field``: no run was given, or a field or column is missing.
        ConfigError: ``config.model_missing``: pyarrow is not installed.
    """
    parts = ["# Results", _INTRODUCTION]
    for run in load_runs(run_dirs):
        parts += [f"## {_plain(run.title)}", f"```sh\n{run.public_command}\n```"]
        parts += [f"{run.counts} {_plain(run.machine)}. {_hashes(run)}"]
        for table in all_tables(run):
            parts += [f"### {_plain(table.title)}", _plain(table.note), table_markdown(table)]
    return "\n\n".join(parts) + "\n"


def table_markdown(table: Table) -> str:
    """A table as GitHub's Markdown; numbers are set flush right."""
    lines = [
        _line([column.label for column in table.columns]),
        _line([":--", *("--:" for _ in table.columns[1:])]),
    ]
    lines += [_line([_cell(cell) for cell in row]) for row in table.rows]
    return "\n".join(lines)


def _provenance(run: Run) -> str:
    return f"```sh\n{run.command}\n```\n\n{_plain(run.machine)}. {_hashes(run)}"


def _hashes(run: Run) -> str:
    data = run.manifest.get("data_sha256")
    held = f", data {_code(str(data)[:16])}" if data else ""
    return (
        f"SHA-256: manifest {_code(run.manifest_sha256[:16])}, "
        f"rows {_code(str(run.manifest['digest'])[:16])}{held}."
    )


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _cell(cell: Cell) -> str:
    text = _plain(cell.text)
    marked = f"**{text}**" if cell.strong else text
    return f"{marked} ({_plain(cell.interval)})" if cell.interval else marked


def _plain(text: str) -> str:
    """Text that Markdown shows as it stands, on one line."""
    flat = " ".join(text.split())
    return "".join(f"\\{c}" if c in "\\`*<>[]" else c for c in flat)


def _code(text: str) -> str:
    """Inline code, fenced by more backticks than the text has in a row."""
    fence = "`"
    while fence in text:
        fence += "`"
    return f"{fence}{text}{fence}" if "`" not in text else f"{fence} {text} {fence}"
