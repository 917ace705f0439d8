"""Composition keeps the way back to the original characters."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbtide.analysis.composing import compose


@pytest.mark.parametrize("text", ["", "plain", "café", "東京 👍🏽", "Don’t"])
def test_composed_text_is_left_alone(text: str) -> None:
    assert compose(text) is None


def test_spans_lead_back_to_the_original() -> None:
    text = "a cafe\u0301 in Zu\u0308rich"
    composed = compose(text)
    assert composed is not None
    assert composed.text == "a café in Zürich"
    start = composed.text.index("café")
    assert text[slice(*composed.span(start, start + 4))] == "cafe\u0301"
    start = composed.text.index("Zürich")
    assert text[slice(*composed.span(start, start + 6))] == "Zu\u0308rich"
    assert composed.span(0, len(composed.text)) == (0, len(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\u1112\u1161\u11ab\u1100\u1173\u11af", "한글"),
        ("\u212b", "Å"),
        ("\u0958x", "\u0915\u093cx"),
        ("q\u0323\u0307 q\u0307\u0323", "q\u0323\u0307 q\u0323\u0307"),
    ],
)
def test_odd_scripts(text: str, expected: str) -> None:
    composed = compose(text)
    assert composed is not None
    assert composed.text == expected
    assert composed.span(0, len(expected)) == (0, len(text))


MARKS = "\u0300\u0301\u0308\u0323\u0327\u0345"


@given(st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from(f"aeoué{MARKS}한\u1161")))
def test_every_span_holds_what_it_was_made_of(text: str) -> None:
    composed = compose(text)
    if composed is None:
        assert unicodedata.is_normalized("NFC", text)
        return
    assert composed.text == unicodedata.normalize("NFC", text)
    assert len(composed.starts) == len(composed.ends) == len(composed.text)
    assert list(composed.starts) == sorted(composed.starts)
    assert list(composed.ends) == sorted(composed.ends)
    for at in range(len(composed.text)):
        start, end = composed.span(at, at + 1)
        assert 0 <= start < end <= len(text)
    # Nothing of the original is left out.
    assert (composed.starts[0], composed.ends[-1]) == (0, len(text))
    assert all(a >= b for a, b in zip(composed.ends[:-1], composed.starts[1:], strict=True))
