"""``ebbtide delete``, ``forget``, ``retain`` and ``reindex``: changing a store that is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ebbtide.cli.common import (
    ByOption,
    ConfigOption,
    JsonOption,
    NamespaceOption,
    PresetOption,
    StoreOption,
    TokenBudgetOption,
    TurnArgument,
    examples,
    memory_name,
    settings_from,
    turn_id,
)
from ebbtide.cli.output import plain, print_json, write
from ebbtide.messages import counted

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ebbtide.memory import Memory
    from ebbtide.types import Turn

__all__ = [
    "DELETE_EXAMPLES",
    "FORGET_EXAMPLES",
    "REINDEX_EXAMPLES",
    "RETAIN_EXAMPLES",
    "delete",
    "forget",
    "reindex",
    "retain",
]

DELETE_EXAMPLES = examples(
    "ebbtide delete --store memory.db s1:26", "ebbtide delete --store memory.db 25 --by id"
)
FORGET_EXAMPLES = examples(
    'ebbtide forget --store memory.db "my landlord"',
    'ebbtide forget --store memory.db "my landlord" --limit 5 --yes',
    "ebbtide forget --store memory.db --id s1:26 --id s1:27 --yes",
    "ebbtide forget --store memory.db --before 2024-01-01 --yes",
    "ebbtide forget --store memory.db --namespace ana --all --yes",
)
RETAIN_EXAMPLES = examples(
    "ebbtide retain --store memory.db --max-records 10000",
    "ebbtide retain --store memory.db --max-age-days 365 --now 2026-01-31 --yes",
)
REINDEX_EXAMPLES = examples(
    "ebbtide reindex --store memory.db",
    "ebbtide reindex --store memory.db --config other-model.toml",
)

YesOption = Annotated[
    bool, typer.Option("--yes", "-y", help="Erase them; without it, they are only shown.")
]

_SHOWN = 100
"""Characters of a turn's text, at most."""


