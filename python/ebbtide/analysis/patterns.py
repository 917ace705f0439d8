"""Patterns that are compiled when they are first tried, and only tried where they can match.

A turn is read with some two hundred patterns, and nearly all of them fail. Most need certain
words to match at all ("replaced" and "with" for "replaced ... with"), and whether a text
holds any of a pattern's words is a set operation. Compiling them all would take longer than
anything else on the way to the first turn.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Set
from pathlib import Path

from ebbtide.analysis.triggers import ALWAYS, BEGINNING, DIGIT, ENDING, OPEN, triggers

__all__ = [
    "READ_OFF",
    "AnyOf",
    "GuardedPattern",
    "LazyPattern",
    "PatternList",
    "compile_all",
    "folded",
    "guarded",
    "key_of",
    "lazy",
    "pieces_of",
]

READ_OFF = Path(__file__).with_name("triggers.json")
"""What is read off the patterns of this package, written by scripts/pattern_triggers.py: to
read it anew takes a tenth of the time to the first turn."""

# Letters that equal an ASCII one under re.IGNORECASE, which str.lower does not tell.
_FOLDED = str.maketrans({"ſ": "s", "İ": "i", "ı": "i", "\u212a": "k"})

_made: weakref.WeakSet[LazyPattern] = weakref.WeakSet()


def compile_all() -> None:
    """Compile every pattern that was made, so that no turn has to wait for it."""
    for made in list(_made):
        made.pattern  # noqa: B018


class LazyPattern:
    """A pattern that is compiled when it is first tried.

    Attributes:
        source: The pattern as it is written.
        flags: Flags of the ``re`` module.
    """

    __slots__ = ("__weakref__", "_compiled", "flags", "source")

    def __init__(self, source: str, flags: int = 0) -> None:
        """Keep a pattern; nothing is compiled yet."""
        _made.add(self)
        self.source = source
        self.flags = flags
        self._compiled: re.Pattern[str] | None = None

    @property
    def pattern(self) -> re.Pattern[str]:
        """The compiled pattern."""
        if self._compiled is None:
            self._compiled = re.compile(self.source, self.flags)
        return self._compiled

    def search(self, text: str, start: int = 0, end: int = sys.maxsize) -> re.Match[str] | None:
        """As that of ``re.Pattern``."""
        return self.pattern.search(text, start, end)

    def match(self, text: str, start: int = 0, end: int = sys.maxsize) -> re.Match[str] | None:
        """As that of ``re.Pattern``."""
        return self.pattern.match(text, start, end)

    def fullmatch(self, text: str, start: int = 0, end: int = sys.maxsize) -> re.Match[str] | None:
        """As that of ``re.Pattern``."""
        return self.pattern.fullmatch(text, start, end)

    def finditer(
        self, text: str, start: int = 0, end: int = sys.maxsize
    ) -> Iterator[re.Match[str]]:
        """As that of ``re.Pattern``."""
        return self.pattern.finditer(text, start, end)

    def split(self, text: str, most: int = 0) -> list[str]:
        """As that of ``re.Pattern``."""
        return self.pattern.split(text, most)


class GuardedPattern:
    """A pattern with the pieces of which a matching text has at least one.

    Attributes:
        lazy: The pattern, compiled when a text first has such pieces.
        needs: Sets of pieces, of each of which a text has one; ``{""}`` where none are known.
    """

    __slots__ = ("lazy", "needs")

    def __init__(self, source: str, flags: int = 0) -> None:
        """Read the pieces off a pattern."""
        self.lazy = LazyPattern(source, flags)
        known = _read_off().get(key_of(source, flags))
        self.needs = triggers(source, flags) if known is None else known

    @property
    def pattern(self) -> re.Pattern[str]:
        """The compiled pattern."""
        return self.lazy.pattern

    def may_match(self, pieces: Set[str]) -> bool:
        """Whether a text of these pieces may match."""
        # As a generator it would take three times as long.
        for needed in self.needs:  # noqa: SIM110
            if needed.isdisjoint(pieces):
                return False
        return True

    def search(self, text: str) -> re.Match[str] | None:
        """As that of ``re.Pattern``."""
        return self.lazy.pattern.search(text) if self.may_match(pieces_of(text)) else None

    def match(self, text: str) -> re.Match[str] | None:
        """As that of ``re.Pattern``."""
        return self.lazy.pattern.match(text) if self.may_match(pieces_of(text)) else None

    def finditer(self, text: str) -> Iterable[re.Match[str]]:
        """As that of ``re.Pattern``."""
        return self.lazy.pattern.finditer(text) if self.may_match(pieces_of(text)) else ()

    def sub(self, made: str | Callable[[re.Match[str]], str], text: str) -> str:
        """As that of ``re.Pattern``."""
        return self.lazy.pattern.sub(made, text) if self.may_match(pieces_of(text)) else text


class PatternList:
    """Named patterns, of which only those are looked at that a text has a piece of.

    Attributes:
        rules: The names and their patterns, in order.
    """

    __slots__ = ("_by_piece", "_pieces", "rules")

    def __init__(self, rules: Iterable[tuple[str, GuardedPattern]]) -> None:
        """Note for each piece whose it is."""
        self.rules = tuple(rules)
        by_piece: dict[str, list[int]] = {}
        for number, (_, rule) in enumerate(self.rules):
            for piece in sorted(rule.needs[0]):
                by_piece.setdefault(piece, []).append(number)
        self._by_piece = by_piece
        self._pieces = frozenset(by_piece)

    def matches(self, text: str) -> list[tuple[str, re.Match[str]]]:
        """Each rule's first match, in the order of the rules."""
        pieces = pieces_of(text)
        matches: list[tuple[str, re.Match[str]]] = []
        if self._pieces.isdisjoint(pieces):
            return matches
        found = self._pieces & pieces
        for number in sorted({number for piece in found for number in self._by_piece[piece]}):
            name, rule = self.rules[number]
            match = rule.pattern.search(text) if rule.may_match(pieces) else None
            if match is not None:
                matches.append((name, match))
        return matches


