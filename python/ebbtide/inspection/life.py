"""One turn as the page shows it: what was read in it, how it faded, why it stands where it does."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ebbtide.config import Config
from ebbtide.moments import stored_moment

__all__ = ["FATES", "Decay", "row_of", "words_of"]

FATES = ("healthy", "unstable", "critical", "hard_kill", "budget", "skip", "archived", "pending")
"""Where a turn may stand: a tier of the active memory, how it left, or still to be analysed."""

_LEAVES = {"evict_kill": "hard_kill", "evict_budget": "budget", "skip": "skip"}
_GATE_KINDS = {
    "skip": "kept out of recall by the gate",
    "construct": "noted by the gate",
    "evolve": "noted and linked by the gate",
}


@dataclass(frozen=True, slots=True)
class Decay:
    """The settings of decay and eviction that sentences and curves are made from.

    Attributes:
        base: λ, decay rate per newer turn.
        inertia: η, in [0, 1).
        floor: Ω_eff below which a sweep archives a turn.
        healthy_min: Healthy strictly above it.
        critical_max: Critical at or below it.
        sweep_every: Insertions between two sweeps.
        token_budget: Most tokens of the active memory.
    """

    base: float
    inertia: float
    floor: float
    healthy_min: float
    critical_max: float
    sweep_every: int
    token_budget: int

    @classmethod
    def of(cls, config: Config) -> Decay:
        """Those of a configuration."""
        decay, tiers = config["temporal_decay"], config["memory_tiers"]
        capacity = config["capacity"]
        return cls(
            base=decay["lambda_base"],
            inertia=decay["inertia_strength"],
            floor=decay["hard_kill_threshold"],
            healthy_min=tiers["healthy_min"],
            critical_max=tiers["critical_max"],
            sweep_every=capacity["pruning_frequency_x"],
            token_budget=capacity["token_budget"],
        )

    def rate(self, omega: float) -> float:
        """λ·(1 − η·Ω) of eq. 18."""
        return self.base * (1.0 - self.inertia * omega)

    def effective(self, omega: float, newer: int) -> float:
        """Ω_eff after so many newer turns (eq. 18)."""
        return omega * math.exp(-self.rate(omega) * newer)

    def tier(self, effective: float) -> str:
        """Tier of an effective score (eq. 20)."""
        if effective > self.healthy_min:
            return "healthy"
        return "critical" if effective <= self.critical_max else "unstable"

    def life(self, omega: float) -> int | None:
        """Newer turns until Ω_eff is below the floor; None if that never comes."""
        rate = self.rate(omega)
        if rate <= 0.0 or self.floor <= 0.0:
            return None
        if omega < self.floor:
            return 0
        return math.floor(math.log(omega / self.floor) / rate) + 1

    def reach(self) -> int | None:
        """Most newer turns that any turn sees while it is active; None without a limit."""
        life = self.life(1.0)
        return None if life is None else life + self.sweep_every


def row_of(life: Mapping[str, Any], decay: Decay) -> dict[str, Any]:
    """A turn's life, as :meth:`Memory.explain` tells it, reduced to what is shown."""
    turn = life["turn"]
    row = _turn(turn)
    if "score" not in life:
        return {**row, "fate": "pending", "why": "It waits for its analysis."}
    omega, rate = life["score"]["omega"], decay.rate(life["score"]["omega"])
    decisions = life["decisions"]
    left = next((d for d in reversed(decisions) if d["kind"] in _LEAVES), None)
    if turn["state"] == "active":
        fate, effective = life["now"]["tier"], life["now"]["effective"]
    else:
        fate = "archived" if left is None else _LEAVES[left["kind"]]
        effective = None if left is None else left["detail"].get("effective")
    row |= {
        "fate": fate,
        "why": _why(life, fate, left, decay),
        "left_at": None if left is None or turn["state"] == "active" else left["at"],
        "omega": _short(omega),
        "omega_raw": _short(life["score"]["omega_raw"]),
        "rate": rate,
        "half_life": None if rate <= 0.0 else _short(math.log(2.0) / rate),
        "effective": _short(effective),
        "score": _score(life["score"]),
        "older": [_relation(edge, edge["older"]) for edge in life["older"]],
        "newer": [_relation(edge, edge["newer"]) for edge in life["newer"]],
        "decisions": [{"at": d["at"], "kind": d["kind"], "words": words_of(d)} for d in decisions],
        "cards": [_card(held) for held in life["cards"]],
        **_read(life["signals"]),
    }
    for name in ("gate", "recurrence"):
        if name in life:
            row[name] = _rounded(life[name])
    return row


def _turn(turn: Mapping[str, Any]) -> dict[str, Any]:
    moment = stored_moment(turn)
    names = ("external_id", "role", "speaker", "timestamp", "session_id", "tokens", "text")
    return {
        "id": turn["interaction_id"],
        **{name: turn[name] for name in names},
        "day": None if moment is None else moment.strftime("%Y-%m-%d"),
        "time": None if moment is None else moment.strftime("%H:%M"),
        "state": turn["state"],
        "validity": turn["validity"],
    }


