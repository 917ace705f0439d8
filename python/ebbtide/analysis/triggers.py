"""What a text must hold for a pattern to match it, read off the pattern itself.

So that a guard can never disagree with what it guards.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any, Final

# The parser of patterns is no public module: without it, there are no guards.
try:
    from re import _constants as _re  # type: ignore[attr-defined]
    from re import _parser  # type: ignore[attr-defined]
except ImportError:
    _re = _parser = None

__all__ = ["ALWAYS", "SIZE", "triggers"]

SIZE = 3
"""Characters of a piece."""

_MOST = 48
"""Alternative strings followed side by side; beyond, a pattern's part goes unused."""

ALWAYS: Final = frozenset([""])
"""Triggers of a pattern that may match any text; every text holds this piece."""

_BY_FREQUENCY = " etaoinshrdlucmfwygpbvk'xqjz"
_LOWER = [chr(code).lower() for code in range(128)]


def triggers(pattern: str, flags: int = 0) -> frozenset[str]:
    """Pieces of which every text that matches holds at least one; ``{""}`` if unknown.

    Args:
        pattern: The pattern.
        flags: As for ``re.compile``.

    Raises:
        re.error: It is no pattern.
    """
    if _parser is None:
        return ALWAYS
    best = _Sequence().read(_parser.parse(pattern, flags)).best()
    return ALWAYS if best is None else best


class _Sequence:
    """What a sequence of pattern parts must contain, read from left to right.

    ``runs`` are the literal strings that the parts since the last gap can stand
    for; ``found`` are sets of pieces of which one must occur each.
    """

    __slots__ = ("exact", "found", "runs")

    def __init__(self) -> None:
        self.runs = [""]
        self.found: list[frozenset[str]] = []
        self.exact = True

    def read(self, parts: Iterable[tuple[Any, Any]]) -> _Sequence:
        for operation, argument in parts:
            if operation is _re.LITERAL and argument < len(_LOWER):
                letter = _LOWER[argument]
                self.runs = [run + letter for run in self.runs]
            else:
                self._part(operation, argument)
        return self

    def best(self) -> frozenset[str] | None:
        """The rarest of the sets; None where there is none."""
        self._close()
        return min(
            self.found, key=lambda pieces: (_commonness(pieces), sorted(pieces)), default=None
        )

    def _part(self, operation: Any, argument: Any) -> None:
        if operation in (_re.AT, _re.ASSERT, _re.ASSERT_NOT):
            return  # they take up no characters
        if operation is _re.SUBPATTERN:
            self.read(argument[-1])
        elif operation is _re.ATOMIC_GROUP:
            self.read(argument)
        elif operation is _re.BRANCH:
            self._alternatives([_Sequence().read(parts) for parts in argument[1]])
        elif operation in (_re.MAX_REPEAT, _re.MIN_REPEAT, _re.POSSESSIVE_REPEAT):
            self._repeat(*argument)
        elif operation is _re.IN and (letter := _letter(argument)) is not None:
            self._extend([letter])
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


def _letter(choices: Iterable[tuple[Any, Any]]) -> str | None:
    """The one ASCII character, lower case, that a set of characters stands for."""
    if not all(kind is _re.LITERAL and code < len(_LOWER) for kind, code in choices):
        return None
    letters = {_LOWER[code] for _, code in choices}
    return letters.pop() if len(letters) == 1 else None


def _pieces(strings: Iterable[str]) -> frozenset[str] | None:
    """For every string the rarest piece of it; None where one is too short for any."""
    pieces = [_rarest(string) for string in strings]
    known = [piece for piece in pieces if piece is not None]
    return frozenset(known) if len(known) == len(pieces) else None


def _rarest(string: str) -> str | None:
    pieces = [string[at : at + SIZE] for at in range(len(string) - SIZE + 1)]
    return min(pieces, key=lambda piece: (_share(piece), piece), default=None)


def _commonness(pieces: Iterable[str]) -> float:
    """Roughly how often any of the pieces comes up in English."""
    return sum(map(_share, sorted(pieces)))


@functools.lru_cache(maxsize=4096)
def _share(piece: str) -> float:
    share = 1.0
    for letter in piece:
        rank = _BY_FREQUENCY.find(letter)
        share /= 5 + (rank if rank >= 0 else len(_BY_FREQUENCY))
    return share
