"""`ebbtide eval`: systems side by side on public datasets."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ebbtide.cli.common import JsonOption, examples
from ebbtide.cli.output import print_json, stderr, write
from ebbtide.cli.progress import counting
from ebbtide.cores import usable_cores

if TYPE_CHECKING:
    from ebbtide.evals.run import Plan

__all__ = [
    "CacheOption",
    "DataOption",
    "FreshOption",
    "LimitOption",
    "OutOption",
    "PeerOption",
    "SetOption",
    "SystemOption",
    "WorkersOption",
    "app",
    "plan_of",
    "settings",
]

app = typer.Typer(
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Measure recall and cost on public datasets, side by side.",
    epilog=examples(
        "ebbtide eval locomo --data locomo10.json --system bm25 --system default --out runs/locomo",
        "ebbtide eval noise --data locomo10.json --ratio 0.75 --out runs/noise",
        "ebbtide eval report runs/locomo runs/noise --out report",
    ),
)


class RatioOfChoice(StrEnum):
    """What a noise ratio is a share of."""

    TIMELINE = "timeline"
    ORIGINAL = "original"


DataOption = Annotated[Path, typer.Option("--data", "-d", help="The dataset's own file.")]
SystemOption = Annotated[
    list[str] | None,
    typer.Option(
        "--system",
        help="A system: full, last_n, bm25, dense, rrf, paper, default (all of these by "
        "default), rpe, rpe-paper, recurrence, deliberate, majority, consensus, "
        "or with --peer dmf-memory, dmf-memory-5, dmf-memory-20; may be repeated.",
    ),
]
OutOption = Annotated[
    Path,
    typer.Option(
        "--out", "-o", help="Directory of the results; another call goes on or adds systems."
    ),
]
WorkersOption = Annotated[
    int | None, typer.Option("--workers", "-j", min=1, help="Processes; one a core by default.")
]
LimitOption = Annotated[
    int | None, typer.Option("--limit", min=1, help="Most conversations; all by default.")
]
CacheOption = Annotated[
    Path | None,
    typer.Option("--cache", help="File that keeps analyses, for a faster second run."),
]
PeerOption = Annotated[
    Path | None,
    typer.Option(
        "--peer",
        help="Directory of dmf-memory's own environment; prepared there the first time "
        "(1 GB, some minutes). Adds the system dmf-memory.",
    ),
]
FreshOption = Annotated[
    bool, typer.Option("--fresh", help="Start over: delete what --out holds of an earlier run.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SECTION.KEY=VALUE", help="A setting; may be repeated."),
]


@app.command()
def locomo(
    data: DataOption,
    out: OutOption,
    system: SystemOption = None,
    workers: WorkersOption = None,
    limit: LimitOption = None,
    cache: CacheOption = None,
    peer: PeerOption = None,
    setting: SetOption = None,
    fresh: FreshOption = False,
    as_json: JsonOption = False,
) -> None:
    """Measure on LoCoMo (snap-research/locomo's JSON, or parts of it)."""
    plan = plan_of("locomo", data, system, limit=limit, cache=cache, peer=peer, setting=setting)
    _run(plan, out, workers, fresh=fresh, as_json=as_json)


@app.command()
def longmemeval(
    data: DataOption,
    out: OutOption,
    system: SystemOption = None,
    workers: WorkersOption = None,
    limit: LimitOption = None,
    cache: CacheOption = None,
    peer: PeerOption = None,
    setting: SetOption = None,
    fresh: FreshOption = False,
    as_json: JsonOption = False,
) -> None:
    """Measure on LongMemEval (its JSON, or one instance a line)."""
    plan = plan_of(
        "longmemeval", data, system, limit=limit, cache=cache, peer=peer, setting=setting
    )
    _run(plan, out, workers, fresh=fresh, as_json=as_json)


@app.command()
def noise(
    data: DataOption,
    out: OutOption,
    ratio: Annotated[
        float | None,
        typer.Option("--ratio", help="Share of generated noise; none for a file that has its own."),
    ] = None,
    ratio_of: Annotated[
        RatioOfChoice,
        typer.Option("--ratio-of", help="Share of the whole timeline, or of the original turns."),
    ] = RatioOfChoice.TIMELINE,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the noise.")] = 0,
    with_clean: Annotated[
        bool,
        typer.Option(
            "--with-clean/--no-clean", help="Measure the conversations without noise beside it."
        ),
    ] = True,
    system: SystemOption = None,
    workers: WorkersOption = None,
    limit: LimitOption = None,
    cache: CacheOption = None,
    peer: PeerOption = None,
    setting: SetOption = None,
    fresh: FreshOption = False,
    as_json: JsonOption = False,
) -> None:
    """Measure on LoCoMo with noise: a published file, or noise of our own."""
    from dataclasses import replace

    plan = plan_of("noise", data, system, limit=limit, cache=cache, peer=peer, setting=setting)
    plan = replace(plan, noise=ratio, ratio_of=ratio_of.value, seed=seed, with_clean=with_clean)
    _run(plan, out, workers, fresh=fresh, as_json=as_json)


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Directories of results.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the report.")],
    results: Annotated[
        Path | None, typer.Option("--results", help="Also write the tables alone to this file.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write Markdown, plots and one self-contained page from results."""
    from ebbtide.evals.report import results_page, write_report
    from ebbtide.files import write_whole, writing

    written = write_report(runs, out)
    if results is not None:
        page = results_page(runs)
        with writing(results):
            write_whole(results, page.encode())
        written.append(results)
    if as_json:
        print_json({"written": [str(path) for path in written]})
    else:
        write("\n".join(map(str, written)))


def plan_of(
    dataset: str,
    data: Path,
    systems: list[str] | None,
    *,
    limit: int | None,
    cache: Path | None,
    peer: Path | None,
    setting: list[str] | None,
) -> Plan:
    """The run that the options describe."""
    from ebbtide.evals.provenance import public_command
    from ebbtide.evals.run import Plan
    from ebbtide.evals.systems import PEERS, SYSTEMS, Options

    named = tuple(dict.fromkeys(systems or SYSTEMS))
    if peer is not None:
        peer = _prepared(peer)
        if peer is None:
            named = tuple(name for name in named if name not in PEERS)
        elif not set(named) & set(PEERS):
            named = (*named, PEERS[0])
    if not named:
        raise typer.BadParameter("no system is left to run")
    return Plan(
        dataset=dataset,
        data=data,
        systems=named,
        limit=limit,
        options=Options(changes=settings(setting or []), cache=cache, peer=peer),
        command=public_command(["ebbtide", *sys.argv[1:]]),
    )


def _prepared(directory: Path) -> Path | None:
    """The peer's environment; None, with a word why, where it cannot be had."""
    from ebbtide.evals.peers import PeerUnavailableError, peer_environment

    try:
        return peer_environment(directory).directory
    except PeerUnavailableError as error:
        stderr().print(f"note: {error}; left out", markup=False)
        return None


def settings(given: list[str]) -> dict[str, dict[str, Any]]:
    """``section.key=value`` as nested settings; the value as in TOML, else a text."""
    import tomllib

    changes: dict[str, dict[str, Any]] = {}
    for one in given:
        name, equals, value = one.partition("=")
        section, dot, key = name.rpartition(".")
        if not (equals and dot and key):
            message = f"--set takes SECTION.KEY=VALUE, not {one!r}"
            raise typer.BadParameter(message)
        try:
            parsed = tomllib.loads(f"value = {value}")["value"]
        except (ValueError, RecursionError):  # no TOML, or one that no setting can be
            parsed = value
        keys: Any = changes
        for part in section.split("."):
            keys = keys.setdefault(part, {})
            if not isinstance(keys, dict):
                message = f"--set {one!r} is below a setting that another --set gives a value"
                raise typer.BadParameter(message)
        keys[key] = parsed
    return changes


def _run(plan: Plan, out: Path, workers: int | None, *, fresh: bool, as_json: bool) -> None:
    from ebbtide.evals.report import results_page
    from ebbtide.evals.run import evaluate

    with counting(plan.dataset, "parts") as progress:
        manifest = evaluate(
            plan, out, workers=workers or usable_cores(), fresh=fresh, progress=progress
        )
    if as_json:
        print_json(manifest)
    else:
        write(results_page([out]))