def delete(
    turn: TurnArgument,
    store: StoreOption,
    namespace: NamespaceOption = None,
    by: ByOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Erase one turn for good.

    Its text goes, with everything derived from it, and its place in the file is
    overwritten.
    """
    from ebbtide.memory import Memory

    settings = settings_from(config)
    name = memory_name(store, namespace)
    with Memory.open(store, namespace=name, config=settings) as memory:
        number = turn_id(memory, turn, by)
        external = memory.get(number).external_id
        memory.delete(number)
    if as_json:
        deleted = {"interaction_id": number, "external_id": external}
        print_json({"namespace": name, "deleted": deleted})
    else:
        write(f"erased turn {number} of {name!r}")


def forget(
    store: StoreOption,
    question: Annotated[
        str | None, typer.Argument(metavar="QUESTION", help="Erase what answers it.")
    ] = None,
    ids: Annotated[
        list[str] | None,
        typer.Option("--id", help="Or the turn of this id; may be given several times."),
    ] = None,
    by: ByOption = None,
    limit: Annotated[int, typer.Option(min=1, help="With a question, how many at most.")] = 1,
    before: Annotated[
        str | None, typer.Option(help="Only turns whose own time is earlier.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="The whole memory, and its name; needs no models.")
    ] = False,
    yes: YesOption = False,
    namespace: NamespaceOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show turns meant by a question, ids or a time; erase with --yes.

    Erased as `ebbtide delete` does it. A question always finds something: look before
    you say --yes.
    """
    if everything:
        if question is not None or ids or before is not None:
            raise typer.BadParameter("--all goes with neither a question, --id nor --before")
        _forget_all(store, namespace, yes=yes, as_json=as_json)
        return
    if question is None and not ids and before is None:
        raise typer.BadParameter("say which turns: a question, --id or --before; or --all")

    def gone(memory: Memory) -> list[Turn]:
        numbers = [turn_id(memory, one, by) for one in ids] if ids else None
        return memory.forget(question, ids=numbers, limit=limit, before=before, dry_run=not yes)

    _erasing(store, namespace, config, gone, yes=yes, as_json=as_json)


def retain(
    store: StoreOption,
    max_age_days: Annotated[
        float | None, typer.Option(help="Erase turns that are older, by their own time.")
    ] = None,
    max_records: Annotated[
        int | None, typer.Option(min=1, help="Keep so many turns, the last ones.")
    ] = None,
    now: Annotated[
        str | None, typer.Option(help="What age is reckoned from; needed with --max-age-days.")
    ] = None,
    yes: YesOption = False,
    namespace: NamespaceOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show turns past a greatest age or number; erase them with --yes.

    Nothing of the kind happens by itself. A turn without a time has no age.
    """
    if max_age_days is None and max_records is None:
        raise typer.BadParameter("say how much stays: --max-age-days, --max-records or both")
    if max_age_days is not None and now is None:
        message = "--max-age-days needs --now, the moment that age is reckoned from"
        raise typer.BadParameter(message)

    def gone(memory: Memory) -> list[Turn]:
        age = None if max_age_days is None else max_age_days * 86_400
        return memory.retain(max_age=age, max_records=max_records, now=now, dry_run=not yes)

    _erasing(store, namespace, config, gone, yes=yes, as_json=as_json)


def _erasing(
    store: Path,
    namespace: str | None,
    config: Path | None,
    gone: Callable[[Memory], list[Turn]],
    *,
    yes: bool,
    as_json: bool,
) -> None:
    """Run it on a memory, opened for writing only where it shall write, and tell of it."""
    from ebbtide.memory import Memory

    settings = settings_from(config)
    name = memory_name(store, namespace)
    with Memory.open(store, namespace=name, config=settings, read_only=not yes) as memory:
        turns = gone(memory)
        left = len(memory)
    if as_json:
        rows = [turn.to_dict() for turn in turns]
        print_json({"namespace": name, "erased": yes, "turns": rows, "left": left})
        return
    for turn in turns:
        said = turn.text if len(turn.text) <= _SHOWN else turn.text[: _SHOWN - 1] + "…"
        line = f"{turn.interaction_id}  {turn.speaker or turn.role}: {' '.join(said.split())}"
        write(plain(line))
    count = counted(len(turns), "turn")
    if yes:
        write(f"erased {count} of {name!r}; {left} left")
    elif turns:
        write(f"{count} of {name!r} would be erased: say so with --yes")
    else:
        write(f"no turn of {name!r} would be erased")


def _forget_all(store: Path, namespace: str | None, *, yes: bool, as_json: bool) -> None:
    """Erase a memory, also one that the models of now could not open."""
    from ebbtide.store import Store

    name = memory_name(store, namespace)
    if yes:
        with Store.open(store) as opened:
            opened.delete(name)
    if as_json:
        print_json({"namespace": name, "erased": yes})
    elif yes:
        write(f"erased the memory {name!r}")
    else:
        write(f"the memory {name!r} would be erased, whole: say so with --yes")


def reindex(
    store: StoreOption,
    namespace: NamespaceOption = None,
    config: ConfigOption = None,
    preset: PresetOption = None,
    token_budget: TokenBudgetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rebuild everything derived with the models and settings of now.

    It takes the options that the store was filled with, or new ones. The turns
    themselves stay as they are. Interrupted, it goes on at the next use.
    """
    from ebbtide.cli.progress import progress_bar
    from ebbtide.memory import Memory

    settings = settings_from(config, preset, token_budget)
    name = memory_name(store, namespace)
    with (
        Memory.open(store, namespace=name, config=settings, reindexing=True) as memory,
        progress_bar() as bar,
    ):
        task = bar.add_task("reindex", total=len(memory), note="")
        done = memory.reindex(progress=lambda turns: bar.update(task, completed=turns))
        digest = memory.digest()
    if as_json:
        print_json({"namespace": name, "turns": done, "digest": digest})
    else:
        write(f"read {counted(done, 'turn')} of {name!r} anew; digest {digest[:16]}")
