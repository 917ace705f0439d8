"""`ebbtide eval ablate`, `sweep` and `misses`: what each part is worth, what is lost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ebbtide.cli.common import JsonOption, PresetOption
from ebbtide.cli.evaluating import (
    CacheOption,
    DataOption,
    FreshOption,
    LimitOption,
    SetOption,
    WorkersOption,
    settings,
)
from ebbtide.cli.output import print_json, write
from ebbtide.cli.progress import counting
from ebbtide.cores import usable_cores

if TYPE_CHECKING:
    from ebbtide.config import Config
    from ebbtide.evals.compare import Outcome
    from ebbtide.evals.variants import Variant

__all__ = ["ablate", "base_config", "markdown", "misses", "sweep"]

KeepOption = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="Directory that keeps results, so that another call goes on."),
]
SampleOption = Annotated[
    int | None, typer.Option("--sample", min=1, help="Most questions, drawn by --seed.")
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of the draw.")]


def ablate(
    data: DataOption,
    preset: PresetOption = None,
    workers: WorkersOption = None,
    limit: LimitOption = None,
    cache: CacheOption = None,
    setting: SetOption = None,
    sample: SampleOption = None,
    seed: SeedOption = 0,
    out: KeepOption = None,
    fresh: FreshOption = False,
    as_json: JsonOption = False,
) -> None:
    """Switch each channel, ranking term, feature and signal off in turn: what is lost."""
    from ebbtide.evals.variants import ablations

    base = base_config(preset, cache, setting)
    _compare(
        data,
        ablations(base),
        base,
        as_json=as_json,
        workers=workers or usable_cores(),
        limit=limit,
        sample=sample,
        seed=seed,
        out=out,
        fresh=fresh,
    )


def sweep(
    data: DataOption,
    values: Annotated[
        list[str],
        typer.Option(
            "--try",
            metavar="SECTION.KEY=VALUE,VALUE...",
            help="Values of a setting to try; repeated, every combination is tried.",
        ),
    ],
    preset: PresetOption = None,
    workers: WorkersOption = None,
    limit: LimitOption = None,
    cache: CacheOption = None,
    setting: SetOption = None,
    sample: SampleOption = None,
    seed: SeedOption = 0,
    out: KeepOption = None,
    fresh: FreshOption = False,
    as_json: JsonOption = False,
) -> None:
    """Try values of settings side by side."""
    from ebbtide.evals.variants import sweep as combinations

    tried: dict[tuple[str, str], list[Any]] = {}
    for one in values:
        name, _, listed = one.partition("=")
        for value in listed.split(","):
            for section, keys in settings([f"{name}={value}"]).items():
                for key, parsed in keys.items():
                    tried.setdefault((section, key), []).append(parsed)
    base = base_config(preset, cache, setting)
    _compare(
        data,
        combinations(tried),
        base,
        as_json=as_json,
        workers=workers or usable_cores(),
        limit=limit,
        sample=sample,
        seed=seed,
        out=out,
        fresh=fresh,
    )


def misses(
    data: DataOption,
    k: Annotated[int, typer.Option("-k", min=1, help="Places that count.")] = 10,
    max_tokens: Annotated[
        int, typer.Option("--max-tokens", min=1, help="Token budget of the context.")
    ] = 2048,
    preset: PresetOption = None,
    workers: WorkersOption = None,
    limit: LimitOption = None,
    cache: CacheOption = None,
    setting: SetOption = None,
    sample: SampleOption = None,
    seed: SeedOption = 0,
    out: KeepOption = None,
    fresh: FreshOption = False,
    as_json: JsonOption = False,
) -> None:
    """Count the evidence that is lost, by category and by what became of it."""
    from ebbtide.evals.misses import CLASSES, find_misses, tally

    with counting(data.name, "conversations") as progress:
        found = find_misses(
            data,
            base_config(preset, cache, setting),
            k=k,
            max_tokens=max_tokens,
            workers=workers or usable_cores(),
            limit=limit,
            sample=sample,
            seed=seed,
            out=out,
            fresh=fresh,
            progress=progress,
        )
    if as_json:
        print_json({"misses": [miss.to_dict() for miss in found]})
        return
    columns = ["category", *CLASSES, "split"]
    rows = [
        [name, *(str(counts[column]) for column in columns[1:])]
        for name, counts in tally(found).items()
    ]
    write(markdown(columns, rows))


def base_config(preset: str | None, cache: Path | None, setting: list[str] | None) -> Config:
    """The settings that the options describe."""
    from ebbtide.config import Config

    config = Config(preset or "default", settings(setting or []))
    return config.replace(nlp={"analysis_cache": str(cache)}) if cache else config


def _compare(
    data: Path, variants: Sequence[Variant], base: Config, *, as_json: bool, **options: Any
) -> None:
    from ebbtide.evals.compare import METRICS, compare

    with counting(data.name, "parts") as progress:
        found = compare(data, variants, base, progress=progress, **options)
    if as_json:
        print_json({"variants": [_plain(outcome) for outcome in found]})
        return
    rows = [[outcome.name, *(_cell(outcome, metric) for metric in METRICS)] for outcome in found]
    write(markdown(["variant", *METRICS], rows))


def _plain(outcome: Outcome) -> dict[str, Any]:
    changes = {
        metric: [interval.mean, interval.low, interval.high]
        for metric, interval in outcome.differences.items()
    }
    return {"name": outcome.name, "means": dict(outcome.means), "differences": changes}


def _cell(outcome: Outcome, metric: str) -> str:
    """The mean of the base; of a variant the difference, in bold where it is no chance."""
    interval = outcome.differences.get(metric)
    if interval is None:
        return f"{outcome.means[metric]:.4f}"
    shown = f"{interval.mean:+.4f}"
    return f"**{shown}**" if interval.low > 0 or interval.high < 0 else shown


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table, the first column to the left."""
    lines = [f"| {' | '.join(columns)} |", "|---" + "|--:" * (len(columns) - 1) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])
