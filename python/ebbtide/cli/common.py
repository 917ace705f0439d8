"""What commands share: options, settings, and opening the memory that is meant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ebbtide.cli.output import stderr

if TYPE_CHECKING:
    from ebbtide.config import Config
    from ebbtide.memory import Memory

__all__ = [
    "By",
    "ByOption",
    "ConfigOption",
    "JsonOption",
    "NamespaceOption",
    "PresetOption",
    "StoreOption",
    "TokenBudgetOption",
    "TurnArgument",
    "chosen",
    "examples",
    "memory_name",
    "reading",
    "settings_from",
    "turn_id",
]


class By(StrEnum):
    """How a turn is named."""

    ID = "id"
    EXTERNAL = "external"


StoreOption = Annotated[Path, typer.Option("--store", "-s", help="The store file.")]
NamespaceOption = Annotated[
    str | None,
    typer.Option(
        "--namespace", "-n", help="Which memory of the store; needed where it holds several."
    ),
]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", "-c", help="Settings, as a TOML file.")
]
PresetOption = Annotated[
    str | None, typer.Option("--preset", help="Settings to start from: default or paper.")
]
TokenBudgetOption = Annotated[
    int | None, typer.Option("--token-budget", help="Most tokens of the active memory.")
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON document; errors too, on standard error.")
]
TurnArgument = Annotated[
    str, typer.Argument(metavar="ID", help="Interaction id (a number) or external id.")
]
ByOption = Annotated[
    By | None, typer.Option("--by", help="Which of the two ID is, where a number may be both.")
]

_DIGITS = 18
"""Of an interaction id, at most; more is a text."""


def examples(*lines: str) -> str:
    """The end of a help text; the mark in front keeps the lines from being joined."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def settings_from(
    config: Path | None, preset: str | None = None, token_budget: int | None = None
) -> Config:
    """The configuration that the options describe."""
    from ebbtide.config import Config

    settings = (
        Config.load(config, preset=preset or "default") if config else Config(preset or "default")
    )
    if token_budget is None:
        return settings
    return settings.replace(capacity={"token_budget": token_budget})


def chosen(store: Path, names: Sequence[str], named: str | None) -> str:
    """The memory that is meant: the named one, or the only one there is.

    Raises:
        NotFoundError: Listing the memories that there are.
    """
    from ebbtide.errors import NotFoundError

    if named is None and len(names) == 1:
        return names[0]
    if named is not None and named in names:
        return named
    listed = ", ".join(repr(name) for name in names)
    if not names:
        message = f"the store {store} holds no memory yet; `ebbtide replay` fills one"
    elif named is None:
        message = f"the store holds {len(names)} memories, choose one with --namespace: {listed}"
    else:
        message = f"the store has no memory {named!r}; --namespace takes one of: {listed}"
    raise NotFoundError(message, "not_found.namespace")


def memory_name(store: Path, named: str | None) -> str:
    """The memory of a store that is meant, before it is opened for writing."""
    from ebbtide.config import Config
    from ebbtide.opened import open_handle

    handle = open_handle(store, Config(), read_only=True)
    try:
        return chosen(store, handle.namespaces(), named)
    finally:
        handle.close()


@contextmanager
def reading(
    store: Path, named: str | None, settings: Config, *, analysed: bool = False
) -> Iterator[Memory]:
    """A memory opened for reading: works beside a writer and creates nothing.

    Args:
        store: The store file.
        named: Which memory, or None for the only one.
        settings: The configuration.
        analysed: Turns that wait for their analysis get it first, which takes
            opening for writing. Where another process has the store open, that
            one sees to it, and the rest is read.
    """
    from ebbtide.errors import StoreError
    from ebbtide.memory import Memory
    from ebbtide.store import Store

    with Store.open(store, config=settings, read_only=True) as opened:
        name = chosen(store, opened.namespaces(), named)
        memory = opened.memory(name)
        pending = memory.stats()["pending"] if analysed else 0
        if not pending:
            yield memory
            return
    try:
        memory = Memory.open(store, namespace=name, config=settings)
    except StoreError as error:
        if error.code != "store.locked":
            raise
        stderr().print(f"note: {pending} turns are still being analysed by another process")
        memory = Memory.open(store, namespace=name, config=settings, read_only=True)
    with memory:
        yield memory


def turn_id(memory: Memory, name: str, by: By | None) -> int:
    """The interaction id of the turn that is named on the command line.

    Raises:
        NotFoundError: If there is no such turn.
        InputError: If a number names two turns.
    """
    from ebbtide.errors import InputError, NotFoundError

    number = int(name) if name.isascii() and name.isdecimal() and len(name) <= _DIGITS else None
    found: dict[By, int] = {}
    for kind in By:
        if by not in (None, kind) or (kind is By.ID and number is None):
            continue
        try:
            turn = memory.get(number) if kind is By.ID else memory.get(external_id=name)
        except NotFoundError:
            continue
        assert turn.interaction_id is not None
        found[kind] = turn.interaction_id
    if not found:
        message = f"the memory {memory.namespace!r} has no turn with the id {name!r}"
        raise NotFoundError(message, "not_found.turn")
    if len(set(found.values())) > 1:
        message = (
            f"{name} is the interaction id of one turn and the external id of turn "
            f"{found[By.EXTERNAL]}; say which with --by id or --by external"
        )
        raise InputError(message, "input.field")
    return next(iter(found.values()))
