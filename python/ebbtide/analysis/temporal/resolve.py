"""Finding and resolving the time expressions of one text."""

from __future__ import annotations

import re
from datetime import date, datetime

from ebbtide.analysis.facts import TimeExpression
from ebbtide.analysis.normalise import folded, word_set
from ebbtide.analysis.temporal.atoms import Atom, calendar_atoms
from ebbtide.analysis.temporal.compose import compose, narrative_atoms
from ebbtide.analysis.temporal.relative import relative_atoms

__all__ = ["resolve_times"]

# Looking for pieces settles most turns: without one of them there is no date.
_DIGIT = re.compile(r"\d")
_HINTS = word_set(
    """day night tomorrow morning noon evening week month year decade ago back summer winter spring
    autumn fall mon tue wed thu fri sat sun jan feb mar apr may jun jul aug sep oct nov dec mas
    easter hallow thanksg valentin juneteenth cinco ties hour minute"""
)


def resolve_times(text: str, anchor: datetime | None) -> tuple[TimeExpression, ...]:
    """The English time expressions of a text, resolved to days.

    Relative expressions count from the anchor's own date, never from today's.
    Conventions, with the anchor on Wednesday 10 May 2023:

    ========================  ====================================================
    yesterday, last night     9 May
    this morning, tonight     10 May
    last/this/next week       the Monday-to-Sunday week: 1-7, 8-14, 15-21 May
    last weekend              the last Saturday and Sunday that are over: 6-7 May
    this/next weekend         of the anchor's week, of the next: 13-14, 20-21 May
    last/this/next month      April, May, June 2023; years likewise
    last summer               the latest summer that is over: June-August 2022
    last Friday               the latest before the anchor: 5 May
    next Friday               Friday of the next week: 19 May; "this": 12 May; "the
                              Friday after next": 26 May
    on Friday                 5 May; 12 May where the sentence is about what is to come
                              ("my exam is on Friday", "call me on Friday")
    two days/weeks ago        the day 8 May; the week 24-30 April
    two months/years ago      the month March 2023; the year 2021
    a few years ago           2 to 5 years ago: 2018-2021 (several: 3 to 7)
    in two weeks              the week 22-28 May; not read in a past sentence
    in the next two weeks     10 to 24 May
    in May, on 8 May          by the sentence's tense the latest that has begun or
                              the next; without tense words the nearest; of a birth
                              ("born in May") no year is known
    08/05/2023                month first, unless that number is above 12
    the 15th                  like "on 8 May", among the neighbouring months; "Friday the
                              19th" of those in which it is a Friday
    30 February 2023          nothing
    since 2021                1 January 2021 to the anchor
    from Monday to Friday     8 to 12 May; 1 to 5 May in a past sentence
    until/by Friday           to 12 May, from the anchor where it lies ahead
    before/after <date>       open, the date itself not included
    for three years           10 May 2020 to the anchor ("will ... for": ahead)
    the past three months     10 February 2023 to the anchor
    the week before <date>    the calendar week before the date's own
    early/mid/late May        1-10, 11-20, 21-31; of a year, four months each
    the second week of May    8-14 May; the last week: the last seven days
    the 90s                   1990-1999
    Christmas, Thanksgiving   a small fixed list, United States dates
    ========================  ====================================================

    The longest match wins, spans never overlap, the order is that of the text.

    Args:
        text: The text, any length.
        anchor: When it was said; None resolves only what names its own year.

    Returns:
        The expressions; ``first <= last`` where both are given.

    Example:
        >>> from datetime import datetime
        >>> found = resolve_times("I went there yesterday.", datetime(2023, 5, 8))
        >>> found[0].text, found[0].first
        ('yesterday', '2023-05-07')
    """
    lower = folded(text)
    if not any(map(lower.__contains__, _HINTS)) and _DIGIT.search(text) is None:
        return ()
    day = anchor.date() if anchor is not None else None
    candidates = list(calendar_atoms(text, day))
    if anchor is not None:
        candidates.extend(relative_atoms(text, anchor))
    found = compose(text, _longest(candidates), day)
    found.extend(narrative_atoms(text, found, day))
    found = _longest(found)
    return tuple(
        _expression(text, atom) for atom in found if atom.first is not None or atom.last is not None
    )


def _longest(atoms: list[Atom]) -> list[Atom]:
    """Non-overlapping atoms in text order; longer ones, then earlier ones, win."""
    kept: list[Atom] = []
    for atom in sorted(atoms, key=lambda a: (a.start - a.end, bool(a.weak), a.start)):
        if all(atom.end <= other.start or atom.start >= other.end for other in kept):
            kept.append(atom)
    return sorted(kept, key=lambda a: a.start)


def _expression(text: str, atom: Atom) -> TimeExpression:
    return TimeExpression(
        text=text[atom.start : atom.end],
        start=atom.start,
        end=atom.end,
        first=_iso(atom.first),
        last=_iso(atom.last),
        grain=atom.grain,
    )


def _iso(day: date | None) -> str | None:
    return day.isoformat() if day is not None else None
