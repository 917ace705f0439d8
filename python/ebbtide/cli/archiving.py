"""``ebbtide archive``: turns of many memories on one server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
from ebbtide.cli.output import plain, print_json, write
from ebbtide.messages import counted

if TYPE_CHECKING:
    from ebbtide.archives import Archive, Identity, Retry

__all__ = ["app"]

_PUSH = examples(
    "ebbtide archive push --store memory.db --to postgresql://me@db.example/archive",
    "ebbtide archive push --store memory.db -n ana --to archive.db --as ana-home",
)
_SEARCH = examples(
    'ebbtide archive search --from postgresql://me@db.example/archive "Who knows the proxy?"',
    'ebbtide archive search --from archive.db "Which port?" --in ana --in luis --speaker Ana',
)
_STATUS = examples(
    "ebbtide archive status --from archive.db",
    "ebbtide archive status --from archive.db --verify --json",
)
_PULL = examples(
    "ebbtide archive pull --from archive.db --namespace ana --store new.db",
    "ebbtide archive pull --from archive.db -n ana --store memory.db --as ana-copy",
)
_MIGRATE = examples(
    "ebbtide archive migrate --from chroma://db.example:8000/team "
    "--to postgresql://me@db.example/archive",
    "ebbtide archive migrate --from archive.db --to other.db --in ana",
)
_ERASE = examples("ebbtide archive erase --from archive.db --namespace ana --yes")

FromOption = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="ADDRESS",
        help="The archive: postgresql://…, chroma://host:port/collection, or a file.",
    ),
]
ToOption = Annotated[
    str,
    typer.Option(
        "--to",
        metavar="ADDRESS",
        help="The archive: postgresql://…, chroma://host:port/collection, or a file.",
    ),
]
InOption = Annotated[
    list[str] | None,
    typer.Option("--in", metavar="NAME", help="Only this namespace; may be given again."),
]
ThereOption = Annotated[
    str, typer.Option("--namespace", "-n", help="Which namespace of the archive.")
]

app = typer.Typer(
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Ship turns to a shared archive; search, pull, migrate it.",
)


@contextmanager
def _opened(address: str, embedding: Identity | None = None) -> Iterator[Archive]:
    from ebbtide.archives import Retry, open_archive

    archive = Retry()(open_archive, address, embedding)
    try:
        yield archive
    finally:
        archive.close()


@contextmanager
def _bar(things: str) -> Iterator[Callable[[int], None]]:
    from ebbtide.cli.progress import progress_bar

    with progress_bar() as bar:
        task = bar.add_task(things, total=None, note="")
        yield lambda done: bar.update(task, completed=done)


@app.command(epilog=_PUSH)
def push(
    store: StoreOption,
    to: ToOption,
    namespace: NamespaceOption = None,
    name: Annotated[
        str | None, typer.Option("--as", help="Its name in the archive; its own by default.")
    ] = None,
    writer: Annotated[
        str | None, typer.Option(help="Who ships it, kept beside each turn; the name by default.")
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ship the turns that the archive does not have.

    Turns that were erased here are erased there. Run it again at any time, and after an
    outage: nothing is lost or shipped twice.
    """
    from ebbtide.archives import identity_of, ship

    with (
        reading(store, namespace, settings_from(config), analysed=True) as memory,
        _opened(to, identity_of(memory)) as archive,
        _bar("turns") as progress,
    ):
        done = ship(memory, archive, namespace=name, writer=writer, progress=progress)
    if as_json:
        print_json({**done.to_dict(), "archive": archive.place})
        return
    write(
        f"{done.namespace!r}: {counted(done.shipped, 'turn')} shipped, {done.erased:,} erased; "
        f"{done.turns:,} in {archive.place}"
    )
    if done.waiting:
        write(f"still to be analysed: {counted(done.waiting, 'turn')}; push again later")


