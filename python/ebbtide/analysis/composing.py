"""Unicode composition (NFC) with the way back to the characters of the stored text."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from typing import TypeVar

from ebbtide.analysis.facts import CardFacts, Cue, Entity, TimeExpression, TurnFacts

__all__ = ["Composed", "compose", "in_original"]

_Spanned = TypeVar("_Spanned", Cue, Entity, TimeExpression)
# Vowel and final letters of Korean combine with the letter before them.
_JAMO = re.compile("[\u1160-\u11ff]")


@dataclass(frozen=True, slots=True)
class Composed:
    """A text in NFC and where its characters lie in the original.

    Attributes:
        text: The composed text.
        starts: For each character of ``text`` the first original character it is
            made of.
        ends: One past the last.
    """

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The span of the original text that ``text[start:end]`` is made of."""
        if start >= end:
            at = self.starts[start] if start < len(self.starts) else (self.ends or (0,))[-1]
            return at, at
        return self.starts[start], self.ends[end - 1]


def compose(text: str) -> Composed | None:
    """Compose a text; None where it is composed already, as nearly every text is."""
    if text.isascii() or unicodedata.is_normalized("NFC", text):
        return None
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    first = 0
    for last in range(1, len(text) + 1):
        if last < len(text) and _combines(text[last]):
            continue
        part = unicodedata.normalize("NFC", text[first:last])
        parts.append(part)
        # Where letter and mark have no common form, each keeps its own place.
        alike = len(part) == last - first
        starts += range(first, last) if alike else [first] * len(part)
        ends += range(first + 1, last + 1) if alike else [last] * len(part)
        first = last
    return Composed("".join(parts), tuple(starts), tuple(ends))


def _combines(character: str) -> bool:
    return unicodedata.category(character).startswith("M") or bool(_JAMO.match(character))


def in_original(facts: TurnFacts, text: str, composed: Composed) -> TurnFacts:
    """The facts of a composed text, their spans and surfaces those of the original.

    Values and terms stay composed, so that equal words compare equal.
    """

    def back(item: _Spanned) -> _Spanned:
        start, end = composed.span(item.start, item.end)
        return replace(item, text=text[start:end], start=start, end=end)

    def card(item: CardFacts) -> CardFacts:
        start, end = composed.span(item.start, item.end)
        return replace(item, start=start, end=end)

    return replace(
        facts,
        entities=tuple(map(back, facts.entities)),
        cues=tuple(map(back, facts.cues)),
        times=tuple(map(back, facts.times)),
        cards=tuple(map(card, facts.cards)),
    )
