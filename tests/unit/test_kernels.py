"""The kernels against numpy, and against the engine that runs the same code turn by turn."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ebbtide import Config, InputError, Memory, _core, kernels

UNIT = st.floats(0, 1)
SCORES = st.lists(st.tuples(UNIT, st.integers(0, 4000)), max_size=40)


def floats(values: Any) -> NDArray[np.float64]:
    return np.array(list(values), np.float64)


def longs(values: Any) -> NDArray[np.int64]:
    return np.array(list(values), np.int64)


def test_the_defaults_are_those_of_the_configuration() -> None:
    config = Config()
    tiers = {
        "healthy_min": config["memory_tiers"]["healthy_min"],
        "critical_max": config["memory_tiers"]["critical_max"],
    }
    rates = {
        "lambda_base": config["temporal_decay"]["lambda_base"],
        "inertia": config["temporal_decay"]["inertia_strength"],
    }

    def defaults(function: Callable[..., Any]) -> dict[str, Any]:
        return {
            name: p.default
            for name, p in inspect.signature(function).parameters.items()
            if p.default is not p.empty
        }

    assert defaults(kernels.decay) == rates | tiers
    assert defaults(kernels.prune)["healthy_min"] == tiers["healthy_min"]
    assert defaults(kernels.divergence)["window"] == config["capacity"]["window_size"]


# Decay


@given(SCORES)
def test_decay_is_equations_16_to_20(rows: list[tuple[float, int]]) -> None:
    omega, age = floats(r[0] for r in rows), longs(r[1] for r in rows)
    effective, tier = kernels.decay(omega, age)
    assert (effective.dtype, tier.dtype) == (np.float64, np.uint8)
    expected = omega * np.exp(-0.035 * (1 - 0.5 * omega) * age)
    np.testing.assert_allclose(effective, expected, rtol=1e-14)
    np.testing.assert_array_equal(tier, (effective > 0.75).astype(int) + (effective > 0.3))


@given(SCORES)
def test_a_row_does_not_depend_on_its_neighbours(rows: list[tuple[float, int]]) -> None:
    omega, age = floats(r[0] for r in rows), longs(r[1] for r in rows)
    together, _ = kernels.decay(omega, age)
    alone = [kernels.decay(omega[i : i + 1], age[i : i + 1])[0][0] for i in range(len(rows))]
    assert together.tolist() == alone


def test_decay_gives_the_engines_numbers(stub: Config) -> None:
    """Tier changes in the decision log carry the engine's own effective scores."""
    with Memory.in_memory(config=stub) as memory:
        memory.add_many({"text": f"garden friday log {n}"} for n in range(60))
        seen = 0
        for turn in range(60):
            explained = memory.explain(turn)
            for decision in explained["decisions"]:
                if decision["kind"] != "tier":
                    continue
                omega = floats([explained["score"]["omega"]])
                effective, _ = kernels.decay(omega, longs([decision["at"] - turn]))
                assert effective[0] == decision["detail"]["effective"]
                seen += 1
        assert seen > 5


# Pruning


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 3), st.integers(0, 60)), max_size=60),
    st.integers(0, 900),
    st.booleans(),
)
@settings(max_examples=300)
def test_pruning_is_the_papers_loop(
    rows: list[tuple[int, int, int]], budget: int, evict_healthy: bool
) -> None:
    effective = floats(r[0] / 20 for r in rows)
    adjustment = floats(r[1] / 10 - 0.15 for r in rows)
    tokens = longs(r[2] for r in rows)
    left = [i for i in range(len(rows)) if evict_healthy or effective[i] <= 0.75]
    held, expected = int(tokens.sum()), []
    while held > budget and left:
        least = min(left, key=lambda i: (effective[i] > 0.75, effective[i] + adjustment[i], i))
        left.remove(least)
        held -= int(tokens[least])
        expected.append(least)
    out, over = kernels.prune(
        effective, adjustment, tokens, budget=budget, evict_healthy=evict_healthy
    )
    assert out.tolist() == expected
    assert over == max(held - budget, 0)


# Divergence


