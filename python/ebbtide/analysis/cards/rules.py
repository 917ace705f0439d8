"""From a clause to a card: one function a family of predicates, tried in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ebbtide.analysis.cards.actions import (
    can_act,
    event,
    has_clausal_object,
    points_ahead,
    state,
    verb_object,
)
from ebbtide.analysis.cards.clauses import lemma_of
from ebbtide.analysis.cards.copula import adjective, copula, name_tokens, named_copula
from ebbtide.analysis.cards.drafts import SPEAKER, Draft, child_of, drafted
from ebbtide.analysis.cards.lexicon import (
    EMPTY_ATTRIBUTES,
    IDIOM_CANNOT,
    NOT_EVENTS,
    PREFERENCE_VERBS,
)
from ebbtide.analysis.cards.objects import is_time, phrase, phrase_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ebbtide.analysis.cards.clauses import Clause

__all__ = ["draft_clause", "named_object"]

_NARROWING = frozenset({"relcl", "acl"})
_OBLIGATIONS = {"have": "have_to", "need": "need_to"}


def draft_clause(clause: Clause) -> Draft | None:
    """Project one clause.

    Args:
        clause: A stated clause.

    Returns:
        The first family's card that applies, or None.
    """
    if clause.person == "label":
        draft = named_copula(clause) or preference(clause)
        return draft if draft is not None and draft.object else None
    if clause.person == "own" and clause.progressive and not can_act(clause):
        return None
    for rule in _RULES:
        draft = rule(clause)
        if draft is not None:
            return draft if draft.object else None
    return None


def preference(clause: Clause) -> Draft | None:
    verb, lemma = clause.verb, lemma_of(clause.verb)
    if clause.person == "noun" or clause.passive or clause.modal in {"will", "must"}:
        return None
    if lemma == "stand" and clause.modal == "can" and clause.negated:
        target = child_of(verb, "dobj", "xcomp")
        return drafted(clause, "preference", "stand", phrase_of([target]) if target else None)
    if lemma not in PREFERENCE_VERBS or clause.modal is not None or clause.temporal == "future":
        return None
    target = child_of(verb, "dobj", "xcomp")
    if target is None or target.i < verb.i:
        return None
    if target.dep_ == "xcomp" and child_of(target, "nsubj") is not None:
        return None
    if any(c.dep_ == "relcl" or c.tag_ == "VB" for c in target.children if c.dep_ in _NARROWING):
        # "stories that make me think": without its clause the liking is another one.
        return None
    return drafted(clause, "preference", lemma, phrase_of([target]))


def wanting(clause: Clause) -> Draft | None:
    """Read "I want to become a counselor"; "I want to say" wants nothing."""
    lemma = lemma_of(clause.verb)
    if lemma not in {"want", "plan"} or clause.person == "noun" or clause.modal is not None:
        return None
    target = child_of(clause.verb, "xcomp")
    if lemma == "plan" and clause.progressive and target is None:
        predicate, text = verb_object(clause)
        return drafted(clause, "event", predicate, text, "future")
    if target is None or target.tag_ not in {"VB", "VBG"}:
        return None
    if lemma_of(target) in NOT_EVENTS - {"help", "bring", "give", "share", "learn"}:
        return None
    text = phrase_of([target])
    kind = "preference" if lemma == "want" else "event"
    temporal = clause.temporal if lemma == "want" else "future"
    return drafted(clause, kind, lemma, text, temporal)


def constraint(clause: Clause) -> Draft | None:
    verb, lemma = clause.verb, lemma_of(clause.verb)
    if clause.person == "noun" and not clause.passive:
        return None
    if clause.passive and lemma in {"allow", "permit", "forbid", "prohibit"}:
        text = phrase_of([clause.subject_token]) if clause.subject_token is not None else None
        denied = clause.negated != (lemma in {"forbid", "prohibit"})
        if text is None or clause.person != "noun":
            return None
        return Draft("constraint", SPEAKER, "allow", text, denied, "none")
    if clause.modal == "can" and clause.negated and lemma not in IDIOM_CANNOT:
        return drafted(clause, "constraint", f"can_{lemma}", verb_object(clause)[1], "current")
    if clause.modal == "must" and lemma not in IDIOM_CANNOT:
        return drafted(clause, "constraint", f"must_{lemma}", verb_object(clause)[1], "current")
    if lemma in _OBLIGATIONS and clause.modal is None and clause.temporal == "current":
        inner = child_of(verb, "xcomp")
        if inner is None or inner.tag_ != "VB" or lemma_of(inner) in IDIOM_CANNOT:
            return None
        return drafted(clause, "constraint", _OBLIGATIONS[lemma], phrase_of([inner]), "current")
    return None


def having(clause: Clause) -> Draft | None:
    verb, lemma = clause.verb, lemma_of(clause.verb)
    got = verb.lower_ == "got" and not {"'ve", "have", "has"}.isdisjoint(clause.auxiliaries)
    if clause.person == "noun" or clause.modal is not None or clause.temporal == "future":
        return None
    if not got and (lemma not in {"have", "own"} or clause.temporal != "current"):
        return None
    if clause.progressive:
        return None
    target = child_of(verb, "dobj")
    if target is None or target.i < verb.i or target.pos_ not in {"NOUN", "PROPN"}:
        return None
    if str(target.lemma_).lower() in EMPTY_ATTRIBUTES - {"lot", "bit"} or has_clausal_object(verb):
        return None
    if any(c.dep_ in {"acl", "relcl"} and c.tag_ in {"VB", "VBP"} for c in target.children):
        # "the power to change": what matters is what would be cut.
        return None
    predicate = "own" if lemma == "own" else "have"
    if any(points_ahead(child) for child in verb.children if is_time(child)):
        return drafted(clause, "event", predicate, phrase_of([target]), "future")
    return drafted(clause, "fact", predicate, phrase_of([target]), "current")


def named_object(clause: Clause) -> Draft | None:
    """Read "I have a dog named Max", "we got another cat named Bailey".

    Args:
        clause: A stated clause.

    Returns:
        The relation beside what the clause itself says.
    """
    target = child_of(clause.verb, "dobj")
    if target is None or lemma_of(clause.verb) not in {"have", "get", "own", "adopt"}:
        return None
    if clause.negated or clause.modal is not None or clause.person in {"noun", "label"}:
        return None
    lemma = str(target.lemma_).lower()
    for child in target.children:
        if child.dep_ == "acl" and child.lower_ in {"named", "called"}:
            name = child_of(child, "oprd", "dobj", "attr")
            if name is not None and name.pos_ == "PROPN":
                return drafted(
                    clause, "relation", f"have_{lemma}", phrase(name_tokens(name)), "current"
                )
    return None


def naming(clause: Clause) -> Draft | None:
    """Read "my dog is called Max"."""
    if (
        lemma_of(clause.verb) not in {"call", "name"}
        or clause.person != "own"
        or not clause.passive
    ):
        return None
    name = child_of(clause.verb, "oprd", "dobj", "attr")
    owner, _, noun = clause.subject.rpartition("'s ")
    if name is None or name.pos_ != "PROPN" or not owner:
        return None
    text = phrase(name_tokens(name))
    return Draft(
        "relation", owner, "have_" + noun.replace(" ", "_"), text, clause.negated, "current"
    )


def participle(clause: Clause) -> Draft | None:
    """Read "I'm interested in pottery" where the parser sees a passive verb."""
    if clause.person == "noun" or not (clause.passive or clause.verb.tag_ == "VBN"):
        return None
    return adjective(clause, clause.verb)


_RULES: tuple[Callable[[Clause], Draft | None], ...] = (
    copula,
    naming,
    participle,
    preference,
    wanting,
    constraint,
    having,
    state,
    event,
)
