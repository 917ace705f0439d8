"""Dates counted from the anchor: yesterday, last week, two months ago, on Tuesday."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, datetime, timedelta

from ebbtide.analysis.patterns import GuardedPattern, LazyPattern, guarded, lazy
from ebbtide.analysis.temporal import dates
from ebbtide.analysis.temporal.atoms import Atom, month_day
from ebbtide.analysis.temporal.tense import is_perfect, is_reply, tense_near
from ebbtide.analysis.temporal.vocabulary import (
    BREAK,
    DAY,
    MONTH,
    NUMBER,
    PART_OF_DAY,
    UNIT,
    WEEKDAY,
    WEEKDAYS,
    parse_count,
    parse_unit,
)

__all__ = ["relative_atoms", "shift"]

_I = re.IGNORECASE
_WORDS = guarded(
    r"\b(?:(?P<two_back>(?:the\s+)?day\s+before\s+yesterday)|"
    r"(?P<two_on>(?:the\s+)?day\s+after\s+tomorrow)|"
    rf"(?P<minus>yesterday{PART_OF_DAY}?|last\s+(?:night|evening))|"
    rf"(?P<plus>tomorrow{PART_OF_DAY}?)|"
    r"(?P<zero>(?:earlier\s+|later\s+)?(?:today|tonight)|(?:earlier\s+|later\s+)?this\s+"
    r"(?:very\s+)?(?:morning|afternoon|evening)))\b",
    _I,
)
_OFFSETS = {"two_back": -2, "two_on": 2, "minus": -1, "plus": 1, "zero": 0}
_PERIOD = guarded(
    r"\b(?:(?:earlier|later|sometime)\s+)?(?P<mod>last|this\s+past|this\s+coming|this|next)\s+"
    r"(?P<unit>weekend|week|month|year|decade)\b(?!s?\s+old\b)",
    _I,
)
_BEFORE_LAST = guarded(
    rf"\b(?:the\s+)?(?:(?P<unit>week|weekend|month|year)|{WEEKDAY})\s+before\s+last\b", _I
)
_AFTER_NEXT = guarded(
    rf"\b(?:the\s+)?(?:(?P<unit>week|weekend|month|year)|{WEEKDAY})\s+after\s+next\b"
    r"(?!\s+(?:week|weekend|month|year)\b)",
    _I,
)
_THE_WEEKEND = guarded(r"\b(?:over|on|at|during)\s+the\s+weekend\b", _I)
_THE_PERIOD = guarded(r"\bthe\s+(?P<unit>week|month|year)\b", _I)
_AGO = lazy(
    rf"\b{NUMBER}\s+{UNIT}(?P<half>\s+and\s+a\s+half)?(?:\s+or\s+(?P<or>two|so))?\s+"
    r"(?:ago|back)\b(?!\s+(?:to|home|together)\b)(?:\s+(?:today|now))?",
    _I,
)
_IN = guarded(rf"\bin\s+{NUMBER}\s+{UNIT}(?P<time>['’]?\s+time)?\b(?!\s+(?:old|of)\b|-)", _I)
_FROM_NOW = lazy(rf"\b{NUMBER}\s+{UNIT}\s+from\s+(?:now|today)\b", _I)
_NOT_AHEAD = lazy(
    r"(?:times?|\dx|once|twice|thrice|days?|hours?|only|done|finished|completed|first|every)\s+$",
    _I,
)
_WINDOW = guarded(
    r"(?:\b(?:for|over|during|in|within|throughout|across)\s+)?\b(?:the|these|this)?\s*"
    rf"\b(?P<mod>last|past|previous|next|coming)\s+{NUMBER}\s+{UNIT}\b",
    _I,
)
_PAST_UNIT = guarded(
    r"\b(?:(?:for|over|during|in|within|throughout)\s+the\s+(?:last|past)|(?:the|this)\s+past)\s+"
    r"(?P<unit>week|month|year|decade)\b",
    _I,
)
_DURATION = guarded(rf"\bfor\s+(?:the\s+)?{NUMBER}\s+{UNIT}\b(?!['’-]|\s+old\b)(?:\s+now\b)?", _I)
_SO_FAR = lazy(rf"\b{NUMBER}\s+{UNIT}\s+now\b", _I)
_AGO_TRIGGER = guarded(r"\b(?:ago|back)\b", _I)
_NOW_TRIGGER = guarded(r"\b(?:days|weeks?|wks?|months?|years?|yrs?)\s+now\b", _I)
_FROM_NOW_TRIGGER = guarded(r"\bfrom\s+(?:now|today)\b", _I)
_WITHIN = guarded(rf"\bwithin\s+{NUMBER}\s+{UNIT}\b", _I)
_DAY_OF_WEEK = lazy(
    r"(?<!['’\w-])(?:(?P<mod>last|this\s+past|past|this\s+coming|coming|this|next|on|by|until|till|"
    r"since|before|after|from)\s+)?"
    # The full stop of a short name ("Tues."), not that of a sentence.
    rf"(?P<name>{WEEKDAY})\b(?:(?<!day)\.(?!\s+(?-i:[A-Z])))?(?!['’]?s\b\s+(?:off|are|were)\b)"
    # "On Monday mornings" is on no one day.
    rf"(?!{PART_OF_DAY}s\b)"
    rf"(?P<part>{PART_OF_DAY}\b(?!s))?(?:\s+(?:of\s+)?(?P<week>last|this|next)\s+week\b)?",
    _I,
)
_WEEK_DAY = guarded(
    rf"\b(?P<week>last|this|next)\s+week(?:,|\s+on)?\s+(?P<name>{WEEKDAY})\b{PART_OF_DAY}?", _I
)
_DAY_AND_NUMBER = guarded(
    rf"(?:\b(?P<mod>on|by|until|till|since|before|after|from)\s+)?\b(?P<name>{WEEKDAY})\b,?\s+the\s+"
    rf"{DAY}(?:st|nd|rd|th)\b(?!\s+(?:of\s+)?{MONTH}\b)",
    _I,
)
# Words that belong to the day; others ("on") are prepositions.
_OF_THE_DAY = frozenset({"last", "this past", "past", "this coming", "coming", "this", "next"})
_SKIP_BEFORE = lazy(
    r"(?:(?i:\b(?:every|each|most|all|a|an|one|some|any|per|another|other|random|typical|usual)"
    r"\s+|\b(?:every|each|most)\s+[A-Za-z]+day\s+(?:and|or)\s+)|"
    r"(?<![.!?:,;\n])(?<!^)\s[A-Z][a-z]+\s+)$"
)
_ALONE = lazy(rf"(?![ \t*]*:){BREAK}")
_THROUGH = lazy(rf"\s+(?:through|thru)\s+{WEEKDAY}\b", _I)
_NTH_BEFORE = lazy(r"\b(?:first|second|third|fourth|fifth|1st|2nd|3rd|4th)\s+$", _I)
_NAME_GOES_ON = lazy(r"[^\S\n](?:[A-Z][a-z]|the 13)|\.[a-z]")
_CLAUSE_START = lazy(r"(?:^|[.!?,;:\n(—–-]|\b(?:and|but|so|then|that|because|when))\s*$", _I)
# "I booked a table for Saturday", but "thanks for Saturday".
_FOR = lazy(r"(?<!thanks)(?<!thank you)(?<!sorry)\s+for\s+$", _I)
# "A week from Friday" is counted from the next one.
_COUNTED_FROM = lazy(rf"\b{UNIT}\s+from\s+$", _I)
# "Dinner Friday at 7": what has an hour is an appointment.
_AT_CLOCK = lazy(
    r",?\s+(?:at\s+|@\s*)?(?:\d{1,2}(?::\d\d|\s*[ap]\.?m\b)|(?<=at )\d{1,2}\b|noon\b)", _I
)
# "Friday is the retro", "Monday works for me"
_IS = lazy(r"\s+(?:is|isn['’]?t|works|suits|it is)\b", _I)
_TODAY_IS = lazy(r"(?:\btoday(?:\s+is|['’]s|,|\s*\()|\bit(?:\s+is|['’]s))\s*$", _I)
_IS_TODAY = lazy(r",?\s+today\b", _I)
_CONNECTORS = lazy(r"(?:last|this|next|on|by|until|since|before|after|from)\b", _I)


def shift(day: date, unit: str, count: float) -> date:
    """``day`` moved by a count of units; halves become the next finer unit."""
    if unit == "decade":
        unit, count = "year", count * 10
    if unit == "year":
        return dates.add_months(day, int(count * 12))
    if unit == "month":
        whole = int(count)
        return dates.add_months(day, whole) + timedelta(days=int((count - whole) * 30))
    if unit == "weekend":
        unit = "week"
    return day + timedelta(days=int(count * {"day": 1, "week": 7}.get(unit, 0)))


def _away(anchor: date, unit: str, count: float) -> tuple[date, date, str]:
    """The period ``count`` units away, at the grain that the count speaks of."""
    if count == int(count):
        return dates.period(anchor, unit, int(count))
    if unit == "year":
        return dates.period(anchor, "month", int(count * 12))
    if unit == "decade":
        return dates.period(anchor, "year", int(count * 10))
    moved = shift(anchor, unit, abs(count))
    moved = anchor + (moved - anchor) * (1 if count > 0 else -1)
    return moved, moved, "day"


class _Finder:
    """Runs the patterns over one text, relative to one anchor."""

    def __init__(self, text: str, anchor: datetime) -> None:
        self.text = text
        self.moment = anchor
        self.day = anchor.date()

    def atom(self, match: re.Match[str], first: date, last: date, grain: str) -> Atom:
        return Atom(*match.span(), first, last, grain, kind="relative")

    def near(self, pattern: LazyPattern, trigger: GuardedPattern) -> Iterator[re.Match[str]]:
        """Matches that end in a trigger word; only its surroundings are searched.

        A pattern that begins with a number word is tried at every word, which on
        long texts costs more than all other patterns together.
        """
        for word in trigger.finditer(self.text):
            for match in pattern.finditer(self.text, max(0, word.start() - 64), word.end() + 16):
                if match.start() <= word.start() < match.end():
                    yield match

    def words(self) -> Iterator[Atom]:
        for match in _WORDS.finditer(self.text):
            moved = self.day + timedelta(days=_OFFSETS[match.lastgroup or "zero"])
            yield self.atom(match, moved, moved, "day")

    def periods(self) -> Iterator[Atom]:
        for match in _PERIOD.finditer(self.text):
            word = " ".join(match.group("mod").lower().split())
            unit = match.group("unit").lower()
            if word == "this past" and unit != "weekend":
                continue
            count = {"last": -1, "this past": -1, "next": 1, "this coming": 1}.get(word, 0)
            if unit == "weekend" and word == "next":
                first, last = (day + timedelta(weeks=1) for day in dates.weekend_of(self.day))
                yield self.atom(match, first, last, "weekend")
                continue
            yield self.atom(match, *dates.period(self.day, unit, count))
        for match in _THE_WEEKEND.finditer(self.text):
            future = tense_near(self.text, *match.span()) == "future"
            span = dates.weekend_of(self.day) if future else dates.weekend_before(self.day)
            yield self.atom(match, *span, "weekend")
        for match in _THE_PERIOD.finditer(self.text):
            found = self.atom(match, *dates.period(self.day, match.group("unit").lower(), 0))
            found.weak = "period"
            yield found
        for match in _BEFORE_LAST.finditer(self.text):
            if match.group("unit"):
                yield self.atom(match, *dates.period(self.day, match.group("unit").lower(), -2))
            else:
                day = self._latest(WEEKDAYS[match.group("weekday").lower()]) - timedelta(days=7)
                yield self.atom(match, day, day, "day")
        for match in _AFTER_NEXT.finditer(self.text):
            unit = (match.group("unit") or "").lower()
            if unit == "weekend":
                first, last = (day + timedelta(weeks=2) for day in dates.weekend_of(self.day))
                yield self.atom(match, first, last, "weekend")
            elif unit:
                yield self.atom(match, *dates.period(self.day, unit, 2))
            else:
                day = self._in_week(WEEKDAYS[match.group("weekday").lower()], "next")
                yield self.atom(match, day + timedelta(days=7), day + timedelta(days=7), "day")

    def counts(self) -> Iterator[Atom]:
        for match in self.near(_AGO, _AGO_TRIGGER):
            low, high = parse_count(match.group("count"))
            if match.group("half"):
                low, high = low + 0.5, high + 0.5
            if (match.group("or") or "").lower() == "two":
                high = 2
            if match.group().lower().endswith("today") and low == high:
                unit, size = parse_unit(match.group("unit"))
                day = shift(self.day, unit, -low * size)
                yield self.atom(match, day, day, "day")
                continue
            yield from self._counted(match, match.group("unit"), -low, -high)
        for match in self.near(_FROM_NOW, _FROM_NOW_TRIGGER):
            yield from self._counted(match, match.group("unit"), *parse_count(match.group("count")))
        for match in _IN.finditer(self.text):
            before = self.text[max(0, match.start() - 12) : match.start()]
            sure = match.group("time") is not None
            past = not sure and tense_near(self.text, *match.span()) == "past"
            if past or (not sure and _NOT_AHEAD.search(before)):
                continue
            yield from self._counted(match, match.group("unit"), *parse_count(match.group("count")))

    def _counted(self, match: re.Match[str], word: str, near: float, far: float) -> Iterator[Atom]:
        unit, size = parse_unit(word)
        near, far = near * size, far * size
        if unit in {"minute", "hour"}:
            scale = 60 if unit == "minute" else 3600
            day = (self.moment + timedelta(seconds=far * scale)).date()
            yield self.atom(match, day, day, "day")
            return
        first, last, grain = _away(self.day, unit, near)
        if far != near:
            other = _away(self.day, unit, far)
            first, last, grain = min(first, other[0]), max(last, other[1]), "span"
        yield self.atom(match, first, last, grain)

    def windows(self) -> Iterator[Atom]:
        for match in _WINDOW.finditer(self.text):
            ahead = match.group("mod").lower() in {"next", "coming"}
            yield from self._stretch(match, ahead)
        for match in _PAST_UNIT.finditer(self.text):
            first = shift(self.day, match.group("unit").lower(), -1)
            yield self.atom(match, first, self.day, "span")
        for match in _WITHIN.finditer(self.text):
            if tense_near(self.text, *match.span()) != "past":
                yield from self._stretch(match, True)
        for match in _DURATION.finditer(self.text):
            if parse_unit(match.group("unit"))[0] != "day" or "night" not in match.group():
                tense = tense_near(self.text, *match.span())
                lasts = match.group().lower().endswith("now")
                # "Rest for two weeks", "valid for a month": nobody says from when on.
                unsaid = tense in {"none", "open"}
                if unsaid and not lasts and not is_perfect(self.text, match.start()):
                    continue
                yield from self._stretch(match, tense == "future" and not lasts)
        for match in self.near(_SO_FAR, _NOW_TRIGGER):
            yield from self._stretch(match, False)

    def _stretch(self, match: re.Match[str], ahead: bool) -> Iterator[Atom]:
        unit, size = parse_unit(match.group("unit"))
        if unit in {"minute", "hour"}:
            return
        low, high = parse_count(match.group("count"))
        # "A few" as a length is its middle, 3; "several" is 5.
        count = (low if low == high else (low + high) // 2) * size
        other = shift(self.day, unit, count if ahead else -count)
        found = self.atom(match, min(other, self.day), max(other, self.day), "span")
        found.kind = "duration"
        yield found

    def _latest(self, weekday: int) -> date:
        """The latest such weekday strictly before the anchor."""
        return self.day - timedelta(days=(self.day.weekday() - weekday) % 7 or 7)

    def _coming(self, weekday: int, *, today: bool) -> date:
        ahead = (weekday - self.day.weekday()) % 7
        return self.day + timedelta(days=ahead if ahead or today else 7)

    def _in_week(self, weekday: int, week: str) -> date:
        offset = {"last": -7, "this": 0, "next": 7}[week]
        return dates.week_range(self.day)[0] + timedelta(days=weekday + offset)

    def weekdays(self) -> Iterator[Atom]:
        for match in _WEEK_DAY.finditer(self.text):
            day = self._in_week(
                WEEKDAYS[match.group("weekday").lower()], match.group("week").lower()
            )
            yield self.atom(match, day, day, "day")
        for match in _DAY_OF_WEEK.finditer(self.text):
            word = " ".join((match.group("mod") or "").lower().split())
            if not self._is_weekday(match, word):
                continue
            weekday = WEEKDAYS[match.group("weekday").lower()]
            week = match.group("week")
            # Without the preposition: "is on" Friday is a tense cue.
            tense = tense_near(self.text, match.start("name"), match.end())
            before = self.text[max(0, match.start("name") - 24) : match.start("name")]
            if (not word and _FOR.search(before)) or _COUNTED_FROM.search(before):
                tense = "future"
            elif tense == "none" and word in {"", "on"} and not week:
                if _AT_CLOCK.match(self.text, match.end()) or _IS.match(self.text, match.end()):
                    tense = "future"
                elif len(match.group("weekday")) > 5 and is_reply(
                    self.text, match.start(), match.end()
                ):
                    continue
            if weekday == self.day.weekday() and self._is_today(match):
                day = self.day
            elif week:
                day = self._in_week(weekday, week.lower())
            else:
                day = self._weekday(weekday, word, tense)
            found = self.atom(match, day, day, "day")
            if word not in _OF_THE_DAY:
                # Prepositions belong to the composition, not to the atom.
                found.start = match.start("name")
                found.kind = "relative" if week else "weekday"
            yield found

    def numbered_weekdays(self) -> Iterator[Atom]:
        """Friday the 17th: of the months around, one in which the 17th is a Friday, or none."""
        for match in _DAY_AND_NUMBER.finditer(self.text):
            number = int(match.group("day"))
            if number == 13 and not match.group("mod"):
                continue  # more often the film
            tense = tense_near(self.text, match.start("name"), match.end())
            weekday = WEEKDAYS[match.group("weekday").lower()]
            day = month_day(self.day, number, tense, weekday)
            weak = "never" if day is None else ""
            yield Atom(match.start("name"), match.end(), day, day, "day", weak, kind="relative")

    def _weekday(self, weekday: int, word: str, tense: str) -> date:
        if word in {"last", "past", "this past"}:
            return self._latest(weekday)
        if word == "next":
            return self._in_week(weekday, "next")
        if word in {"coming", "this coming"}:
            return self._coming(weekday, today=False)
        if word == "this":
            past = tense == "past"
            return self._in_week(weekday, "this") if past else self._coming(weekday, today=True)
        ahead = tense in {"future", "open"} and word != "since"
        if word in {"by", "until", "till"} or ahead:
            return self._coming(weekday, today=False)
        return self._latest(weekday)

    def _is_today(self, match: re.Match[str]) -> bool:
        """Whether today is said to be that day: "today is Sunday", "it's Monday today"."""
        return bool(
            _TODAY_IS.search(self.text[max(0, match.start() - 24) : match.start()])
            or _IS_TODAY.match(self.text, match.end())
        )

    def _name_goes_on(self, match: re.Match[str], word: str, before: str) -> bool:
        """Whether a name begins with it: "Wednesday Addams", "the hotel on Friday Harbor".

        In "Last Friday Ben came", and in "On Friday Ben came" where a clause begins,
        another name follows.
        """
        if _NAME_GOES_ON.match(self.text, match.end()) is None:
            return False
        if word in _OF_THE_DAY:
            return False
        return not word or _CLAUSE_START.search(before) is None

    def _is_weekday(self, match: re.Match[str], word: str) -> bool:
        name = match.group("weekday")
        short = len(name) <= 5
        before = self.text[max(0, match.start() - 24) : match.start()]
        after = self.text[match.end() : match.end() + 3]
        if short and not (name[0].isupper() and name[1:].islower() and word):
            return False
        if short and name == "Sun" and word in {"", "from", "after", "before", "since"}:
            return False
        if not word and _SKIP_BEFORE.search(before) and not _CONNECTORS.match(before.split()[-1]):
            return False
        if word in {"on", "from", "by"} and re.match(r"s\b", after):
            return False
        if self._name_goes_on(match, word, before):
            return False
        if word or match.group("part") or match.group("week"):
            return True
        # A bare name stands alone: no heading ("Monday:"), no compound ("Sunday roast").
        alone = _ALONE.match(self.text, match.end()) or _THROUGH.match(self.text, match.end())
        return name[0].isupper() and alone is not None and _NTH_BEFORE.search(before) is None


def relative_atoms(text: str, anchor: datetime) -> Iterator[Atom]:
    """Every relative date of a text, overlaps included."""
    finder = _Finder(text, anchor)
    lowered = text.lower()
    for hint, run in _RUNS:
        if hint.search(lowered):
            yield from _guarded(getattr(finder, run)())


def _guarded(atoms: Iterator[Atom]) -> Iterator[Atom]:
    """Drop the rest of a pattern group when a date leaves the calendar."""
    while True:
        try:
            yield next(atoms)
        except StopIteration:
            return
        except (ValueError, OverflowError):
            return


_RUNS = (
    (lazy(r"yesterday|tomorrow|today|tonight|last|this"), "words"),
    (lazy(r"week|month|year|decade|before last|after next"), "periods"),
    (lazy(r"\b(?:ago|back|from now|from today|in)\b"), "counts"),
    (lazy(r"\b(?:last|past|previous|next|coming|within|for|now)\b"), "windows"),
    (lazy(r"mon|tue|wed|thu|fri|sat|sun"), "weekdays"),
    (lazy(r"(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,?\s+the\s+\d"), "numbered_weekdays"),
)
