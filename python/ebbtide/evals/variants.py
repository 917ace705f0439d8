"""Variants of a configuration: each part switched off in turn, or values side by side."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ebbtide import _core
from ebbtide.config import Config

__all__ = ["FEATURES", "Variant", "ablations", "sweep"]

FEATURES: Mapping[str, Sequence[str]] = _core.weighed()
"""What the places of the lists of weights in ``[retrieval]`` are called, for tables only:
the lists themselves say what there is to switch off."""

_SIGNALS = ("alpha_", "beta_", "gamma_", "delta_", "eta_")

Changes = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Variant:
    """A named change of settings.

    Attributes:
        name: What it is called in the table.
        changes: Settings on top of the base.
    """

    name: str
    changes: Changes


def ablations(base: Config) -> list[Variant]:
    """Each channel, ranking term, feature and signal switched off in turn.

    They are the settings themselves, so that a new one is among them: the switches
    ``enable_…`` and ``late_interaction``, the weights of ``[ranking]``, every place of a
    list of weights in ``[retrieval]``, and the weights of signals in
    ``[scoring_weights]``. What is off already is left out.
    """
    return [*_channels(base), *_terms(base), *_features(base), *_signals(base)]


def _channels(base: Config) -> Iterator[Variant]:
    for key, on in base["retrieval"].items():
        if on is True and (key.startswith("enable_") or key == "late_interaction"):
            name = f"channel {key.removeprefix('enable_')}"
            yield Variant(name, {"retrieval": {key: False}})


def _terms(base: Config) -> Iterator[Variant]:
    for key, weight in base["ranking"].items():
        if isinstance(weight, float) and weight:
            yield Variant(f"term {key}", {"ranking": {key: 0.0}})


def _features(base: Config) -> Iterator[Variant]:
    for key, weights in base["retrieval"].items():
        if not isinstance(weights, list | tuple):
            continue
        names = FEATURES.get(key, ())
        for place, weight in enumerate(weights):
            if weight:
                name = names[place] if place < len(names) else f"{key} {place + 1}"
                changed = [*weights[:place], 0.0, *weights[place + 1 :]]
                yield Variant(f"feature {name}", {"retrieval": {key: changed}})


def _signals(base: Config) -> Iterator[Variant]:
    for key, weight in base["scoring_weights"].items():
        if key.startswith(_SIGNALS) and weight:
            yield Variant(f"signal {key}", {"scoring_weights": {key: 0.0}})


def sweep(values: Mapping[tuple[str, str], Sequence[Any]]) -> list[Variant]:
    """Every combination of values of settings.

    Args:
        values: For each (section, key) the values to try.
    """
    names = list(values)
    found: list[Variant] = []
    for combination in itertools.product(*values.values()):
        changes: dict[str, dict[str, Any]] = {}
        for (section, key), value in zip(names, combination, strict=True):
            changes.setdefault(section, {})[key] = value
        label = " ".join(f"{s}.{k}={v}" for (s, k), v in zip(names, combination, strict=True))
        found.append(Variant(label, changes))
    return found
