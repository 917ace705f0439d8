"""Turns read with the real models."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ebbtide.analysis.facts import Claim, TurnFacts, TurnText
from ebbtide.analysis.pipeline import SpacyAnalyser

Read = Callable[..., TurnFacts]


@pytest.fixture(scope="module")
def read() -> Read:
    """Read one turn of Ana's."""
    analyser = SpacyAnalyser()

    def one(text: str, role: str = "user", speaker: str | None = "Ana") -> TurnFacts:
        return analyser.analyse([TurnText(text, role=role, speaker=speaker)])[0]

    return one


def only_claim(facts: TurnFacts, kind: str) -> Claim:
    found = [claim for claim in facts.claims if claim.kind == kind]
    assert len(found) == 1, facts.claims
    return found[0]
