"""Cards of "to be": facts, states, favourites, relations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ebbtide.analysis.cards.clauses import lemma_of
from ebbtide.analysis.cards.drafts import SPEAKER, Draft, child_of, drafted
from ebbtide.analysis.cards.lexicon import (
    ADJECTIVE_PREDICATES,
    EMPTY_ATTRIBUTES,
    GOAL_NOUNS,
    RELATION_NOUNS,
    STATUS_ADJECTIVES,
)
from ebbtide.analysis.cards.objects import phrase, phrase_of

if TYPE_CHECKING:
    from spacy.tokens import Token

    from ebbtide.analysis.cards.clauses import Clause

__all__ = ["adjective", "copula", "name_tokens", "named_copula"]

_PLACE_LABELS = frozenset({"GPE", "LOC", "FAC", "ORG"})
_FAVOURITE = frozenset({"favorite", "favourite", "fave"})


def copula(clause: Clause) -> Draft | None:
    """Read what somebody or something is.

    Args:
        clause: A stated clause.

    Returns:
        The card, or None for another verb; a draft without object stops the later rules.
    """
    if lemma_of(clause.verb) != "be" or clause.progressive or clause.passive:
        return None
    if clause.temporal == "future" or clause.modal is not None:
        return None
    for label in ("attr", "acomp", "xcomp", "prep"):
        complement = child_of(clause.verb, label)
        if complement is not None:
            break
    if complement is None or complement.i < clause.verb.i or _is_aside(clause):
        return Draft("fact", clause.subject, "be", "", clause.negated, clause.temporal)
    handler = {"attr": _noun_copula, "acomp": _adjective_copula, "xcomp": _goal_copula}.get(
        complement.dep_, _place_copula
    )
    return handler(clause, complement) or Draft(
        "fact", clause.subject, "be", "", clause.negated, clause.temporal
    )


def _is_aside(clause: Clause) -> bool:
    """Refuse "since I was 17" and "we were teammates": when, or with whom, is missing."""
    marked = any(child.dep_ == "mark" for child in clause.verb.children)
    plural = clause.subject_token is not None and clause.subject_token.lower_ == "we"
    return marked or plural or clause.verb.dep_ == "advcl"


def named_copula(clause: Clause) -> Draft | None:
    """Read what "X is my ..." says of the speaker, whatever X is."""
    complement = child_of(clause.verb, "attr")
    if lemma_of(clause.verb) != "be" or clause.modal is not None or complement is None:
        return None
    return _favourite_of(clause, complement) or _relation_copula(clause, complement)


def _favourite_of(clause: Clause, complement: Token) -> Draft | None:
    """Read "Dune is my favorite book"."""
    poss = child_of(complement, "poss")
    best = [c for c in complement.children if c.lower_ in _FAVOURITE]
    if poss is None or not best or clause.subject_token is None or clause.person == "own":
        return None
    owner = _owner(poss)
    text = phrase_of([clause.subject_token])
    if owner is None or text is None or complement.pos_ != "NOUN":
        return None
    predicate = f"favorite_{str(complement.lemma_).lower()}"
    return Draft("preference", owner, predicate, text, clause.negated, clause.temporal)


def _noun_copula(clause: Clause, complement: Token) -> Draft | None:
    if complement.lower_ in {"fan", "lover"}:
        return _fan_of(clause, complement) if clause.person != "noun" else None
    favourite = _favourite(clause, complement) or _favourite_of(clause, complement)
    if favourite is not None:
        return favourite
    relation = _relation_copula(clause, complement)
    if relation is not None:
        return relation
    if complement.lower_ in STATUS_ADJECTIVES and child_of(complement, "det") is None:
        return drafted(clause, "current_state", "be", complement.lower_)
    lemma = str(complement.lemma_).lower()
    if lemma in EMPTY_ATTRIBUTES or complement.lower_ in EMPTY_ATTRIBUTES:
        return None
    if any(child.dep_ in {"relcl", "acl", "ccomp"} for child in complement.children):
        return None
    text = phrase_of([complement])
    between = clause.verb.doc[clause.verb.i + 1 : min(t.i for t in complement.subtree)]
    if any(t.pos_ not in {"ADV", "PART", "ADJ", "PUNCT"} for t in between):
        return None
    if clause.person == "noun" and not _is_concrete(complement):
        return None
    if clause.person == "named" and child_of(complement, "poss") is not None:
        return None
    if clause.person == "own" and clause.subject_token is not None:
        head = clause.subject_token.lower_
        known = head in RELATION_NOUNS | GOAL_NOUNS or _is_concrete(complement)
        if not known:
            return None
    return drafted(clause, "fact", "be", text)


def _is_concrete(token: Token) -> bool:
    return any(t.like_num or t.pos_ in {"NUM", "PROPN"} for t in token.subtree)


def _fan_of(clause: Clause, complement: Token) -> Draft | None:
    prep = next((child for child in complement.children if child.lower_ == "of"), None)
    target = child_of(prep, "pobj", "pcomp") if prep is not None else None
    if target is not None:
        return drafted(clause, "preference", "be_fan_of", phrase_of([target]))
    before = [c for c in complement.children if c.dep_ in {"compound", "amod"}]
    nouns = [c for c in before if c.pos_ in {"NOUN", "PROPN"}]
    return drafted(clause, "preference", "be_fan_of", phrase(nouns)) if nouns else None


def _favourite(clause: Clause, complement: Token) -> Draft | None:
    """Read "my favorite color is blue" as the speaker's preference."""
    subject = clause.subject_token
    if subject is None or clause.person != "own":
        return None
    if not any(c.lower_ in _FAVOURITE for c in subject.children):
        return None
    if "'s " not in clause.subject:
        return None
    owner, noun = clause.subject.rsplit("'s ", 1)
    text = phrase_of([complement])
    if text is None:
        return None
    predicate = "favorite_" + noun.replace(" ", "_")
    return Draft("preference", owner, predicate, text, clause.negated, clause.temporal)


