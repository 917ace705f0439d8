"""`ebbtide eval deliberation`: when a question is answered again, and what it is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ebbtide.cli.common import JsonOption
from ebbtide.cli.comparing import base_config
from ebbtide.cli.evaluating import CacheOption, DataOption, LimitOption, SetOption, WorkersOption
from ebbtide.cli.output import print_json, write
from ebbtide.cli.progress import counting
from ebbtide.cores import usable_cores

if TYPE_CHECKING:
    from ebbtide.evals.deliberation import Outcome
    from ebbtide.evals.metrics import Interval

__all__ = ["deliberation"]


def deliberation(
    data: DataOption,
    policy: Annotated[
        list[str] | None,
        typer.Option(help="quality, majority or consensus; may be repeated. All by default."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", help="Draw the escalation rate by category into this PNG file."),
    ] = None,
    workers: WorkersOption = None,
    limit: LimitOption = None,
    cache: CacheOption = None,
    setting: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure escalation, and answers with and without a scan of the whole history."""
    from ebbtide.evals.deliberation import POLICIES, measure, outcomes

    config = base_config(None, cache, setting)
    with counting(data.name, "conversations") as progress:
        rows = measure(
            data,
            config,
            policies=policy or POLICIES,
            workers=workers or usable_cores(),
            limit=limit,
            progress=progress,
        )
    found = outcomes(rows)
    if plot is not None:
        from ebbtide.evals.report.escalation import draw_escalation

        draw_escalation(found, plot)
    if as_json:
        by_name = {p: {c: o.to_dict() for c, o in each.items()} for p, each in found.items()}
        print_json({"policies": by_name, "rows": [row.to_dict() for row in rows]})
    else:
        write(_table(found))


_COLUMNS = (
    "policy",
    "category",
    "questions",
    "escalated",
    "recall_all@10, without and with",
    "containment in 2,048 tokens, without and with",
    "ms, without and with",
)


def _table(found: Mapping[str, Mapping[str, Outcome]]) -> str:
    rows: list[Sequence[str]] = []
    for policy, by_category in found.items():
        for category, outcome in by_category.items():
            without, with_scan = outcome.milliseconds
            rows.append(
                (
                    policy,
                    category,
                    str(outcome.questions),
                    f"{100 * outcome.rate:.1f} %",
                    _change(outcome.recall_all, outcome.recall_gain),
                    _change(outcome.contains, outcome.contains_gain),
                    f"{without:.1f} → {with_scan:.1f}",
                )
            )
    lines = [f"| {' | '.join(_COLUMNS)} |", "|---|---|" + "--:|" * (len(_COLUMNS) - 2)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _change(pair: tuple[float, float] | None, gain: Interval | None) -> str:
    if pair is None or gain is None:
        return "–"
    shown = f"{pair[0]:.3f} → {pair[1]:.3f} ({gain.low:+.3f} to {gain.high:+.3f})"
    return f"**{shown}**" if gain.low > 0 or gain.high < 0 else shown
