"""Commands and their options. Everything heavy is imported inside them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ebbtide.cli.output import fail, print_json, stderr, stdout

if TYPE_CHECKING:
    from ebbtide.config import Config
    from ebbtide.memory import Memory

__all__ = ["app", "main"]

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="A deterministic memory for conversational agents: replay transcripts, ask, explain.",
)
config_app = typer.Typer(no_args_is_help=True, help="Show or check a configuration.")
app.add_typer(config_app, name="config")

StoreOption = Annotated[Path, typer.Option("--store", "-s", help="The store file.")]
NamespaceOption = Annotated[
    str | None, typer.Option("--namespace", "-n", help="Which memory of the store.")
]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", "-c", help="Settings, as a TOML file.")
]
PresetOption = Annotated[str | None, typer.Option("--preset", help="default or paper.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def main() -> None:
    """Run the command line; the entry point ``ebbtide``."""
    from ebbtide.errors import ConfigError, EbbtideError

    as_json = "--json" in sys.argv
    try:
        app()
    except ConfigError as error:
        fail(str(error), error.code, as_json=as_json)
        raise SystemExit(2) from None
    except EbbtideError as error:
        fail(str(error), error.code, as_json=as_json)
        raise SystemExit(1) from None
    except BrokenPipeError:
        # The reader of our output went away (`ebbtide … | head`); nothing is wrong.
        sys.stderr.close()
        raise SystemExit(0) from None


def _version(wanted: bool) -> None:
    if wanted:
        import ebbtide
        from ebbtide.analysis.analyser import Analyser

        fingerprint = Analyser(ebbtide.Config()["nlp"]).fingerprint
        typer.echo(f"ebbtide {ebbtide.__version__}\n{fingerprint}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Version and model fingerprint."
        ),
    ] = False,
) -> None:
    """Options before the command."""


def _settings(config: Path | None, preset: str | None) -> Config:
    from ebbtide.config import Config

    if config is not None:
        return Config.load(config, preset=preset or "default")
    return Config(preset or "default")


def _namespace(store: Path, named: str | None) -> str:
    """The memory meant: the named one, or the only one there is."""
    from ebbtide.config import Config
    from ebbtide.errors import NotFoundError
    from ebbtide.store import open_handle

    handle = open_handle(store, Config(), read_only=True)
    try:
        names = handle.namespaces()
    finally:
        handle.close()
    if named is not None and named in names:
        return named
    listed = ", ".join(repr(name) for name in names) or "none"
    if named is not None:
        message = f"the store has no memory {named!r}; there are: {listed}"
        raise NotFoundError(message, "not_found.namespace")
    if len(names) == 1:
        return names[0]
    message = f"the store has {len(names)} memories ({listed}); name one with --namespace"
    raise NotFoundError(message, "not_found.namespace")


@contextmanager
def _reading(store: Path, namespace: str | None, settings: Config) -> Iterator[Memory]:
    """A memory opened for reading: works beside a writer and creates nothing."""
    from ebbtide.memory import Memory

    name = _namespace(store, namespace)
    with Memory.open(store, namespace=name, config=settings, read_only=True) as memory:
        pending = memory.stats()["pending"]
    read_only = pending == 0
    with Memory.open(store, namespace=name, config=settings, read_only=read_only) as memory:
        yield memory


@app.command()
def replay(
    files: Annotated[
        list[Path], typer.Argument(help="JSON Lines of messages, or LoCoMo JSON (.json, .json.gz).")
    ],
    store: StoreOption,
    namespace: NamespaceOption = None,
    conversation: Annotated[
        str | None, typer.Option(help="Only this conversation of a file that holds several.")
    ] = None,
    config: ConfigOption = None,
    preset: PresetOption = None,
    token_budget: Annotated[
        int | None, typer.Option(help="Tokens of the active memory, instead of the configured.")
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Turns analysed and committed together.")] = 128,
    as_json: JsonOption = False,
) -> None:
    """Replay transcripts into a store. Run again, it goes on where it stopped.

    Example: ebbtide replay examples/conversation.jsonl --store memory.db
    """
    from ebbtide.cli.replaying import replay_files
    from ebbtide.errors import InputError

    settings = _settings(config, preset)
    if token_budget is not None:
        settings = settings.replace(capacity={"token_budget": token_budget})
    if batch_size < 1:
        raise InputError("--batch-size must be at least 1", "input.field")
    try:
        summaries = replay_files(
            files,
            store,
            settings,
            namespace=namespace,
            conversation=conversation,
            batch_size=batch_size,
        )
    except KeyboardInterrupt:
        stderr().print(
            "Stopped. What was committed is safe; run the same command again to go on.",
            style="yellow",
        )
        raise SystemExit(130) from None
    if as_json:
        print_json({"replays": [summary.to_dict() for summary in summaries]})
        return
    from ebbtide.cli.show import replay_table

    stdout().print(replay_table(summaries))


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="The question.")],
    store: StoreOption,
    namespace: NamespaceOption = None,
    limit: Annotated[int | None, typer.Option("--limit", "-k", help="How many turns.")] = None,
    query_time: Annotated[
        str | None, typer.Option(help="When it is asked; the newest turn's time by default.")
    ] = None,
    role: Annotated[str | None, typer.Option(help="Only turns of this role.")] = None,
    speaker: Annotated[str | None, typer.Option(help="Only turns by this speaker.")] = None,
    session: Annotated[str | None, typer.Option(help="Only turns of this session.")] = None,
    since: Annotated[str | None, typer.Option(help="Only turns from this time on.")] = None,
    until: Annotated[str | None, typer.Option(help="Only turns up to this time.")] = None,
    context: Annotated[
        bool, typer.Option("--context", help="Print the prompt-ready context instead.")
    ] = False,
    max_tokens: Annotated[int | None, typer.Option(help="Most tokens of the context.")] = None,
    trace: Annotated[
        bool, typer.Option("--trace", help="Print every candidate, its scores and its fate.")
    ] = False,
    config: ConfigOption = None,
    preset: PresetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask a memory; prints the turns that answer, best first.

    Example: ebbtide ask --store memory.db "Which port does the service use now?"
    """
    from ebbtide.cli import show

    filters = {
        "role": role,
        "speaker": speaker,
        "session_id": session,
        "since": since,
        "until": until,
    }
    options: dict[str, Any] = {
        "limit": limit,
        "query_time": query_time,
        "preset": preset,
        "filters": {key: value for key, value in filters.items() if value is not None},
    }
    with _reading(store, namespace, _settings(config, None)) as memory:
        if context:
            text = memory.render_context(question, max_tokens=max_tokens, **options)
            if as_json:
                print_json({"context": text, "tokens": memory.count_tokens(text)})
            else:
                typer.echo(text)
        elif trace:
            found = memory.trace(question, **options)
            if as_json:
                print_json(found)
            else:
                texts = {
                    c["interaction_id"]: memory.get(c["interaction_id"]).text
                    for c in found["candidates"]
                }
                show.trace(stdout(), found, texts)
        else:
            evidence = memory.retrieve(question, max_tokens=max_tokens, **options)
            if as_json:
                items = [item.to_dict() for item in evidence]
                print_json({"question": question, "evidence": items})
            else:
                show.evidence(stdout(), evidence)


