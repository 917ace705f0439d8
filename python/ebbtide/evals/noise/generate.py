"""Noise put between the turns of a conversation, and what a noisy one holds."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, get_args

import numpy as np

from ebbtide.errors import InputError
from ebbtide.evals.datasets import Conversation, DatasetTurn
from ebbtide.evals.noise.templates import CATEGORIES, category_of, templates

__all__ = [
    "MOST_NOISE_TURNS",
    "Insertion",
    "NoiseReport",
    "RatioOf",
    "add_noise",
    "describe",
    "merged",
    "noise_count",
    "plan_noise",
]

RatioOf = Literal["timeline", "original"]
"""What a ratio is a share of: all turns, noise included, or the original ones."""

MOST_NOISE_TURNS = 1_000_000
"""More noise turns than this in one conversation are refused."""

_ID_PREFIX = "NOISE:"
# Past these tries for a sentence not yet in the conversation, a repeated one is taken.
_TRIES = 64


@dataclass(frozen=True, slots=True)
class Insertion:
    """A noise turn and its place.

    Attributes:
        after: Index, in the original turns, of the turn it follows.
        turn: The noise turn.
    """

    after: int
    turn: DatasetTurn


@dataclass(frozen=True, slots=True)
class NoiseReport:
    """What a conversation holds of noise.

    Attributes:
        conversation: The conversation's id.
        original: Number of original turns.
        noise: Number of noise turns.
        by_category: Noise turns by category; ``other`` are those which none of
            this package's templates can say, all of the published file's.
        distinct: Number of different noise texts.
        mean_words: Mean length of a noise text in words; 0 without noise.
        mean_characters: Mean length of a noise text in characters; 0 without noise.
        mean_original_words: The same in words over the original turns.
        ratio_of_original: Noise turns over original turns; 0 where there are none.
        ratio_of_timeline: Noise turns over all turns; 0 where there are none.
    """

    conversation: str
    original: int
    noise: int
    by_category: Mapping[str, int]
    distinct: int
    mean_words: float
    mean_characters: float
    mean_original_words: float
    ratio_of_original: float
    ratio_of_timeline: float


def noise_count(original: int, ratio: float, ratio_of: RatioOf) -> int:
    """Return the number of noise turns for a ratio ρ and n original turns.

    That is ``n·ρ`` for ``original`` and ``n·ρ / (1 - ρ)`` for ``timeline``,
    rounded to the nearest whole number, halves up. ρ is read as the decimal
    number it prints as, so that no rounding error decides a half.

    Args:
        original: Number of original turns, at least 0.
        ratio: ρ; ``original``: at least 0; ``timeline``: at least 0, below 1.
        ratio_of: What ρ is a share of (D-MEM, section 2.2, defines it both ways).

    Raises:
        InputError: ``input.field``: an argument out of range, or a result above
            :data:`MOST_NOISE_TURNS`.
    """
    if ratio_of not in get_args(RatioOf):
        raise InputError(
            f"ratio_of must be 'timeline' or 'original', not {ratio_of!r}", "input.field"
        )
    if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not math.isfinite(ratio):
        raise InputError(f"ratio must be a finite number, not {ratio!r}", "input.field")
    if ratio < 0 or (ratio_of == "timeline" and ratio >= 1):
        limits = "at least 0 and below 1" if ratio_of == "timeline" else "at least 0"
        raise InputError(
            f"a ratio of the {ratio_of} must be {limits}, not {ratio!r}", "input.field"
        )
    share = Fraction(str(ratio))
    exact = original * (share / (1 - share) if ratio_of == "timeline" else share)
    count = math.floor(exact + Fraction(1, 2))
    if count > MOST_NOISE_TURNS:
        raise InputError(
            f"a ratio of {ratio!r} needs {count} noise turns, above {MOST_NOISE_TURNS}",
            "input.field",
        )
    return count


def add_noise(
    conversation: Conversation, *, ratio: float, ratio_of: RatioOf, seed: int
) -> Conversation:
    """Return the conversation with noise turns among its own.

    The original turns stay as they are and in their order. Each noise turn draws
    its place, uniformly, from the gaps between two turns of a session (after the
    turn, in a session of one). It takes the session's id and timestamp, its
    external ids count up as ``NOISE:1``, ``NOISE:2`` and so on, and its speakers
    (or roles, where nobody is named) take turns in order of first appearance.
    Categories are mixed 40/30/30 by largest remainder. No sentence comes twice as
    long as another one is found in 64 draws.

    Everything is drawn from PCG64's raw stream, seeded by the conversation's id
    and ``seed``: other conversations make no difference.

    Args:
        conversation: Any loaded conversation without noise.
        ratio: See :func:`noise_count`.
        ratio_of: See :func:`noise_count`.
        seed: At least 0.

    Raises:
        InputError: ``input.field``: an argument out of range, or a conversation
            that has noise turns already.
    """
    insertions = plan_noise(conversation, ratio=ratio, ratio_of=ratio_of, seed=seed)
    return merged(conversation, insertions)


def plan_noise(
    conversation: Conversation, *, ratio: float, ratio_of: RatioOf, seed: int
) -> list[Insertion]:
    """Return the noise turns :func:`add_noise` puts in, in timeline order.

    Raises:
        InputError: As :func:`add_noise`.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InputError(f"seed must be a whole number of at least 0, not {seed!r}", "input.field")
    turns = conversation.turns
    if any(turn.noise or turn.external_id.startswith(_ID_PREFIX) for turn in turns):
        raise InputError(f"{conversation.id}: has noise turns already", "input.field")
    count = noise_count(len(turns), ratio, ratio_of)
    draws = _Draws(conversation.id, seed)
    gaps = _gaps(turns)
    places = sorted(gaps[draws.below(len(gaps))] for _ in range(count))
    texts = _texts(draws, count)
    voices = list(dict.fromkeys((turn.role, turn.speaker) for turn in turns))
    insertions: list[Insertion] = []
    for number, (after, text) in enumerate(zip(places, texts, strict=True)):
        role, speaker = voices[number % len(voices)]
        turn = DatasetTurn(
            external_id=f"{_ID_PREFIX}{number + 1}",
            text=text,
            role=role,
            speaker=speaker,
            timestamp=turns[after].timestamp,
            session_id=turns[after].session_id,
            noise=True,
        )
        insertions.append(Insertion(after, turn))
    return insertions


