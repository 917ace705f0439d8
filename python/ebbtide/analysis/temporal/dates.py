"""Calendar arithmetic on whole days: weeks, months, seasons, fixed holidays.

Every range is a pair ``(first, last)`` of dates, both inclusive. Weeks run from
Monday to Sunday, weekends from Saturday to Sunday, seasons are those of the
northern hemisphere by whole months. Dates beyond the years 1 to 9999 raise
``ValueError`` or ``OverflowError``; the callers drop such an expression.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from datetime import date, timedelta

__all__ = [
    "HOLIDAYS",
    "Range",
    "add_months",
    "day_range",
    "month_range",
    "period",
    "season_range",
    "third",
    "week_range",
    "weekend_after",
    "weekend_before",
    "weekend_of",
    "year_range",
]

Range = tuple[date, date]

_SEASON_START = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}


def add_months(day: date, months: int) -> date:
    """The same day of the month ``months`` later, or that month's last day."""
    index = day.year * 12 + day.month - 1 + months
    year, month = divmod(index, 12)
    if not 1 <= year <= 9999:
        raise ValueError("year out of range")
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def day_range(day: date) -> Range:
    """The single day."""
    return day, day


def week_range(day: date) -> Range:
    """Monday to Sunday of the week that holds ``day``."""
    monday = day - timedelta(days=day.weekday())
    return monday, monday + timedelta(days=6)


def weekend_of(day: date) -> Range:
    """The weekend of the week that holds ``day``: its coming one, or its own."""
    sunday = week_range(day)[1]
    return sunday - timedelta(days=1), sunday


def weekend_before(day: date) -> Range:
    """The last weekend that was over before ``day`` began."""
    sunday = day - timedelta(days=day.weekday() + 1)
    return sunday - timedelta(days=1), sunday


def weekend_after(day: date) -> Range:
    """The first weekend that begins after ``day``."""
    ahead = (5 - day.weekday()) % 7 or 7
    saturday = day + timedelta(days=ahead)
    return saturday, saturday + timedelta(days=1)


def month_range(year: int, month: int) -> Range:
    """First to last day of a month."""
    return date(year, month, 1), date(year, month, monthrange(year, month)[1])


def year_range(year: int) -> Range:
    """1 January to 31 December."""
    return date(year, 1, 1), date(year, 12, 31)


def season_range(year: int, season: str) -> Range:
    """Three whole months; the winter of a year begins in its December."""
    start = date(year, _SEASON_START[season], 1)
    return start, add_months(start, 3) - timedelta(days=1)


def period(day: date, unit: str, count: int) -> tuple[date, date, str]:
    """The period ``count`` units away from ``day`` and its grain.

    A count of days gives that day; of weeks, the Monday-to-Sunday week; of
    months, the whole month; of years, the whole year.
    """
    if unit == "day":
        moved = day + timedelta(days=count)
        return moved, moved, "day"
    if unit == "week":
        return *week_range(day + timedelta(weeks=count)), "week"
    if unit == "weekend":
        return *_weekend_count(day, count), "weekend"
    if unit == "month":
        moved = add_months(day, count)
        return *month_range(moved.year, moved.month), "month"
    years = count * 10 if unit == "decade" else count
    return *year_range(day.year + years), "year"


def _weekend_count(day: date, count: int) -> Range:
    if count == 0:
        return weekend_of(day)
    if count < 0:
        first, last = weekend_before(day)
        shift = timedelta(weeks=count + 1)
    else:
        first, last = weekend_after(day)
        shift = timedelta(weeks=count - 1)
    return first + shift, last + shift


def third(span: Range, part: str) -> Range:
    """The early, middle or late third of a range; of a month, its ten days."""
    first, last = span
    days = (last - first).days + 1
    if days > 300:
        # Four whole months each: "early 2022" is January to April.
        months = round(days / 30.44)
        cut, later = add_months(first, months // 3), add_months(first, 2 * months // 3)
    else:
        size = 10 if 28 <= days <= 31 else max(days // 3, 1)
        cut, later = first + timedelta(days=size), first + timedelta(days=2 * size)
    if part == "early":
        return first, cut - timedelta(days=1)
    if part == "mid":
        return cut, later - timedelta(days=1)
    return later, last


def _fixed(month: int, day: int) -> Callable[[int], Range]:
    return lambda year: day_range(date(year, month, day))


def _nth(month: int, weekday: int, count: int) -> Callable[[int], Range]:
    def build(year: int) -> Range:
        first, last = month_range(year, month)
        if count < 0:
            return day_range(last - timedelta(days=(last.weekday() - weekday) % 7))
        ahead = (weekday - first.weekday()) % 7
        return day_range(first + timedelta(days=ahead + 7 * (count - 1)))

    return build


def _easter(offset: int) -> Callable[[int], Range]:
    """Western Easter Sunday (the Gregorian computus), moved by ``offset`` days."""

    def build(year: int) -> Range:
        century, rest = divmod(year, 100)
        golden = year % 19
        correction = (century - (century + 8) // 25 + 1) // 3
        epact = (19 * golden + century - century // 4 - correction + 15) % 30
        weekday = (32 + 2 * (century % 4) + 2 * (rest // 4) - epact - rest % 4) % 7
        late = (golden + 11 * epact + 22 * weekday) // 451
        month, day = divmod(epact + weekday - 7 * late + 114, 31)
        return day_range(date(year, month, day + 1) + timedelta(days=offset))

    return build


def _black_friday(year: int) -> Range:
    return day_range(_nth(11, 3, 4)(year)[0] + timedelta(days=1))


HOLIDAYS: dict[str, Callable[[int], Range]] = {
    "new year's eve": _fixed(12, 31),
    "new years eve": _fixed(12, 31),
    "new year's day": _fixed(1, 1),
    "new year's": _fixed(1, 1),
    "new years": _fixed(1, 1),
    "christmas eve": _fixed(12, 24),
    "christmas day": _fixed(12, 25),
    "christmas": _fixed(12, 25),
    "xmas": _fixed(12, 25),
    "boxing day": _fixed(12, 26),
    "halloween": _fixed(10, 31),
    "valentine's day": _fixed(2, 14),
    "valentines day": _fixed(2, 14),
    "valentine's": _fixed(2, 14),
    "st. patrick's day": _fixed(3, 17),
    "st patrick's day": _fixed(3, 17),
    "cinco de mayo": _fixed(5, 5),
    "juneteenth": _fixed(6, 19),
    "independence day": _fixed(7, 4),
    "fourth of july": _fixed(7, 4),
    "veterans day": _fixed(11, 11),
    "veteran's day": _fixed(11, 11),
    "earth day": _fixed(4, 22),
    "martin luther king day": _nth(1, 0, 3),
    "mlk day": _nth(1, 0, 3),
    "presidents' day": _nth(2, 0, 3),
    "presidents day": _nth(2, 0, 3),
    "mother's day": _nth(5, 6, 2),
    "mothers day": _nth(5, 6, 2),
    "memorial day": _nth(5, 0, -1),
    "father's day": _nth(6, 6, 3),
    "fathers day": _nth(6, 6, 3),
    "labor day": _nth(9, 0, 1),
    "thanksgiving": _nth(11, 3, 4),
    "thanksgiving day": _nth(11, 3, 4),
    "black friday": _black_friday,
    "good friday": _easter(-2),
    "easter sunday": _easter(0),
    "easter monday": _easter(1),
    "easter": _easter(0),
}
"""Holidays by lower-case name (United States dates where countries differ)."""
