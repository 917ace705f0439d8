"""Patterns that are compiled when they are first tried, and only tried where they can match.

A turn is read with some two hundred patterns, and nearly all of them fail. Most need certain
words to match at all ("replaced" and "with" for "replaced ... with"), and whether a text
holds them is one comparison (:mod:`~.needs`). Compiling them all would take longer than
anything else on the way to the first turn.
"""

from __future__ import annotations

import functools
import hashlib
import json
import operator
import re
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ebbtide.analysis.needs import bits_of, number
from ebbtide.analysis.triggers import triggers

__all__ = [
    "READ_OFF",
    "AnyOf",
    "GuardedPattern",
    "LazyPattern",
    "PatternList",
    "compile_all",
    "guarded",
    "key_of",
    "lazy",
]

READ_OFF = Path(__file__).with_name("triggers.json")
"""What is read off the patterns of this package, written by scripts/pattern_triggers.py: to
read it anew takes a tenth of the time to the first turn."""

_made: list[weakref.ref[LazyPattern]] = []
"""Every pattern; in a list, which may be added to while another thread goes through it."""


def compile_all(*, pause: float = 0.0) -> None:
    """Compile every pattern that was made, so that no turn has to wait for it.

    Args:
        pause: Seconds that are left to other threads after each.
    """
    for kept in _made:
        made = kept()
        if made is not None and made._compiled is None:
            made.pattern  # noqa: B018
            if pause:
                time.sleep(pause)


class LazyPattern:
    """A pattern that is compiled when it is first tried.

    Attributes:
        source: The pattern as it is written.
        flags: Flags of the ``re`` module.
    """

    __slots__ = ("__weakref__", "_compiled", "flags", "source")

    def __init__(self, source: str, flags: int = 0) -> None:
        """Keep a pattern; nothing is compiled yet."""
        _made.append(weakref.ref(self))
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
        bits: The bits of the sets.
    """

    __slots__ = ("bits", "lazy", "needs")

    def __init__(self, source: str, flags: int = 0) -> None:
        """Read the pieces off a pattern."""
        self.lazy = LazyPattern(source, flags)
        known = _read_off().get(key_of(source, flags))
        self.needs = triggers(source, flags) if known is None else known
        self.bits = functools.reduce(operator.or_, map(number, self.needs))

    @property
    def pattern(self) -> re.Pattern[str]:
        """The compiled pattern."""
        return self.lazy.pattern

    def may_match(self, text: str) -> bool:
        """Whether a text has what is needed."""
        return bits_of(text) & self.bits == self.bits

    def search(self, text: str) -> re.Match[str] | None:
        """As that of ``re.Pattern``."""
        return self.lazy.pattern.search(text) if self.may_match(text) else None

    def match(self, text: str) -> re.Match[str] | None:
        """As that of ``re.Pattern``."""
        return self.lazy.pattern.match(text) if self.may_match(text) else None

    def finditer(self, text: str) -> Iterable[re.Match[str]]:
        """As that of ``re.Pattern``."""
        return self.lazy.pattern.finditer(text) if self.may_match(text) else ()

    def sub(self, made: str | Callable[[re.Match[str]], str], text: str) -> str:
        """As that of ``re.Pattern``."""
        return self.lazy.pattern.sub(made, text) if self.may_match(text) else text


class PatternList:
    """Named patterns, of which only those are looked at that a text has a piece of.

    Attributes:
        rules: The names and their patterns, in order.
    """

    __slots__ = ("_bits", "_by_bit", "_unguarded", "rules")

    def __init__(self, rules: Iterable[tuple[str, GuardedPattern]]) -> None:
        """Note for each set of pieces whose it is."""
        self.rules = tuple(rules)
        self._unguarded: list[int] = []
        self._by_bit: dict[int, list[int]] = {}
        for place, (_, rule) in enumerate(self.rules):
            bit = number(rule.needs[0])
            (self._by_bit.setdefault(bit, []) if bit else self._unguarded).append(place)
        self._bits = functools.reduce(operator.or_, self._by_bit, 0)

    def matches(self, text: str) -> list[tuple[str, re.Match[str]]]:
        """Each rule's first match, in the order of the rules."""
        bits = bits_of(text)
        met = bits & self._bits
        matches: list[tuple[str, re.Match[str]]] = []
        if not met and not self._unguarded:
            return matches
        places = [*self._unguarded]
        while met:
            lowest = met & -met
            places += self._by_bit[lowest]
            met ^= lowest
        for place in sorted(places):
            name, rule = self.rules[place]
            match = rule.pattern.search(text) if bits & rule.bits == rule.bits else None
            if match is not None:
                matches.append((name, match))
        return matches


class AnyOf:
    """Patterns of which a clause mostly matches none, which is told at once.

    Attributes:
        patterns: The patterns.
    """

    __slots__ = ("_bits", "patterns")

    def __init__(self, *patterns: GuardedPattern) -> None:
        """Note what any of them needs."""
        self.patterns = patterns
        self._bits = number(frozenset().union(*(pattern.needs[0] for pattern in patterns)))

    def may_match(self, text: str) -> bool:
        """Whether a text has what one of them needs."""
        return bits_of(text) & self._bits == self._bits


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
