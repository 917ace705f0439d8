"""Values of settings in one form each, and of what sort they are."""

from __future__ import annotations

import pytest

from ebbtide.analysis.signals.setting_values import is_value, normal, sort_of


@pytest.mark.parametrize(
    ("written", "value", "sort"),
    [
        ("5,000", "5000", "number"),
        ("5k", "5000", "number"),
        ("3.10", "3.10", "number"),
        ("$5k", "5000 dollars", "money"),
        ("$1,200.00", "1200 dollars", "money"),
        ("5000 dollars", "5000 dollars", "money"),
        ("$500-$700", "500-700 dollars", "money"),
        ("€1.5m", "1500000 euros", "money"),
        ("3pm", "3:00 pm", "clock"),
        ("3 p.m.", "3:00 pm", "clock"),
        ("15:30", "3:30 pm", "clock"),
        ("09:00", "9:00 am", "clock"),
        ("0:15", "12:15 am", "clock"),
        ("10:30", "10:30", "clock"),
        ("noon", "12:00 pm", "clock"),
        ("1:58:47", "1:58:47", "clock"),
        ("25:99", "25:99", "clock"),
        ("May 5th", "5 may", "day"),
        ("5th of May, 2024", "5 may 2024", "day"),
        ("2024-05-01", "1 may 2024", "day"),
        ("2024-13-01", "2024-13-01", "day"),
        ("3/15", "3/15", "day"),
        ("next Friday", "next friday", "day"),
        ("Sept", "september", "month"),
        ("30 seconds", "30 seconds", "duration"),
        ("100 MB", "100 mb", "other"),
        ("1.2.3", "1.2.3", "other"),
        ("555-1234", "555-1234", "other"),
        ("+351 912 345 678", "+351 912 345 678", "other"),
        ("912 345 678", "912 345 678", "other"),
        ("12 Oak Street", "12 oak street", "other"),
    ],
)
def test_one_form_and_one_sort(written: str, value: str, sort: str) -> None:
    assert is_value(written)
    assert normal(written) == value
    assert sort_of(value) == sort


@pytest.mark.parametrize("text", ["maybe", "5m", "3-day", "12abc", "555-", "Oak Street"])
def test_no_values(text: str) -> None:
    assert not is_value(text)
