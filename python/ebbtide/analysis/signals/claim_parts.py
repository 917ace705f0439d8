"""What every claim rule needs: a claim with its span, and whom a sentence is about."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ebbtide.analysis.facts import Claim, TurnText
from ebbtide.analysis.normalise import nfc_lower, word_set

if TYPE_CHECKING:
    from spacy.tokens import Doc

    from ebbtide.analysis.signals.text import Clause, Sentence

__all__ = [
    "ADVERBS",
    "RELATIVE",
    "SUBJECT",
    "UNSPECIFIED",
    "ClaimReader",
    "PlacedClaim",
    "speaker_of",
]

UNSPECIFIED = ""
"""Identity of a replacement that names both values but not what they are values of
("I meant Tuesday, not Monday")."""

RELATIVE = (
    r"(?:(?:older|younger|little|big|best|twin|elder|step)[- ])?"
    "(?:sister|brother|mom|mum|mother|dad|father|wife|husband|son|daughter|partner"
    "|girlfriend|boyfriend"
    r"|fianc[eé]e?|friend|boss|aunt|uncle|cousin|grandma|grandpa|grandmother|grandfather|roommate"
    r"|flatmate|neighbou?r|colleague|manager|niece|nephew|dog|cat)"
)
SUBJECT = (
    rf"(?P<s>\b[Ii]|\b[Ww]e|\b[Mm]y {RELATIVE}(?: [A-Z][a-z]+)?|\b[A-Z][\w-]+)(?:\s+|(?=')"
    r"|(?=\u2019))"
)
ADVERBS = (
    r"(?:(?:really|truly|just|also|still|always|absolutely|totally|actually|definitely|especially"
    r"|particularly|now|currently|recently|finally|both|all|mostly|simply|usually|happily|only|even"
    r"|officially|already|since|then|permanently)\s+)*"
)


@dataclass(frozen=True, slots=True)
class PlacedClaim:
    """A claim and the characters it was read from."""

    claim: Claim
    start: int
    end: int


def speaker_of(turn: TurnText) -> str:
    """The speaker's name in lower case, or the role where no name is known."""
    name = nfc_lower(turn.speaker or "").strip()
    return name or nfc_lower(turn.role)


@dataclass(frozen=True, slots=True)
class ClaimReader:
    """One turn under reading: its parse, its matching text, its speaker."""

    doc: Doc
    text: str
    speaker: str

    def subject(self, match: re.Match[str], offset: int) -> str | None:
        """Whom a match's group ``s`` is about; None for pronouns and plain words."""
        words = match.group("s")
        if words.lower() in ("i", "we"):
            return self.speaker
        if words.lower().startswith("my "):
            relation = re.match(rf"[Mm]y ({RELATIVE})", words)
            return f"{self.speaker}'s {nfc_lower(relation.group(1))}" if relation else None
        span = self.doc.char_span(
            offset + match.start("s"), offset + match.end("s"), alignment_mode="expand"
        )
        if span is None or not all(token.pos_ == "PROPN" for token in span):
            return None
        if nfc_lower(words) in _NOT_NAMES or span[0].ent_type_ not in ("", "PERSON", "ORG", "GPE"):
            return None
        return nfc_lower(words)

    def place(self, where: Clause | Sentence, match: re.Match[str], claim: Claim) -> PlacedClaim:
        """Put a claim where its match was found."""
        return PlacedClaim(claim, where.start + match.start(), where.start + match.end())


_NOT_NAMES = word_set(
    """he she they it you this that these those who what which there everyone everybody someone
    people nobody one thanks hey hi oh wow yeah yes no ok okay actually sorry"""
)
