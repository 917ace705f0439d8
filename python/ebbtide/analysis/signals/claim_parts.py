"""What every claim rule needs: a claim with its span, and whom a sentence is about."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ebbtide.analysis.facts import Claim, TurnText
from ebbtide.analysis.normalise import nfc_lower, word_set
from ebbtide.analysis.signals.people import NAMES, PRONOUNS, RELATIVE, meant, relative
from ebbtide.analysis.signals.values import tokens_from

if TYPE_CHECKING:
    from spacy.tokens import Doc

    from ebbtide.analysis.signals.text import Clause, Sentence

__all__ = [
    "ADVERBS",
    "SUBJECT",
    "UNSPECIFIED",
    "ClaimReader",
    "PlacedClaim",
    "speaker_of",
]

UNSPECIFIED = ""
"""Identity of a replacement that names both values but not what they are values of
("I meant Tuesday, not Monday")."""

# "im" and "ive" are written for "I'm" and "I've".
SUBJECT = (
    rf"(?P<s>\b[Ii]|\b[Ww]e|\b[Ss]?[Hh]e|\b[Mm]y {RELATIVE}(?: {NAMES})?|\b{NAMES})"
    r"(?:\s+|(?=')|(?=\u2019)|(?<=\b[Ii])(?=(?:m|ve)\b))"
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
    """One turn under reading.

    Attributes:
        doc: Its parse.
        text: Its matching text.
        speaker: Whose it is.
        advises: It is an assistant's: what it says to do is advice.
    """

    doc: Doc
    text: str
    speaker: str
    advises: bool = False

    def subject(self, match: re.Match[str], offset: int) -> str | None:
        """Whom a match is about: by its group ``s``, or else the speaker.

        None for plain words, and for pronouns that nobody or more than one stands behind.
        """
        words = match.groupdict().get("s")
        if not words:
            return self.speaker
        if words.lower() in ("i", "we"):
            return self.speaker
        if words.lower() in PRONOUNS:
            return meant(self.doc, words.lower(), offset + match.start("s"), self.speaker)
        if words.lower().startswith("my "):
            return relative(words, self.speaker)
        return self.named(offset + match.start("s"), offset + match.end("s"))

    def named(self, start: int, end: int) -> str | None:
        """The name at the end of a run of capitalised words ("So Tom Silva"), in lower case."""
        span = self.doc.char_span(start, end, alignment_mode="expand")
        tokens = list(span) if span is not None else []
        while tokens and (tokens[0].pos_ != "PROPN" or tokens[0].lower_ in _NOT_NAMES):
            del tokens[0]
        if not tokens or any(token.pos_ != "PROPN" for token in tokens):
            return None
        if tokens[0].ent_type_ not in ("", "PERSON", "ORG", "GPE"):
            return None
        return nfc_lower(self.doc.text[tokens[0].idx : end])

    def is_person(self, start: int, end: int) -> bool:
        """Whether a person's name begins there."""
        named = tokens_from(self.doc, start, min(start + 40, end))
        return bool(named and named[0].ent_type_ == "PERSON")

    def place(self, where: Clause | Sentence, match: re.Match[str], claim: Claim) -> PlacedClaim:
        """Put a claim where its match was found."""
        return PlacedClaim(claim, where.start + match.start(), where.start + match.end())


_NOT_NAMES = word_set(
    """he she they it you this that these those who what which there everyone everybody someone
    people nobody one thanks hey hi oh wow yeah yes no ok okay actually sorry"""
)
