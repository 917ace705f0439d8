"""Operators around dates: since, until, before, between, the week before, early.

Composition also decides which weak atoms ("May", "2019", "Christmas") stand: a
preposition or an operator in front of them makes them dates.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta

from ebbtide.analysis.patterns import LazyPattern, lazy
from ebbtide.analysis.temporal import dates
from ebbtide.analysis.temporal.atoms import Atom
from ebbtide.analysis.temporal.relative import shift
from ebbtide.analysis.temporal.tense import PUT_OFF, tense_near
from ebbtide.analysis.temporal.vocabulary import (
    NUMBER,
    ORDINALS,
    UNIT,
    WEEKDAY,
    WEEKDAYS,
    parse_count,
    parse_unit,
)

__all__ = ["compose", "narrative_atoms"]

_I = re.IGNORECASE
_REACH = 48

_SUPPORT = {
    "month": r"\b(?:in|during|throughout|around|of|for|late|early|mid|through|at)\s+(?:early\s+|"
    r"late\s+|mid[- ])?$",
    "year-only": r"(?:\b(?:in|during|throughout|around|of|circa|year|back in|for)\s+|\()$",
    "season": r"\b(?:in|during|over|throughout)\s+(?:the\s+)?$",
    "holiday": r"\b(?:on|at|for|over|around|during|this|it['’]s)\s+(?:the\s+)?$",
    "nth": r"\b(?:on|from|around|is|was|are|due|for)\s+$",
    "year": r"(?!)",
    "period": r"(?!)",
    "never": r"(?!)",
}
_SUPPORT_PATTERNS = {kind: lazy(pattern, _I) for kind, pattern in _SUPPORT.items()}

_NEIGHBOUR = lazy(
    rf"\b(?:the\s+)?(?:last\s+)?(?:(?P<unit>day|night|evening|morning|weekend|week|month|year)|{WEEKDAY})\s+"
    r"(?P<side>before|after|following|prior\s+to|preceding|of)\s+(?:the\s+)?$",
    _I,
)
_COUNTED = lazy(
    rf"\b{NUMBER}\s+{UNIT}\s+(?P<side>before|after|prior\s+to|from|earlier\s+than)\s+$", _I
)
_PART = lazy(
    r"\b(?:the\s+)?(?P<part>early|mid|late|beginning|start|middle|end|first\s+half|second\s+half)(?:[-\s]+|\s+)"
    r"(?:(?:in|of)\s+)?(?:the\s+)?$",
    _I,
)
_ORDINAL = lazy(
    rf"\b(?:the\s+)?(?P<ordinal>first|second|third|fourth|last|1st|2nd|3rd|4th)\s+"
    rf"(?:(?P<unit>week|weekend|day)|{WEEKDAY})\s+(?:of|in)\s+(?:the\s+)?$",
    _I,
)
_BOUND = lazy(
    r"\b(?P<word>ever\s+since|since|until|till|before|prior\s+to|after|by|as\s+of|up\s+to)\s+"
    r"(?:the\s+(?:end\s+of\s+)?)?$",
    _I,
)
_FROM_ON = lazy(r"\bfrom\s+$", _I)
# "Moved from Monday to Thursday" is no stretch of days.
_MOVED_FROM = lazy(rf"\b{PUT_OFF}\b(?:\s+[\w'’-]+){{0,4}}?\s+from\s+(?:the\s+)?$", _I)
_RECURS = lazy(
    r"\b(?:every|each)\s+(?:(?:year|month|week|spring|summer|autumn|fall|winter)\s+(?:in|on|at)\s+)?"
    r"(?:the\s+)?$",
    _I,
)
_ONWARDS = lazy(r"\s*(?:onwards?|on)\b(?!\s+(?:the|my|a)\b)", _I)
_BETWEEN = lazy(r"\bbetween\s+(?:the\s+)?$", _I)
_FROM = lazy(r"\bfrom\s+$", _I)
_JOIN = lazy(r"\s*(?P<join>-|–|—|to|until|till|through|thru|and)\s*(?:the\s+)?", _I)
_PARTS = {"early": "early", "beginning": "early", "start": "early", "mid": "mid",
          "middle": "mid", "late": "late", "end": "late"}  # fmt: skip
_ALONE = lazy(
    r"\bthe\s+(?P<unit>day|night|weekend|week|month|year)\s+before(?=\s*(?:[.,;!?)]|$))", _I
)


def compose(text: str, atoms: list[Atom], anchor: date | None) -> list[Atom]:
    """Join atoms with what stands around them; drop weak ones left alone.

    Args:
        text: The text.
        atoms: Non-overlapping atoms in text order.
        anchor: The anchor's day, if any.
    """
    joined = _ranges(text, atoms)
    result: list[Atom] = []
    for atom in joined:
        try:
            made = _operate(text, atom, anchor)
        except (ValueError, OverflowError):
            continue
        if made is None:
            continue
        # "The last week of May" swallows the "last week" that was read before it.
        while result and result[-1].start >= made.start:
            result.pop()
        if not result or result[-1].end <= made.start:
            result.append(made)
    return result


def _ranges(text: str, atoms: list[Atom]) -> list[Atom]:
    """Between X and Y, from X to Y, X to Y."""
    result: list[Atom] = []
    index = 0
    while index < len(atoms):
        current = atoms[index]
        if index + 1 < len(atoms):
            pair = _pair(text, current, atoms[index + 1])
            if pair is not None:
                result.append(pair)
                index += 2
                continue
        result.append(current)
        index += 1
    return result


def _pair(text: str, one: Atom, two: Atom) -> Atom | None:
    match = _JOIN.fullmatch(text, one.end, two.start)
    if match is None:
        return None
    before = text[max(0, one.start - 16) : one.start]
    between, source = _BETWEEN.search(before), _FROM.search(before)
    if match.group("join").lower() == "and" and between is None:
        return None
    opener = between or source
    if source and _MOVED_FROM.search(text[max(0, one.start - _REACH) : one.start]):
        if one.kind == two.kind == "weekday":
            # Of which weeks nobody says.
            one.weak = two.weak = "never"
        return None
    if opener is None and not _plain_range(one, two):
        return None
    first, last = _align(one, two)
    if two.kind == "weekday" and one.grain == "day" and first and last and first > last:
        first, last = _within_a_week(text, one, two)
    if first is None or last is None or first > last:
        return None
    start = one.start - (len(before) - opener.start()) if opener else one.start
    return Atom(start, two.end, first, last, "span", kind="composed")


def _plain_range(one: Atom, two: Atom) -> bool:
    """Without "from" only two like dates make a range: May to July, Monday to Friday."""
    return one.grain == two.grain and one.kind == two.kind and one.kind in {"calendar", "weekday"}


def _within_a_week(text: str, one: Atom, two: Atom) -> dates.Range:
    """From Monday to Friday, where the latest Friday was before the latest Monday."""
    first, last = _ends(one)[0], _ends(two)[1]
    if one.kind == "weekday" and tense_near(text, one.start, two.end) == "past":
        return last - timedelta(days=(last - first).days % 7), last
    return first, first + timedelta(days=(last - first).days % 7)


def _align(one: Atom, two: Atom) -> tuple[date | None, date | None]:
    """Lend the year of one end to the other, so that the range runs forward."""
    first, last = one.first, two.last
    if one.build is not None and two.build is None and last is not None:
        first = one.build(last.year)[0]
        if first > last:
            first = one.build(last.year - 1)[0]
    elif two.build is not None and first is not None and (last is None or last < first):
        last = two.build(first.year)[1]
        if last < first:
            last = two.build(first.year + 1)[1]
    return first, last


def _operate(text: str, atom: Atom, anchor: date | None) -> Atom | None:
    """Apply the operators in front of an atom, innermost first."""
    while True:
        before = text[max(0, atom.start - _REACH) : atom.start]
        for pattern, apply in _OPERATORS:
            match = pattern.search(before) if before else None
            if match is None or atom.first is None or atom.last is None:
                continue
            made = apply(match, atom, anchor)
            if made is not None:
                made.start = atom.start - (len(before) - match.start())
                made.end = atom.end
                made.kind = "composed"
                atom = made
                break
        else:
            break
    if atom.first is not None and atom.last is not None and atom.kind != "composed":
        atom = _onwards(text, atom, anchor)
    before = text[max(0, atom.start - _REACH) : atom.start]
    if _RECURS.search(before):
        return None
    if not atom.weak:
        return atom
    return atom if _SUPPORT_PATTERNS[atom.weak].search(before) else None


def _onwards(text: str, atom: Atom, anchor: date | None) -> Atom:
    """From 2019 on."""
    before = text[max(0, atom.start - _REACH) : atom.start]
    source, rest = _FROM_ON.search(before), _ONWARDS.match(text, atom.end)
    if source is None or rest is None:
        return atom
    start = atom.start - (len(before) - source.start())
    last = anchor if anchor and atom.first and anchor >= atom.first else None
    return Atom(start, rest.end(), atom.first, last, "span", kind="composed")


def _ends(atom: Atom) -> dates.Range:
    if atom.first is None or atom.last is None:
        raise ValueError("open range")
    return atom.first, atom.last


def _neighbour(match: re.Match[str], atom: Atom, anchor: date | None) -> Atom | None:
    first, last = _ends(atom)
    unit = (match.group("unit") or "").lower()
    unit = "day" if unit in {"night", "evening", "morning"} else unit
    side = match.group("side").lower().split()[0]
    if side == "of":
        return _containing(unit, first, atom)
    back = side in {"before", "prior", "preceding"}
    if not unit:
        weekday = WEEKDAYS[match.group("weekday").lower()]
        if back:
            day = first - timedelta(days=(first.weekday() - weekday) % 7 or 7)
        else:
            day = last + timedelta(days=(weekday - last.weekday()) % 7 or 7)
        return Atom(0, 0, day, day, "day")
    return Atom(0, 0, *dates.period(first if back else last, unit, -1 if back else 1))


def _containing(unit: str, day: date, atom: Atom) -> Atom | None:
    """The week of 8 May, the weekend of 24 June, the month of May."""
    if unit == "weekend":
        return Atom(0, 0, *dates.weekend_of(day), "weekend")
    if unit == "week" and atom.grain == "day":
        return Atom(0, 0, *dates.week_range(day), "week")
    if (unit == "month" and atom.grain == "month") or (unit == "year" and atom.grain == "year"):
        return Atom(0, 0, atom.first, atom.last, atom.grain)
    if unit == "day" and atom.grain == "day":
        return Atom(0, 0, atom.first, atom.last, "day")
    return None


def _counted(match: re.Match[str], atom: Atom, anchor: date | None) -> Atom | None:
    low, high = parse_count(match.group("count"))
    unit, size = parse_unit(match.group("unit"))
    if low != high or unit in {"minute", "hour"}:
        return None
    first, last = _ends(atom)
    ahead = match.group("side").lower() in {"after", "from"}
    if unit == "weekend":
        return Atom(0, 0, *dates.period(first, unit, int(low) * (1 if ahead else -1)))
    count = low * size
    span = (
        shift(first, unit, count if ahead else -count),
        shift(last, unit, count if ahead else -count),
    )
    return Atom(0, 0, *span, atom.grain)


def _part(match: re.Match[str], atom: Atom, anchor: date | None) -> Atom | None:
    first, last = _ends(atom)
    if (last - first).days < 5:
        return None
    part = match.group("part").lower()
    if part.endswith("half"):
        middle = first + timedelta(days=((last - first).days + 1) // 2)
        if part.startswith("first"):
            return Atom(0, 0, first, middle - timedelta(days=1), "span")
        return Atom(0, 0, middle, last, "span")
    return Atom(0, 0, *dates.third((first, last), _PARTS[part]), "span")


def _ordinal(match: re.Match[str], atom: Atom, anchor: date | None) -> Atom | None:
    """The second week of November: days 8 to 14; the first weekend of August."""
    if atom.grain not in {"month", "year"}:
        return None
    first, last = _ends(atom)
    count = ORDINALS[match.group("ordinal").lower()]
    unit = (match.group("unit") or "").lower()
    if unit == "day":
        day = last if count < 0 else first + timedelta(days=count - 1)
        return Atom(0, 0, day, day, "day")
    if unit == "week":
        start = last - timedelta(days=6) if count < 0 else first + timedelta(days=7 * (count - 1))
        return Atom(0, 0, start, start + timedelta(days=6), "week")
    weekday = 5 if unit == "weekend" else WEEKDAYS[match.group("weekday").lower()]
    if count < 0:
        day = last - timedelta(days=(last.weekday() - weekday) % 7)
    else:
        day = first + timedelta(days=(weekday - first.weekday()) % 7 + 7 * (count - 1))
    if unit == "weekend":
        return Atom(0, 0, day, day + timedelta(days=1), "weekend")
    return Atom(0, 0, day, day, "day")


def _bound(match: re.Match[str], atom: Atom, anchor: date | None) -> Atom | None:
    first, last = _ends(atom)
    if atom.kind == "duration":
        return None
    word = match.group("word").lower().split()[-1]
    if word in {"since", "of"}:
        until = anchor if anchor is not None and anchor >= first else None
        return Atom(0, 0, first, until, "span")
    if word == "after":
        return Atom(0, 0, last + timedelta(days=1), None, "span")
    if word in {"before", "to"} and "up" not in match.group("word").lower():
        return Atom(0, 0, None, first - timedelta(days=1), "span")
    start = anchor if anchor is not None and last >= anchor else None
    return Atom(0, 0, start, last, "span")


_OPERATORS: tuple[
    tuple[LazyPattern, Callable[[re.Match[str], Atom, date | None], Atom | None]], ...
] = (
    (_ORDINAL, _ordinal),
    (_COUNTED, _counted),
    (_NEIGHBOUR, _neighbour),
    (_PART, _part),
    (_BOUND, _bound),
)


def narrative_atoms(text: str, found: list[Atom], anchor: date | None) -> list[Atom]:
    """Resolve "the week before" without a date: before the last one named, else the anchor."""
    result = []
    for match in _ALONE.finditer(text):
        earlier = [atom.first for atom in found if atom.end <= match.start() and atom.first]
        base = earlier[-1] if earlier else anchor
        if base is None:
            continue
        unit = match.group("unit").lower().replace("night", "day")
        try:
            first, last, grain = dates.period(base, unit, -1)
            result.append(Atom(*match.span(), first, last, grain, kind="relative"))
        except (ValueError, OverflowError):
            continue
    return result
