"""Cards that carry a claim of the signal layer."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from ebbtide.analysis.cards.lexicon import words
from ebbtide.analysis.facts import REST, CardFacts
from ebbtide.analysis.signals.values import NUMBER_WORDS

if TYPE_CHECKING:
    from spacy.tokens import Doc

    from ebbtide.analysis.facts import Claim, Cue

__all__ = ["with_claims"]

_PREDICATES = {
    "residence": "live_in",
    "location": "be_in",
    "origin": "be_from",
    "hometown": "be_from",
    "employer": "work_at",
    "workplace": "work_at",
    "occupation": "work_as",
    "job": "work_as",
    "age": "be_aged",
    "name": "be_named",
    "study": "study",
}
_KINDS = {"past_state": "current_state"}
"""A past state is a state that no longer holds: same kind, ``temporal`` past."""

_VALENCES = {
    "like": ("like", False),
    "dislike": ("like", True),
    "allowed": ("allow", False),
    "forbidden": ("allow", True),
    "required": ("require", False),
    "allergic": ("be_allergic_to", False),
    "not allergic": ("be_allergic_to", True),
}
"""Values that say yes or no to the topic in the identity."""

_AVERSIONS = frozenset({"hate", "dislike", "loathe", "detest"})
_FAMILIES = {
    "preference": frozenset({"preference", "fact"}),
    "constraint": frozenset({"constraint"}),
    "correction": frozenset({"correction", "current_state", "fact"}),
    "current_state": frozenset(
        {"constraint", "correction", "current_state", "fact", "relation", "event"}
    ),
    "past_state": frozenset({"correction", "current_state", "fact", "event"}),
}
_PRONOUNS = words("i me we us you he him she her it they them this that these those")
_WORD = re.compile(r"\w+")
_PART = re.compile(r" (?:time|month)(?= for |$)")
_LITTLE = frozenset({"a", "an", "the", "my", "our", "to", "of"})


def with_claims(
    cards: list[CardFacts], doc: Doc, claims: tuple[Claim, ...], cues: tuple[Cue, ...]
) -> list[CardFacts]:
    """Mark the cards that project a claim, and add cards for the other claims.

    Args:
        cards: Cards of the parse, in text order.
        doc: The parse.
        claims: Claims of the turn.
        cues: Evidence of the turn's signals, used to place a claim.

    Returns:
        All cards, unsorted; every claim is told by one of them, apart from those whose value
        is a pronoun.
    """
    result = list(cards)
    for claim in claims:
        if claim.kind == REST:
            continue
        kind = _KINDS.get(claim.kind, claim.kind)
        index = next((i for i, card in enumerate(result) if _projects(card, claim)), None)
        if index is None:
            start, end = _sentence_of(doc, claim, cues)
            made = _card(claim, kind, start, end)
            known = any(replace(card, identity=claim.identity) == made for card in result)
            if not known and _PRONOUNS.isdisjoint(made.object.lower().split()):
                result.append(made)
            continue
        card = result[index]
        # A relation or constraint says more than a state, and a correction stays one.
        kept = card.kind if card.kind in {"constraint", "correction", "relation"} else kind
        result[index] = replace(card, kind=kept, identity=claim.identity)
    return result


def _projects(card: CardFacts, claim: Claim) -> bool:
    """A card tells a claim when subject, denial, time and value agree."""
    if card.identity not in (None, claim.identity) or card.kind not in _FAMILIES[claim.kind]:
        return False
    if card.subject not in {claim.subject, claim.identity}:
        return False
    over = claim.kind == "past_state"
    if claim.kind.endswith("state") and over != (card.temporal == "past"):
        return False
    topic = claim.identity.partition(":")[2]
    valence = _VALENCES.get(claim.value) if topic else None
    if claim.identity.startswith("count of "):
        counted = claim.identity.removeprefix("count of ")
        things = _stems(card.object) - _NUMBERS
        told = _covers(card, counted) or (bool(things) and things <= _stems(counted))
        return card.predicate == "have" and not card.negated and told
    denied = card.negated != (card.predicate in _AVERSIONS)
    if valence is not None and claim.value != "required":
        told = valence[1] != claim.negated
        return denied == told and _covers(card, topic)
    return card.negated == claim.negated and _covers(card, topic if valence else claim.value)


def _covers(card: CardFacts, value: str) -> bool:
    wanted = _stems(value)
    said = _stems(f"{card.predicate} {card.object}")
    return bool(wanted) and (wanted <= said or (_stems(card.object) or said) <= wanted)


def _stems(text: str) -> frozenset[str]:
    """Give rough word stems: claims are lemmatised, objects are as in the text."""
    found = _WORD.findall(text.lower().replace("_", " "))
    return frozenset(_stem(word) for word in found if word not in _LITTLE)


def _stem(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        word = word.removesuffix("ies") + "y"
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) > 2:
            word = word.removesuffix(ending)
            break
    doubled = len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls"
    return word[:-1] if doubled else word


_NUMBERS = frozenset(_stem(word) for word in (*NUMBER_WORDS, *NUMBER_WORDS.values()))


def _card(claim: Claim, kind: str, start: int, end: int) -> CardFacts:
    predicate, text, negated = _wording(claim)
    past = claim.kind == "past_state"
    temporal = "past" if past else "none" if kind == "constraint" else "current"
    return CardFacts(
        kind=kind,
        subject=claim.subject,
        predicate=predicate,
        object=text,
        negated=negated,
        temporal=temporal,
        start=start,
        end=end,
        identity=claim.identity,
    )


def _wording(claim: Claim) -> tuple[str, str, bool]:
    # What it adds to, or when it holds, is for lineage: a card says what is the case.
    identity = claim.identity.removesuffix(f" also {claim.value}")
    family, _, topic = identity.partition(":")
    if topic and claim.value in _VALENCES:
        predicate, denied = _VALENCES[claim.value]
        return predicate, topic.replace("_", " "), claim.negated != denied
    if family == "preference":
        return "prefer", claim.value, claim.negated
    for opening in ("name of ", "count of "):
        if family.startswith(opening):
            thing = family.removeprefix(opening)
            if opening == "count of ":
                return "have", f"{claim.value} {thing}", claim.negated
            return f"have_{thing.replace(' ', '_')}", claim.value, claim.negated
    if claim.value == "cancelled":
        # Its day and its hour are called off with it: one card.
        family = _PART.sub("", family)
    plain = (topic or family).replace(" ", "_")
    predicate = _PREDICATES.get(family) or _PREDICATES.get(family.partition(" ")[0], plain)
    return predicate, claim.value, claim.negated


def _sentence_of(doc: Doc, claim: Claim, cues: tuple[Cue, ...]) -> tuple[int, int]:
    spans = [(sent.start_char, sent.end_char, sent.text) for sent in doc.sents]
    if not spans:
        return 0, 0
    topic = claim.identity.partition(":")[2]
    wanted = _stems(topic if topic and claim.value in _VALENCES else claim.value)
    shares = [len(wanted & _stems(text)) for _, _, text in spans]
    if max(shares) > 0:
        start, end, _ = spans[shares.index(max(shares))]
        return start, end
    for cue in cues:
        for start, end, _ in spans:
            if cue.signal == claim.kind and start <= cue.start < end:
                return start, end
    return spans[0][0], spans[0][1]
