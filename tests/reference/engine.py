"""The engine's active memory, replayed naively from recorded scores.

Written from the paper (sections 7 and 9.1) as plainly as it can be: lists, no
caches, the argmin taken anew for each eviction. The engine must decide the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Recorded", "Reference", "recorded_from"]

SUPPRESSING = ("supersedes", "corrects", "invalidates")


@dataclass(frozen=True)
class Recorded:
    """What the replay needs of a turn.

    Attributes:
        said: What the turn states: topic, kind, value, whether it is denied.
        suppresses: (older id, topic) pairs that it takes over when it arrives;
            an empty topic means the whole turn.
    """

    interaction_id: int
    tokens: int
    omega: float
    signals: frozenset[str]
    said: frozenset[tuple[str, str, str, bool]] = frozenset()
    suppresses: tuple[tuple[int, str], ...] = ()


def recorded_from(life: Mapping[str, Any]) -> Recorded:
    """From what ``memory.explain`` says of a turn whose claims all name their topic."""
    claims = life["signals"]["claims"]
    return Recorded(
        interaction_id=life["turn"]["interaction_id"],
        tokens=life["turn"]["tokens"],
        omega=life["score"]["omega"],
        signals=frozenset(life["signals"]["conversational"]),
        said=frozenset(
            (f"{c['subject']}\x1f{c['identity']}", c["kind"], c["value"], c["negated"])
            for c in claims
            if c["identity"]
        ),
        suppresses=tuple(
            (edge["older"], edge["topic"])
            for edge in life["older"]
            if edge["relation"] in SUPPRESSING
        ),
    )


@dataclass
class Reference:
    """Replays insertions; ``evicted`` lists what each of them archived, in order."""

    config: Mapping[str, Mapping[str, Any]]
    turns: dict[int, Recorded] = field(default_factory=dict)
    active: list[int] = field(default_factory=list)
    taken_over: dict[int, set[tuple[str, int]]] = field(default_factory=dict)

    def effective(self, interaction_id: int, newest: int) -> float:
        """Eq. 15 and 18."""
        decay = self.config["temporal_decay"]
        omega = self.turns[interaction_id].omega
        rate = decay["lambda_base"] * (1 - decay["inertia_strength"] * omega)
        return omega * math.exp(-rate * (newest - interaction_id))

    def superseded(self, interaction_id: int) -> bool:
        """Taken over as a whole, or on every topic that the takers do not say the same on."""
        taken = self.taken_over.get(interaction_id, set())
        said = self.turns[interaction_id].said
        again = {item for _, newer in taken for item in said & self.turns[newer].said}
        over = {topic for topic, _ in taken} | {topic for topic, *_ in again}
        return "" in over or bool(taken and said and {topic for topic, *_ in said} <= over)

    def prune_score(self, interaction_id: int, newest: int) -> float:
        """Eq. 23 to 25."""
        weights = self.config["pruning_priority"]
        bonus = 0.0
        for name in ("constraint", "preference", "current_state", "correction", "replacement"):
            if name in self.turns[interaction_id].signals:
                bonus += weights[f"rho_{name}"]
        penalty = weights["superseded_past_penalty"] if self.superseded(interaction_id) else 0.0
        return self.effective(interaction_id, newest) + (bonus - penalty)

    def tokens(self) -> int:
        return sum(self.turns[i].tokens for i in self.active)

    def insert(self, turn: Recorded) -> list[tuple[int, str]]:
        """One insertion: lineage, sweep, then pruning until the budget is met."""
        newest = turn.interaction_id
        self.turns[newest] = turn
        self.active.append(newest)
        for older, topic in turn.suppresses:
            self.taken_over.setdefault(older, set()).add((topic, newest))
        evicted: list[tuple[int, str]] = []
        if (newest + 1) % self.config["capacity"]["pruning_frequency_x"] == 0:
            floor = self.config["temporal_decay"]["hard_kill_threshold"]
            for i in [i for i in self.active if self.effective(i, newest) < floor]:
                self.active.remove(i)
                evicted.append((i, "hard_kill"))
        while self.tokens() > self.config["capacity"]["token_budget"]:
            victim = self._victim(newest)
            if victim is None:
                break
            self.active.remove(victim)
            evicted.append((victim, "budget"))
        return evicted

    def _victim(self, newest: int) -> int | None:
        capacity = self.config["capacity"]
        free = [i for i in self.active if i <= newest - capacity["protect_last"]]
        healthy = self.config["memory_tiers"]["healthy_min"]
        candidates = [i for i in free if self.effective(i, newest) <= healthy]
        if not candidates and capacity["when_only_healthy"] == "evict_lowest":
            candidates = free
        if not candidates:
            return None
        return min(candidates, key=lambda i: (self.prune_score(i, newest), i))

    def replay(self, turns: Sequence[Recorded]) -> list[list[tuple[int, str]]]:
        return [self.insert(turn) for turn in turns]
