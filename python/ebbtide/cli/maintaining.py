"""``ebbtide delete`` and ``ebbtide reindex``: changing a store that is there."""

from __future__ import annotations

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
from ebbtide.cli.output import print_json, write

__all__ = ["DELETE_EXAMPLES", "REINDEX_EXAMPLES", "delete", "reindex"]

DELETE_EXAMPLES = examples(
    "ebbtide delete --store memory.db s1:26", "ebbtide delete --store memory.db 25 --by id"
)
REINDEX_EXAMPLES = examples(
    "ebbtide reindex --store memory.db",
    "ebbtide reindex --store memory.db --config other-model.toml",
)


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
        write(f"read {done} turns of {name!r} anew; digest {digest[:16]}")