class AnyOf:
    """Patterns of which a clause mostly matches none, which is told at once.

    Attributes:
        patterns: The patterns.
    """

    __slots__ = ("_needs", "patterns")

    def __init__(self, *patterns: GuardedPattern) -> None:
        """Note what any of them needs."""
        self.patterns = patterns
        self._needs = frozenset().union(*(pattern.needs[0] for pattern in patterns))

    def may_match(self, text: str) -> bool:
        """Whether a text has what one of them needs."""
        return not self._needs.isdisjoint(pieces_of(text))


def key_of(pattern: str, flags: int) -> str:
    """Where :data:`READ_OFF` has what is read off a pattern."""
    return hashlib.blake2b(f"{int(flags)}:{pattern}".encode(), digest_size=8).hexdigest()


@functools.cache
def _read_off() -> dict[str, tuple[frozenset[str], ...]]:
    table = json.loads(READ_OFF.read_text(encoding="utf-8"))["patterns"]
    return {key: tuple(map(frozenset, needs)) for key, needs in table.items()}


def guarded(pattern: str, flags: int = 0) -> GuardedPattern:
    """A pattern with its guard; the arguments are those of ``re.compile``."""
    return GuardedPattern(pattern, flags)


def lazy(pattern: str, flags: int = 0) -> LazyPattern:
    """A pattern to be compiled later; the arguments are those of ``re.compile``."""
    return LazyPattern(pattern, flags)


def folded(text: str) -> str:
    """In lower case, with what ``re.IGNORECASE`` takes for an ASCII letter as that letter."""
    return text.lower() if text.isascii() else text.translate(_FOLDED).lower()


_WORDS_AND_MARKS = re.compile(r"\w+|[^\w\s]")
_DIGIT = re.compile(r"\d")


# One clause is read by all patterns before the next one is.
@functools.lru_cache(maxsize=32)
def pieces_of(text: str) -> Set[str]:
    """The pieces of a text, as :func:`~ebbtide.analysis.triggers.triggers` names them, and ``""``.

    Words, lower case, their beginnings and endings, and the marks between them.
    """
    lower = folded(text)
    found = set(_WORDS_AND_MARKS.findall(lower))
    pieces = found | ALWAYS
    pieces.update([piece[:BEGINNING] + OPEN for piece in found])
    pieces.update([OPEN + piece[-ENDING:] for piece in found])
    if not lower.isascii():
        pieces.update([letter for letter in lower if letter > "\x7f"])
    if _DIGIT.search("".join([piece for piece in found if not piece.isalpha()])):
        pieces.add(DIGIT)
    return pieces
