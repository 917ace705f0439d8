"""Matching-only normalisation: what the rules read, never what is stored.

Every translation maps one character to one character, so a span found in the
matching text is the same span of the original text and no offset map is needed.
Unicode composition (NFC) changes lengths; it is applied to what leaves the
analysis as a value or a term (:func:`nfc_lower`), not to the text that carries
spans. No cue word has a composed character in it.
"""

from __future__ import annotations

import unicodedata

__all__ = ["for_matching", "nfc_lower", "word_set"]

_SINGLE_QUOTES = "‘’‚‛ʼʹ′´＇"
_DOUBLE_QUOTES = "“”„‟«»″＂"
# The em dash stays: it separates clauses, where a hyphen joins words.
_HYPHENS = "‐‑‒–−﹣－"
_SPACES = "\u00a0\u2002\u2003\u2007\u2009\u202f\u3000"

_TABLE = {
    **{ord(character): "'" for character in _SINGLE_QUOTES},
    **{ord(character): '"' for character in _DOUBLE_QUOTES},
    **{ord(character): "-" for character in _HYPHENS},
    **{ord(character): " " for character in _SPACES},
}


def for_matching(text: str) -> str:
    """Translate typographic apostrophes, quotes, dashes and spaces to ASCII.

    Args:
        text: Any text.

    Returns:
        A text of exactly the same length, equal to ``text`` where it is ASCII.
    """
    return text if text.isascii() else text.translate(_TABLE)


def nfc_lower(text: str) -> str:
    """Lower-case and NFC-normalise a value, so that equal words compare equal."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).lower())


def word_set(text: str) -> frozenset[str]:
    """The words of a list written as running text."""
    return frozenset(text.split())
