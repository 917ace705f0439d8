"""What goes in and comes out: turns, reports, evidence."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import date, datetime
from typing import Any

from ebbtide.moments import moment_of

__all__ = [
    "KNOWS",
    "Episode",
    "Eviction",
    "Excerpt",
    "Fact",
    "Finding",
    "RenderedContext",
    "RetrievedEvidence",
    "SupportTurn",
    "Turn",
    "WriteReport",
]

KNOWS = 0.5
"""Confidence from which on the engine knows; below it, what it found may be no answer."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation, given or stored.

    Attributes:
        text: What was said; stored byte for byte.
        role: ``user``, ``assistant``, ``system``, ``tool`` or another label.
        speaker: The speaker's name, where one is known.
        timestamp: When it was said: ISO 8601 text, a datetime, a date, or
            seconds since 1970. Stored turns carry it as it was given. Where it has an
            offset, its day and hour there are what is shown, what "yesterday" counts
            from and what questions about a day are matched with.
        session_id: The conversation session it belongs to.
        external_id: The caller's own id; the same id twice is one turn.
        provenance: Structured provenance, keys as in the paper's eq. 10.
        metadata: Anything else, JSON-able, of up to a million values.
        interaction_id: Number within the memory, from 0, never reused (stored turns).
        record_id: Derived id, equal wherever the same turn went in (stored turns).
        state: ``active`` or ``archived`` (stored turns).
        validity: ``current``, ``superseded``, ``corrected`` or ``invalidated``
            (stored turns).
        tokens: Tokens by the memory's counter (stored turns).
        utc: The timestamp in UTC (stored turns).
    """

    text: str
    role: str = "user"
    speaker: str | None = None
    timestamp: str | datetime | date | int | float | None = None
    session_id: str | None = None
    external_id: str | None = None
    provenance: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] | None = None
    interaction_id: int | None = None
    record_id: str | None = None
    state: str | None = None
    validity: str | None = None
    tokens: int | None = None
    utc: datetime | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-able data."""
        data = asdict(self)
        for name in ("timestamp", "utc"):
            value = data[name]
            if isinstance(value, date):  # a datetime is one
                data[name] = value.isoformat()
        return data

    @classmethod
    def _from_core(cls, row: Mapping[str, Any]) -> Turn:
        metadata = row["metadata"]
        return cls(
            text=row["text"],
            role=row["role"],
            speaker=row["speaker"],
            timestamp=row["timestamp"],
            session_id=row["session_id"],
            external_id=row["external_id"],
            provenance=row["provenance"],
            metadata=None if metadata is None else json.loads(metadata),
            interaction_id=row["interaction_id"],
            record_id=row["record_id"],
            state=row["state"],
            validity=row["validity"],
            tokens=row["tokens"],
            utc=moment_of(row["utc_micros"]),
        )


@dataclass(frozen=True, slots=True)
class Eviction:
    """A turn that left the active memory, and why.

    The reason is ``hard_kill``, ``budget`` or, for one that the gate kept out, ``skip``.
    """

    interaction_id: int
    reason: str


