"""What the analysis hands to the engine: plain facts, no models, no decisions.

Python reads language, Rust decides. Everything here is immutable, cheap to
compare, and free of spaCy objects, so that a turn's facts can be cached, tested
and sent across the language boundary.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

__all__ = [
    "REST",
    "SIGNALS",
    "CardFacts",
    "Claim",
    "Cue",
    "Entity",
    "TimeExpression",
    "TurnFacts",
    "TurnText",
]

SIGNALS = (
    "constraint",
    "preference",
    "current_state",
    "past_state",
    "correction",
    "replacement",
    "query_like",
    "ack_like",
)
"""The conversational signals of the DMF paper, eq. 5, in its order."""

REST = "rest"
"""Kind of the claim that a turn says more than its claims: it is on no topic, nothing takes
it over, and so the turn is not replaced as a whole when its topics are."""


@dataclass(frozen=True, slots=True)
class TurnText:
    """One turn as the analyser sees it.

    Attributes:
        text: The raw text, exactly as stored.
        role: ``user``, ``assistant``, ``system``, ``tool`` or another label.
        speaker: The speaker's name where one is known.
        timestamp: When it was said, where known: timezone-aware, on the clock of its stamp.
    """

    text: str
    role: str = "user"
    speaker: str | None = None
    timestamp: datetime | None = None


@dataclass(frozen=True, slots=True)
class Entity:
    """A named entity: surface text, spaCy label, character span ``[start, end)``."""

    text: str
    label: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Cue:
    """Why a signal fired: the matched words, their span and the rule's name.

    Its signal is one of :data:`SIGNALS`, or ``update``: something changed.
    """

    signal: str
    text: str
    start: int
    end: int
    rule: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A stable (topic identity, topic value) pair of a turn (paper, section 4.5).

    Attributes:
        kind: ``preference``, ``constraint``, ``current_state``, ``past_state``,
            ``correction`` (a value given in place of another), or :data:`REST`.
        subject: Whom it is about, normalised: the speaker's name in lower case
            (``user`` or ``assistant`` where no name is known), or the person
            whom the sentence is about.
        identity: What the value is a value of, normalised: ``residence``,
            ``port``, ``preference:drink``, ``constraint:deploy``; with what limits the value
            (``port for dev``, ``preference:run in rain``), and with the value itself where
            it is said to hold beside others (``residence also porto``).
        value: The normalised value: ``berlin``, ``8080``, ``tea``, ``allowed``.
        old_value: The value it replaces, where the sentence names it.
        negated: Whether the sentence denies the value.
    """

    kind: str
    subject: str
    identity: str
    value: str
    old_value: str | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class TimeExpression:
    """A time expression resolved against an anchor date.

    Attributes:
        text: The surface words ("last week").
        start: First character of the span.
        end: One past the last character.
        first: First day covered, ``YYYY-MM-DD`` (None: open to the past).
        last: Last day covered, inclusive (None: open to the future).
        grain: ``day``, ``week``, ``weekend``, ``month``, ``season``, ``year``
            or ``span``.
        words: The dates as they are shown in brackets behind a relative
            expression ("7 May 2023"); empty where the text says them itself.
    """

    text: str
    start: int
    end: int
    first: str | None
    last: str | None
    grain: str
    words: str = ""


@dataclass(frozen=True, slots=True)
class CardFacts:
    """A conservative subject-predicate-object projection (paper, eq. 31).

    Attributes:
        kind: ``preference``, ``constraint``, ``correction``, ``current_state``,
            ``relation``, ``event`` or ``fact``.
        subject: Normalised subject (same convention as :class:`Claim`).
        predicate: Canonical predicate lemma (``live_in``, ``prefer``, ``adopt``).
        object: Surface object, never empty, never a bare determiner or pronoun.
        negated: Whether the sentence denies it.
        temporal: ``current``, ``past``, ``future`` or ``none``.
        start: First character of the sentence it was read from.
        end: One past its last character.
        identity: The :class:`Claim` identity it projects, where there is one;
            superseding that claim supersedes the card.
        first: First day of the event where the sentence dates it.
        last: Last day of it, inclusive.
        terms: Lemmas of subject, predicate and object, for symbolic lookup.
    """

    kind: str
    subject: str
    predicate: str
    object: str
    negated: bool = False
    temporal: str = "none"
    start: int = 0
    end: int = 0
    identity: str | None = None
    first: str | None = None
    last: str | None = None
    terms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """Everything the engine needs to know about the language of one turn.

    Attributes:
        density: Information density, in [0, 1] (eq. 1).
        sentiment: |VADER compound|, in [0, 1] (eq. 2).
        entity_count: Named entities after the label filter (eq. 3).
        entities: The entities themselves, in text order.
        signals: Names from :data:`SIGNALS` that fired (eq. 5).
        cues: Their evidence.
        claims: (topic identity, topic value) pairs, in text order.
        social: Whether the turn is phatic (eq. 28).
        terms: Normalised content lemmas for the lexical index, in text order,
            repetitions kept; stop words and punctuation left out.
        times: Time expressions resolved against the turn's own timestamp.
        cards: Projected cards.
    """

    density: float
    sentiment: float
    entity_count: int
    entities: tuple[Entity, ...] = ()
    signals: frozenset[str] = frozenset()
    cues: tuple[Cue, ...] = ()
    claims: tuple[Claim, ...] = ()
    social: bool = False
    terms: tuple[str, ...] = ()
    times: tuple[TimeExpression, ...] = ()
    cards: tuple[CardFacts, ...] = ()
