"""The kernels once more in numpy, in numba and as plain loops, to measure against.

numpy's forms are what a careful user would write: whole arrays, no Python loop over
rows. numba's are the plain loops, compiled; where the loop is no good (ordering),
they call what numba offers.
"""

from __future__ import annotations

import heapq
import math
from typing import Any

import numba
import numpy as np

__all__ = ["NAIVE", "NUMBA", "NUMPY"]

RATE, INERTIA, HEALTHY, CRITICAL = 0.035, 0.5, 0.75, 0.30
K1, B = 1.2, 0.75


# Decay and tiers


def decay_loop(omega: Any, age: Any) -> Any:
    n = len(omega)
    effective, tier = np.empty(n), np.empty(n, np.uint8)
    for i in range(n):
        x = omega[i] * math.exp(-RATE * (1 - INERTIA * omega[i]) * age[i])
        effective[i] = x
        tier[i] = 2 if x > HEALTHY else 1 if x > CRITICAL else 0
    return effective, tier


def decay_numpy(omega: Any, age: Any) -> Any:
    effective = omega * np.exp(-RATE * (1 - INERTIA * omega) * age)
    return effective, (effective > HEALTHY).astype(np.uint8) + (effective > CRITICAL)


# Pruning


def prune_naive(effective: Any, adjustment: Any, tokens: Any, budget: int) -> Any:
    rows = [i for i in range(len(effective)) if effective[i] <= HEALTHY]
    rows.sort(key=lambda i: (effective[i] + adjustment[i], i))
    left, out = int(sum(tokens.tolist())), []
    for i in rows:
        if left <= budget:
            break
        left -= int(tokens[i])
        out.append(i)
    return np.array(out, np.int64), max(left - budget, 0)


def prune_numpy(effective: Any, adjustment: Any, tokens: Any, budget: int) -> Any:
    rows = np.flatnonzero(effective <= HEALTHY)
    rows = rows[np.argsort(effective[rows] + adjustment[rows], kind="stable")]
    over = int(tokens.sum()) - budget
    gone = np.cumsum(tokens[rows])
    out = rows[: np.searchsorted(gone, over) + 1]
    return out, max(over - int(gone[len(out) - 1]), 0)


def prune_loop(effective: Any, adjustment: Any, tokens: Any, budget: int) -> Any:
    rows = np.flatnonzero(effective <= HEALTHY)
    rows = rows[np.argsort(effective[rows] + adjustment[rows], kind="mergesort")]
    left, count = tokens.sum(), 0
    while left > budget and count < len(rows):
        left -= tokens[rows[count]]
        count += 1
    return rows[:count], max(left - budget, 0)


# Divergence


def divergence_loop(vectors: Any, window: int) -> Any:
    n, width = vectors.shape
    out, total = np.zeros(n), np.zeros(width, np.int64)
    for i in range(n):
        dot, vv, ss = 0, 0, 0
        for j in range(width):
            x, s = np.int64(vectors[i, j]), total[j]
            dot += x * s
            vv += x * x
            ss += s * s
            total[j] += x
        if vv != 0 and ss != 0:
            cosine = dot / (math.sqrt(vv) * math.sqrt(ss))
            out[i] = 1 - min(max(cosine, -1.0), 1.0)
        if i >= window:
            for j in range(width):
                total[j] -= vectors[i - window, j]
    return out


def divergence_numpy(vectors: Any, window: int) -> Any:
    # In slices, so that the running sums stay in the cache.
    out = []
    for start in range(0, len(vectors), 1024):
        first = max(start - window, 0)
        rows = vectors[first : start + 1024].astype(np.float64)
        sums = np.zeros((len(rows) + 1, rows.shape[1]))
        np.cumsum(rows, axis=0, out=sums[1:])
        at = np.arange(start - first, len(rows))
        total = sums[at] - sums[np.maximum(at - window, 0)]
        rows = rows[at]
        dot = np.einsum("ij,ij->i", rows, total)
        norm = np.sqrt(np.einsum("ij,ij->i", rows, rows)) * np.sqrt(
            np.einsum("ij,ij->i", total, total)
        )
        cosine = np.divide(dot, norm, out=np.ones_like(dot), where=norm > 0)
        out.append(1 - np.clip(cosine, -1, 1))
    return np.concatenate(out)


# Cosine search


def cosine_numpy(vectors: Any, query: Any, k: int) -> Any:
    # Through BLAS, on the float32 copy that a user of numpy would keep; its sums are
    # rounded, so neighbours in rank may change places where scores are equal to 1e-6.
    scores = vectors @ query
    return _best(scores, k)


