"""What the active memory held after each insertion, from the log of decisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any

from ebbtide.inspection.life import Decay

__all__ = ["TIERS", "Series"]

TIERS = ("healthy", "unstable", "critical")
_GONE = ("evict_kill", "evict_budget")


class Series:
    """Tokens and tiers of the active memory over its insertions.

    Read from the decisions that are stored, so turns that were erased are not in it.

    Args:
        first: The interaction id that the series begins with.
        last: The one that it ends with.
        decay: Settings that give a turn the tier it enters with.
    """

    def __init__(self, first: int, last: int, decay: Decay) -> None:
        self._first = first
        self._decay = decay
        length = max(last - first + 1, 0)
        # Changes by insertion; their running sums are the series.
        self._changes = {name: [0] * length for name in ("tokens", "evicted", *TIERS)}

    def take(self, life: Mapping[str, Any]) -> None:
        """Count one turn, as :meth:`Memory.explain` tells its life."""
        if "score" not in life:
            return
        decisions = life["decisions"]
        if any(d["kind"] == "skip" for d in decisions):
            return
        number, tokens = life["turn"]["interaction_id"], life["turn"]["tokens"]
        tier = self._decay.tier(life["score"]["omega"])
        self._add("tokens", number, tokens)
        self._add(tier, number, 1)
        for decision in decisions:
            if decision["kind"] == "tier":
                self._add(tier, decision["at"], -1)
                tier = decision["detail"]["to"]
                self._add(tier, decision["at"], 1)
            elif decision["kind"] in _GONE:
                self._add(tier, decision["at"], -1)
                self._add("tokens", decision["at"], -tokens)
                self._add("evicted", decision["at"], 1)
                return

    def _add(self, name: str, at: int, change: int) -> None:
        changes = self._changes[name]
        place = max(at - self._first, 0)
        if place >= len(changes) or (name == "evicted" and at < self._first):
            return
        changes[place] += change

    def to_dict(self) -> dict[str, Any]:
        """``first`` and one list a quantity, an entry an insertion."""
        found: dict[str, Any] = {"first": self._first}
        for name, changes in self._changes.items():
            found[name] = changes if name == "evicted" else _running(changes)
        return found


def _running(changes: Iterable[int]) -> list[int]:
    return list(accumulate(changes))
