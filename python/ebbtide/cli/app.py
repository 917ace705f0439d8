"""The command line put together: its commands, its options, its errors."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, cast

import typer

from ebbtide.cli import (
    answering,
    archiving,
    asking,
    benching,
    comparing,
    configuring,
    consolidating,
    deliberating,
    evaluating,
    explaining,
    gating,
    importing,
    inspecting,
    keeping,
    maintaining,
    mcp_server,
    replaying,
    serving,
)
from ebbtide.cli.common import examples
from ebbtide.cli.output import OutputError, fail, finish, prepare_streams, write

__all__ = ["app", "main"]

app = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="A deterministic memory for conversational agents: replay transcripts, ask, explain.",
    epilog=examples(
        "ebbtide replay examples/conversation.jsonl --store memory.db",
        'ebbtide ask --store memory.db "Where does Ana live now?"',
        "ebbtide explain --store memory.db s1:26",
    ),
)
app.command(epilog=replaying.EXAMPLES)(replaying.replay)
app.command("import", epilog=importing.EXAMPLES)(importing.import_export)
app.command(epilog=asking.EXAMPLES)(asking.ask)
app.command(epilog=explaining.EXPLAIN_EXAMPLES)(explaining.explain)
app.command(epilog=explaining.STATS_EXAMPLES)(explaining.stats)
app.command(epilog=inspecting.INSPECT_EXAMPLES)(inspecting.inspect)
app.command(epilog=inspecting.PLOT_EXAMPLES)(inspecting.plot)
app.command(epilog=consolidating.EPISODES_EXAMPLES)(consolidating.episodes)
app.command(epilog=maintaining.DELETE_EXAMPLES)(maintaining.delete)
app.command(epilog=maintaining.FORGET_EXAMPLES)(maintaining.forget)
app.command(epilog=maintaining.RETAIN_EXAMPLES)(maintaining.retain)
app.command(epilog=maintaining.REINDEX_EXAMPLES)(maintaining.reindex)
app.command(epilog=keeping.EXPORT_EXAMPLES)(keeping.export)
app.command(epilog=keeping.LOAD_EXAMPLES)(keeping.load)
app.command(epilog=keeping.BACKUP_EXAMPLES)(keeping.backup)
app.command(epilog=keeping.DOCTOR_EXAMPLES)(keeping.doctor)
app.command(epilog=mcp_server.MCP_EXAMPLES)(mcp_server.mcp)
app.command(epilog=serving.EXAMPLES)(serving.serve)
app.command(epilog=benching.EXAMPLES)(benching.bench)
app.add_typer(configuring.app, name="config")
app.add_typer(archiving.app, name="archive")
for command in (
    comparing.ablate,
    comparing.sweep,
    comparing.misses,
    gating.gate,
    deliberating.deliberation,
    answering.answers,
):
    evaluating.app.command()(command)
evaluating.app.command()(consolidating.recurrence)
app.add_typer(evaluating.app, name="eval")


# Typer brings a click of its own or takes the package, by version; both have this class.
_UsageError = cast("type[typer.BadParameter]", typer.BadParameter.__base__)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; the entry point ``ebbtide``.

    Exits with 0, 1 (an error, or nothing by that name), 2 (usage or
    configuration) or 130 (interrupted).

    Args:
        arguments: Words after the program's name; those of the process by default.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in words
    prepare_streams()
    try:
        try:
            _run(words, as_json=as_json)
        finally:
            finish()
    except OutputError as error:
        message = (
            f"standard output cannot be written: {error.strerror}; what the command stored is "
            "safe, what it had to say is lost"
        )
        fail(message, "output", as_json=as_json)
        raise SystemExit(1) from None


def _run(words: list[str], *, as_json: bool) -> None:
    """Carry out a command, and end with its status."""
    from ebbtide.errors import ConfigError, EbbtideError

    try:
        raise SystemExit(app(args=words, prog_name="ebbtide", standalone_mode=False))
    except EbbtideError as error:
        fail(str(error), error.code, as_json=as_json)
        raise SystemExit(2 if isinstance(error, ConfigError) else 1) from None
    except _UsageError as error:
        if "unexpected extra argument" in error.message:
            error.message += "; a question or a name of several words goes in quotes"
        if as_json:
            fail(error.format_message(), "usage", as_json=True)
        else:
            error.show()
        raise SystemExit(2) from None
    except typer.Abort:  # what Ctrl-C is to some versions of Typer
        raise SystemExit(130) from None


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", help="Version, and fingerprints of models, store and core."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="With --version: as one JSON document.")
    ] = False,
) -> None:
    if version:
        from ebbtide.cli import versioning

        versioning.show(as_json=as_json)
        raise typer.Exit
    if as_json:
        raise typer.BadParameter("--json goes behind a command, or with --version")
    if context.invoked_subcommand is None:
        write(context.get_help())