def _score(score: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The terms that add up to what the sigmoid is taken of (eq. 8-12)."""
    terms = {
        **score["terms"],
        "operational": score["z_op"],
        "provenance": score["z_prov"],
        "midpoint": -score["midpoint"],
    }
    return [{"name": name, "value": _short(value)} for name, value in terms.items()]


def _read(signals: Mapping[str, Any]) -> dict[str, Any]:
    cues: dict[str, list[str]] = {}
    for cue in signals["cues"]:
        held = cues.setdefault(cue["signal"], [])
        if cue["text"] not in held:
            held.append(cue["text"])
    return {
        "measures": {
            name: _short(signals[name])
            for name in ("density", "sentiment", "entity_count", "divergence")
        },
        "signals": signals["conversational"],
        "cues": cues,
        "entities": [f"{e['text']} ({e['label']})" for e in signals["entities"]],
        "claims": [
            {key: c[key] for key in ("kind", "subject", "identity", "value", "negated")}
            for c in signals["claims"]
        ],
        "times": [f"{t['text']} = {t['words']}" for t in signals["times"]],
    }


def _card(held: Mapping[str, Any]) -> dict[str, Any]:
    names = ("kind", "subject", "predicate", "object", "negated", "temporal")
    return {**{name: held["card"][name] for name in names}, "validity": held["validity"]}


def _relation(edge: Mapping[str, Any], other: int) -> dict[str, Any]:
    return {
        "turn": other,
        "relation": edge["relation"],
        "topic": topic_words(edge["topic"]),
        "by_caller": edge["by_caller"],
    }


def topic_words(topic: str | None) -> str:
    """A topic for people: between its parts stands a unit separator."""
    return ": ".join((topic or "").split("\x1f"))


def _why(life: Mapping[str, Any], fate: str, left: Mapping[str, Any] | None, decay: Decay) -> str:
    """In one or two sentences, why the turn is where it is."""
    if life["turn"]["state"] == "active":
        said = _stays(life, decay)
    elif left is None:
        said = "It is archived; the log does not say why."
    else:
        said = _went(fate, left)
    if life["turn"]["validity"] != "current":
        by = [e for e in life["newer"] if e["relation"] != "conflicts_with"]
        ends = {"superseded": "supersedes", "corrected": "corrects", "invalidated": "invalidates"}
        done = ends.get(life["turn"]["validity"], "replaces")
        who = f": turn {by[-1]['newer']} {done} it" if by else ""
        said += f" It no longer stands{who}."
    return said


def _stays(life: Mapping[str, Any], decay: Decay) -> str:
    now, omega = life["now"], life["score"]["omega"]
    newer = now["newer_turns"]
    said = (
        f"In the active memory: its effective score is {now['effective']:.2f} after "
        f"{_turns(newer, 'newer ')}, which is {now['tier']}."
    )
    whole = decay.life(omega)
    if whole is None:
        return f"{said} It never decays below the floor."
    return f"{said} By decay alone it has {_turns(max(whole - newer, 0))} left."


def _went(fate: str, left: Mapping[str, Any]) -> str:
    at, detail = left["at"], left["detail"]
    if fate == "hard_kill":
        return (
            f"Archived after turn {at}: its effective score had decayed to "
            f"{detail['effective']:.4f}, below the floor of {detail['threshold']:g}."
        )
    if fate == "budget":
        return (
            f"Archived after turn {at}: the active memory held more than {detail['budget']:,} "
            f"tokens, and this turn had the least priority, {detail['score']:.2f} = effective "
            f"{detail['effective']:.2f} + bonus {detail['bonus']:.2f} − penalty "
            f"{detail['penalty']:.2f}."
        )
    return (
        f"Kept out of recall by the gate: {detail['lifecycle'].replace('_', ' ')} "
        f"({detail['reason'].replace('_', ' ')}), RPE {detail['rpe']:.2f}."
    )


def words_of(decision: Mapping[str, Any]) -> str:
    """One line of the log in words."""
    kind: str = decision["kind"]
    detail = decision["detail"]
    if kind == "tier":
        return f"{detail['from']} → {detail['to']} (at {detail['effective']:.2f})"
    if kind in _LEAVES and kind != "skip":
        why = "too weak to stay" if kind == "evict_kill" else "the token budget was full"
        return f"archived: {why} (at {detail['effective']:.4f})"
    if kind in ("supersede", "relate"):
        about = f" on {detail['topic']}" if detail.get("topic") else ""
        return f"turn {detail['by']} {detail['relation'].replace('_', ' ')} it{about}"
    if kind == "over_budget":
        return f"{detail['tokens']:,} tokens over the budget; no rule may evict more"
    if kind in _GATE_KINDS:
        return f"{_GATE_KINDS[kind]} (RPE {detail['rpe']:.2f}, {detail['reason']})"
    return kind.replace("_", " ")


def _turns(count: int, what: str = "") -> str:
    words = f"{count:,}" if count else "no"
    return f"{words} {what}turn{'' if count == 1 else 's'}"


def _short(value: float | None) -> float | None:
    """Rounded for show; the exact value is what ``explain`` gives."""
    return None if value is None else round(value, 4)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return _short(value)
    if isinstance(value, Mapping):
        return {key: _rounded(held) for key, held in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_rounded(held) for held in value]
    return value
