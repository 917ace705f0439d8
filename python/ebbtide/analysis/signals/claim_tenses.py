"""Whether what a clause tells of still is so."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ebbtide.analysis.patterns import guarded
from ebbtide.analysis.signals.claim_limits import FOR_LONG

if TYPE_CHECKING:
    from ebbtide.analysis.signals.text import Clause

__all__ = ["BE", "HAVE", "LONG_PAST", "NOT", "ended", "is_past", "kind_of"]

# Groups of patterns: forms of "be" and "have", and what denies a state.
BE = r"(?:am|'?m|is|'s|are|'re)"
HAVE = r"(?:have|has|'?ve|'s)"
NOT = (
    r"(?P<neg>(?:don'?t|do not|doesn'?t|does not|no longer|not|never|am not|'?m not|isn'?t"
    r"|aren'?t)\s+)?"
)
_OVER = guarded(r"\b(?:any ?more|any longer|no longer)\b", re.IGNORECASE)
_LASTING = guarded(
    rf"\bsince\b|\b{FOR_LONG}\b"
    r"|\ball (?:my|his|her) life\b|\balways\b|\blately\b|\b(?:until|till) now\b|\bso far\b",
    re.IGNORECASE,
)
_BEFORE = guarded(r"\bbefore\b", re.IGNORECASE)
LONG_PAST = guarded(
    r"\b(?:when (?:I|we) (?:was|were)|years ago|as a (?:kid|child)|back (?:then|in)"
    r"|in (?:19|20)\d\d)\b",
    re.IGNORECASE,
)


def ended(clause: Clause, match: re.Match[str]) -> bool:
    """Whether a state is denied, or is so no more."""
    return bool(match.group("neg")) or bool(_OVER.search(clause.text))


def is_past(match: re.Match[str], clause: Clause) -> bool:
    """Whether a state told in the past or the perfect tense has ended, as far as is said.

    "I have lived in Rome" tells of the past; "for three years" or "since May" makes it last.
    """
    verb = match.groupdict().get("verb")
    if verb is not None and verb.lower() not in ("lived", "resided", "worked"):
        return False
    words = match.group().lower()
    perfect = re.search(r"\b(?:have|has|i'?ve)\b|'(?:ve|s)\b", words)
    return not (perfect and _LASTING.search(clause.text)) or bool(_BEFORE.search(clause.text))


def kind_of(match: re.Match[str], clause: Clause) -> str:
    """``past_state`` or ``current_state``, by the form of "be" that was read."""
    be = match.group("be").lower()
    past = be in ("was", "were") or (be.endswith("been") and is_past(match, clause))
    return "past_state" if past else "current_state"
