"""``ebbtide export``, ``load``, ``backup`` and ``doctor``: keeping a store safe."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from ebbtide.cli.output import print_json, write
from ebbtide.messages import counted

if TYPE_CHECKING:
    from ebbtide.config import Config
    from ebbtide.store import Store

__all__ = [
    "BACKUP_EXAMPLES",
    "DOCTOR_EXAMPLES",
    "EXPORT_EXAMPLES",
    "LOAD_EXAMPLES",
    "backup",
    "doctor",
    "export",
    "load",
]

EXPORT_EXAMPLES = examples("ebbtide export --store memory.db --namespace ana ana.jsonl")
LOAD_EXAMPLES = examples(
    "ebbtide load --store other.db ana.jsonl",
    "ebbtide load --store memory.db ana.jsonl --namespace ana-copy",
)
BACKUP_EXAMPLES = examples("ebbtide backup --store memory.db memory-2026-01-31.db")
DOCTOR_EXAMPLES = examples(
    "ebbtide doctor --store memory.db", "ebbtide doctor --store memory.db --repair"
)

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")]
SourceArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="What `ebbtide export` wrote.")
]


def export(
    file: FileArgument,
    store: StoreOption,
    namespace: NamespaceOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write one memory to a file of JSON Lines.

    It holds everything, what was derived from the turns too. `ebbtide load` reads it into
    another store, where its digest is the same. It takes the place of an earlier export,
    and of no other file.
    """
    with reading(store, namespace, settings_from(config), analysed=True) as memory:
        rows = memory.export(file)
        done = {"namespace": memory.namespace, "rows": rows, "digest": memory.digest()}
    if as_json:
        print_json({**done, "file": str(file)})
    else:
        write(f"wrote {done['namespace']!r}: {rows:,} rows; digest {str(done['digest'])[:16]}")


def load(
    file: SourceArgument,
    store: StoreOption,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Its name there; its own by default.")
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read a memory that `ebbtide export` wrote.

    All of it goes into the store, or nothing.
    """
    with _written(store, settings_from(config)) as opened:
        memory = opened.load(file, namespace=namespace)
        name, turns, digest = memory.namespace, len(memory), memory.digest()
    if as_json:
        print_json({"namespace": name, "turns": turns, "digest": digest})
    else:
        write(f"loaded {counted(turns, 'turn')} as {name!r}; digest {digest[:16]}")


@contextmanager
def _written(store: Path, settings: Config) -> Iterator[Store]:
    """A store to write to; one that was made here and stayed empty is removed."""
    from ebbtide.store import Store

    # Where one may not look, opening says so.
    new, empty = not os.path.exists(store), False  # noqa: PTH110
    try:
        with Store.open(store, config=settings) as opened:
            try:
                yield opened
            finally:
                empty = not opened.namespaces()
    finally:
        # Another process that has it open by now has made its write-ahead log.
        if new and empty and not Path(f"{store}-wal").exists():
            for ending in ("", ".lock"):
                Path(f"{store}{ending}").unlink(missing_ok=True)


def backup(file: FileArgument, store: StoreOption, as_json: JsonOption = False) -> None:
    """Copy a store into a new file.

    The copy is one state of it, though others read and write the store meanwhile.
    """
    from ebbtide.store import Store

    with Store.open(store, read_only=True) as opened:
        opened.backup(file)
    size = file.stat().st_size
    if as_json:
        print_json({"file": str(file), "bytes": size})
    else:
        write(f"copied {store} to {file}: {size:,} bytes")


def doctor(
    store: StoreOption,
    repair: Annotated[
        bool, typer.Option("--repair", help="Rebuild derived data that is damaged.")
    ] = False,
    erase_damaged_turns: Annotated[
        bool,
        typer.Option(
            "--erase-damaged-turns", help="With --repair, give up turns that are damaged."
        ),
    ] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read a whole store and tell what is wrong with it.

    What was derived can be rebuilt with --repair. The turns themselves cannot: for
    those, take the last backup, or give them up with --erase-damaged-turns, so that the
    others can be read. Exits with 1 where something is wrong.
    """
    from dataclasses import asdict

    from ebbtide.store import Store

    if erase_damaged_turns and not repair:
        raise typer.BadParameter("it goes with --repair", param_hint="--erase-damaged-turns")
    with Store.open(store, config=settings_from(config), read_only=not repair) as opened:
        found = opened.repair(erase_damaged_turns=erase_damaged_turns) if repair else opened.check()
        names = opened.namespaces()
    if as_json:
        print_json({"memories": names, "findings": [asdict(one) for one in found]})
    else:
        for one in found:
            place = "" if one.namespace is None else f"{one.namespace!r}"
            if one.interaction_id is not None:
                place += f", turn {one.interaction_id}"
            write(f"{place or 'the file'}: {one.what}")
        repairable = sum(one.repairable for one in found)
        if not found:
            memories = "1 memory" if len(names) == 1 else f"{len(names)} memories"
            write(f"{store}: nothing wrong in {memories}")
        elif repairable:
            write(f"{repairable} of {len(found)} can be put right: run it again with --repair")
        else:
            write("the turns themselves are damaged: go back to a backup")
    if found:
        raise typer.Exit(1)
