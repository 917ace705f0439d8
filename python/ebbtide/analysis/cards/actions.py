"""Cards of actions: what somebody does, did or is about to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ebbtide.analysis.cards.clauses import lemma_of
from ebbtide.analysis.cards.drafts import Draft, child_of, drafted
from ebbtide.analysis.cards.lexicon import (
    HABIT_VERBS,
    NOT_EVENTS,
    PASSIVE_EVENTS,
    RELATION_NOUNS,
    words,
)
from ebbtide.analysis.cards.objects import is_time, phrase_of

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

    from ebbtide.analysis.cards.clauses import Clause

__all__ = [
    "_predicate_and_object",
    "can_act",
    "event",
    "has_clausal_object",
    "points_ahead",
    "state",
    "verb_object",
]

_OBJECT_PREPOSITIONS = words(
    "to in at for on with from into through about of by as against over around onto"
)
_GROUPS = frozenset({"family", "fam", "team", "class", "company", "band"})
_PENDING = frozenset({"decide", "try", "plan", "consider", "figure", "hope"})
"""A progressive of these says that something has not happened yet."""
_NEAR = 100
"""Tokens on each side of a verb among which its day is looked for."""
_AROUND_NOW = frozenset({"lately", "recently", "now", "today", "currently", "days", "since", "for"})


def event(clause: Clause) -> Draft | None:
    """Read a past action, or a dated plan.

    Args:
        clause: A stated clause.

    Returns:
        The card, or None where the rule does not apply.
    """
    lemma = lemma_of(clause.verb)
    if lemma in NOT_EVENTS or clause.person == "noun" or clause.modal in {"can", "must"}:
        return None
    if clause.temporal == "future" or (clause.progressive and clause.temporal == "current"):
        if not _dated_ahead(clause):
            return None
        predicate, text = verb_object(clause)
        return drafted(clause, "event", predicate, text, "future")
    if clause.temporal != "past" or has_clausal_object(clause.verb):
        return None
    if clause.passive:
        return _passive_event(clause)
    if lemma == "have" and child_of(clause.verb, "xcomp") is not None:
        return None
    predicate, text = _predicate_and_object(clause.verb, pointing=True)
    return drafted(clause, "event", predicate, text, "past")


def has_clausal_object(verb: Token) -> bool:
    """Tell "made me feel safe" from the splice "made cobbler, it was great"."""
    for child in verb.children:
        if child.dep_ == "ccomp" and child.i > verb.i:
            first = min(token.i for token in child.subtree)
            if not verb.doc[first - 1].is_punct:
                return True
    return False


def _dated_ahead(clause: Clause) -> bool:
    return any(
        t.ent_type_ in {"DATE", "TIME"} or t.lower_ in {"tomorrow", "tonight"}
        for word in (*clause.words, clause.verb)
        for t in _phrase(word)
    )


def _phrase(word: Token) -> Span:
    """What hangs on a word, as far as it is near: a sentence may hang on each of its verbs."""
    first = max(word.left_edge.i, word.i - _NEAR)
    return word.doc[first : min(word.right_edge.i, word.i + _NEAR) + 1]


def _passive_event(clause: Clause) -> Draft | None:
    if clause.verb.lower_ not in PASSIVE_EVENTS:
        return None
    target = child_of(clause.verb, "dobj", "oprd")
    if target is not None:
        return drafted(clause, "event", f"be_{clause.verb.lower_}", phrase_of([target]), "past")
    for prep in clause.verb.children:
        if prep.dep_ == "prep" and prep.lower_ in _OBJECT_PREPOSITIONS and not is_time(prep):
            inner = child_of(prep, "pobj", "pcomp")
            if inner is not None:
                predicate = f"be_{clause.verb.lower_}_{prep.lower_}"
                return drafted(clause, "event", predicate, phrase_of([inner]), "past")
    return None


def points_ahead(token: Token) -> bool:
    """Tell whether a time lies ahead ("next week")."""
    return any(
        t.lower_ in {"next", "tomorrow", "tonight", "soon", "upcoming"} for t in token.subtree
    )


def _future_plan(clause: Clause) -> bool:
    verb = clause.verb
    if lemma_of(verb) in {"go", "head", "move", "leave", "fly", "start", "host", "throw", "have"}:
        return True
    dated = [c for c in verb.children if is_time(c) and c.lower_ not in _AROUND_NOW]
    return bool(dated) and not clause.perfect


def state(clause: Clause) -> Draft | None:
    """Read a lasting activity: "I live in", "I play", "I'm learning", "I used to".

    Args:
        clause: A stated clause.

    Returns:
        The card, or None where the rule does not apply.
    """
    verb, lemma = clause.verb, lemma_of(clause.verb)
    if clause.person == "noun" or clause.modal is not None or clause.passive:
        return None
    if lemma == "use" and verb.tag_ == "VBD":
        return _used_to(clause)
    habit = lemma in HABIT_VERBS and not clause.progressive and clause.temporal == "current"
    preps = {child.lower_ for child in verb.children if child.dep_ == "prep"}
    lived = lemma in {"live", "work", "study"} and clause.temporal == "past"
    lived = lived and bool(preps & {"in", "at", "as"})
    if not habit and not lived and not (clause.progressive and clause.temporal == "current"):
        return None
    if clause.progressive and (lemma in NOT_EVENTS | _PENDING or _future_plan(clause)):
        return None
    predicate, text = verb_object(clause)
    if (lemma in {"get", "live"} and child_of(verb, "dobj") is not None) or predicate.startswith(
        "get_"
    ):
        return None
    return drafted(clause, "current_state", predicate, text)


def can_act(clause: Clause) -> bool:
    """Tell whether "my ..." is somebody who can be doing something.

    Args:
        clause: A clause with an owned subject.

    Returns:
        False for "my tasks are finishing the report", which says what they are.
    """
    subject = clause.subject_token
    if subject is None:
        return False
    return str(subject.lemma_).lower() in RELATION_NOUNS or subject.lower_ in _GROUPS


def _used_to(clause: Clause) -> Draft | None:
    inner = child_of(clause.verb, "xcomp")
    if child_of(clause.verb, "dobj", "prep") is not None:
        # "I used my contacts to make friends" is about means, not the past.
        return None
    if inner is None or inner.tag_ != "VB" or lemma_of(inner) in {"be", "think", "feel"}:
        return None
    predicate, text = _predicate_and_object(inner)
    return drafted(clause, "current_state", predicate, text, "past")


def verb_object(clause: Clause) -> tuple[str, str | None]:
    """Name the clause's predicate and its object."""
    return _predicate_and_object(clause.verb)


