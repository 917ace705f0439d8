"""Matching-only normalisation: what the rules read, never what is stored.

Every translation maps one character to one character, so a span found in the
matching text is the same span of the original text and no offset map is needed.
Unicode composition (NFC) changes lengths; the pipeline does it beforehand
(:mod:`ebbtide.analysis.composing`), and :func:`nfc_lower` once more for values.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["folded", "for_matching", "nfc_lower", "word_set"]

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

# Letters that equal an ASCII one under re.IGNORECASE, which str.lower does not tell.
_FOLDED = str.maketrans({"ſ": "s", "İ": "i", "ı": "i", "\u212a": "k"})

_LONGEST_WORD = 200
_LONGEST_RUN = 400
_LONG_RUN = re.compile(rf"[!-~]{{{_LONGEST_RUN},}}")
_SIGNS = re.compile(r"(?:[!-~]++|[^\w\s]++)++")
"""ASCII, and what is no letter, as emoji: Chinese has no space between its words."""
_SEPARATORS = {ord(character): " " for character in ",;:{}[]()<>|=&\"'`"}


def for_matching(text: str) -> str:
    """Translate typographic apostrophes, quotes, dashes and spaces to ASCII.

    Args:
        text: Any text.

    Returns:
        A text of exactly the same length, equal to ``text`` where it is ASCII.
    """
    if text.isascii():
        return _LONG_RUN.sub(_shortened, text)
    plain = text.translate(_TABLE)
    return plain if len(plain) < _LONGEST_RUN else _SIGNS.sub(_shortened, plain)


def _shortened(run: re.Match[str]) -> str:
    """A run that is no word, cut at its own punctuation, blanked past a word's length.

    Base64, minified JSON, a line of dashes or hearts: the tokenizer and the rules take
    time by the square of such a run, and find nothing in it.
    """
    if run.end() - run.start() < _LONGEST_RUN:
        return run.group()
    pieces = run.group().translate(_SEPARATORS).split(" ")
    return " ".join(piece[:_LONGEST_WORD].ljust(len(piece)) for piece in pieces)


def folded(text: str) -> str:
    """In lower case, with what ``re.IGNORECASE`` takes for an ASCII letter as that letter."""
    return text.lower() if text.isascii() else text.translate(_FOLDED).lower()


def nfc_lower(text: str) -> str:
    """Lower-case and NFC-normalise a value, so that equal words compare equal."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).lower())


def word_set(text: str) -> frozenset[str]:
    """The words of a list written as running text."""
    return frozenset(text.split())