def merged(conversation: Conversation, insertions: Sequence[Insertion]) -> Conversation:
    """Return the conversation with the planned turns in their places."""
    following: dict[int, list[DatasetTurn]] = {}
    for insertion in insertions:
        following.setdefault(insertion.after, []).append(insertion.turn)
    turns: list[DatasetTurn] = []
    for place, turn in enumerate(conversation.turns):
        turns.append(turn)
        turns.extend(following.get(place, ()))
    return replace(conversation, turns=turns)


def describe(conversation: Conversation) -> NoiseReport:
    """Count what a conversation holds of noise; its own or the published file's."""
    noise = [turn.text for turn in conversation.turns if turn.noise]
    original = [turn.text for turn in conversation.turns if not turn.noise]
    found = Counter(category_of(text) or "other" for text in noise)
    return NoiseReport(
        conversation=conversation.id,
        original=len(original),
        noise=len(noise),
        by_category={category: found[category] for category in (*CATEGORIES, "other")},
        distinct=len(set(noise)),
        mean_words=_mean([len(text.split()) for text in noise]),
        mean_characters=_mean([len(text) for text in noise]),
        mean_original_words=_mean([len(text.split()) for text in original]),
        ratio_of_original=len(noise) / len(original) if original else 0.0,
        ratio_of_timeline=len(noise) / len(conversation.turns) if conversation.turns else 0.0,
    )


class _Draws:
    """Uniform indexes from PCG64's raw stream, which NumPy keeps stable."""

    def __init__(self, conversation: str, seed: int) -> None:
        # A seed is all digits, so no two pairs share a key. Lone surrogates come from
        # files with broken escapes.
        key = f"{seed}:{conversation}".encode("utf-8", "surrogatepass")
        entropy = int.from_bytes(hashlib.sha256(key).digest(), "big")
        self._stream = np.random.PCG64(entropy)

    def below(self, bound: int) -> int:
        """Return an index from 0 up to, not including, ``bound`` (Lemire's multiply-shift)."""
        return ((int(self._stream.random_raw()) >> 32) * bound) >> 32

    def shuffle(self, items: list[str]) -> None:
        """Fisher and Yates, in place."""
        for last in range(len(items) - 1, 0, -1):
            other = self.below(last + 1)
            items[last], items[other] = items[other], items[last]


def _gaps(turns: Sequence[DatasetTurn]) -> list[int]:
    """Indexes of the turns that noise may follow: noise neither opens nor ends a session."""
    sizes = Counter(turn.session_id for turn in turns)
    gaps: list[int] = []
    for place, turn in enumerate(turns):
        following = turns[place + 1].session_id if place + 1 < len(turns) else None
        if following == turn.session_id or sizes[turn.session_id] == 1:
            gaps.append(place)
    return gaps


def _texts(draws: _Draws, count: int) -> list[str]:
    """Return ``count`` sentences in the file's mix, in drawn order."""
    categories = [name for name, share in _shares(count).items() for _ in range(share)]
    draws.shuffle(categories)
    said: set[str] = set()
    texts: list[str] = []
    for category in categories:
        members = templates().by_category[category]
        for _ in range(_TRIES):
            text = members[draws.below(len(members))].fill(draws.below)
            if text not in said:
                break
        said.add(text)
        texts.append(text)
    return texts


def _shares(count: int) -> dict[str, int]:
    """Split ``count`` by the mix; what rounding leaves goes by largest remainder, then order."""
    mix = templates().mix
    shares = {category: count * percent // 100 for category, percent in mix.items()}
    order = sorted(mix, key=lambda category: -(count * mix[category] % 100))
    for category in order[: count - sum(shares.values())]:
        shares[category] += 1
    return shares


def _mean(values: Sequence[int]) -> float:
    return sum(values) / len(values) if values else 0.0
