"""Topic identity and value: what supersession compares (paper, section 4.5).

Claims are conservative. A question, a condition, a wish, another's words, a bare
pronoun, and everything said to or about the listener claim nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ebbtide.analysis.signals.claim_parts import ClaimReader, PlacedClaim, speaker_of
from ebbtide.analysis.signals.claims_life import life_claims
from ebbtide.analysis.signals.claims_rules import constraint_claims
from ebbtide.analysis.signals.claims_settings import replacement_claims, setting_claims
from ebbtide.analysis.signals.claims_taste import taste_claims

if TYPE_CHECKING:
    from spacy.tokens import Doc

    from ebbtide.analysis.facts import TurnText
    from ebbtide.analysis.signals.text import Sentence

__all__ = ["read_claims"]


def read_claims(
    doc: Doc, turn: TurnText, text: str, sentences: tuple[Sentence, ...]
) -> tuple[PlacedClaim, ...]:
    """The claims of one turn, in text order, each once.

    Args:
        doc: Parse of the turn's matching text.
        turn: The turn.
        text: Its matching text, with code, logs and quoted speech blanked.
        sentences: The sentences of that text.
    """
    reader = ClaimReader(doc, text, speaker_of(turn))
    found: list[PlacedClaim] = []
    for sentence in sentences:
        found.extend(_sentence_claims(reader, sentence))
    found.sort(key=lambda item: (item.start, item.end))
    seen: set[object] = set()
    unique: list[PlacedClaim] = []
    for item in found:
        if item.claim not in seen:
            seen.add(item.claim)
            unique.append(item)
    return tuple(unique)


def _sentence_claims(reader: ClaimReader, sentence: Sentence) -> Iterator[PlacedClaim]:
    asserted = [clause for clause in sentence.clauses if not clause.asks and not clause.unreal]
    replaced: list[PlacedClaim] = []
    if asserted and len(asserted) == len(sentence.clauses):
        replaced = list(replacement_claims(reader, sentence))
    yield from replaced
    settled = {item.claim.identity for item in replaced}
    for clause in asserted:
        yield from life_claims(reader, clause)
        yield from taste_claims(reader, clause)
        yield from constraint_claims(reader, clause)
        for item in setting_claims(reader, clause):
            if item.claim.identity not in settled:
                yield item