def _relation_copula(clause: Clause, complement: Token) -> Draft | None:
    """Read "Max is my dog" and "my dog's name is Max"."""
    poss = child_of(complement, "poss")
    lemma = str(complement.lemma_).lower()
    if lemma in RELATION_NOUNS and poss is not None and clause.person == "named":
        owner = _owner(poss)
        if owner is not None:
            name = phrase(name_tokens(clause.subject_token))
            return Draft("relation", owner, f"have_{lemma}", name, clause.negated, clause.temporal)
    if clause.person == "own" and clause.subject.endswith("'s name") and complement.pos_ == "PROPN":
        owner, _, noun = clause.subject[: -len("'s name")].rpartition("'s ")
        if owner:
            text = phrase_of([complement])
            if text:
                return Draft("relation", owner, f"have_{noun}", text, clause.negated, "current")
    if (
        clause.person == "own"
        and complement.ent_type_ == "PERSON"
        and clause.subject_token is not None
    ):
        noun = clause.subject_token.lower_
        owner = clause.subject.rpartition("'s ")[0]
        if noun in RELATION_NOUNS and owner:
            text = phrase_of([complement])
            if text:
                return Draft(
                    "relation", owner, f"have_{noun}", text, clause.negated, clause.temporal
                )
    return None


def name_tokens(token: Token | None) -> list[Token]:
    """Give a name with its first parts ("Amy Ellis Nutt")."""
    if token is None:
        return []
    return [*(c for c in token.children if c.dep_ == "compound" and c.i < token.i), token]


def _owner(poss: Token) -> str | None:
    if poss.lower_ in {"my", "our"}:
        return SPEAKER
    return str(poss.lower_) if poss.pos_ == "PROPN" else None


def _adjective_copula(clause: Clause, complement: Token) -> Draft | None:
    if clause.person == "noun":
        return None
    return _favourite(clause, complement) or adjective(clause, complement)


def adjective(clause: Clause, word: Token) -> Draft | None:
    """Read "allergic to nuts", "interested in pottery", "married".

    Args:
        clause: A stated clause.
        word: The adjective or participle.

    Returns:
        The card, or None.
    """
    for prep in word.children:
        kind = ADJECTIVE_PREDICATES.get((word.lower_, prep.lower_))
        if prep.dep_ == "prep" and kind is not None:
            target = child_of(prep, "pobj", "pcomp")
            text = phrase_of([target]) if target is not None else None
            return drafted(clause, kind, f"be_{word.lower_}_{prep.lower_}", text)
    if word.lower_ in STATUS_ADJECTIVES:
        return drafted(clause, "current_state", "be", word.lower_)
    return None


def _goal_copula(clause: Clause, complement: Token) -> Draft | None:
    subject = clause.subject_token
    if clause.person != "own" or subject is None or str(subject.lemma_).lower() not in GOAL_NOUNS:
        return None
    return drafted(clause, "fact", "be", phrase_of([complement]))


def _place_copula(clause: Clause, complement: Token) -> Draft | None:
    target = child_of(complement, "pobj", "pcomp")
    if complement.dep_ != "prep" or target is None or clause.person == "noun":
        return None
    if complement.lower_ == "into" and clause.person in {"first", "own", "named"}:
        return drafted(clause, "preference", "be_into", phrase_of([target]))
    if complement.lower_ in {"from", "in", "at"} and target.ent_type_ in _PLACE_LABELS:
        kind = "fact" if complement.lower_ == "from" else "current_state"
        return drafted(clause, kind, f"be_{complement.lower_}", phrase_of([target]))
    return None
