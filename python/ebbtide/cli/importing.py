"""``ebbtide import``: chat exports to memories."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from ebbtide.messages import reason
from ebbtide.pipeline import BATCH

if TYPE_CHECKING:
    from ebbtide.config import Config
    from ebbtide.importers import Export, ExportPart
    from ebbtide.memory import Memory
    from ebbtide.replay import ReplaySummary
    from ebbtide.types import WriteReport

__all__ = ["EXAMPLES", "import_export"]

EXAMPLES = examples(
    "ebbtide import chatgpt export.zip --dry-run",
    "ebbtide import chatgpt export.zip --store memory.db",
    'ebbtide import whatsapp "WhatsApp Chat with Ana.txt" -s memory.db --timezone Europe/Lisbon',
)


class Format(StrEnum):
    """Formats as the command line names them; a test keeps them those of the importers."""

    AUTO = "auto"
    CHATGPT = "chatgpt"
    CLAUDE = "claude"
    GEMINI = "gemini"
    OPENAI = "openai"
    SHAREGPT = "sharegpt"
    LANGCHAIN = "langchain"
    WHATSAPP = "whatsapp"
    SLACK = "slack"
    DISCORD = "discord"


class DateOrder(StrEnum):
    """Orders of day, month and year."""

    DMY = "dmy"
    MDY = "mdy"
    YMD = "ymd"


def import_export(
    format: Annotated[  # noqa: A002
        Format, typer.Argument(metavar="FORMAT", help=", ".join(Format) + ".", show_default=False)
    ],
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The file, or the whole export: zip or folder.")
    ],
    store: Annotated[
        Path | None,
        typer.Option("--store", "-s", help="The store file; not needed with --dry-run."),
    ] = None,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Into which memory.")
    ] = "default",
    namespace_per_conversation: Annotated[
        bool,
        typer.Option(
            "--namespace-per-conversation", help="Each conversation into a memory called by its id."
        ),
    ] = False,
    conversation: Annotated[
        str | None, typer.Option(help="Only the conversation with this id or title.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be imported; store nothing.")
    ] = False,
    timezone: Annotated[
        str | None,
        typer.Option(help="Zone of times without one (WhatsApp), such as Europe/Lisbon."),
    ] = None,
    date_order: Annotated[
        DateOrder | None, typer.Option(help="Order of WhatsApp's dates; found out by default.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write what was read and left out to this JSON file.")
    ] = None,
    config: ConfigOption = None,
    preset: PresetOption = None,
    token_budget: TokenBudgetOption = None,
    batch_size: Annotated[
        int, typer.Option(min=1, help="Turns analysed and committed together.")
    ] = BATCH,
    as_json: JsonOption = False,
) -> None:
    """Import an export of chats. Run again, it adds only what is new.

    What people and assistants said is stored, oldest conversation first; edited or
    regenerated branches, system prompts, tool calls, reasoning, notices and deleted
    messages are left out and counted. A conversation becomes a session.
    """
    from ebbtide.errors import EbbtideError
    from ebbtide.importers import read

    if store is None and not dry_run:
        raise typer.BadParameter("give --store FILE, or --dry-run to look first")
    export = read(format, file, conversation=conversation, timezone=timezone, date_order=date_order)
    if dry_run:
        _show_preview(export, report, as_json=as_json)
        return
    assert store is not None
    settings = settings_from(config, preset, token_budget)
    name = None if namespace_per_conversation else namespace
    summaries: list[ReplaySummary] = []
    try:
        finished = _store(export, store, settings, name, batch_size, summaries)
    except KeyboardInterrupt:
        finished = False
    except EbbtideError as error:
        failed = {"error": {"code": error.code, "message": str(error)}}
        _write(report, {**_document(export, summaries), "finished": False, **failed})
        raise
    document = {**_document(export, summaries), "finished": finished}
    _write(report, document)
    if not finished:
        stored = sum(summary.accepted for summary in summaries)
        message = (
            f"interrupted: at least {stored} turns were stored; run the same command again "
            "to go on from there"
        )
        fail(message, "interrupted", as_json=as_json)
        raise typer.Exit(130)
    if as_json:
        print_json(document)
        return
    from ebbtide.cli import show

    if summaries:
        stdout().print(show.replay_table(summaries, title="Imported"))
    _print_left_out(export, nothing=not summaries)


def _store(
    export: Export,
    store: Path,
    settings: Config,
    namespace: str | None,
    batch_size: int,
    summaries: list[ReplaySummary],
) -> bool:
    """Store the export's turns; False if that was interrupted.

    Args:
        export: The export.
        store: The store file; made only once there is something to store.
        settings: The configuration.
        namespace: Into which memory; None for one a conversation.
        batch_size: Turns committed together.
        summaries: Gets a summary for each memory that was written to.
    """
    from ebbtide.cli.progress import progress_bar, stop_on_interrupt
    from ebbtide.replay import replay
    from ebbtide.store import Store

    with ExitStack() as stack:
        stop = stack.enter_context(stop_on_interrupt())
        bar = stack.enter_context(progress_bar())
        task = bar.add_task(export.path.name, total=None, note="")
        done = 0

        def read_on() -> None:
            share = export.fraction
            bar.update(task, note="" if share is None else f"{share:.0%} read")

        def advance(summary: ReplaySummary, report: WriteReport) -> None:
            note = f"{summary.turns_per_second:.0f} turns/s"
            bar.update(task, completed=done + summary.turns, note=note)
            known(summary)

        def known(summary: ReplaySummary) -> None:
            if not summaries or summaries[-1] is not summary:
                summaries.append(summary)  # at once: an error may end it

        def into(memory: Memory, turns: Export | ExportPart) -> None:
            known(replay(memory, turns, batch_size=batch_size, progress=advance, stop=stop))

        export.stop, export.advanced = stop, read_on
        if export.peek() is None:
            return not stop()
        opened = stack.enter_context(Store.open(store, config=settings))
        if namespace is not None:
            into(opened.memory(namespace), export)
            return not stop()
        for part in export.by_conversation():
            into(opened.memory(part.name), part)
            # Of thousands of conversations only one is held in memory at a time.
            opened.release(part.name)
            done += summaries[-1].turns
            if stop():
                break
        return not stop()


def _show_preview(export: Export, report: Path | None, *, as_json: bool) -> None:
    from ebbtide.importers import preview

    with _share_read(export):
        conversations = preview(export)
    document = {
        "dry_run": True,
        **_about(export),
        "turns": sum(found.turns for found in conversations),
        "conversations": [found.to_dict() for found in conversations],
    }
    _write(report, document)
    if as_json:
        print_json(document)
        return
    from ebbtide.cli import show

    if conversations:
        stdout().print(show.conversations_table(conversations))
    _print_left_out(export, nothing=not conversations)


@contextmanager
def _share_read(export: Export) -> Iterator[None]:
    """A bar that shows how much of an export was read."""
    from ebbtide.cli.progress import progress_bar

    with progress_bar() as bar:
        task = bar.add_task(export.path.name, total=100, note="% read")
        export.advanced = lambda: bar.update(task, completed=round(100 * (export.fraction or 0)))
        yield


def _about(export: Export) -> dict[str, Any]:
    return {
        "format": export.format,
        "file": str(export.path),
        "skipped": dict(sorted(export.skips.items())),
        "notes": list(export.notes),
    }


def _document(export: Export, summaries: list[ReplaySummary]) -> dict[str, Any]:
    return {
        "dry_run": False,
        **_about(export),
        "accepted": sum(summary.accepted for summary in summaries),
        "duplicates": sum(summary.duplicates for summary in summaries),
        "imports": [summary.to_dict() for summary in summaries],
    }


def _write(report: Path | None, document: dict[str, Any]) -> None:
    if report is None:
        return
    from ebbtide.errors import InputError
    from ebbtide.files import write_whole

    try:
        text = json.dumps(document, ensure_ascii=False, indent=2) + "\n"
        # A file's name may be no Unicode; in JSON its bytes are escapes then.
        write_whole(report, text.encode(errors="backslashreplace"))
    except OSError as error:
        raise InputError(f"{report} cannot be written: {reason(error)}", "input.field") from error


def _print_left_out(export: Export, *, nothing: bool) -> None:
    from ebbtide.cli import show
    from ebbtide.cli.output import plain, stderr

    if nothing:
        # Lines with a `text` look like a list of messages whose `content` is missing.
        ours = "; try `ebbtide replay`" if export.format == "openai" else ""
        stderr().print(f"note: there is no message to import in it{ours}")
    if export.skips:
        stdout().print(show.left_out_table(export.skips))
    for note in export.notes:
        stderr().print(f"note: {plain(note)}")
