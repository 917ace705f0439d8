"""Sentiment magnitude by VADER (paper, eq. 2)."""

from __future__ import annotations

import functools
from importlib.metadata import version
from typing import Any, NamedTuple

from ebbtide.forking import RenewedLock

__all__ = ["SentimentMeter", "split_at_whitespace"]

# VADER's cost grows with the square of the text's length (84,000 characters take
# 14 s). Longer texts than this are read in pieces, whose compounds are averaged.
_WHOLE_CHARACTERS = 8_000
_PIECE_CHARACTERS = 2_000
# The version whose way of reading :class:`_Reader` follows.
_READ_VERSION = "3.3.2"
# How many words before and behind a word VADER looks at to weigh it.
_BEFORE, _BEHIND = 3, 2


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
        return float(self._loaded().compound(text))

    def _loaded(self) -> Any:
        if self._analyser is None:
            with self._lock:
                if self._analyser is None:
                    self._analyser = _Reader()
        return self._analyser


class _Words(NamedTuple):
    """Some words of a text, as VADER's rules take them."""

    words_and_emoticons: list[str]
    is_cap_diff: bool


class _Reader:
    """VADER, asked only where its answer may be another than that nothing is changed.

    For each word it lower-cases the whole text again, and goes through every word that
    denies for every word before it. But for the words of its lexicon every weight is 0; few
    words deny, and fewer are in an idiom.
    """

    def __init__(self) -> None:
        from vaderSentiment import vaderSentiment as vader  # noqa: N813

        own = self._vader = vader.SentimentIntensityAnalyzer()
        self._lexicon = own.lexicon.keys() - vader.BOOSTER_DICT.keys()
        self._emojis: dict[str, str] = own.emojis
        self._words_of = vader.SentiText
        self._known = version("vaderSentiment") == _READ_VERSION
        if self._known:
            denies, idioms = own._negation_check, own._special_idioms_check
            own._negation_check = _where_denied(denies, vader.negated)
            phrases = [*vader.SPECIAL_CASES, *vader.BOOSTER_DICT]
            own._special_idioms_check = _where_idioms(idioms, phrases)
        # Emoji come many times over, and each is several words.
        self._weigh = functools.lru_cache(maxsize=4096)(self._weighed)

    def compound(self, text: str) -> float:
        """What VADER's ``polarity_scores`` gives as ``compound``."""
        if not self._known:
            return float(self._vader.polarity_scores(text)["compound"])
        text = self._spelled(text).strip()
        read = self._words_of(text)
        words = read.words_and_emoticons
        lower = [word.lower() for word in words]
        weights = [0.0] * len(words)
        for place, word in enumerate(lower):
            if word not in self._lexicon:
                continue
            if word == "kind" and lower[place + 1 : place + 2] == ["of"]:
                continue
            first = max(0, place - _BEFORE)
            beside = tuple(words[first : place + _BEHIND + 1])
            weights[place] = self._weigh(beside, place - first, read.is_cap_diff)
        if "but" in lower:
            weights = self._vader._but_check(words, weights)
        found = [weight for weight in weights if weight]
        return float(self._vader.score_valence(found, text)["compound"])

    def _weighed(self, words: tuple[str, ...], place: int, is_cap_diff: bool) -> float:
        """VADER's weight of a word among those beside it."""
        beside = _Words([*words], is_cap_diff)
        (weight,) = self._vader.sentiment_valence(0, beside, words[place], place, [])
        return float(weight)

    def _spelled(self, text: str) -> str:
        """The text with the words that an emoji stands for, as VADER spaces them."""
        if text.isascii() or self._emojis.keys().isdisjoint(text):
            return text
        pieces: list[str] = []
        before = " "
        for sign in text:
            words = self._emojis.get(sign)
            if words is not None and before != " ":
                pieces.append(" ")
            pieces.append(words or sign)
            before = sign
        return "".join(pieces)


def _where_denied(check: Any, denies: Any) -> Any:
    """VADER's check for a denial before a word, made where a word beside it may be one."""

    @functools.lru_cache(maxsize=4096)
    def may_deny(word: str) -> bool:
        return bool(denies([word]))

    def checked(valence: float, words: list[str], distance: int, place: int) -> float:
        # "Never so good": these count although they deny nothing.
        stressed = distance == _BEFORE - 1 and words[place - 1].lower() in ("so", "this")
        if stressed or may_deny(words[place - 1 - distance]):
            return float(check(valence, words, distance, place))
        return valence

    return checked


def _where_idioms(check: Any, phrases: list[str]) -> Any:
    """VADER's check for idioms around a word, made where a word beside it is of one."""
    # An idiom's longest word: "the" of "the bomb" is everywhere.
    telling = frozenset(max(phrase.split(" "), key=len) for phrase in phrases if " " in phrase)

    def checked(valence: float, words: list[str], place: int) -> float:
        beside = words[max(0, place - _BEFORE) : place + _BEHIND + 1]
        if telling.isdisjoint(map(str.lower, beside)):
            return valence
        return float(check(valence, words, place))

    return checked


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
