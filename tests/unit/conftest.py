"""Turns read with the real models, and spaCy's pipeline beside ours."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import spacy
from spacy.language import Language

from ebbtide.analysis import spacy_analyser
from ebbtide.analysis.facts import Claim, TurnFacts, TurnText
from ebbtide.analysis.spacy_analyser import SpacyAnalyser

Read = Callable[..., TurnFacts]


@pytest.fixture(scope="module")
def read() -> Read:
    """Read one turn of Ana's."""
    analyser = SpacyAnalyser()

    def one(text: str, role: str = "user", speaker: str | None = "Ana") -> TurnFacts:
        return analyser.analyse([TurnText(text, role=role, speaker=speaker)])[0]

    return one


@pytest.fixture(scope="module")
def ours() -> Language:
    """The pipeline that turns are read with."""
    return spacy_analyser._load("en_core_web_sm")


@pytest.fixture(scope="module")
def stock(ours: Language) -> Language:
    """spaCy's own components, with products whose sums have one order."""
    from ebbtide.analysis.products import with_ordered_products

    return with_ordered_products(spacy.load(str(ours.path)))


def only_claim(facts: TurnFacts, kind: str) -> Claim:
    found = [claim for claim in facts.claims if claim.kind == kind]
    assert len(found) == 1, facts.claims
    return found[0]
