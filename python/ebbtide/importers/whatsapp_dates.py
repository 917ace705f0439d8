"""How a WhatsApp message begins: its date and time, in the form of the phone's language."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date, datetime

__all__ = ["ORDERS", "DateOrders", "Header", "header_of"]

ORDERS = ("dmy", "mdy", "ymd")
"""Orders of day, month and year."""

_MARKS = "[\ufeff\u200e\u200f\u202a-\u202e]*"
_MORNING = ("am", "오전", "上午", "午前", "凌晨", "早上", "vorm", "πμ", "de", "sa", "ص", "पूर्वाह्न")
_EVENING = ("pm", "오후", "下午", "午後", "中午", "晚上", "nachm", "μμ", "du", "ch", "م", "अपराह्न")
_HALVES = "|".join(
    sorted(
        (r"\.?\s?".join(map(re.escape, word)) + r"\.?" for word in (*_MORNING, *_EVENING)),
        key=lambda pattern: (-len(pattern), pattern),
    )
)
_STAMP = (
    r"(?P<a>\d{1,4})(?:\s?[./-]\s?|년\s?|年\s?)(?P<b>\d{1,2})(?:\s?[./-]\s?|월\s?|月\s?)"
    r"(?P<c>\d{1,4})(?:일|日|\.)?[,،]?\s+(?:(?:klo|kl\.|à|at|um|alle|às|lúc)\s+)?"
    rf"(?:(?P<before>{_HALVES})\s?)?"
    r"(?P<hour>\d{1,2})[:.](?P<minute>\d{2})(?:[:.](?P<second>\d{2}))?"
    rf"(?:\s?(?P<after>{_HALVES}))?"
)
_FORMS = {
    "bracket": re.compile(
        rf"{_MARKS}\[{_MARKS}(?P<raw>{_STAMP}){_MARKS}\]\s?(?P<rest>.*)", re.IGNORECASE
    ),
    "dash": re.compile(rf"{_MARKS}(?P<raw>{_STAMP}){_MARKS}\s[-–]\s(?P<rest>.*)", re.IGNORECASE),
    "comma": re.compile(rf"{_MARKS}(?P<raw>{_STAMP}){_MARKS}[,:]\s(?P<rest>.*)", re.IGNORECASE),
}
_RUN = re.compile(r"\s+")
_POINTS = re.compile(r"[.\s]")
_LINE = 400
"""Characters of a line in which its head stands, name included."""


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of a message.

    Attributes:
        form: ``bracket``, ``dash`` or ``comma``.
        raw: Date and time as they stand there, spaces made plain.
        parts: The three numbers of the date, in their order, as text.
        clock: Hour (0 to 23), minute, second; None where that is no time.
        half: The word for the half of the day; empty on a 24-hour clock.
        rest: What follows: name and text, or a notice.
    """

    form: str
    raw: str
    parts: tuple[str, str, str]
    clock: tuple[int, int, int] | None
    half: str
    rest: str

    def moment(self, order: str) -> datetime | None:
        """Date and time, without a zone; None where the date does not exist."""
        day = day_of(self.parts, order)
        if day is None or self.clock is None:
            return None
        return datetime(day.year, day.month, day.day, *self.clock)


def header_of(line: str) -> Header | None:
    """The head of a line that begins a message, else None."""
    start = line[:_LINE]
    for form, pattern in _FORMS.items():
        match = pattern.match(start)
        if match is None:
            continue
        half = match["before"] or match["after"] or ""
        return Header(
            form=form,
            raw=_RUN.sub(" ", match["raw"]),
            parts=(match["a"], match["b"], match["c"]),
            clock=_clock(int(match["hour"]), int(match["minute"]), match["second"], half),
            half=half,
            rest=line[match.start("rest") :],
        )
    return None


def _clock(hour: int, minute: int, second: str | None, half: str) -> tuple[int, int, int] | None:
    word = _POINTS.sub("", half).lower()
    if word and hour <= 12:
        hour = hour % 12 + (12 if word in _EVENING else 0)
    seconds = int(second or 0)
    return (hour, minute, seconds) if hour < 24 and minute < 60 and seconds < 60 else None


def day_of(parts: tuple[str, str, str], order: str) -> date | None:
    """The day that three numbers name in an order; None where there is none."""
    if (len(parts[0]) == 4) != (order == "ymd") and (len(parts[0]) == 4 or len(parts[2]) == 4):
        return None
    numbers = dict(zip(order, map(int, parts), strict=True))
    year = numbers["y"] + (2000 if numbers["y"] < 100 else 0)
    try:
        return date(year, numbers["m"], numbers["d"]) if 2000 <= year < 2100 else None
    except ValueError:
        return None


@dataclass(slots=True)
class _Evidence:
    """What speaks against an order."""

    impossible: int = 0
    backwards: int = 0
    first: date | None = None
    last: date | None = None
    before: date | None = None

    def note(self, day: date | None) -> None:
        if day is None:
            self.impossible += 1
            return
        self.backwards += self.before is not None and day < self.before
        self.first = day if self.first is None else min(self.first, day)
        self.last = day if self.last is None else max(self.last, day)
        self.before = day

    @property
    def span(self) -> int:
        return (self.last - self.first).days if self.first and self.last else 0


@dataclass(slots=True)
class DateOrders:
    """Which order of day, month and year the dates of a file have.

    The order with the fewest impossible dates; then the one with the fewest steps back
    in time; then the one whose dates lie closest together, since a wrong order makes
    months of days; then what is usual where the clock looks like that.
    """

    form: str | None = None
    _evidence: dict[str, _Evidence] = field(
        default_factory=lambda: {order: _Evidence() for order in ORDERS}
    )
    _parts: tuple[str, str, str] | None = None
    _american: bool = False

    def note(self, header: Header) -> None:
        """Take a line's date into account, if it has the form of the first."""
        if self.form is None:
            self.form = header.form
            slashes = "/" in header.raw
            self._american = slashes and header.half in ("AM", "PM")
        if header.form != self.form or header.parts == self._parts:
            return
        self._parts = header.parts
        for order, evidence in self._evidence.items():
            # No language puts the month first and dots between.
            dotted = order == "mdy" and "." in header.raw.partition(":")[0][:10]
            evidence.note(None if dotted else day_of(header.parts, order))

    def best(self) -> str:
        """The order that the dates have."""
        return min(ORDERS, key=lambda order: (*self._certain(order), *self._likely(order)))

    def doubt(self) -> str | None:
        """What to tell where that is a guess."""
        best = self.best()
        rivals = [
            order
            for order in ORDERS[:2]
            if order != best and self._certain(order) == self._certain(best)
        ]
        if not rivals:
            return None
        words = {"dmy": "day first", "mdy": "month first", "ymd": "year first"}
        return (
            f"the dates fit both orders and were read {words[best]}; "
            f"--date-order {rivals[0]} reads them {words[rivals[0]]}"
        )

    def _certain(self, order: str) -> tuple[int, int, int]:
        evidence = self._evidence[order]
        # Years of two digits in front are so rare that others which fit win.
        return evidence.impossible, order == "ymd", evidence.backwards

    def _likely(self, order: str) -> tuple[int, int]:
        usual = ("mdy" if self._american else "dmy", "dmy", "mdy", "ymd")
        return self._evidence[order].span, usual.index(order)
