"""``ebbtide replay --out``: many transcripts, in processes or on a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ebbtide.cli.output import fail, print_json, stderr, write

if TYPE_CHECKING:
    from ebbtide.config import Config
    from ebbtide.distributed.run import ReplayReport

__all__ = [
    "BatchOption",
    "Engine",
    "EngineOption",
    "Files",
    "FilesOption",
    "FreshOption",
    "NoStoresOption",
    "OutOption",
    "SchedulerOption",
    "SplitOption",
    "replay_many",
]

_SHOWN = 20
"""Failures that are printed one by one."""


class Engine(StrEnum):
    """Where batches are made."""

    LOCAL = "local"
    DASK = "dask"


class Files(StrEnum):
    """How transcripts reach the workers."""

    PATHS = "paths"
    CONTENT = "content"


OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", help="Instead of --store: a directory, with a memory a conversation."
    ),
]
EngineOption = Annotated[
    Engine | None,
    typer.Option(help="With --out: processes of this machine (local), or a Dask cluster."),
]
SchedulerOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="The cluster's, like tcp://10.0.0.5:8786; else started here.",
    ),
]
BatchOption = Annotated[
    int | None, typer.Option(min=1, help="With --out: conversations to a part; 16 by default.")
]
NoStoresOption = Annotated[
    bool, typer.Option("--no-stores", help="With --out: write the tables and keep no memory.")
]
SplitOption = Annotated[
    str | None,
    typer.Option(
        metavar="FIELD",
        help="With --out: a field that tells apart the conversations of a JSON Lines file.",
    ),
]
FilesOption = Annotated[
    Files | None,
    typer.Option(
        "--files",
        help="With --out: workers read files by their paths, or are sent the content; "
        "the latter by default with --scheduler.",
    ),
]
FreshOption = Annotated[
    bool, typer.Option("--fresh", help="Start over: delete what --out holds of an earlier run.")
]


def replay_many(
    files: Sequence[Path],
    out: Path,
    settings: Config,
    *,
    engine: Engine | None,
    scheduler: str | None,
    workers: int | None,
    batch: int | None,
    stores: bool,
    split_by: str | None,
    by: Files | None,
    fresh: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Replay, and say what came of it; exits with 1 where a conversation failed."""
    from ebbtide.cli.progress import counting
    from ebbtide.distributed import run

    # A scheduler has one kind of engine only.
    name = engine or (Engine.DASK if scheduler else Engine.LOCAL)
    try:
        with counting("replay", "conversations", quiet=quiet or as_json) as progress:
            report = run.replay_many(
                files,
                out,
                config=settings,
                engine=str(name),
                scheduler=scheduler,
                workers=workers,
                batch=batch or run.BATCH,
                stores=stores,
                split_by=split_by,
                files=None if by is None else str(by),
                fresh=fresh,
                progress=progress,
            )
    except KeyboardInterrupt:
        message = "interrupted: parts that were done are kept; run the same command again to go on"
        fail(message, "interrupted", as_json=as_json)
        raise typer.Exit(130) from None
    if as_json:
        print_json(report.to_dict())
    else:
        _show(report)
    if report.failures:
        raise typer.Exit(1)


def _show(report: ReplayReport) -> None:
    write(f"conversations  {report.conversations}, {len(report.failures)} of them failed")
    write(f"turns          {report.turns}")
    write(f"parts          {report.batches} in {report.out}, {report.kept} from an earlier run")
    write(f"digest         {report.digest}")
    for failure in report.failures[:_SHOWN]:
        stderr().print(f"{failure.conversation}: {failure.message} [{failure.code}]")
    if len(report.failures) > _SHOWN:
        rest = len(report.failures) - _SHOWN
        stderr().print(f"and {rest} more, see {report.out / 'report.json'}")
