"""Dates with a calendar name: 8 May 2023, May 2021, summer, Christmas, the 90s.

Each pattern yields an :class:`Atom`. A weak atom ("May", "2019") counts only
when a preposition or an operator of :mod:`.compose` makes it a date.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date

from ebbtide.analysis.patterns import guarded, lazy
from ebbtide.analysis.temporal import dates
from ebbtide.analysis.temporal.tense import tense_near
from ebbtide.analysis.temporal.vocabulary import (
    BREAK,
    DAY,
    MONTH,
    MONTHS,
    WEEKDAY,
    WEEKDAYS,
    YEAR,
    parse_year,
)

__all__ = ["Atom", "calendar_atoms", "choose", "month_day"]

Build = Callable[[int], dates.Range]


@dataclass(slots=True)
class Atom:
    """A resolved stretch of text before composition.

    Attributes:
        start: First character.
        end: One past the last.
        first: First day, None when open.
        last: Last day, None when open.
        grain: As in ``TimeExpression``.
        weak: Empty, or the kind of context that it needs to count as a date.
        build: For a date without a year: its range in a given year.
        kind: ``calendar``, ``relative``, ``weekday`` (no more than its name says which),
            ``duration`` or ``composed``.
    """

    start: int
    end: int
    first: date | None
    last: date | None
    grain: str
    weak: str = ""
    build: Build | None = None
    kind: str = "calendar"


_I = re.IGNORECASE
_COMMA_YEAR = r"(?:,?\s*(?:of\s+)?" + YEAR.replace("?P<year>", "?P<year>", 1) + r"(?!\d))"
_SHORT_YEAR = r"(?:,?\s*" + r"(?P<year>(?:1[89]|20)\d\d|['’]\d\d)(?!\d))"
_NOT_A_COUNT = (
    r"(?!\d|[:/]\d|\.\d|%|\s*(?:am|pm|a\.m|p\.m|miles?|km|kilomet|people|times|days|weeks|"
    r"months|years|hours|minutes|steps|points|dollars|euros|words|pages|calories|degrees|"
    r"views|followers|users|meters|metres|feet|pounds|bucks|lines|items)\b)"
)
_PREFIX_WEEKDAY = (
    r"(?:\b" + WEEKDAY.replace("?P<weekday>", "?:") + r"\b(?:(?<!day)\.)?,?\s+(?:the\s+)?)?"
)
_TH = r"(?:st|nd|rd|th)"
# The full stop of a short name ("Sept."), not that of a sentence.
_SHORT_STOP = r"(?:(?<=jan|feb|mar|apr|jun|jul|aug|sep|ept|oct|nov|dec)\.(?!\s+(?-i:[A-Z])))"

_WEEKDAY = lazy(rf"{WEEKDAY}\b", _I)
_ISO = guarded(
    r"(?<![\d.\-/])(?P<year>(?:1[89]|20)\d\d)(?P<sep>[-/])(?P<mon>0?[1-9]|1[0-2])(?P=sep)"
    rf"{DAY}(?![\d\-/])"
)
_SLASH = guarded(
    r"(?<![\d.\-/])(?P<one>\d{1,2})(?P<sep>[-/.])(?P<two>\d{1,2})(?P=sep)"
    r"(?P<year>(?:1[89]|20)\d\d|\d\d)(?![\d\-/]|\.\d)"
)
_DAY_MONTH = lazy(
    rf"(?P<between>\bbetween\s+(?:the\s+)?)?{_PREFIX_WEEKDAY}(?<![\d.,:/$-])\b{DAY}(?P<th>{_TH})?"
    rf"(?:[^\S\n]*(?:-|–|to|until|through|(?(between)and|(?!)))[^\S\n]*(?P<day2>[12]\d|3[01]|0?[1-9])(?P<th2>{_TH})?)?"
    rf"[^\S\n]*(?:of\s+)?{MONTH}\b{_SHORT_STOP}?{_SHORT_YEAR}?",
    _I,
)
_MONTH_DAY = guarded(
    rf"(?P<between>\bbetween\s+(?:the\s+)?)?{_PREFIX_WEEKDAY}\b{MONTH}\b\.?[^\S\n]*(?:the\s+)?{DAY}(?P<th>{_TH})?"
    rf"(?:[^\S\n]*(?:-|–|to|until|through|(?(between)and|(?!)))[^\S\n]*(?P<day2>[12]\d|3[01]|0?[1-9])(?P<th2>{_TH})?"
    rf"(?![\d:]|[^\S\n]*(?:am|pm)\b))?{_NOT_A_COUNT}{_SHORT_YEAR}?",
    _I,
)
_MONTH_YEAR = guarded(rf"\b{MONTH}\b\.?,?\s*(?:of\s+)?{YEAR}(?![\d-])", _I)
_MONTH_ONLY = guarded(
    rf"(?:\b(?P<mod>last|this past|this|next)\s+)?\b{MONTH}\b"
    rf"{_SHORT_STOP}?(?!['’]s\b)",
    _I,
)
_YEAR_ONLY = guarded(rf"(?<![\w$€£.,#/:-]){YEAR}(?![\d/:%-]|[.,]\d|s\b){_NOT_A_COUNT}")
_DECADE = guarded(
    r"(?<![\w$.])(?:(?:the\s+)?(?P<century>1[89]|20)(?P<tens>\d0)['’]?s|"
    r"the\s+['’](?P<short>\d0)s|the\s+(?P<bare>[5-9]0)['’]?s|"
    r"the\s+(?P<word>fifties|sixties|seventies|eighties|nineties))\b",
    _I,
)
_DECADE_WORDS = {"fifties": 50, "sixties": 60, "seventies": 70, "eighties": 80, "nineties": 90}
_SEASON = guarded(
    r"\b(?:(?P<mod>last|this past|this coming|this|next|the)\s+)?"
    r"(?P<season>spring|summer|fall|autumn|winter)\b"
    rf"(?!\s+(?:water|cleaning|roll|onion|down|off|apart|asleep|in love|for)\b){_COMMA_YEAR}?",
    _I,
)
_HOLIDAY = guarded(
    r"\b(?:(?P<mod>last|this past|this coming|this|next)\s+(?:year['’]s\s+)?)?(?:the\s+)?"
    r"(?P<name>"
    + "|".join(
        re.escape(name).replace("'", "['’]")
        for name in sorted(dates.HOLIDAYS, key=lambda name: (-len(name), name))
    )
    + r")\b"
    rf"(?:{_COMMA_YEAR}|{BREAK})",
    _I,
)
_THE_NTH = guarded(
    rf"\bthe\s+{DAY}{_TH}(?:\s+of\s+(?P<mod>this|last|next|the)\s+month|{BREAK})", _I
)
_BORN = lazy(r"\bborn\s+(?:[\w'’]+\s+){0,3}?(?:in|on|around|at|during)\s+(?:the\s+)?$", _I)
_BREAK = lazy(BREAK)
_AMBIGUOUS_MONTHS = {"march", "april", "may", "june", "august"}


def choose(build: Build, anchor: date, tense: str, *, span: int = 1) -> dates.Range | None:
    """The occurrence of a yearly date that the tense points to.

    Past: the latest that has begun by the anchor. Future: the earliest that is
    not over. None: the nearest, the past one on a tie. ``last`` and ``next``:
    strictly before, strictly after. ``this``: the one that holds the anchor, or
    the one of its year.
    """
    options = []
    for year in range(anchor.year - span, anchor.year + span + 1):
        try:
            options.append(build(year))
        except (ValueError, OverflowError):
            continue
    if not options:
        # 29 February: look further for a leap year.
        return choose(build, anchor, tense, span=8) if span < 8 else None
    picks = {
        "past": [option for option in options if option[0] <= anchor][-1:],
        "last": [option for option in options if option[1] < anchor][-1:],
        "future": [option for option in options if option[1] >= anchor][:1],
        "next": [option for option in options if option[0] > anchor][:1],
        "this": [o for o in options if o[0] <= anchor <= o[1]]
        or [o for o in options if o[0].year == anchor.year],
    }
    if tense in picks:
        found = picks[tense]
        if not found and span < 8:
            return choose(build, anchor, tense, span=8)
        return found[0] if found else None
    return min(options, key=lambda option: (_distance(option, anchor), option))


def _distance(span: dates.Range, day: date) -> int:
    return max((span[0] - day).days, (day - span[1]).days, 0)


def _modifier(word: str | None) -> str | None:
    if word is None:
        return None
    words = " ".join(word.lower().split())
    return {"this past": "last", "this coming": "next", "the": None}.get(words, words)


class _Finder:
    """Runs the patterns over one text."""

    def __init__(self, text: str, anchor: date | None) -> None:
        self.text = text
        self.anchor = anchor

    def tense(self, match: re.Match[str]) -> str:
        return tense_near(self.text, match.start(), match.end())

    def yearly(
        self,
        match: re.Match[str],
        build: Build,
        grain: str,
        *,
        year: int | None,
        weak: str = "",
        modifier: str | None = None,
    ) -> Iterator[Atom]:
        """An atom for a date that recurs every year, its year given or chosen."""
        start, end = match.span()
        born = modifier is None and _BORN.search(self.text[max(0, start - 48) : start])
        if year is not None:
            try:
                first, last = build(year)
            except (ValueError, OverflowError):
                # "31 April 2024" is no date, nor is the "April 2024" in it.
                yield Atom(start, end, None, None, grain, "never")
                return
            yield Atom(start, end, first, last, grain, weak)
        elif self.anchor is not None and not born:
            chosen = choose(build, self.anchor, modifier or self.tense(match))
            if chosen is not None:
                yield Atom(start, end, *chosen, grain, weak, None if modifier else build)
            elif match.groupdict().get("th"):
                yield Atom(start, end, None, None, grain, "never")
        else:
            # Kept without a year, as is "born in June", which nobody says of the latest
            # June: a range may lend it one ("May to July 2021").
            yield Atom(start, end, None, None, grain, weak or "year", build)

    def numeric(self) -> Iterator[Atom]:
        for match in _ISO.finditer(self.text):
            year, month, day = (int(match.group(name)) for name in ("year", "mon", "day"))
            yield from self._exact(match, year, month, day)
        for match in _SLASH.finditer(self.text):
            one, two = int(match.group("one")), int(match.group("two"))
            digits, sep = match.group("year"), match.group("sep")
            if len(digits) == 2 and sep != "/":
                continue
            # A dot is only ever day first; a slash is month first unless it cannot be.
            month, day = (two, one) if sep == "." or one > 12 else (one, two)
            year = int(digits) + (2000 if len(digits) == 2 else 0)
            yield from self._exact(match, year, month, day)

    def _exact(self, match: re.Match[str], year: int, month: int, day: int) -> Iterator[Atom]:
        try:
            value = date(year, month, day)
        except ValueError:
            return
        yield Atom(*match.span(), value, value, "day")

    def days(self) -> Iterator[Atom]:
        for pattern in (_DAY_MONTH, _MONTH_DAY):
            for match in pattern.finditer(self.text):
                name = match.group("month")
                year = match.group("year")
                sure = bool(match.group("th") or year or name[0].isupper())
                before = self.text[max(0, match.start() - 8) : match.start()]
                on = re.search(r"\b(?:on|by|until|since|before|after)\s+$", before, _I)
                if not sure and not (on and len(name) > 3):
                    continue
                month, day = MONTHS[name.lower()], int(match.group("day"))
                day2 = int(match.group("day2") or day)
                if day2 < day:
                    continue

                def build(
                    value: int, month: int = month, day: int = day, day2: int = day2
                ) -> dates.Range:
                    return date(value, month, day), date(value, month, day2)

                grain = "day" if day == day2 else "span"
                given = parse_year(year) if year else self._year_of_weekday(match, build)
                for atom in self.yearly(match, build, grain, year=given):
                    if match.group("between") and not match.group("day2"):
                        # Two full dates: the composition joins them.
                        atom.start = match.end("between")
                    yield atom

    def _year_of_weekday(self, match: re.Match[str], build: Build) -> int | None:
        """The nearest year in which the day falls on the weekday before it, if one is near.

        "Thursday 5 March" says of which year it is, whatever the tense of the sentence.
        """
        named = _WEEKDAY.match(match.group())
        if named is None or self.anchor is None:
            return None
        weekday = WEEKDAYS[named.group("weekday").lower()]
        found = []
        for year in range(self.anchor.year - 2, self.anchor.year + 3):
            try:
                first, last = build(year)
            except (ValueError, OverflowError):
                continue
            if first.weekday() == weekday:
                found.append((_distance((first, last), self.anchor), year))
        return min(found)[1] if found else None

    def months(self) -> Iterator[Atom]:
        for match in _MONTH_YEAR.finditer(self.text):
            month = MONTHS[match.group("month").lower()]
            yield from self.yearly(
                match,
                lambda year, month=month: dates.month_range(year, month),  # type: ignore[misc]
                "month",
                year=int(match.group("year")),
            )
        for match in _MONTH_ONLY.finditer(self.text):
            name = match.group("month")
            month = MONTHS[name.lower()]
            modifier = _modifier(match.group("mod"))
            weak = "" if modifier and (name[0].isupper() or len(name) > 3) else "month"
            if weak and self._plain_month(match):
                weak = ""
            yield from self.yearly(
                match,
                lambda year, month=month: dates.month_range(year, month),  # type: ignore[misc]
                "month",
                year=None,
                weak=weak,
                modifier=modifier,
            )

    def _plain_month(self, match: re.Match[str]) -> bool:
        """A capitalised month that is neither a word nor a given name."""
        name = match.group("month")
        follows = self.text[match.end() : match.end() + 4]
        return (
            len(name) > 4
            and name[0].isupper()
            and name.lower() not in _AMBIGUOUS_MONTHS
            and re.match(r"\s[A-Z][a-z]|[ *]*:", follows) is None
        )

    def years(self) -> Iterator[Atom]:
        for match in _YEAR_ONLY.finditer(self.text):
            first, last = dates.year_range(int(match.group("year")))
            yield Atom(*match.span(), first, last, "year", "year-only")
        for match in _DECADE.finditer(self.text):
            start = self._decade(match)
            yield Atom(*match.span(), date(start, 1, 1), date(start + 9, 12, 31), "span")

    @staticmethod
    def _decade(match: re.Match[str]) -> int:
        if match.group("century"):
            return int(match.group("century")) * 100 + int(match.group("tens"))
        if match.group("word"):
            return 1900 + _DECADE_WORDS[match.group("word").lower()]
        tens = int(match.group("short") or match.group("bare"))
        return (1900 if tens >= 30 else 2000) + tens

    def seasons(self) -> Iterator[Atom]:
        for match in _SEASON.finditer(self.text):
            season = match.group("season").lower()
            year = match.group("year")
            word = match.group("mod")
            modifier = _modifier(word)
            yield from self.yearly(
                match,
                lambda year, season=season: dates.season_range(year, season),  # type: ignore[misc]
                "season",
                year=int(year) if year else None,
                weak=self._season_weakness(match),
                modifier=None if year else modifier,
            )

    def _season_weakness(self, match: re.Match[str]) -> str:
        if match.group("year") or _modifier(match.group("mod")):
            return ""
        # "During the spring migration" names no season of a year.
        return "season" if _BREAK.match(self.text, match.end()) else "never"

    def holidays(self) -> Iterator[Atom]:
        for match in _HOLIDAY.finditer(self.text):
            name = " ".join(match.group("name").lower().replace("’", "'").split())
            build = dates.HOLIDAYS[name]
            year = match.group("year")
            modifier = _modifier(match.group("mod"))
            sure = year or modifier or name.endswith(("eve", " day", "july"))
            weak = "" if sure else "holiday"
            given = int(year) if year else None
            yield from self.yearly(
                match, build, "day", year=given, weak=weak, modifier=None if year else modifier
            )

    def month_days(self) -> Iterator[Atom]:
        """Of "the 15th", by tense the latest past, the next, or the nearest one."""
        if self.anchor is None:
            return
        for match in _THE_NTH.finditer(self.text):
            day = int(match.group("day"))
            word = (match.group("mod") or "").lower()
            tense = {"last": "last", "next": "next", "this": "this", "the": "this"}.get(
                word, self.tense(match)
            )
            found = month_day(self.anchor, day, tense)
            if found is not None:
                weak = "" if word else "nth"
                yield Atom(*match.span(), found, found, "day", weak)


def month_day(anchor: date, day: int, tense: str, weekday: int | None = None) -> date | None:
    """The day of that number in one of the months around the anchor, as the tense points.

    Args:
        anchor: The turn's day.
        day: 1 to 31.
        tense: ``past``, ``future`` or ``none``; ``last``, ``this`` or ``next`` month.
        weekday: Which weekday it has to be, if it has to.
    """
    offsets = {"last": [-1], "next": [1], "this": [0]}.get(tense, [-2, -1, 0, 1, 2])
    options = []
    for offset in offsets:
        month = dates.add_months(anchor.replace(day=1), offset)
        try:
            option = month.replace(day=day)
        except ValueError:
            continue
        if weekday is None or option.weekday() == weekday:
            options.append(option)
    if tense == "past":
        options = [option for option in options if option <= anchor][-1:]
    elif tense == "future":
        options = [option for option in options if option >= anchor][:1]
    return min(options, key=lambda value: (abs(value - anchor), value), default=None)


def calendar_atoms(text: str, anchor: date | None) -> Iterator[Atom]:
    """Every calendar date of a text, overlaps included.

    Args:
        text: The turn.
        anchor: Its day, or None: then dates without a year stay open.
    """
    finder = _Finder(text, anchor)
    lowered = text.lower()
    has_digit = any(map(str.isdigit, text))
    if has_digit:
        yield from finder.numeric()
    if _MONTH_HINT.search(lowered):
        if has_digit:
            yield from finder.days()
        yield from finder.months()
    if has_digit or "ties" in lowered:
        yield from finder.years()
        yield from finder.month_days()
    if _SEASON_HINT.search(lowered):
        yield from finder.seasons()
    if _HOLIDAY_HINT.search(lowered):
        yield from finder.holidays()


_MONTH_HINT = lazy(r"jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec")
_SEASON_HINT = lazy(r"spring|summer|fall|autumn|winter")
_HOLIDAY_HINT = lazy(
    r"new year|mas\b|mas |christmas|boxing|hallow|valentin|patrick|cinco|juneteenth|independence|"
    r"fourth|4th|veteran|earth|king day|mlk|president|mother|father|memorial|labor|thanksg|"
    r"black fri|good fri|easter|juneteenth"
)
