"""The report of evaluation runs: Markdown, PNG plots and one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ebbtide.evals.report.markdown import report_markdown, results_page
from ebbtide.evals.report.page import report_page
from ebbtide.evals.report.plots import draw_plots
from ebbtide.evals.report.runs import load_runs
from ebbtide.evals.report.tables import all_tables
from ebbtide.files import write_whole, writing

__all__ = ["results_page", "write_report"]


def write_report(run_dirs: Sequence[Path], out: Path) -> list[Path]:
    """Render runs of the harness into a folder; the same runs give the same bytes.

    Args:
        run_dirs: What ``ebbtide eval --out`` wrote. Each becomes a section, in this
            order; runs of the same data are numbered.
        out: Folder to write into; made where it is missing. Files of the same
            names are replaced.

    Returns:
        The files written: ``report.md``, the plots as PNG, ``report.html``.

    Raises:
        InputError: ``input.transcript``: a file of a run is missing or unreadable;
            ``input.field``: no run was given, or a field or column is missing.
        ConfigError: ``config.model_missing``: pyarrow, matplotlib or Jinja is not
            installed (``pip install "ebbtide[eval]"``).
        StoreError: ``store.open``: the folder cannot be written.
    """
    runs = load_runs(run_dirs)
    tables = {run.slug: all_tables(run) for run in runs}
    plots = {run.slug: draw_plots(run) for run in runs}
    files = {"report.md": report_markdown(runs, tables, plots).encode()}
    files |= {plot.file: plot.png for run in runs for plot in plots[run.slug]}
    files["report.html"] = report_page(runs, tables, plots).encode()
    out = Path(out)
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            write_whole(out / name, content)
    return [out / name for name in files]
