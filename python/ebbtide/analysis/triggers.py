"""Patterns that are only tried where they can match.

A turn is read with some two hundred patterns, and nearly all of them fail. Most
need a literal piece of text to match at all ("replac" for "replaced ... with"), and
whether a text holds any of a pattern's pieces is a set operation. The pieces are
read off the pattern itself, so that a guard can never disagree with what it guards.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

__all__ = ["GuardedPattern", "guarded", "pieces_of", "triggers"]

_SIZE = 3
"""Characters of a piece."""

_MOST = 48
"""Alternative strings followed side by side; beyond, a pattern's part goes unused."""

_ALWAYS: Final = frozenset([""])
"""Triggers of a pattern that may match any text; every text holds this piece."""

# Letters that equal an ASCII one under re.IGNORECASE, which str.lower does not tell.
_FOLDED = str.maketrans({"ſ": "s", "İ": "i", "ı": "i", "\u212a": "k"})
_BY_FREQUENCY = " etaoinshrdlucmfwygpbvk'xqjz"


class GuardedPattern:
    """A compiled pattern with the pieces of which a matching text has at least one.

    Attributes:
        pattern: The compiled pattern.
        needs: The pieces; ``{""}`` where none are known.
    """

    __slots__ = ("needs", "pattern")

    def __init__(self, pattern: re.Pattern[str]) -> None:
        """Read the pieces off a compiled pattern."""
        self.pattern = pattern
        self.needs = triggers(pattern)

    def search(self, text: str) -> re.Match[str] | None:
        """As that of ``re.Pattern``."""
        return None if self.needs.isdisjoint(pieces_of(text)) else self.pattern.search(text)

    def finditer(self, text: str) -> Iterable[re.Match[str]]:
        """As that of ``re.Pattern``."""
        return () if self.needs.isdisjoint(pieces_of(text)) else self.pattern.finditer(text)


def guarded(pattern: str, flags: int = 0) -> GuardedPattern:
    """Compile a pattern with its guard; the arguments are those of ``re.compile``."""
    return GuardedPattern(re.compile(pattern, flags))


# One clause is read by all patterns before the next one is.
@functools.lru_cache(maxsize=32)
def pieces_of(text: str) -> frozenset[str]:
    """Every run of three characters of a text, lower case, and the empty one."""
    lower = text.lower() if text.isascii() else text.translate(_FOLDED).lower()
    return frozenset(map("".join, zip(lower, lower[1:], lower[2:], strict=False))) | _ALWAYS


def triggers(pattern: re.Pattern[str]) -> frozenset[str]:
    """Pieces of which every text that matches holds at least one; ``{""}`` if unknown."""
    try:
        from re import _parser  # type: ignore[attr-defined]

        parsed = _parser.parse(pattern.pattern, pattern.flags)
    except (ImportError, AttributeError):  # not a public module: without it, no guards
        return _ALWAYS
    best = _Sequence().read(parsed).best()
    return _ALWAYS if best is None else best


class _Sequence:
    """What a sequence of pattern parts must contain, read from left to right.

    ``runs`` are the literal strings that the parts since the last gap can stand
    for; ``found`` are sets of pieces of which one must occur each.
    """

    def __init__(self) -> None:
        self.runs = [""]
        self.found: list[frozenset[str]] = []
        self.exact = True

    def read(self, parts: Iterable[tuple[Any, Any]]) -> _Sequence:
        for operation, argument in parts:
            self._part(str(operation), argument)
        return self

    def best(self) -> frozenset[str] | None:
        """The rarest of the sets; None where there is none."""
        self._close()
        return min(
            self.found, key=lambda pieces: (_commonness(pieces), sorted(pieces)), default=None
        )

    def _part(self, operation: str, argument: Any) -> None:
        if operation in ("AT", "ASSERT", "ASSERT_NOT"):
            return  # they take up no characters
        if operation in ("SUBPATTERN", "ATOMIC_GROUP"):
            self.read(argument[-1] if operation == "SUBPATTERN" else argument)
        elif operation == "BRANCH":
            self._alternatives([_Sequence().read(parts) for parts in argument[1]])
        elif operation in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            self._repeat(*argument)
        elif (letters := _letters(operation, argument)) is not None:
            self._extend([letters])
        else:
            self._gap()

    def _repeat(self, least: int, most: int, parts: Any) -> None:
        part = _Sequence().read(parts)
        if most == 1 and least == 0 and part.exact:
            self._extend(["", *part.runs])
            return
        self._gap()
        if least:
            self._need(part.best())

    def _alternatives(self, options: Sequence[_Sequence]) -> None:
        if all(option.exact for option in options):
            self._extend([run for option in options for run in option.runs])
            return
        self._gap()
        wanted = [option.best() for option in options]
        known = [pieces for pieces in wanted if pieces is not None]
        self._need(frozenset().union(*known) if len(known) == len(wanted) else None)

    def _extend(self, strings: Sequence[str]) -> None:
        if len(self.runs) * len(strings) > _MOST:
            self._gap()
            if len(strings) > _MOST:
                self._need(_pieces(strings))
                return
            self.runs = [""]
        self.runs = list(dict.fromkeys(run + string for run in self.runs for string in strings))

    def _gap(self) -> None:
        """Anything may stand here."""
        self._close()
        self.exact = False

    def _close(self) -> None:
        self._need(_pieces(self.runs))
        self.runs = [""]

    def _need(self, pieces: frozenset[str] | None) -> None:
        if pieces is not None:
            self.found.append(pieces)


def _letters(operation: str, argument: Any) -> str | None:
    """The one ASCII character, lower case, that a part stands for."""
    codes = [argument] if operation == "LITERAL" else []
    if operation == "IN" and all(str(kind) == "LITERAL" for kind, _ in argument):
        codes = [code for _, code in argument]
    letters = {chr(code).lower() for code in codes if code < 128}
    return letters.pop() if len(letters) == 1 and all(code < 128 for code in codes) else None


def _pieces(strings: Iterable[str]) -> frozenset[str] | None:
    """For every string the rarest piece of it; None where one is too short for any."""
    pieces = [_rarest(string) for string in strings]
    known = [piece for piece in pieces if piece is not None]
    return frozenset(known) if len(known) == len(pieces) else None


def _rarest(string: str) -> str | None:
    pieces = [string[at : at + _SIZE] for at in range(len(string) - _SIZE + 1)]
    return min(pieces, key=lambda piece: (_commonness([piece]), piece), default=None)


def _commonness(pieces: Iterable[str]) -> float:
    """Roughly how often any of the pieces comes up in English."""
    total = 0.0
    for piece in sorted(pieces):
        share = 1.0
        for letter in piece:
            rank = _BY_FREQUENCY.find(letter)
            share /= 5 + (rank if rank >= 0 else len(_BY_FREQUENCY))
        total += share
    return total
