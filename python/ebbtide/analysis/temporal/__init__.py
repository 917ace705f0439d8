"""English time expressions, resolved to days without a clock or a model.

The rules are our own and use only the standard library. ``dateparser`` was
tried: its search reads "may", "march", "a second" and "the sun" as dates,
returns moments where a week or a month is meant, and takes over 1 ms a turn.
"""

from __future__ import annotations

from ebbtide.analysis.temporal.describe import describe, format_day
from ebbtide.analysis.temporal.resolve import resolve_times
from ebbtide.analysis.temporal.timestamps import ParsedTimestamp, parse_timestamp

__all__ = ["ParsedTimestamp", "describe", "format_day", "parse_timestamp", "resolve_times"]
