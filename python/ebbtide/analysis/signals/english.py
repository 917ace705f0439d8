"""The English adapter: signals with evidence, claims, the social test, terms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ebbtide.analysis.facts import REST, SIGNALS, Cue, TurnText
from ebbtide.analysis.language import SignalReading
from ebbtide.analysis.normalise import for_matching
from ebbtide.analysis.patterns import GuardedPattern, PatternList
from ebbtide.analysis.signals.acknowledgement import acknowledgement_span, is_social
from ebbtide.analysis.signals.claims import read_claims
from ebbtide.analysis.signals.cues import (
    CORRECTION,
    CORRECTION_NOT,
    PAST_STATE,
    REPLACEMENT,
    REPLACEMENT_NOT,
)
from ebbtide.analysis.signals.cues_constraint import CONSTRAINT, CONSTRAINT_NOT
from ebbtide.analysis.signals.cues_preference import PREFERENCE, PREFERENCE_NOT
from ebbtide.analysis.signals.cues_update import UPDATE, UPDATE_NOT
from ebbtide.analysis.signals.states import current_state_cues
from ebbtide.analysis.signals.text import Clause, Sentence, mask, sentences
from ebbtide.analysis.terms import terms, token_terms

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

__all__ = ["EnglishAdapter"]

# A turn that states or rules something does more than react.
_CONTENT = frozenset({"constraint", "correction", "replacement", "current_state", "past_state"})
_ALSO_STATES = frozenset({"marker", "change", "condition", "progressive", "perfect-progressive"})
_ORDER = (*SIGNALS, "update")
_CLAIM_ROLES = frozenset({"system", "tool", "function", "developer"})


class EnglishAdapter:
    """Rules for English over a spaCy parse (paper, section 4.5). Stateless."""

    name = "en"
    version = "9"

    def signals(self, doc: Doc, turn: TurnText) -> SignalReading:
        """Read the signals, their cues and the claims of one turn.

        Args:
            doc: Parse of ``for_matching(turn.text)``.
            turn: The turn; spans of the result refer to its text.
        """
        text = mask(for_matching(turn.text), turn.role)
        parts = sentences(text)
        found: list[tuple[str, int, int, str]] = []
        for sentence in parts:
            found.extend(_sentence_cues(doc, sentence))
        acknowledged = acknowledgement_span(doc, parts)
        if acknowledged and not any(name in _CONTENT for name, *_ in found):
            found.append(("ack_like", *acknowledged, "acknowledges"))
        claims = () if turn.role in _CLAIM_ROLES else read_claims(doc, turn, text, parts)
        fired = {name for name, *_ in found}
        for claim in claims:
            # Giving a value in place of another replaces it, though it need not correct.
            names = [] if claim.claim.kind in ("correction", REST) else [claim.claim.kind]
            if claim.claim.old_value:
                names.append("replacement")
            for signal in names:
                if signal not in fired:
                    found.append((signal, claim.start, claim.end, "claim"))
                    fired.add(signal)
        return SignalReading(
            signals=frozenset(name for name, *_ in found),
            cues=_ordered(turn.text, [*found, *_update_cues(parts)]),
            claims=tuple(claim.claim for claim in claims),
        )

    def is_social(self, text: str) -> bool:
        """Whether the text is phatic (eq. 28)."""
        return is_social(for_matching(text))

    def terms(self, doc: Doc) -> tuple[str, ...]:
        """Content terms, in text order (see :func:`ebbtide.analysis.terms.terms`)."""
        return terms(doc)

    def token_terms(self, token: Token) -> tuple[str, ...]:
        """The terms of one token by itself."""
        return token_terms(token)


def _update_cues(sentences: Sequence[Sentence]) -> Iterator[tuple[str, int, int, str]]:
    """That things changed; said in a question it says nothing."""
    for sentence in sentences:
        if any(not clause.asks for clause in sentence.clauses):
            yield from _matches("update", sentence.text, sentence.start, UPDATE, UPDATE_NOT)


def _ordered(text: str, found: Iterable[tuple[str, int, int, str]]) -> tuple[Cue, ...]:
    cues = {Cue(signal, text[start:end], start, end, rule) for signal, start, end, rule in found}
    return tuple(
        sorted(cues, key=lambda cue: (cue.start, cue.end, _ORDER.index(cue.signal), cue.rule))
    )


def _matches(
    signal: str, text: str, offset: int, rules: PatternList, veto: GuardedPattern | None
) -> list[tuple[str, int, int, str]]:
    matches = [(name, *match.span()) for name, match in rules.matches(text)]
    vetoed = [match.span() for match in veto.finditer(text)] if veto and matches else []
    return [
        (signal, offset + start, offset + end, name)
        for name, start, end in matches
        if not any(first < end and start < last for first, last in vetoed)
    ]


def _sentence_cues(doc: Doc, sentence: Sentence) -> Iterator[tuple[str, int, int, str]]:
    text, start = sentence.text, sentence.start
    if sentence.asks:
        asking = next((clause for clause in sentence.clauses if clause.asks), None)
        first = asking.start if asking else start
        yield "query_like", first, sentence.end, "question"
    if any(not clause.asks for clause in sentence.clauses):
        yield from _matches("correction", text, start, CORRECTION, CORRECTION_NOT)
        yield from _matches("replacement", text, start, REPLACEMENT, REPLACEMENT_NOT)
    for clause in sentence.clauses:
        if clause.asks:
            continue
        yield from _clause_cues(doc, clause)


def _clause_cues(doc: Doc, clause: Clause) -> Iterator[tuple[str, int, int, str]]:
    text, start = clause.text, clause.start
    yield from _matches("constraint", text, start, CONSTRAINT, CONSTRAINT_NOT)
    tastes = _matches("preference", text, start, PREFERENCE, PREFERENCE_NOT)
    yield from tastes
    if clause.unreal:
        return
    yield from _matches("past_state", text, start, PAST_STATE, None)
    for first, last, rule in current_state_cues(doc, clause):
        # "My sister hates mushrooms" tells a taste; it is not a state besides.
        taste = any(first < cue[2] and cue[1] < last for cue in tastes)
        if not taste or rule in _ALSO_STATES:
            yield "current_state", first, last, rule