def _predicate_and_object(verb: Token, *, pointing: bool = False) -> tuple[str, str | None]:
    """Name the predicate with its particle and preposition, and its object."""
    particle = child_of(verb, "prt")
    predicate = lemma_of(verb) + (f"_{particle.lower_}" if particle is not None else "")
    after = [child for child in verb.children if child.i > verb.i]
    preps = [c for c in after if c.dep_ == "prep" and not is_time(c)]
    target = next((c for c in after if c.dep_ == "dobj"), None)
    if target is not None:
        if any(c.dep_ == "dative" and c.pos_ != "ADP" and c.i < target.i for c in after):
            # "I got them a new friend": without "them" it says something else.
            return predicate, None
        if is_time(target) and target.ent_type_ != "":
            return predicate, None
        heads = [target, *(p for p in preps if p.i > target.i)]
        return predicate, phrase_of(heads, pointing=pointing)
    inner = next((c for c in after if c.dep_ == "xcomp" and c.tag_ in {"VBG", "VB"}), None)
    if inner is not None:
        return predicate, phrase_of([inner])
    for prep in preps:
        pobj = child_of(prep, "pobj", "pcomp")
        if pobj is not None and prep.lower_ in _OBJECT_PREPOSITIONS:
            rest = [other for other in preps if other.i > prep.i]
            return f"{predicate}_{prep.lower_}", phrase_of([pobj, *rest])
        break
    return predicate, None
