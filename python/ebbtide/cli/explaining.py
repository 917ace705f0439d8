"""``ebbtide explain`` and ``ebbtide stats``: what a memory holds, and why."""

from __future__ import annotations

from ebbtide.cli.common import (
    ByOption,
    ConfigOption,
    JsonOption,
    NamespaceOption,
    StoreOption,
    TurnArgument,
    examples,
    reading,
    settings_from,
    turn_id,
)
from ebbtide.cli.output import print_json, stdout

__all__ = ["EXPLAIN_EXAMPLES", "STATS_EXAMPLES", "explain", "stats"]

EXPLAIN_EXAMPLES = examples(
    "ebbtide explain --store memory.db 26", "ebbtide explain --store memory.db s1:26"
)
STATS_EXAMPLES = examples(
    "ebbtide stats --store memory.db", "ebbtide stats --store memory.db --namespace ana --json"
)


def explain(
    turn: TurnArgument,
    store: StoreOption,
    namespace: NamespaceOption = None,
    by: ByOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """The life of one turn, and why it is where it is.

    What was read in it, its Survival Score, every decision about it, and the
    turns that it corrects or that correct it.
    """
    with reading(store, namespace, settings_from(config)) as memory:
        life = memory.explain(turn_id(memory, turn, by))
    if as_json:
        print_json(life)
        return
    from ebbtide.cli import show

    show.life(stdout(), life)


def stats(
    store: StoreOption,
    namespace: NamespaceOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """A memory in numbers, and the digest of its state."""
    with reading(store, namespace, settings_from(config)) as memory:
        numbers = {**memory.stats(), "digest": memory.digest()}
    numbers["store"] = str(store)
    numbers["bytes"] = store.stat().st_size
    if as_json:
        print_json(numbers)
        return
    from ebbtide.cli import show

    stdout().print(show.table_of(numbers))
