"""What a text must hold for a pattern to match it, read off the pattern itself.

So that a guard can never disagree with what it guards.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any, Final

from ebbtide.analysis.normalise import word_set

# The parser of patterns is no public module: without it, there are no guards.
try:
    from re import _constants as _re  # type: ignore[attr-defined]
    from re import _parser  # type: ignore[attr-defined]
except ImportError:
    _re = _parser = None

__all__ = ["ALWAYS", "BEGINNING", "DIGIT", "ENDING", "OPEN", "triggers"]

BEGINNING, ENDING = 3, 4
"""How many characters of a word's beginning, and of its ending, make a piece."""

OPEN: Final = "-"
"""Stands behind a beginning, which any ending may follow, and before an ending."""

DIGIT: Final = "0-9"
"""Stands for any digit."""

_MOST = 48
"""Alternative strings followed side by side; beyond, a pattern's part goes unused."""

_SETS = 4
"""Sets of pieces that are kept of a pattern."""

ALWAYS: Final = frozenset([""])
"""Triggers of a pattern that may match any text; every text holds this piece."""

_GROUPS = (_re.SUBPATTERN, _re.BRANCH, _re.ATOMIC_GROUP) if _parser is not None else ()

_EDGE: Final = "\0"
"""In a string that a pattern stands for: no word goes on over this place."""

_BY_FREQUENCY = " etaoinshrdlucmfwygpbvk'xqjz"
_COMMON = word_set(
    """
    the to and a of in i it is that you for my was on with at from we be so have are not but what
    just up do all about out as me like if can this your he she they how get know no or by more one
    when been there their an had has will now some our his her really love great time
    """
)
"""Words that come up far more often than their letters would have it."""


def triggers(pattern: str, flags: int = 0) -> tuple[frozenset[str], ...]:
    """Sets of pieces; every text that matches holds at least one of each set.

    A piece is a whole word ("now"), a word's beginning ("rep-"), its ending ("-aced"), one
    character that is no part of an ASCII word (";", "今"), or a digit, all in lower case.

    Args:
        pattern: The pattern.
        flags: As for ``re.compile``.

    Returns:
        The sets, the rarest first; one, ``{""}``, if none is known.

    Raises:
        re.error: It is no pattern.
    """
    if _parser is None:
        return (ALWAYS,)
    parsed = _parser.parse(pattern, flags)
    if parsed.state.flags & (_re.SRE_FLAG_ASCII | _re.SRE_FLAG_LOCALE):
        return (ALWAYS,)  # "\b" stands elsewhere there
    return tuple(_Sequence("").read(parsed).needs()[:_SETS]) or (ALWAYS,)


class _Sequence:
    """What a sequence of pattern parts must contain, read from left to right.

    ``runs`` are the literal strings that the parts since the last gap can stand
    for; ``found`` are sets of pieces of which one must occur each.
    """

    __slots__ = ("exact", "found", "runs")

    def __init__(self, before: str) -> None:
        self.runs = [before]
        self.found: list[frozenset[str]] = []
        self.exact = True

    def read(self, parts: Sequence[tuple[Any, Any]], after: str = "") -> _Sequence:
        """Add parts; ``after`` is an edge where no word goes on behind them."""
        for place, (operation, argument) in enumerate(parts):
            if operation is _re.LITERAL and _is_plain(argument):
                letter = chr(argument).lower()
                self.runs = [run + letter for run in self.runs]
                continue
            edge = after
            if operation in _GROUPS and place + 1 < len(parts):
                edge = _EDGE if _is_edge(*parts[place + 1]) else ""
            self._part(operation, argument, edge)
        if after:
            self._extend([after])
        return self

    def needs(self) -> list[frozenset[str]]:
        """The sets, rarest first."""
        return sorted(
            {*self.found, *_pieces(self.runs)},
            key=lambda pieces: (_commonness(pieces), sorted(pieces)),
        )

    def best(self) -> frozenset[str] | None:
        """The rarest of the sets; None where there is none."""
        return next(iter(self.needs()), None)

    def bounded(self) -> bool:
        """Whether no word of what comes before goes on into what comes next."""
        return all(run and not _in_word(run[-1]) for run in self.runs)

    def _inside(self) -> str:
        return _EDGE if self.bounded() else ""

    def _part(self, operation: Any, argument: Any, after: str) -> None:
        if operation is _re.AT:
            if argument is not _re.AT_NON_BOUNDARY:
                self.runs = [run + _EDGE for run in self.runs]
        elif operation is _re.ASSERT:
            direction, parts = argument
            ahead = _Sequence(self._inside() if direction > 0 else "").read(parts)
            self.found += ahead.needs()
        elif operation is _re.ASSERT_NOT:
            pass  # it takes up no characters
        elif operation is _re.SUBPATTERN:
            self.read(argument[-1], after)
        elif operation is _re.ATOMIC_GROUP:
            self.read(argument, after)
        elif operation is _re.BRANCH:
            before = self._inside()
            self._alternatives([_Sequence(before).read(parts, after) for parts in argument[1]])
        elif operation in (_re.MAX_REPEAT, _re.MIN_REPEAT, _re.POSSESSIVE_REPEAT):
            self._repeat(*argument)
        elif operation is _re.IN and (letters := _letters(argument)):
            self._extend(letters)
        elif _is_between_words(operation, argument):
            self._extend([_EDGE])
            self._gap(_EDGE)
        else:
            self._gap("")
            if operation is _re.IN and _is_digit(argument):
                self.found.append(frozenset([DIGIT]))

    def _repeat(self, least: int, most: int, parts: Any) -> None:
        part = _Sequence(self._inside()).read(parts)
        if most == 1 and least == 0 and part.exact:
            self._extend(["", *part.runs])
            return
        ends = part.bounded() and (least > 0 or self.bounded())
        if least and _is_edge(_re.SUBPATTERN, (parts,)):
            self._extend([_EDGE])
        self._gap(_EDGE if ends else "")
        if least:
            self.found += part.needs()

    def _alternatives(self, options: Sequence[_Sequence]) -> None:
        if all(option.exact for option in options):
            self._extend([run for option in options for run in option.runs])
            return
        self._gap(_EDGE if all(option.bounded() for option in options) else "")
        wanted = [option.best() for option in options]
        known = [pieces for pieces in wanted if pieces is not None]
        if len(known) == len(wanted):
            self.found.append(frozenset().union(*known))

    def _extend(self, strings: Sequence[str]) -> None:
        if len(self.runs) * len(strings) > _MOST:
            self._gap(self._inside())
            if len(strings) > _MOST:
                self.found += _pieces([self.runs[0] + string for string in strings])
                ended = all(string and not _in_word(string[-1]) for string in strings)
                self.runs = [_EDGE if ended else ""]
                return
        self.runs = list(dict.fromkeys(run + string for run in self.runs for string in strings))

    def _gap(self, after: str) -> None:
        """Anything may stand here; ``after`` is what the next string begins with."""
        self.found += _pieces(self.runs)
        self.runs = [after]
        self.exact = False


