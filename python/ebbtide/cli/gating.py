"""`ebbtide eval gate`: what the RPE gate keeps out, and what that costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ebbtide.cli.common import JsonOption, PresetOption
from ebbtide.cli.comparing import base_config, markdown
from ebbtide.cli.evaluating import CacheOption, DataOption, LimitOption, SetOption, WorkersOption
from ebbtide.cli.output import print_json, write
from ebbtide.cli.progress import counting
from ebbtide.cores import usable_cores

if TYPE_CHECKING:
    from ebbtide.evals.gate import Measured

__all__ = ["gate"]


def gate(
    data: DataOption,
    noise: Annotated[
        Path | None, typer.Option("--noise", help="A file that has noise turns of its own.")
    ] = None,
    ratio: Annotated[
        float | None,
        typer.Option("--ratio", help="Also measure with this share of generated noise."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the noise.")] = 0,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="DIR", help="Draw every conversation there.")
    ] = None,
    preset: PresetOption = None,
    workers: WorkersOption = None,
    limit: LimitOption = None,
    cache: CacheOption = None,
    setting: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure what the RPE gate skips: evidence, other turns and noise apart."""
    from ebbtide.evals.gate import measure_gate, sources

    config = base_config(preset, cache, setting)
    found: list[Measured] = []
    for source in sources(data, noise=noise, ratio=ratio, seed=seed):
        with counting(source.name, "conversations") as progress:
            found.append(
                measure_gate(
                    source,
                    config,
                    workers=workers or usable_cores(),
                    limit=limit,
                    progress=progress,
                )
            )
    drawn: list[Path] = []
    if plot is not None:
        from ebbtide.evals.report.gate_plots import draw_gate

        drawn = [path for one in found for path in draw_gate(one, plot)]
    if as_json:
        print_json({"sources": [m.to_dict() for m in found], "plots": [str(p) for p in drawn]})
        return
    tables = [_skipped(found), _questions(found)]
    write("\n\n".join([*tables, "\n".join(map(str, drawn))] if drawn else tables))


def _skipped(found: list[Measured]) -> str:
    from ebbtide.evals.gate import PAPER_SKIPPED

    kinds = list(dict.fromkeys(kind for one in found for kind in one.skipped))
    rows = [
        [one.source, *("" if (s := one.share(kind)) is None else f"{s:.1%}" for kind in kinds)]
        for one in found
    ]
    paper = f"D-MEM's own gate skips {PAPER_SKIPPED:.1%} of LoCoMo's turns."
    return f"{markdown(['skipped of', *kinds], rows)}\n\n{paper}"


def _questions(found: list[Measured]) -> str:
    columns = ["questions", "recall@10", "recall_all@10"]
    groups = ("answerable", "adversarial")
    columns += [f"{what}, {group}" for group in groups for what in ("fallback", "unsure")]
    columns += [f"best cosine, {group} (5, 50, 95 %)" for group in groups]
    rows = []
    for one in found:
        row = [one.source, *(f"{one.recall.get(m, 0.0):.3f}" for m in columns[1:3])]
        for group in groups:
            row += [
                f"{part[group]:.1%}" if group in part else "" for part in (one.fallback, one.unsure)
            ]
        for group in groups:
            row.append(" / ".join(f"{x:.2f}" for x in one.nearest.get(group, ())))
        rows.append(row)
    return markdown(columns, rows)
