"""``ebbtide replay``: files to memories, with a live view on standard error."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from ebbtide.cli.common import (
    ConfigOption,
    JsonOption,
    PresetOption,
    TokenBudgetOption,
    examples,
    settings_from,
)
from ebbtide.cli.output import fail, print_json, stdout
from ebbtide.cli.replaying_many import (
    BatchOption,
    EngineOption,
    FilesOption,
    FreshOption,
    NoStoresOption,
    OutOption,
    SchedulerOption,
    SplitOption,
    replay_many,
)
from ebbtide.messages import reason
from ebbtide.pipeline import BATCH

if TYPE_CHECKING:
    from ebbtide.config import Config
    from ebbtide.replay import ReplaySummary
    from ebbtide.transcripts import Transcript

__all__ = ["EXAMPLES", "replay"]

EXAMPLES = examples(
    "ebbtide replay chat.jsonl --store memory.db --namespace ana",
    "ebbtide replay locomo10.json --store locomo.db --conversation conv-26",
    "ebbtide replay chat.jsonl --store memory.db --preset paper --token-budget 1024",
    "ebbtide replay transcripts/ --out replayed",
    "ebbtide replay all.jsonl --out replayed --split-by session_id --scheduler tcp://10.0.0.5:8786",
)


def replay(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="JSON Lines of messages, or a LoCoMo or LongMemEval file; gzipped or not. "
            "With --out directories and patterns too.",
        ),
    ],
    store: Annotated[
        Path | None, typer.Option("--store", "-s", help="The store file. It or --out is needed.")
    ] = None,
    out: OutOption = None,
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", help="Into which memory; by default, see above."),
    ] = None,
    conversation: Annotated[
        str | None, typer.Option(help="Only this conversation of a file that holds several.")
    ] = None,
    config: ConfigOption = None,
    preset: PresetOption = None,
    token_budget: TokenBudgetOption = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help=f"Turns committed together; {BATCH} by default.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Processes, each with 350 MB of models. With --store they analyse, and 1, the "
            "default, uses two threads; with --out they replay, one a core by default.",
        ),
    ] = None,
    engine: EngineOption = None,
    scheduler: SchedulerOption = None,
    batch: BatchOption = None,
    no_stores: NoStoresOption = False,
    split_by: SplitOption = None,
    by: FilesOption = None,
    fresh: FreshOption = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show no progress while it runs.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Replay transcripts into a store. Run again, it goes on where it stopped.

    A line is one message: role, content (or text), speaker (or name), timestamp,
    session_id, id; other fields are kept as metadata. A message without an id is
    known by file name and line. Messages go into the memory "default", the
    conversations of a LoCoMo or LongMemEval file into memories of their own, called
    by their ids, unless --namespace says otherwise; their turns are then called by
    both ids, like conv-26/D1:3.

    With --out DIR every conversation gets a memory of its own, in a store file below
    DIR; DIR/turns and DIR/conversations tell what became of them, as Parquet. That needs
    the extra "dask".
    """
    if out is not None:
        _refuse("--out", **{"--store": store, "--namespace": namespace})
        _refuse("--out", **{"--conversation": conversation, "--batch-size": batch_size})
        replay_many(
            files,
            out,
            settings_from(config, preset, token_budget),
            engine=engine,
            scheduler=scheduler,
            workers=workers,
            batch=batch,
            stores=not no_stores,
            split_by=split_by,
            by=by,
            fresh=fresh,
            quiet=quiet,
            as_json=as_json,
        )
        return
    if store is None:
        raise typer.BadParameter("name a store with --store, or a directory with --out")
    _refuse("--store", **{"--engine": engine, "--scheduler": scheduler, "--batch": batch})
    _refuse("--store", **{"--no-stores": no_stores or None, "--split-by": split_by})
    _refuse("--store", **{"--files": by, "--fresh": fresh or None})
    settings = settings_from(config, preset, token_budget)
    try:
        summaries = _replay_files(
            files,
            store,
            settings,
            namespace,
            conversation,
            batch_size or BATCH,
            workers or 1,
            quiet=quiet or as_json,
        )
    except KeyboardInterrupt:
        summaries = []
    if not summaries or not all(summary.finished for summary in summaries):
        stored = sum(summary.accepted for summary in summaries)
        # The second Ctrl-C loses the count, not the turns.
        done = f"{stored} turns were stored" if summaries else "what was committed is safe"
        message = f"interrupted: {done}; run the same command again to go on from there"
        fail(message, "interrupted", as_json=as_json)
        raise typer.Exit(130)
    if as_json:
        print_json({"replays": [summary.to_dict() for summary in summaries]})
        return
    from ebbtide.cli import show

    stdout().print(show.replay_table(summaries))


def _refuse(mode: str, **others: object) -> None:
    """Options that say nothing under another one."""
    for name, value in others.items():
        if value is not None:
            raise typer.BadParameter(f"{name} does not go with {mode}")


def _replay_files(
    files: Sequence[Path],
    store: Path,
    settings: Config,
    namespace: str | None,
    conversation: str | None,
    batch_size: int,
    workers: int,
    *,
    quiet: bool,
) -> list[ReplaySummary]:
    """Replay every conversation that is asked for, until one is interrupted."""
    from ebbtide.cli.live import ReplayView
    from ebbtide.cli.progress import stop_on_interrupt
    from ebbtide.replay import ReplayJob, replay_all
    from ebbtide.store import Store

    with ExitStack() as stack:
        files = [_lasting(file, stack) for file in files]
        stop = stack.enter_context(stop_on_interrupt())
        budget = settings["capacity"]["token_budget"]
        view = stack.enter_context(ReplayView(budget, quiet=quiet))

        def jobs() -> Iterator[ReplayJob]:
            opened: Store | None = None
            for transcript in _wanted(files, conversation, qualified=namespace is not None):
                if opened is None:
                    # Only now: a file that is no transcript leaves no store behind.
                    opened = stack.enter_context(Store.open(store, config=settings))
                name = namespace if namespace is not None else transcript.name or "default"
                job = ReplayJob(opened.memory(name), transcript.turns, view.follow(transcript))
                yield job

        return list(replay_all(jobs(), batch_size=batch_size, workers=workers, stop=stop))


def _lasting(file: Path, stack: ExitStack) -> Path:
    """The file, or a copy of what a pipe holds: a transcript is read more than once.

    The copy has the pipe's name, which is in the ids of messages without one.
    """
    from ebbtide.errors import InputError

    try:
        if not file.is_fifo():
            return file
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="ebbtide-")))
        with file.open("rb") as pipe, (folder / file.name).open("wb") as copy:
            shutil.copyfileobj(pipe, copy)
    except OSError as error:
        raise InputError(f"{file} cannot be read: {reason(error)}", "input.transcript") from error
    return folder / file.name


def _wanted(
    files: Sequence[Path], conversation: str | None, *, qualified: bool
) -> Iterator[Transcript]:
    from ebbtide.errors import InputError
    from ebbtide.transcripts import check_transcript, read_transcripts

    for file in files:
        check_transcript(file)  # a mistyped name among several is found before the work
    names: list[str] = []
    found = False
    for file in files:
        for transcript in read_transcripts(file, qualified=qualified):
            if conversation in (None, transcript.name):
                found = True
                yield transcript
            elif transcript.name is not None:
                names.append(transcript.name)
    if found:
        return
    if conversation is None:
        raise InputError(f"{files[0]} holds no conversation", "input.transcript")
    known = ", ".join(names) or "none, their messages are one conversation"
    message = f"no conversation in the files is called {conversation!r}; there are: {known}"
    raise InputError(message, "input.transcript")