@dataclass(frozen=True, slots=True)
class WriteReport:
    """What a write did.

    Attributes:
        accepted: Turns stored.
        duplicates: Turns already known by their external id.
        evicted: Turns archived, in order.
        superseded: Ids of turns that stopped being current, in order.
        tiers: Active turns by tier (``healthy``, ``unstable``, ``critical``) afterwards.
        active_tokens: Tokens in the active memory afterwards.
        over_budget_tokens: Tokens over the budget that no rule may evict, afterwards.
        over_budget_turns: Insertions after which the budget stayed exceeded.
    """

    accepted: int = 0
    duplicates: int = 0
    evicted: list[Eviction] = field(default_factory=list)
    superseded: list[int] = field(default_factory=list)
    tiers: dict[str, int] = field(default_factory=dict)
    active_tokens: int = 0
    over_budget_tokens: int = 0
    over_budget_turns: int = 0

    def __add__(self, later: WriteReport) -> WriteReport:
        """This report followed by a later one: counts add up, the state is the later's."""
        return WriteReport(
            accepted=self.accepted + later.accepted,
            duplicates=self.duplicates + later.duplicates,
            evicted=self.evicted + later.evicted,
            superseded=self.superseded + later.superseded,
            tiers=later.tiers or self.tiers,
            active_tokens=later.active_tokens if later.tiers else self.active_tokens,
            over_budget_tokens=later.over_budget_tokens if later.tiers else self.over_budget_tokens,
            over_budget_turns=self.over_budget_turns + later.over_budget_turns,
        )

    @classmethod
    def total(cls, reports: Iterable[WriteReport]) -> WriteReport:
        """Reports in order as one; a long run of ``+`` would copy its lists each time."""
        evicted: list[Eviction] = []
        superseded: list[int] = []
        total = cls()
        for report in reports:
            evicted += report.evicted
            superseded += report.superseded
            total += replace(report, evicted=[], superseded=[])
        return replace(total, evicted=evicted, superseded=superseded)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-able data."""
        return asdict(self)

    @classmethod
    def _from_core(cls, row: Mapping[str, Any]) -> WriteReport:
        return cls(
            accepted=row["accepted"],
            duplicates=row["duplicates"],
            evicted=[Eviction(e["interaction_id"], e["reason"]) for e in row["evicted"]],
            superseded=list(row["superseded"]),
            tiers=dict(row["tiers"]),
            active_tokens=row["active_tokens"],
            over_budget_tokens=row["over_budget_tokens"],
            over_budget_turns=row["over_budget_turns"],
        )


@dataclass(frozen=True, slots=True)
class SupportTurn:
    """A turn behind evidence.

    Its relation is ``source``, ``history``, ``newer``, ``previous``, ``next`` or ``linked``.
    """

    turn: Turn
    relation: str


@dataclass(frozen=True, slots=True)
class RenderedContext:
    """A block of text for a prompt, and what is in it.

    Attributes:
        text: The block; empty where nothing is shown.
        shown: Interaction ids of the turns in it, whole or cut: best evidence first,
            then its support, then the active conversation in order. Turns that only
            an episode or a fact quotes are not among them.
        tokens: Its length by the memory's counter.
    """

    text: str
    shown: tuple[int, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class Excerpt:
    """One sentence of a stored turn.

    Attributes:
        interaction_id: The turn.
        start: First character in the turn's text.
        end: One past the last character.
        text: ``[8 May 2023 Ana] sentence``, resolved dates in brackets behind their
            expressions.
    """

    interaction_id: int
    start: int
    end: int
    text: str

    @classmethod
    def _from_core(cls, row: Mapping[str, Any]) -> Excerpt:
        return cls(row["interaction_id"], row["start"], row["end"], row["text"])


@dataclass(frozen=True, slots=True)
class Episode:
    """What was said on a topic that recurs.

    Attributes:
        id: Its number; never used again.
        version: How often it was made anew, from 1.
        at: The turn whose arrival made this version.
        sources: Interaction ids of every turn behind it, in order.
        sentences: What it tells, chronological; each from one of the sources.
        written: What a language model made of it, in place of them; else None.
    """

    id: int
    version: int
    at: int
    sources: tuple[int, ...]
    sentences: tuple[Excerpt, ...]
    written: str | None = None

    @property
    def text(self) -> str:
        """What a model made of it, else its sentences, one line each."""
        if self.written is not None:
            return self.written
        return "\n".join(sentence.text for sentence in self.sentences)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-able data."""
        return {**asdict(self), "text": self.text}

    @classmethod
    def _from_core(cls, row: Mapping[str, Any]) -> Episode:
        return cls(
            id=row["id"],
            version=row["version"],
            at=row["at"],
            sources=tuple(row["sources"]),
            sentences=tuple(Excerpt._from_core(one) for one in row["sentences"]),
            written=row["written"],
        )


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence that an episode leaves out and that is worth keeping by itself.

    Attributes:
        id: Its number; never used again.
        episode: The episode whose refinement found it.
        excerpt: The sentence.
        reasons: Why it was kept: ``first_person``, ``operational``, ``entity``; or
            ``model``.
        topics: ``subject topic: value`` of each topic that it gives a value.
        superseded_by: The fact that gave all its topics other values, or None.
        written: How a language model put it, in place of the sentence; else None.
    """

    id: int
    episode: int
    excerpt: Excerpt
    reasons: tuple[str, ...]
    topics: tuple[str, ...]
    superseded_by: int | None
    written: str | None = None

    @property
    def text(self) -> str:
        """A model's words, else the sentence with its date and speaker."""
        if self.written is not None:
            return self.written
        return self.excerpt.text

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-able data."""
        return asdict(self)

    @classmethod
    def _from_core(cls, row: Mapping[str, Any]) -> Fact:
        return cls(
            id=row["id"],
            episode=row["episode"],
            excerpt=Excerpt._from_core(row["excerpt"]),
            reasons=tuple(row["reasons"]),
            topics=tuple(row["topics"]),
            superseded_by=row["superseded_by"],
            written=row["written"],
        )


@dataclass(frozen=True, slots=True)
class RetrievedEvidence:
    """One answer-bearing turn.

    Attributes:
        rank: From 1, best first.
        score: What it was ranked by; comparable within one call only.
        kind: ``raw`` (the turn itself), ``card`` (found through a memory card) or
            ``shadow`` (a turn that the gate kept out, reached by the fallback).
        turn: The stored turn.
        channels: Score by retrieval channel that found it.
        features: Value by answerability feature, penalty and ranking term.
        support: Turns behind it.
        confidence: How sure the engine is that this answers, in [0, 1]; below
            0.5 it does not know.
        card: The winning card's fields, for kind ``card``.
    """

    rank: int
    score: float
    kind: str
    turn: Turn
    channels: dict[str, float]
    features: dict[str, float]
    support: list[SupportTurn]
    confidence: float
    card: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-able data."""
        return {
            "rank": self.rank,
            "score": self.score,
            "kind": self.kind,
            "turn": self.turn.to_dict(),
            "channels": self.channels,
            "features": self.features,
            "support": [{"turn": s.turn.to_dict(), "relation": s.relation} for s in self.support],
            "confidence": self.confidence,
            "card": self.card,
        }

    @classmethod
    def _from_core(cls, row: Mapping[str, Any]) -> RetrievedEvidence:
        return cls(
            rank=row["rank"],
            score=row["score"],
            kind=row["kind"],
            turn=Turn._from_core(row["turn"]),
            channels=dict(row["channels"]),
            features=dict(row["features"]),
            support=[
                SupportTurn(Turn._from_core(item["turn"]), item["relation"])
                for item in row["support"]
            ],
            confidence=row["confidence"],
            card=row["card"],
        )


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong with a store.

    Attributes:
        namespace: The memory, where it concerns one.
        interaction_id: The turn, where it concerns one.
        what: What is wrong.
        repairable: Whether :meth:`Store.repair` mends it, because it is derived data.
    """

    namespace: str | None
    interaction_id: int | None
    what: str
    repairable: bool
