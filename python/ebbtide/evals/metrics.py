"""Retrieval metrics, answer containment and bootstrap intervals.

A ranked list is a sequence of external ids, best first; an id that comes twice
counts at its first place only. Relevance is binary: an id is in the gold set or
it is not. A question without gold has no recall, so every function here refuses
an empty gold set: the caller leaves such questions out and says how many.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ebbtide.errors import InputError
from ebbtide.evals.normalise import answer_tokens, context_tokens

__all__ = [
    "CUTOFFS",
    "Interval",
    "bootstrap_interval",
    "contains_answer",
    "ndcg_at",
    "rank_metrics",
    "recall_all_at",
    "recall_any_at",
    "recall_at",
    "reciprocal_rank",
    "to_sessions",
]

CUTOFFS = (1, 3, 5, 8, 10, 20)
"""The cutoffs of every report."""

_BLOCK = 2**22
"""Most indexes of resamples held at once; 16 MB."""


def recall_at(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Fraction of the gold ids among the first k distinct ids, 0 to 1.

    Raises:
        InputError: ``input.field``: no gold, or k below 1.
    """
    return len(_hits(ranked, gold, k)) / len(set(gold))


def recall_any_at(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """1.0 if any gold id is among the first k distinct ids, else 0.0."""
    return float(bool(_hits(ranked, gold, k)))


def recall_all_at(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """1.0 if every gold id is among the first k distinct ids, else 0.0."""
    return float(len(_hits(ranked, gold, k)) == len(set(gold)))


def reciprocal_rank(ranked: Sequence[str], gold: Collection[str]) -> float:
    """1 / place of the first gold id, places from 1; 0.0 if there is none.

    Its mean over the questions is the MRR.
    """
    places = _hits(ranked, gold, max(1, len(ranked)))
    return 1.0 / places[0] if places else 0.0


def ndcg_at(ranked: Sequence[str], gold: Collection[str], k: int = 10) -> float:
    """Normalised discounted cumulative gain with binary relevance, 0 to 1.

    DCG is the sum of 1 / log2(place + 1) over the gold ids among the first k
    (Järvelin and Kekäläinen 2002, in the form of Burges et al. 2005), divided by
    that of an ideal list, which has min(k, number of gold ids) of them in front.
    """
    places = _hits(ranked, gold, k)
    ideal = range(1, min(k, len(set(gold))) + 1)
    return _gain(places) / _gain(ideal)


def rank_metrics(
    ranked: Sequence[str], gold: Collection[str], cutoffs: Sequence[int] = CUTOFFS
) -> dict[str, float]:
    """All ranking metrics of one question.

    Returns:
        ``recall@k``, ``recall_any@k`` and ``recall_all@k`` for each cutoff, then
        ``mrr`` (this question's reciprocal rank) and ``ndcg@10``.
    """
    row: dict[str, float] = {}
    for k in cutoffs:
        row[f"recall@{k}"] = recall_at(ranked, gold, k)
        row[f"recall_any@{k}"] = recall_any_at(ranked, gold, k)
        row[f"recall_all@{k}"] = recall_all_at(ranked, gold, k)
    row["mrr"] = reciprocal_rank(ranked, gold)
    row["ndcg@10"] = ndcg_at(ranked, gold, 10)
    return row


def to_sessions(ranked: Sequence[str], session_of: Mapping[str, str]) -> list[str]:
    """Turn a ranking of turns into one of sessions, each at its best turn's place.

    Ids that ``session_of`` does not know are left out.
    """
    return list(dict.fromkeys(session_of[item] for item in ranked if item in session_of))


def contains_answer(answer: str, context: str) -> bool:
    """Whether every content token of the gold answer is in the context.

    Order and repetition do not matter. See :mod:`ebbtide.evals.normalise` for
    what a token is. False for an answer without any token.
    """
    wanted = set(answer_tokens(answer))
    return bool(wanted) and wanted <= context_tokens(context)


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its bootstrap interval.

    Attributes:
        mean: Mean of the values.
        low: Lower end.
        high: Upper end.
        count: Number of values.
    """

    mean: float
    low: float
    high: float
    count: int


def bootstrap_interval(
    values: Sequence[float], *, level: float = 0.95, resamples: int = 2000, seed: int = 20240108
) -> Interval:
    """Percentile bootstrap interval of the mean (Efron 1979).

    The same values in the same order and the same seed give the same interval:
    the indexes are made from PCG64's raw stream, which NumPy keeps stable between
    versions, and not from ``Generator``, which it does not.

    Args:
        values: One number a question, finite.
        level: Covered probability, between 0 and 1.
        resamples: Number of resamples, at least 1.
        seed: Seed of the stream.

    Raises:
        InputError: ``input.field``: no values, a value that is not finite, or an
            argument out of range.
    """
    data = np.asarray(values, dtype=np.float64)
    count = int(data.size)
    if count == 0 or data.ndim != 1 or not bool(np.isfinite(data).all()):
        raise InputError("bootstrap needs a list of finite numbers", "input.field")
    if not 0.0 < level < 1.0 or resamples < 1 or seed < 0:
        raise InputError("bootstrap: level, resamples or seed out of range", "input.field")
    # What is nowhere different, as most differences are, needs no resamples.
    means = np.zeros(resamples, dtype=np.float64)
    if data.any():
        means = np.concatenate([data[rows].mean(axis=1) for rows in _rows(count, resamples, seed)])
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(means, [tail, 1.0 - tail])
    return Interval(math.fsum(data.tolist()) / count, float(low), float(high), count)


def _rows(count: int, resamples: int, seed: int) -> Iterable[NDArray[np.int32]]:
    """The resamples as indexes, a row each, in blocks that memory has room for."""
    if count * resamples <= _BLOCK:
        # Tables ask for the same ones over and over.
        return (_kept_block(count, resamples, seed),)
    size = max(1, _BLOCK // count)
    starts = range(0, resamples, size)
    return (_block(count, min(size, resamples - s), seed, skipped=s * count) for s in starts)


@lru_cache(maxsize=4)
def _kept_block(count: int, rows: int, seed: int) -> NDArray[np.int32]:
    return _block(count, rows, seed)


def _block(count: int, rows: int, seed: int, *, skipped: int = 0) -> NDArray[np.int32]:
    """Indexes below ``count``, int32 [rows, count], after those of the rows before."""
    stream = np.random.PCG64(seed)
    if skipped:
        stream.advance(skipped)
    # Lemire's multiply-shift on the upper 32 bits: an index below count.
    upper = stream.random_raw(rows * count) >> np.uint64(32)
    index = (upper * np.uint64(count)) >> np.uint64(32)
    return index.astype(np.int32).reshape(rows, count)


def _hits(ranked: Sequence[str], gold: Collection[str], k: int) -> list[int]:
    """Places, from 1, of the gold ids among the first k distinct ids."""
    if not gold:
        raise InputError("a question without gold evidence has no recall", "input.field")
    if k < 1:
        raise InputError(f"cutoff must be at least 1, not {k}", "input.field")
    wanted = frozenset(gold)
    distinct = dict.fromkeys(ranked)
    return [place for place, item in enumerate(distinct, start=1) if place <= k and item in wanted]


def _gain(places: Collection[int]) -> float:
    return math.fsum(1.0 / math.log2(place + 1) for place in places)
