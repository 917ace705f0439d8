"""Projection of one turn, and the sentence a card is embedded as."""

from __future__ import annotations

import functools
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

from ebbtide.analysis.cards.appositions import appositions_of
from ebbtide.analysis.cards.claims import with_claims
from ebbtide.analysis.cards.clauses import clauses_of
from ebbtide.analysis.cards.commands import command_of
from ebbtide.analysis.cards.drafts import SPEAKER
from ebbtide.analysis.cards.guards import SILENT_ROLES, masked_spans, sentence_is_open
from ebbtide.analysis.cards.rules import draft_clause, named_object
from ebbtide.analysis.facts import CardFacts
from ebbtide.analysis.temporal import format_day

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from spacy.tokens import Doc, Span, Token

    from ebbtide.analysis.cards.drafts import Draft
    from ebbtide.analysis.facts import Cue, TimeExpression, TurnText
    from ebbtide.analysis.language import SignalReading

__all__ = ["CARD_KINDS_ON", "MAX_CARDS", "card_text", "project"]

MAX_CARDS = 6
"""Cards a turn at most: the first ones in text order."""

ASSISTANT_LIMIT = 400
"""Characters up to which a nameless assistant's turn is read as conversation."""

CARD_KINDS_ON = frozenset(
    {"constraint", "correction", "current_state", "event", "fact", "preference", "relation"}
)
"""Kinds that are on by default: those that reach the precision stated in docs/cards.md."""


def project(
    doc: Doc, turn: TurnText, reading: SignalReading, times: tuple[TimeExpression, ...]
) -> tuple[CardFacts, ...]:
    """Project a turn into cards (paper, eq. 31).

    Args:
        doc: Parse of ``turn.text`` with part-of-speech tags, dependencies and
            named entities; character offsets are those of the text.
        turn: The turn.
        reading: Its signals, cues and claims.
        times: Its resolved time expressions.

    Returns:
        At most :data:`MAX_CARDS` cards in text order, then by kind. None for
        roles that are not people's words, questions, hypotheticals, reported
        speech, code, logs and JSON.
    """
    if turn.role.lower() in SILENT_ROLES:
        return ()
    speaker = (turn.speaker or turn.role).strip().lower()
    # Most turns have nothing that could be masked.
    masked = functools.cache(lambda: masked_spans(doc.text, turn.role))
    cards: list[CardFacts] = []
    for sentence in doc.sents:
        words = [token.lower_ for token in sentence]
        if not sentence_is_open(sentence, words):
            cards.extend(_sentence_cards(sentence, words, turn, speaker, masked, times))
    cards = _corrected(cards, reading.cues)
    cards = with_claims(cards, doc, reading.claims, reading.cues)
    unique: dict[tuple[str, str, str, bool], CardFacts] = {}
    for card in sorted(cards, key=_order):
        unique.setdefault((card.subject, card.predicate, card.object.lower(), card.negated), card)
    return tuple(unique.values())[:MAX_CARDS]


def _order(card: CardFacts) -> tuple[int, str, str, str, str]:
    return (card.start, card.kind, card.subject, card.predicate, card.object)


def _sentence_cards(
    sentence: Span,
    words: list[str],
    turn: TurnText,
    speaker: str,
    masked: Callable[[], tuple[tuple[int, int], ...]],
    times: tuple[TimeExpression, ...],
) -> Iterator[CardFacts]:
    for draft, verb, dating in _drafts(sentence, words, turn, speaker):
        if any(start <= verb.idx < end for start, end in masked()):
            continue
        first, last = _dates(sentence, dating, times)
        subject = speaker if draft.subject == SPEAKER else draft.subject
        yield CardFacts(
            kind=draft.kind,
            subject=subject,
            predicate=draft.predicate,
            object=draft.object,
            negated=draft.negated,
            temporal=draft.temporal,
            start=sentence.start_char,
            end=sentence.end_char,
            first=first,
            last=last,
        )


def _drafts(
    sentence: Span, words: list[str], turn: TurnText, speaker: str
) -> Iterator[tuple[Draft, Token, tuple[Token, ...]]]:
    assistant = turn.role.lower() == "assistant" and turn.speaker is None
    if assistant and len(turn.text) > ASSISTANT_LIMIT:
        # Long answers are drafts, encyclopedia and lists: nothing that anybody did.
        return
    if "my" in words or "our" in words:
        yield from appositions_of(sentence)
    if not assistant:
        yield from command_of(sentence)
    for clause in clauses_of(sentence, speaker):
        for draft in (draft_clause(clause), named_object(clause)):
            if draft is None:
                continue
            yield draft, clause.verb, (*clause.words, clause.verb)


def _dates(
    sentence: Span, words: tuple[Token, ...], times: tuple[TimeExpression, ...]
) -> tuple[str | None, str | None]:
    """Find the first time expression that the clause's verb governs."""
    for time in times:
        if time.start < sentence.start_char or time.end > sentence.end_char:
            continue
        span = sentence.doc.char_span(time.start, time.end, alignment_mode="expand")
        if span is not None and _governor(span.root, words):
            return time.first, time.last
    return None, None


def _governor(token: Token, words: tuple[Token, ...]) -> bool:
    """Climb from a time to the nearest verb that heads a clause of its own."""
    node = token
    while True:
        if node in words:
            return True
        clausal = node.dep_ in {"relcl", "advcl", "ccomp", "parataxis", "ROOT"} or (
            node.dep_ == "conj" and node.pos_ in {"VERB", "AUX"}
        )
        if (clausal and node is not token) or node.head is node:
            return False
        node = node.head


def _corrected(cards: list[CardFacts], cues: tuple[Cue, ...]) -> list[CardFacts]:
    """Turn what a sentence with a correction cue states into a correction."""
    places = [cue.start for cue in cues if cue.signal == "correction"]
    return [
        replace(card, kind="correction")
        if card.kind in {"fact", "current_state"}
        and any(card.start <= place < card.end for place in places)
        else card
        for card in cards
    ]


def card_text(card: CardFacts) -> str:
    """Write a card as a short sentence, for embedding it.

    Args:
        card: The card.

    Returns:
        For example ``caroline adopt a puppy (7 May 2023)`` or ``max not like cats``.
    """
    predicate = card.predicate.replace("_", " ")
    if card.negated:
        modal, _, verb = predicate.partition(" ")
        predicate = (
            f"{modal} not {verb}" if modal in {"can", "must"} and verb else f"not {predicate}"
        )
    text = f"{card.subject} {predicate} {card.object}"
    when = _period(card.first, card.last)
    return f"{text} ({when})" if when else text


def _period(first: str | None, last: str | None) -> str:
    if first is None or last is None:
        day = first or last
        return _day(day) if day else ""
    return _day(first) if first == last else f"{_day(first)} to {_day(last)}"


def _day(iso: str) -> str:
    return format_day(date.fromisoformat(iso))
