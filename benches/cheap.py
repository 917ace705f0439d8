"""Turns and facts without a model: for benches that ask for more of them than a model can read.

Not a baseline and no part of the product: the words come from a fixed list, and the
facts from the words' numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ebbtide import _core
from ebbtide.analysis.canonical import CanonicalPassage
from ebbtide.analysis.facts import SIGNALS, CardFacts, Claim, TurnFacts
from ebbtide.inputs import Prepared, Stamp

__all__ = ["DIMENSION", "turns"]

DIMENSION = 384
_VOCABULARY = 20_000
_SUBJECTS, _TOPICS, _VALUES = 40, 30, 12
_SESSION = 40


def _words(numbers: np.random.Generator) -> list[str]:
    """Words of two to four syllables; common ones come first and are short."""
    syllables = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]
    sizes = np.sort(numbers.integers(2, 5, _VOCABULARY))
    picks = numbers.integers(0, len(syllables), (_VOCABULARY, 4))
    return ["".join(syllables[s] for s in row[:n]) for row, n in zip(picks, sizes, strict=True)]


def turns(count: int, *, chunk: int = 1000, seed: int = 1) -> Iterator[list[tuple[Any, ...]]]:
    """``count`` analysed turns, in batches as ``MemoryHandle.add`` takes them.

    Every tenth states a value of one of 1,200 topics, so that states are replaced all
    the time; every sixth has a card. Words follow Zipf's law.
    """
    numbers = np.random.default_rng(seed)
    words = _words(numbers)
    rows = numbers.standard_normal((_VOCABULARY, DIMENSION)).astype(np.float32)
    for start in range(0, count, chunk):
        size = min(chunk, count - start)
        lengths = numbers.integers(5, 20, size)
        picks = np.minimum(numbers.zipf(1.3, (size, 20)) - 1, _VOCABULARY - 1)
        rolls = numbers.random((size, 4))
        raw = np.stack([rows[p[:n]].sum(axis=0) for p, n in zip(picks, lengths, strict=True)])
        vectors = _core.unit_vectors(raw)
        batch = []
        for i in range(size):
            text = [words[w] for w in picks[i, : lengths[i]]]
            batch.append(_turn(start + i, text, rolls[i], vectors[i]))
        yield batch


def _turn(number: int, words: list[str], rolls: Any, vector: Any) -> tuple[Any, ...]:
    text = " ".join(words) + "."
    user = number % 2 == 0
    claims: tuple[Claim, ...] = ()
    if number % 10 == 0:
        pick = int(rolls[0] * _SUBJECTS * _TOPICS * _VALUES)
        subject, rest = divmod(pick, _TOPICS * _VALUES)
        topic, value = divmod(rest, _VALUES)
        claims = (Claim("current_state", f"person {subject}", f"topic {topic}", f"v{value}"),)
    cards: tuple[CardFacts, ...] = ()
    if number % 6 == 0:
        cards = (
            CardFacts(
                kind="fact",
                subject=words[0],
                predicate=words[1],
                object=" ".join(words[2:4]),
                negated=False,
                temporal="current",
                start=0,
                end=len(text),
                terms=tuple(words[:4]),
            ),
        )
    signal = SIGNALS[int(rolls[1] * len(SIGNALS))]
    facts = TurnFacts(
        density=float(rolls[2]),
        sentiment=float(rolls[3]),
        entity_count=number % 4,
        signals=frozenset({"current_state"} if claims else {signal} if number % 3 == 0 else ()),
        claims=claims,
        terms=tuple(words[:9]),
        cards=cards,
    )
    micros = 1_700_000_000_000_000 + number * 60_000_000
    prepared = Prepared(
        text=text,
        role="user" if user else "assistant",
        speaker="Ana" if user else "Assistant",
        stamp=Stamp(f"minute {number}", micros, naive=False),
        session_id=f"s{number // _SESSION}",
        external_id=f"t{number}",
        provenance=None,
        metadata=None,
        received_at=micros,
        moment=None,
    )
    return prepared, facts, [CanonicalPassage(0, len(text), vector, None)], [], None