@given(st.integers(0, 30), st.integers(1, 9), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_divergence_is_equations_6_and_7(n: int, width: int, window: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = rng.integers(-32768, 32768, (n, width)).astype(np.int16)
    vectors[rng.random(n) < 0.1] = 0
    found = kernels.divergence(vectors, window=window)
    for i in range(n):
        v, s = vectors[i].astype(float), vectors[max(i - window, 0) : i].astype(float).sum(axis=0)
        size = math.sqrt(v @ v) * math.sqrt(s @ s) if i else 0.0
        expected = 1 - min(max(v @ s / size, -1.0), 1.0) if size else 0.0
        assert found[i] == pytest.approx(expected, abs=1e-12)


def test_float_vectors_are_taken_as_the_engine_takes_them() -> None:
    raw = np.random.default_rng(4).standard_normal((40, 16)).astype(np.float32)
    unit = _core.unit_vectors(raw)
    assert kernels.divergence(raw).tolist() == kernels.divergence(unit).tolist()
    for found, wanted in zip(
        kernels.cosine_top_k(raw, raw[3], k=5),
        kernels.cosine_top_k(unit, unit[3], k=5),
        strict=True,
    ):
        assert found.tolist() == wanted.tolist()


# Search


@given(st.integers(0, 40), st.integers(1, 6), st.integers(0, 50), st.integers(0, 2**32 - 1))
def test_cosine_search_is_a_full_sort(n: int, width: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    # Few distinct directions, so that ties are common.
    vectors = _core.unit_vectors(rng.integers(-1, 2, (n, width)).astype(np.float32))
    query = _core.unit_vectors(rng.integers(-1, 2, (1, width)).astype(np.float32))[0]
    rows, scores = kernels.cosine_top_k(vectors, query, k=k)
    exact = np.clip(vectors.astype(np.int64) @ query.astype(np.int64) / 32767.0**2, -1, 1)
    order = sorted(range(n), key=lambda i: (-exact[i], i))[:k] if query.any() else []
    assert rows.tolist() == order
    assert scores.tolist() == exact[order].tolist()


# Words


@st.composite
def indexes(draw: st.DrawFn) -> tuple[list[list[int]], list[int]]:
    documents = draw(st.lists(st.lists(st.integers(0, 6), max_size=8), max_size=12))
    return documents, draw(st.lists(st.integers(0, 8), max_size=5))


def arrays(documents: list[list[int]]) -> tuple[Any, Any, Any, Any]:
    offsets, rows, counts = [0], [], []
    for term in range(7):
        for d, words in enumerate(documents):
            if term in words:
                rows.append(d)
                counts.append(words.count(term))
        offsets.append(len(rows))
    return (
        longs(offsets),
        np.array(rows, np.uint32),
        np.array(counts, np.uint32),
        np.array([len(words) for words in documents], np.uint32),
    )


@given(indexes(), st.integers(0, 9))
def test_overlap_and_bm25_are_their_formulas(
    index: tuple[list[list[int]], list[int]], k: int
) -> None:
    documents, query = index
    offsets, rows, counts, lengths = arrays(documents)
    terms = np.array(query, np.uint32)
    distinct = list(dict.fromkeys(query))
    shared = {d: sum(t in words for t in distinct) for d, words in enumerate(documents)}
    order = sorted((d for d in shared if shared[d]), key=lambda d: (-shared[d], d))[:k]
    found, shares = kernels.overlap(offsets, rows, len(documents), terms, k=k)
    assert found.tolist() == order
    assert shares.tolist() == [shared[d] / len(distinct) for d in order]

    n = len(documents)
    average = max(sum(map(len, documents)) / n, 1.0) if n else 1.0
    scores = {}
    for d, words in enumerate(documents):
        for t in distinct:
            if t in words:
                held = sum(t in other for other in documents)
                idf = math.log(1 + (n - held + 0.5) / (held + 0.5))
                tf = words.count(t)
                norm = 1.2 * (1 - 0.75 + 0.75 * len(words) / average)
                scores[d] = scores.get(d, 0.0) + idf * tf * 2.2 / (tf + norm)
    ranked, values = kernels.bm25(offsets, rows, counts, lengths, terms, k=k)
    best = sorted(scores.values(), reverse=True)[:k]
    np.testing.assert_allclose(values, best, rtol=1e-12)
    np.testing.assert_allclose(values, [scores[d] for d in ranked.tolist()], rtol=1e-12)
    assert [(-v, d) for v, d in zip(values, ranked, strict=True)] == sorted(
        (-v, d) for v, d in zip(values, ranked, strict=True)
    )


# What is refused

SOUND = floats([0.5, 0.6])
AGES = longs([1, 2])
ROWS = np.ones((3, 4), np.int16)
OFFSETS, DOCUMENTS, COUNTS, LENGTHS = arrays([[0, 1], [1]])
QUERY = np.array([1], np.uint32)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: kernels.decay(SOUND.astype(np.float32), AGES), "float32"),
        (lambda: kernels.decay([0.5], AGES), "list"),
        (lambda: kernels.decay(SOUND, AGES.astype(np.uint8)), "age"),
        (lambda: kernels.decay(SOUND, longs([1])), "1 rows"),
        (lambda: kernels.decay(SOUND.reshape(1, 2), AGES), "1 dimension"),
        (lambda: kernels.decay(floats([1, 2, 3, 4])[::2], AGES), "contiguous"),
        (lambda: kernels.decay(SOUND.astype(">f8"), AGES), "float64"),
        (lambda: kernels.decay(floats([0.5, math.nan]), AGES), r"omega\[1\]"),
        (lambda: kernels.decay(floats([math.inf, 0.5]), AGES), r"omega\[0\]"),
        (lambda: kernels.decay(SOUND, longs([1, -1])), r"age\[1\]"),
        (lambda: kernels.prune(SOUND, floats([0, math.nan]), AGES, budget=1), "adjustment"),
        (lambda: kernels.prune(SOUND, SOUND, longs([1, -2]), budget=1), r"tokens\[1\]"),
        (lambda: kernels.prune(SOUND, SOUND, longs([1]), budget=1), "tokens"),
        (lambda: kernels.divergence(ROWS.T), "contiguous"),
        (lambda: kernels.divergence(np.asfortranarray(ROWS)), "contiguous"),
        (lambda: kernels.divergence(ROWS[0]), "2 dimension"),
        (lambda: kernels.divergence(ROWS.astype(np.int32)), "int32"),
        (lambda: kernels.divergence(ROWS[:, :0].copy()), "column"),
        # Rows without a column take no memory; a number for each of them would.
        (lambda: kernels.divergence(np.zeros((2**40, 0), np.int16)), "column"),
        (lambda: kernels.divergence(np.zeros((2**40, 0), np.float32)), "column"),
        (lambda: kernels.divergence(ROWS, window=0), "window"),
        (lambda: kernels.divergence(np.full((2, 2), np.nan, np.float32)), "finite"),
        (lambda: kernels.cosine_top_k(ROWS, ROWS[0, :2].copy(), k=1), "query"),
        (lambda: kernels.cosine_top_k(ROWS, None, k=1), "query"),
        (lambda: kernels.overlap(OFFSETS[1:], DOCUMENTS, 2, QUERY, k=1), "offsets"),
        (lambda: kernels.overlap(OFFSETS, DOCUMENTS, 1, QUERY, k=1), "document 1"),
        (lambda: kernels.bm25(OFFSETS, DOCUMENTS, COUNTS[1:], LENGTHS, QUERY, k=1), "counts"),
        (lambda: kernels.bm25(OFFSETS, DOCUMENTS, COUNTS, LENGTHS[:1], QUERY, k=1), "document 1"),
        (lambda: kernels.bm25(OFFSETS, DOCUMENTS, 0 * COUNTS, LENGTHS, QUERY, k=1), "count"),
        (lambda: kernels.overlap(OFFSETS, 0 * DOCUMENTS, 2, QUERY, k=1), "rise"),
        (lambda: kernels.overlap(OFFSETS, DOCUMENTS, -1, QUERY, k=1), "count"),
        (lambda: kernels.overlap(OFFSETS, DOCUMENTS, 2, QUERY, k=-1), "k must be"),
        (lambda: kernels.cosine_top_k(ROWS, ROWS[:2, :2].copy(), k=1), "query"),
        (lambda: kernels.cosine_top_k(ROWS, ROWS[0], k=2**70), "k must be"),
        (lambda: kernels.cosine_top_k(ROWS, ROWS[0], k=True), "k must be"),
        (lambda: kernels.divergence(ROWS, window=-1), "window"),
        (lambda: kernels.prune(SOUND, SOUND, AGES, budget=-1), "budget"),
        (lambda: kernels.prune(SOUND, SOUND, AGES, budget=1, healthy_min=math.nan), "healthy_min"),
        (lambda: kernels.decay(SOUND, AGES, lambda_base=math.nan), "lambda_base"),
        (lambda: kernels.decay(SOUND, AGES, lambda_base=-0.1), "lambda_base"),
        (lambda: kernels.decay(SOUND, AGES, inertia=5), "inertia"),
        (lambda: kernels.decay(SOUND, AGES, lambda_base=10**400), "lambda_base"),
        (lambda: kernels.decay(SOUND, AGES, critical_max=-(10**5000)), "critical_max"),
        (lambda: kernels.overlap(OFFSETS, DOCUMENTS, 2, QUERY, k=10**5000), "k must be"),
        (lambda: kernels.prune(SOUND, SOUND, AGES, budget=1, evict_healthy="x"), "evict_healthy"),
        (lambda: kernels.prune(SOUND, SOUND, AGES, budget=1, evict_healthy=1), "evict_healthy"),
    ],
)
def test_unusable_arrays_are_named(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(InputError, match=says) as raised:
        call()
    assert raised.value.code == "input.facts"


def test_an_index_may_say_that_it_is_larger_than_any_memory() -> None:
    rows, shares = kernels.overlap(OFFSETS, DOCUMENTS, 2**62, QUERY, k=np.int64(9))
    assert (rows.tolist(), shares.tolist()) == ([0, 1], [1.0, 1.0])


def test_nothing_in_nothing_out() -> None:
    none = floats([])
    effective, tier = kernels.decay(none, longs([]))
    assert (effective.shape, tier.shape) == ((0,), (0,))
    assert kernels.prune(none, none, longs([]), budget=0)[0].shape == (0,)
    assert kernels.divergence(np.empty((0, 4), np.int16)).shape == (0,)
    assert kernels.cosine_top_k(np.empty((0, 4), np.int16), ROWS[0], k=3)[0].shape == (0,)
    empty = np.array([], np.uint32)
    assert kernels.overlap(longs([0]), empty, 0, QUERY, k=3)[0].shape == (0,)
    assert kernels.bm25(longs([0]), empty, empty, empty, QUERY, k=3)[0].shape == (0,)


def test_the_arrays_are_read_where_they_lie_and_left_alone() -> None:
    omega = SOUND.copy()
    omega.flags.writeable = False
    effective, _ = kernels.decay(omega, AGES)
    assert omega.tolist() == SOUND.tolist()
    assert effective.flags.owndata or effective.base is not None
    assert effective.flags.writeable