def _best(scores: Any, k: int) -> Any:
    k = min(k, len(scores))
    near = np.argpartition(-scores, k - 1)[:k] if k else np.empty(0, np.int64)
    near = near[np.lexsort((near, -scores[near]))]
    return near, scores[near]


def cosine_loop(vectors: Any, query: Any, k: int) -> Any:
    n, width = vectors.shape
    scores = np.empty(n)
    for i in range(n):
        dot = np.int32(0)
        for j in range(width):
            dot += np.int32(vectors[i, j]) * np.int32(query[j])
        scores[i] = min(max(dot / (32767.0 * 32767.0), -1.0), 1.0)
    order = np.argsort(-scores, kind="mergesort")[:k]
    return order, scores[order]


def cosine_naive(vectors: Any, query: Any, k: int) -> Any:
    q = query.tolist()
    scores = [
        sum(x * y for x, y in zip(row, q, strict=True)) / 32767.0**2 for row in vectors.tolist()
    ]
    rows = heapq.nsmallest(k, range(len(scores)), key=lambda i: (-scores[i], i))
    return np.array(rows, np.int64), np.array([scores[i] for i in rows])


# Words


def overlap_numpy(offsets: Any, documents: Any, count: int, query: Any, k: int) -> Any:
    lists = [documents[offsets[t] : offsets[t + 1]] for t in query]
    shares = np.bincount(np.concatenate(lists), minlength=count) / len(query)
    return _best(shares, k)


def overlap_loop(offsets: Any, documents: Any, count: int, query: Any, k: int) -> Any:
    shares = np.zeros(count)
    for t in query:
        for p in range(offsets[t], offsets[t + 1]):
            shares[documents[p]] += 1.0
    order = np.argsort(-shares, kind="mergesort")[:k]
    return order, shares[order] / len(query)


def overlap_naive(offsets: Any, documents: Any, count: int, query: Any, k: int) -> Any:
    shared: dict[int, int] = {}
    for t in query.tolist():
        for d in documents[offsets[t] : offsets[t + 1]].tolist():
            shared[d] = shared.get(d, 0) + 1
    rows = heapq.nsmallest(k, shared, key=lambda d: (-shared[d], d))
    return np.array(rows, np.int64), np.array([shared[d] / len(query) for d in rows])


def bm25_numpy(offsets: Any, documents: Any, counts: Any, lengths: Any, query: Any, k: int) -> Any:
    n = len(lengths)
    norm = K1 * (1 - B + B * lengths / max(lengths.sum() / n, 1.0))
    scores = np.zeros(n)
    for t in query:
        rows = documents[offsets[t] : offsets[t + 1]]
        tf = counts[offsets[t] : offsets[t + 1]].astype(np.float64)
        idf = np.log(1 + (n - len(rows) + 0.5) / (len(rows) + 0.5))
        # A document stands once in a list: plain indexing adds each posting.
        scores[rows] += idf * (tf * (K1 + 1) / (tf + norm[rows]))
    return _best(scores, k)


def bm25_loop(offsets: Any, documents: Any, counts: Any, lengths: Any, query: Any, k: int) -> Any:
    n = len(lengths)
    total = 0
    for i in range(n):
        total += np.int64(lengths[i])
    average = max(total / n, 1.0)
    scores = np.zeros(n)
    for t in query:
        held = offsets[t + 1] - offsets[t]
        idf = math.log(1 + (n - held + 0.5) / (held + 0.5))
        for p in range(offsets[t], offsets[t + 1]):
            d, tf = documents[p], float(counts[p])
            norm = K1 * (1 - B + B * float(lengths[d]) / average)
            scores[d] += idf * (tf * (K1 + 1) / (tf + norm))
    order = np.argsort(-scores, kind="mergesort")[:k]
    return order, scores[order]


NUMPY = {
    "decay": decay_numpy,
    "prune": prune_numpy,
    "divergence": divergence_numpy,
    "cosine": cosine_numpy,
    "overlap": overlap_numpy,
    "bm25": bm25_numpy,
}
NAIVE = {
    "decay": decay_loop,
    "prune": prune_naive,
    "divergence": divergence_loop,
    "cosine": cosine_naive,
    "overlap": overlap_naive,
    "bm25": bm25_loop,
}
NUMBA = {
    "decay": numba.njit(decay_loop),
    "prune": numba.njit(prune_loop),
    "divergence": numba.njit(divergence_loop),
    "cosine": numba.njit(cosine_loop),
    "overlap": numba.njit(overlap_loop),
    "bm25": numba.njit(bm25_loop),
}