def _is_plain(code: int) -> bool:
    """Whether ``str.lower`` tells all that equals a character where case is ignored.

    So it is of ASCII (``normalise.folded`` sees to the rest), of the letters of Latin-1, and
    of what has no case.
    """
    letter = chr(code)
    return 0 < code < 0x80 or 0xC0 <= code <= 0xFF or letter.lower() == letter.upper()


def _in_word(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


def _letters(choices: Iterable[tuple[Any, Any]]) -> list[str]:
    """The characters, lower case, that a set stands for, if they are few."""
    if not all(kind is _re.LITERAL and _is_plain(code) for kind, code in choices):
        return []
    letters = sorted({chr(code).lower() for _, code in choices})
    return letters if len(letters) <= 3 else []


def _is_edge(operation: Any, argument: Any) -> bool:
    """Whether a part begins where a word ends, if one came before."""
    if operation is _re.AT:
        return argument is not _re.AT_NON_BOUNDARY
    if operation is _re.SUBPATTERN:
        return bool(argument[-1]) and _is_edge(*argument[-1][0])
    if operation in (_re.MAX_REPEAT, _re.MIN_REPEAT, _re.POSSESSIVE_REPEAT):
        least, _, parts = argument
        return least > 0 and bool(parts) and _is_edge(*parts[0])
    return _is_between_words(operation, argument)


def _is_digit(choices: Iterable[tuple[Any, Any]]) -> bool:
    """Whether a set has digits only."""
    return all(
        (kind is _re.CATEGORY and what is _re.CATEGORY_DIGIT)
        or (kind is _re.RANGE and ord("0") <= what[0] <= what[1] <= ord("9"))
        or (kind is _re.LITERAL and chr(what) in "0123456789")
        for kind, what in choices
    )


def _is_between_words(operation: Any, argument: Any) -> bool:
    """Whether a part is one character, and of no word."""
    if operation is _re.LITERAL:
        return not _in_word(chr(argument))
    if operation is not _re.IN:
        return False
    if argument[0][0] is _re.NEGATE:
        return (_re.CATEGORY, _re.CATEGORY_WORD) in argument
    outside = (_re.CATEGORY_SPACE, _re.CATEGORY_NOT_WORD)
    return all(
        (kind is _re.CATEGORY and what in outside)
        or (kind is _re.LITERAL and not _in_word(chr(what)))
        for kind, what in argument
    )


def _pieces(strings: Iterable[str]) -> list[frozenset[str]]:
    """For every string the rarest piece of it; nothing where one has none."""
    pieces = [_rarest(string) for string in strings]
    known = [piece for piece in pieces if piece is not None]
    return [frozenset(known)] if len(known) == len(pieces) else []


@functools.lru_cache(maxsize=1024)
def _rarest(string: str) -> str | None:
    return min(_of_string(string), key=lambda piece: (_share(piece), piece), default=None)


def _of_string(string: str) -> list[str]:
    """The pieces that every text has in which a string stands."""
    pieces: list[str] = []
    start = 0
    while start < len(string):
        end = start + 1
        if _in_word(string[start]):
            while end < len(string) and _in_word(string[end]):
                end += 1
            word = string[start:end]
            pieces += [letter for letter in word if not letter.isascii()]
            if start and end < len(string):
                pieces.append(word)
            elif start and len(word) >= BEGINNING:
                pieces.append(word[:BEGINNING] + OPEN)
            elif end < len(string) and len(word) >= ENDING:
                pieces.append(OPEN + word[-ENDING:])
        elif string[start] != _EDGE and not string[start].isspace():
            pieces.append(string[start])
        start = end
    return pieces


def _commonness(pieces: Iterable[str]) -> float:
    """Roughly how often any of the pieces comes up in English."""
    return sum(map(_share, sorted(pieces)))


@functools.lru_cache(maxsize=4096)
def _share(piece: str) -> float:
    if piece in _COMMON or piece == DIGIT:
        return 0.01
    share = 1.0
    bounded = f" {piece} ".replace(f" {OPEN}", "").replace(f"{OPEN} ", "")
    for letter in bounded if len(piece) > 1 else f" {piece} ":
        rank = _BY_FREQUENCY.find(letter)
        share /= 5 + (rank if rank >= 0 else len(_BY_FREQUENCY))
    return share