@app.command(epilog=_SEARCH)
def search(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question.")],
    source: FromOption,
    inside: InOption = None,
    limit: Annotated[int, typer.Option("--limit", "-k", min=1, help="Most turns.")] = 10,
    role: Annotated[str | None, typer.Option(help="Only turns of this role.")] = None,
    speaker: Annotated[str | None, typer.Option(help="Only turns by this speaker.")] = None,
    session: Annotated[str | None, typer.Option(help="Only turns of this session.")] = None,
    writer: Annotated[str | None, typer.Option(help="Only turns that this one shipped.")] = None,
    since: Annotated[str | None, typer.Option(help="Only turns from this time on.")] = None,
    until: Annotated[str | None, typer.Option(help="Only turns up to this time.")] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask everything that was archived: turns by cosine, with whose they are.

    The settings must name the model that the archived vectors were made with.
    """
    from ebbtide.archives import search_archive
    from ebbtide.memory import Memory

    filters = {
        "role": role,
        "speaker": speaker,
        "session_id": session,
        "writer": writer,
        "since": since,
        "until": until,
    }
    with (
        Memory.in_memory(config=settings_from(config)) as memory,
        _opened(source) as archive,
    ):
        found = search_archive(
            memory,
            archive,
            question,
            limit=limit,
            namespaces=inside or None,
            filters={name: value for name, value in filters.items() if value is not None},
        )
    if as_json:
        print_json({"question": question, "evidence": [one.to_dict() for one in found]})
        return
    for one in found:
        said = f"{one.turn.speaker or one.turn.role}: {one.turn.text}"
        when = f"[{one.turn.timestamp}] " if one.turn.timestamp else ""
        whose = one.namespace if one.writer == one.namespace else f"{one.namespace}, {one.writer}"
        where = f"({whose}, turn {one.turn.interaction_id})"
        write(plain(f"{one.rank}. {one.score:.3f} {where} {when}{said}"))
    if not found:
        write("nothing found")


@app.command(epilog=_STATUS)
def status(
    source: FromOption,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read every turn and check it against its hash.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Say what an archive holds: its namespaces, their turns and sums.

    Equal sums, equal contents, whatever the server.
    """
    from ebbtide.archives import Retry

    again = Retry()
    with _opened(source) as archive:
        rows = [_summary(archive, name, again) for name in again(archive.namespaces)]
        if verify:
            for row in rows:
                _read_all(archive, row["namespace"], again)
    identity = archive.identity
    if as_json:
        made = {"embedding": identity.embedding, "dimension": identity.dimension}
        print_json({"archive": archive.place, **made, "namespaces": rows})
        return
    write(f"{archive.place}: {identity.dimension} dimensions, {identity.embedding}")
    for row in rows:
        write(
            f"{row['namespace']!r}: {counted(row['turns'], 'turn')}, up to {row['cursor']:,}; "
            f"sum {row['sum'][:16]}"
        )


def _summary(archive: Archive, name: str, again: Retry) -> dict[str, Any]:
    from hashlib import sha256

    blocks = again(archive.inventory, name)
    return {
        "namespace": name,
        "turns": sum(block.count for block in blocks),
        "cursor": again(archive.cursor, name),
        "sum": sha256(b"".join(block.ids + block.content for block in blocks)).hexdigest(),
    }


def _read_all(archive: Archive, name: str, again: Retry) -> None:
    """Read every record; a damaged one raises the error that names it."""
    first = 0
    while page := again(archive.page, name, first, 256):
        first = page[-1].interaction_id + 1


@app.command(epilog=_PULL)
def pull(
    source: FromOption,
    namespace: ThereOption,
    store: StoreOption,
    name: Annotated[
        str | None, typer.Option("--as", help="Its name in the store; the same by default.")
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a memory of a namespace again.

    Its turns keep their ids and are analysed anew.
    """
    from ebbtide.archives import Retry
    from ebbtide.archives import pull as fetch
    from ebbtide.archives.pulling import source_of
    from ebbtide.store import Store

    with _opened(source) as archive:
        source_of(archive, namespace, Retry())  # before a store is made for it
        with (
            Store.open(store, config=settings_from(config)) as opened,
            _bar("turns") as progress,
        ):
            done = fetch(archive, opened, namespace, into=name, progress=progress)
    if as_json:
        print_json(done.to_dict())
    else:
        write(
            f"pulled {counted(done.turns, 'turn')} as {done.namespace!r}; digest {done.digest[:16]}"
        )


@app.command(epilog=_MIGRATE)
def migrate(
    source: FromOption, to: ToOption, inside: InOption = None, as_json: JsonOption = False
) -> None:
    """Copy an archive to another one, and compare the two.

    Goes on where it was interrupted. The source is not changed.
    """
    from ebbtide.archives import migrate as copy

    with (
        _opened(source) as old,
        _opened(to, old.identity) as new,
        _bar("records") as progress,
    ):
        done = copy(old, new, namespaces=inside or None, progress=progress)
    if as_json:
        print_json({"namespaces": [one.to_dict() for one in done]})
        return
    for one in done:
        write(
            f"{one.namespace!r}: {one.copied:,} records copied, {one.erased:,} erased; "
            f"{one.records:,} in both, sums equal"
        )


@app.command(epilog=_ERASE)
def erase(
    source: FromOption,
    namespace: ThereOption,
    yes: Annotated[bool, typer.Option("--yes", help="Do it.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Erase a namespace from an archive.

    The memory that it was pushed from is not touched, and may be pushed again.
    """
    from ebbtide.archives import Retry
    from ebbtide.archives.base import not_there

    if not yes:
        raise typer.BadParameter("it cannot be undone: add --yes")
    again = Retry()
    with _opened(source) as archive:
        there = again(archive.namespaces)
        if namespace not in there:
            raise not_there(archive.place, namespace, there)
        erased = again(archive.delete_namespace, namespace)
    if as_json:
        print_json({"namespace": namespace, "erased": erased})
    else:
        write(f"erased {namespace!r}: {counted(erased, 'turn')}")
