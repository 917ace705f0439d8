"""``ebbtide episodes`` and ``ebbtide eval recurrence``: what recurs, gathered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ebbtide.cli.common import (
    ConfigOption,
    JsonOption,
    NamespaceOption,
    StoreOption,
    examples,
    reading,
    settings_from,
)
from ebbtide.cli.comparing import base_config, markdown
from ebbtide.cli.evaluating import CacheOption, DataOption, LimitOption, SetOption
from ebbtide.cli.output import plain, print_json, write
from ebbtide.cli.progress import counting

if TYPE_CHECKING:
    from ebbtide.evals.recurrence import Calibration, Consolidation
    from ebbtide.types import Fact

__all__ = ["EPISODES_EXAMPLES", "episodes", "recurrence"]

EPISODES_EXAMPLES = examples(
    "ebbtide episodes --store memory.db", "ebbtide episodes --store memory.db --all --json"
)

_ON = {"consolidation": "recurrence"}


def episodes(
    store: StoreOption,
    namespace: NamespaceOption = None,
    every: Annotated[bool, typer.Option("--all", help="Superseded facts too.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """What recurred in a memory: its episodes and facts.

    Empty for a memory that was filled without recurrence consolidation.
    """
    switched_on = settings_from(config).replace(policy=_ON)
    with reading(store, namespace, switched_on, analysed=True) as memory:
        found = memory.episodes()
        facts = memory.facts(superseded=every)
    if as_json:
        document = {
            "episodes": [episode.to_dict() for episode in found],
            "facts": [fact.to_dict() for fact in facts],
        }
        print_json(document)
        return
    lines: list[str] = []
    for episode in found:
        lines.append(f"episode {episode.id}: {len(episode.sources)} turns, v{episode.version}")
        lines += [f"  {line}" for line in episode.text.splitlines()]
        lines += [f"  - {_fact(f)}" for f in facts if f.episode == episode.id]
    write(plain("\n".join(lines)) if lines else "nothing was consolidated")


def _fact(fact: Fact) -> str:
    return fact.text if fact.superseded_by is None else f"{fact.text} (superseded)"


def recurrence(
    data: DataOption,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Take theta_sim from the data's own similarities.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Directory for plots of the events over time.")
    ] = None,
    limit: LimitOption = None,
    cache: CacheOption = None,
    setting: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """How much of each conversation recurrence consolidation gathers, and when."""
    from ebbtide.evals.recurrence import calibrated, consolidations, draw_events

    base = base_config(None, cache, setting).replace(policy=_ON)
    measured = None
    if calibrate:
        with counting(data.name, "conversations read") as progress:
            measured = calibrated(data, base, limit=limit, progress=progress)
        base = base.replace(
            policy={"recurrence": {"thresholds": "calibrated", "theta_sim": measured.theta_sim}}
        )
    with counting(data.name, "conversations") as progress:
        found = consolidations(data, base, limit=limit, progress=progress)
    drawn = [] if plot is None else draw_events(found, plot)
    if as_json:
        document: dict[str, Any] = {
            "calibration": None if measured is None else asdict(measured),
            "conversations": [{**one.to_dict(), "llm_tokens": 0} for one in found],
            "plots": [str(path) for path in drawn],
        }
        print_json(document)
        return
    if measured is not None:
        write(_calibration(measured) + "\n")
    write(_table(found))
    if drawn:
        write("\n" + "\n".join(map(str, drawn)))


def _calibration(found: Calibration) -> str:
    rows = [f"| {share:.4g} | {cosine:.4f} |" for share, cosine in found.quantiles.items()]
    return "\n".join(
        [
            (
                f"{found.conversations} conversations, {found.units} units: the average unit "
                f"has theta_count = {found.theta_count} near ones at the quantile {found.share:.4f}"
            ),
            "",
            "| quantile | cosine of two units |",
            "|--:|--:|",
            *rows,
            "",
            f"theta_sim = {found.theta_sim:.2f}",
        ]
    )


def _table(found: Sequence[Consolidation]) -> str:
    columns = ("turns", "units", "made", "merged", "facts", "units consolidated", "LLM tokens")
    rows = [
        (one.conversation, one.turns, one.units, one.made, one.merged, one.facts, one.rate)
        for one in found
    ]
    units = sum(one.units for one in found)
    rows.append(
        (
            "all",
            sum(one.turns for one in found),
            units,
            sum(one.made for one in found),
            sum(one.merged for one in found),
            sum(one.facts for one in found),
            sum(one.consolidated for one in found) / units if units else 0.0,
        )
    )
    cells = [[*map(str, counts), f"{share:.0%}", "0"] for *counts, share in rows]
    return markdown(["conversation", *columns], cells)
