"""Relations told in passing: "my sister Anna", "my dog, Max,"."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ebbtide.analysis.cards.drafts import SPEAKER, Draft
from ebbtide.analysis.cards.lexicon import INTERJECTIONS, RELATION_NOUNS
from ebbtide.analysis.cards.objects import phrase

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spacy.tokens import Span, Token

__all__ = ["appositions_of"]


def appositions_of(sentence: Span) -> Iterator[tuple[Draft, Token, tuple[Token, ...]]]:
    """Yield a relation for each "my <relation noun> <Name>".

    Args:
        sentence: One sentence.

    Yields:
        The draft, the word it stands at, and no words to date it by.
    """
    for noun in sentence:
        lemma = str(noun.lemma_).lower()
        if lemma not in RELATION_NOUNS:
            continue
        name = _name_of(noun)
        if name:
            owned = any(
                child.lower_ in {"my", "our"} and child.dep_ == "poss"
                for child in (*noun.children, *noun.head.children)
            )
            if owned:
                yield Draft("relation", SPEAKER, f"have_{lemma}", name, False, "current"), noun, ()


def _name_of(noun: Token) -> str | None:
    doc = noun.doc
    place = noun.i + 1
    comma = place < len(doc) and doc[place].text == ","
    if comma:
        place += 1
    tokens = []
    while place < len(doc) and doc[place].tag_ == "NNP" and doc[place].text[:1].isupper():
        tokens.append(doc[place])
        place += 1
    if not tokens or len(tokens) > 3 or tokens[0].lower_ in INTERJECTIONS:
        return None
    if tokens[0].ent_type_ not in {"PERSON", "", "GPE", "ORG"}:
        return None
    # After a comma a name may be the person spoken to; a second comma and an
    # apposition in the parse make it the relation's name.
    if comma and not (
        tokens[-1].dep_ == "appos" and place < len(doc) and doc[place].text in {",", ")"}
    ):
        return None
    if place < len(doc) and doc[place].tag_ == "POS" and doc[place - 1].dep_ != "poss":
        return None
    return phrase(tokens)