@app.command()
def explain(
    turn: Annotated[str, typer.Argument(help="Interaction id (a number) or external id.")],
    store: StoreOption,
    namespace: NamespaceOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """The life of one turn: why it was kept, evicted or superseded.

    Example: ebbtide explain --store memory.db s1:26
    """
    with _reading(store, namespace, _settings(config, None)) as memory:
        life = memory.explain(int(turn) if turn.isdigit() else turn)
    if as_json:
        print_json(life)
        return
    from ebbtide.cli import show

    show.life(stdout(), life)


@app.command()
def stats(
    store: StoreOption,
    namespace: NamespaceOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """A memory in numbers."""
    with _reading(store, namespace, _settings(config, None)) as memory:
        numbers = {**memory.stats(), "digest": memory.digest()}
    numbers["store"] = str(store)
    numbers["bytes"] = store.stat().st_size
    if as_json:
        print_json(numbers)
        return
    from ebbtide.cli import show

    stdout().print(show.table_of(numbers))


@app.command()
def delete(
    turn: Annotated[str, typer.Argument(help="Interaction id (a number) or external id.")],
    store: StoreOption,
    namespace: NamespaceOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Erase one turn from text, indexes and file."""
    from ebbtide.memory import Memory

    name = _namespace(store, namespace)
    with Memory.open(store, namespace=name, config=_settings(config, None)) as memory:
        memory.delete(int(turn) if turn.isdigit() else turn)
    if as_json:
        print_json({"deleted": turn, "namespace": name})
    else:
        typer.echo(f"erased turn {turn} of {name!r}")


@app.command()
def reindex(
    store: StoreOption,
    namespace: NamespaceOption = None,
    config: ConfigOption = None,
    preset: PresetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rebuild everything derived with the current models and settings."""
    from ebbtide.cli.replaying import progress_bar
    from ebbtide.memory import Memory

    name = _namespace(store, namespace)
    settings = _settings(config, preset)
    with (
        Memory.open(store, namespace=name, config=settings, reindexing=True) as memory,
        progress_bar() as bar,
    ):
        task = bar.add_task("reindex", total=len(memory), note="")
        done = memory.reindex(progress=lambda n: bar.update(task, completed=n))
        digest = memory.digest()
    if as_json:
        print_json({"namespace": name, "turns": done, "digest": digest})
    else:
        typer.echo(f"read {done} turns of {name!r} anew; digest {digest[:16]}")


@config_app.command("show")
def config_show(
    config: ConfigOption = None, preset: PresetOption = None, as_json: JsonOption = False
) -> None:
    """Every setting with its value."""
    values = _settings(config, preset).to_dict()
    if as_json:
        print_json(values)
        return
    import json

    for section, keys in values.items():
        typer.echo(f"[{section}]")
        for key, value in keys.items():
            typer.echo(f"{key} = {json.dumps(value)}")
        typer.echo("")


@config_app.command("check")
def config_check(
    file: Annotated[Path, typer.Argument(help="The TOML file.")],
    preset: PresetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check a configuration file: keys, types, ranges, and whether its models are installed."""
    from ebbtide.analysis.analyser import Analyser
    from ebbtide.errors import ConfigError

    settings = _settings(file, preset)
    notes = settings.notes()
    try:
        Analyser(settings["nlp"])
    except ConfigError as error:
        notes.append(str(error))
    if as_json:
        print_json({"ok": True, "notes": notes})
        return
    for note in notes:
        typer.echo(f"note: {note}")
    typer.echo(f"{file}: ok")
