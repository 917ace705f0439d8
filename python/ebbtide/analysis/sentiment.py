"""Sentiment magnitude by VADER (paper, eq. 2)."""

from __future__ import annotations

from typing import Any

from ebbtide.forking import RenewedLock

__all__ = ["SentimentMeter", "split_at_whitespace"]

# VADER's cost grows with the square of the text's length (84,000 characters take
# 14 s). Longer texts than this are read in pieces, whose compounds are averaged.
_WHOLE_CHARACTERS = 8_000
_PIECE_CHARACTERS = 2_000


class SentimentMeter:
    """The absolute VADER compound score of raw text.

    The lexicon is read at the first use, once, whichever thread comes first.
    Scoring itself keeps no state.
    """

    def __init__(self) -> None:
        self._lock = RenewedLock()
        self._analyser: Any = None

    def magnitude(self, text: str) -> float:
        """|S| of eq. 2.

        Args:
            text: Raw text, as stored. A text of more than 8,000 characters is
                cut at white space into pieces of at most 2,000; the result is
                then the absolute mean of their compounds, weighted by length.

        Returns:
            A number in [0, 1]; 0 for empty text.
        """
        if not text.strip():
            return 0.0
        if len(text) <= _WHOLE_CHARACTERS:
            return abs(self._compound(text))
        total = 0.0
        for start, end in split_at_whitespace(text, _PIECE_CHARACTERS):
            total += self._compound(text[start:end]) * (end - start)
        return min(1.0, abs(total / len(text)))

    def _compound(self, text: str) -> float:
        return float(self._loaded().polarity_scores(text)["compound"])

    def _loaded(self) -> Any:
        if self._analyser is None:
            with self._lock:
                if self._analyser is None:
                    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

                    self._analyser = SentimentIntensityAnalyzer()
        return self._analyser


def split_at_whitespace(text: str, limit: int) -> list[tuple[int, int]]:
    """Cut a text into consecutive spans of at most ``limit`` characters.

    Each cut falls after the last white space that fits; a run without white
    space is cut hard. The spans cover the text without gap or overlap.
    """
    spans: list[tuple[int, int]] = []
    start = 0
    while len(text) - start > limit:
        end = start + limit
        cut = next((i for i in range(end, start, -1) if text[i - 1].isspace()), end)
        spans.append((start, cut))
        start = cut
    spans.append((start, len(text)))
    return spans
