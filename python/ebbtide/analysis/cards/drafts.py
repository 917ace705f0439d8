"""A card before its span, date and identity are filled in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spacy.tokens import Token

    from ebbtide.analysis.cards.clauses import Clause

__all__ = ["SPEAKER", "Draft", "child_of", "drafted"]

SPEAKER = "\0speaker"
"""Placeholder that the caller replaces: rules see no turn."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A card before its span, date and identity are filled in."""

    kind: str
    subject: str
    predicate: str
    object: str
    negated: bool
    temporal: str


def child_of(token: Token, *labels: str) -> Token | None:
    """Give the first child with one of the dependency labels."""
    return next((child for child in token.children if child.dep_ in labels), None)


def drafted(
    clause: Clause, kind: str, predicate: str, text: str | None, temporal: str | None = None
) -> Draft | None:
    """Make a draft of a clause; "no children" is a denial of "children"."""
    if text is None:
        return None
    negated = clause.negated
    lowered = text.lower()
    if negated and lowered.startswith("any "):
        text = text[4:]
    if lowered.startswith("no ") and len(text) > 3:
        text, negated = text[3:], not negated
    return Draft(
        kind,
        clause.subject,
        predicate,
        text,
        negated,
        clause.temporal if temporal is None else temporal,
    )
