"""Of which sets of pieces a text has one, as the bits of one whole number.

A text is asked about hundreds of sets. Each has a bit; a word's bits are looked up, those of
a text are all of its words' together, and whether a pattern may match is one comparison.
"""

from __future__ import annotations

import re
from collections.abc import Set
from threading import Lock

from ebbtide.analysis.normalise import folded
from ebbtide.analysis.triggers import BEGINNING, DIGIT, ENDING, OPEN

__all__ = ["bits_of", "number"]

_MOST_WORDS = 50_000
"""Words whose bits are remembered before all of them are let go."""

_MOST_TEXTS = 32
"""The same for texts: one clause is read by all patterns before the next one is."""

_WORDS_AND_MARKS = re.compile(r"\w+|[^\w\s]")

_numbering = Lock()
_numbers: dict[frozenset[str], int] = {}
_by_piece: dict[str, int] = {}


class _Known:
    """What was looked up since the last set got its bit."""

    __slots__ = ("texts", "words")

    def __init__(self) -> None:
        self.words: dict[str, int] = {}
        self.texts: dict[str, int] = {}


_known = _Known()


def number(pieces: Set[str]) -> int:
    """The bit of a set of pieces; 0 for one with the empty piece, which every text has.

    Args:
        pieces: Pieces as :func:`~ebbtide.analysis.triggers.triggers` names them.
    """
    global _known
    needed = frozenset(pieces)
    if "" in needed:
        return 0
    with _numbering:
        bit = _numbers.get(needed)
        if bit is None:
            bit = _numbers[needed] = 1 << len(_numbers)
            for piece in needed:
                _by_piece[piece] = _by_piece.get(piece, 0) | bit
            # Replaced, not emptied: who is just reading a text may still note it in the old one.
            _known = _Known()
    return bit


def bits_of(text: str) -> int:
    """The bits of all sets of which a text has a piece.

    Its pieces are its words, lower case, their beginnings and endings, and the marks between
    them.
    """
    known = _known
    bits = known.texts.get(text)
    if bits is None:
        bits = _read(text, known.words)
        if len(known.texts) >= _MOST_TEXTS:
            known.texts.clear()
        known.texts[text] = bits
    return bits


def _read(text: str, words: dict[str, int]) -> int:
    lower = folded(text)
    bits = 0
    for word in _WORDS_AND_MARKS.findall(lower):
        found = words.get(word)
        if found is None:
            if len(words) >= _MOST_WORDS:
                words.clear()
            found = words[word] = _read_word(word)
        bits |= found
    if not lower.isascii():
        for letter in lower:
            if letter > "\x7f":
                bits |= _by_piece.get(letter, 0)
    return bits


def _read_word(word: str) -> int:
    bits = 0
    for piece in (word, word[:BEGINNING] + OPEN, OPEN + word[-ENDING:]):
        bits |= _by_piece.get(piece, 0)
    if any(map(str.isdecimal, word)):
        bits |= _by_piece.get(DIGIT, 0)
    return bits
