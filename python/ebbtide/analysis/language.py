"""What a language adapter offers: the one interface between rules and engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ebbtide.analysis.facts import Claim, Cue, TurnText

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

__all__ = ["LanguageAdapter", "SignalReading"]


@dataclass(frozen=True, slots=True)
class SignalReading:
    """The conversational signals of one turn (paper, eq. 5).

    Attributes:
        signals: Names from :data:`ebbtide.analysis.facts.SIGNALS`.
        cues: Their evidence in text order; at least one for each signal.
        claims: (topic identity, topic value) pairs in text order.
    """

    signals: frozenset[str] = frozenset()
    cues: tuple[Cue, ...] = ()
    claims: tuple[Claim, ...] = ()


@runtime_checkable
class LanguageAdapter(Protocol):
    """Rules of one language over a spaCy parse.

    An adapter keeps no state between turns: the same parse and turn give the
    same reading, whatever was read before.
    """

    @property
    def name(self) -> str:
        """Language tag, such as ``en``."""
        ...

    @property
    def version(self) -> str:
        """Changes whenever a rule changes; part of the analyser's fingerprint."""
        ...

    def signals(self, doc: Doc, turn: TurnText) -> SignalReading:
        """Read signals, evidence and claims.

        Args:
            doc: Parse of ``for_matching(turn.text)``; same length as the text.
            turn: The turn itself. Spans in the result refer to ``turn.text``.
        """
        ...

    def is_social(self, text: str) -> bool:
        """Whether the text is phatic (eq. 28)."""
        ...

    def terms(self, doc: Doc) -> tuple[str, ...]:
        """Content terms for the lexical index, in text order, repetitions kept."""
        ...

    def token_terms(self, token: Token) -> tuple[str, ...]:
        """The terms of one token by itself."""
        ...
