"""Every kernel against numpy, numba and the plain loop, at 10² to 10⁶ rows.

Each result is compared with the kernel's before anything is timed, and numba has
compiled by then. ``python benches/kernel_table.py FILE`` makes a table of what
``pytest benches/test_kernels.py --benchmark-json FILE`` wrote. Times are CPU time of
the thread, so that other work on the machine counts as little as possible.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from benches.rivals import NAIVE, NUMBA, NUMPY
from ebbtide import _core, kernels

SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
NAIVE_SIZES = SIZES[:3]
K = 10
WINDOW = 10
QUERY = np.array([3, 9, 17, 40, 63], np.uint32)


def dimension(n: int) -> int:
    """384, but at a million rows 64: with numpy's copy they would fill 2.3 GB."""
    return 384 if n < 1_000_000 else 64


@lru_cache(maxsize=1)
def decay_data(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return rng.random(n), rng.integers(0, 200, n)


@lru_cache(maxsize=1)
def prune_data(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    tokens = rng.integers(1, 60, n)
    adjustment = rng.choice([0.0, 0.1, 0.2, -0.35], n)
    # Two rows of a hundred have to go.
    return rng.random(n), adjustment, tokens, int(tokens.sum()) * 98 // 100


@lru_cache(maxsize=1)
def vector_data(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(n)
    raw = rng.standard_normal((n, dimension(n)), np.float32)
    return _core.unit_vectors(raw), _core.unit_vectors(raw[:1] + raw[1:2])[0]


@lru_cache(maxsize=1)
def float_data(n: int) -> tuple[Any, Any]:
    vectors, query = vector_data(n)
    scale = np.float32(1 / 32767)
    return vectors.astype(np.float32) * scale, query.astype(np.float32) * scale


@lru_cache(maxsize=1)
def word_data(n: int) -> tuple[Any, ...]:
    """64 terms, term t in one document of 2 (t + 1)."""
    rng = np.random.default_rng(n)
    lists = [np.flatnonzero(rng.random(n) < 0.5 / (t + 1)).astype(np.uint32) for t in range(64)]
    offsets = np.concatenate([[0], np.cumsum([len(x) for x in lists])]).astype(np.int64)
    documents = np.concatenate(lists)
    counts = rng.integers(1, 4, len(documents)).astype(np.uint32)
    return offsets, documents, counts, rng.integers(1, 30, n).astype(np.uint32)


def arguments(kernel: str, n: int) -> tuple[Any, ...]:
    if kernel == "decay":
        return decay_data(n)
    if kernel == "prune":
        return prune_data(n)
    if kernel == "divergence":
        return vector_data(n)[0], WINDOW
    if kernel == "cosine":
        return (*vector_data(n), K)
    offsets, documents, counts, lengths = word_data(n)
    if kernel == "overlap":
        return offsets, documents, n, QUERY, K
    return offsets, documents, counts, lengths, QUERY, K


OURS: dict[str, Callable[..., Any]] = {
    "decay": kernels.decay,
    "prune": lambda *a: kernels.prune(*a[:3], budget=a[3]),
    "divergence": lambda v, w: kernels.divergence(v, window=w),
    "cosine": lambda v, q, k: kernels.cosine_top_k(v, q, k=k),
    "overlap": lambda *a: kernels.overlap(*a[:4], k=a[4]),
    "bm25": lambda *a: kernels.bm25(*a[:5], k=a[5]),
}
RIVALS = {"rust": OURS, "numpy": NUMPY, "numba": NUMBA, "loop": NAIVE}


def same(kernel: str, ours: Any, theirs: Any) -> None:
    """Scores are equal to the last digits, rows and tiers exactly."""
    if kernel == "divergence":
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)
        return
    first, second = ours
    if kernel == "decay":
        np.testing.assert_allclose(first, theirs[0], rtol=1e-14)
        np.testing.assert_array_equal(second, theirs[1])
    elif kernel == "prune":
        np.testing.assert_array_equal(first, theirs[0])
        assert second == theirs[1]
    elif kernel == "cosine":
        np.testing.assert_allclose(second, theirs[1], atol=1e-5)
    else:
        np.testing.assert_allclose(second, theirs[1], rtol=1e-12)
        distinct = np.unique(np.round(second, 9)).size == len(second)
        if kernel == "overlap" or distinct:
            reached = second > second[-1]
            np.testing.assert_array_equal(first[reached], theirs[0][reached])


@pytest.mark.parametrize("rival", RIVALS)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kernel", OURS)
def test_kernel(benchmark: Any, kernel: str, n: int, rival: str) -> None:
    if rival == "loop" and n not in NAIVE_SIZES:
        pytest.skip("plain loops are measured up to 10,000 rows")
    given = arguments(kernel, n)
    function = RIVALS[rival][kernel]
    theirs = (*float_data(n), K) if (kernel, rival) == ("cosine", "numpy") else given
    same(kernel, OURS[kernel](*given), function(*theirs))
    slow = rival == "loop" and n == NAIVE_SIZES[-1]
    started = time.perf_counter()
    function(*theirs)
    once = max(time.perf_counter() - started, 1e-7)
    benchmark.group = f"{kernel} {n}"
    benchmark.extra_info.update(kernel=kernel, n=n, rival=rival)
    benchmark.pedantic(
        function,
        args=theirs,
        rounds=2 if slow else 7,
        # About 5 ms a round: above the resolution of the clock.
        iterations=max(1, min(1000, int(0.005 / once))),
    )
