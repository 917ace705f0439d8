"""spaCy's matrix products: one order of sums, whoever multiplies and whatever comes along."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from spacy.language import Language
from thinc.api import NumpyOps

from ebbtide import InputError, _core
from ebbtide.analysis import spacy_analyser
from ebbtide.analysis.products import OrderedOps

TEXTS = [
    "Caroline moved from Sweden to Boston four years ago, and she loves it.",
    "Hi!",
    "I can't believe that Dr. Smith paid $1,200 for two tickets to the Louvre on May 8, 2023.",
    "",
    "We've been thinking about adopting; the agency in Göteborg called us yesterday. 🙂",
    "Remind me: the meeting with Acme Corp. is no longer on Tuesday but on Thursday at 10.",
]


@pytest.fixture(scope="module")
def ordered() -> Language:
    return spacy_analyser._load("en_core_web_sm")


@pytest.fixture(scope="module")
def stock(ordered: Language) -> Language:
    import spacy

    return spacy.load(str(ordered.path))


def matrices(rows: int, inner: int, columns: int) -> tuple[NDArray[np.float32], ...]:
    drawn = np.random.default_rng(rows * inner + columns)
    x, y = drawn.normal(size=(rows, inner)), drawn.normal(size=(columns, inner))
    return x.astype(np.float32), y.astype(np.float32)


def from_first_to_last(x: NDArray[np.float32], y: NDArray[np.float32]) -> NDArray[np.float32]:
    out = np.zeros((len(x), len(y)), dtype=np.float32)
    for k in range(x.shape[1]):
        out = fused(x[:, k : k + 1], y[:, k], out)
    return out


def fused(x: NDArray[np.float32], y: NDArray[np.float32], z: NDArray[np.float32]) -> Any:
    """``x * y + z`` rounded once.

    A product fits 64 bits; a sum that does not is made odd in its last bit, whereby what
    was left out still counts when it is rounded to 32.
    """
    product, addend = x.astype(np.float64) * y, z.astype(np.float64)
    total = product + addend
    part = total - product
    left_out = (product - (total - part)) + (addend - part)
    even = (total.view(np.int64) & 1) == 0
    beside = np.nextafter(total, np.where(left_out > 0, np.inf, -np.inf))
    return np.where((left_out != 0) & even, beside, total).astype(np.float32)


@pytest.mark.parametrize(
    ("rows", "inner", "columns"),
    [(1, 1, 1), (5, 96, 64), (7, 384, 288), (100, 64, 50), (0, 96, 64), (3, 33, 17)],
)
def test_a_sum_runs_from_first_to_last(rows: int, inner: int, columns: int) -> None:
    x, y = matrices(rows, inner, columns)
    ops, wanted = OrderedOps(), from_first_to_last(x, y)
    for _ in range(2):
        assert ops.gemm(x, y, trans2=True).tobytes() == wanted.tobytes()
    whole = np.full((rows + 1, columns), np.nan, dtype=np.float32)
    given = ops.gemm(x, y, out=whole[1:], trans2=True)
    assert given.tobytes() == whole[1:].tobytes() == wanted.tobytes()
    strided = np.repeat(x, 2, axis=1)[:, ::2]
    assert ops.gemm(strided, y, trans2=True).tobytes() == wanted.tobytes()


def test_other_products_are_thincs() -> None:
    x, y = matrices(4, 6, 6)
    ops, thinc = OrderedOps(), NumpyOps()
    for trans1, trans2 in ((False, False), (True, False)):
        left = x.T.copy() if trans1 else x
        ours, theirs = (o.gemm(left, y, trans1=trans1, trans2=trans2) for o in (ops, thinc))
        assert np.allclose(ours, theirs)
    with pytest.raises(ValueError, match="float32"):
        ops.gemm(x.astype(np.float64), y, trans2=True)


def test_what_does_not_fit_is_refused() -> None:
    x, y = matrices(4, 6, 5)
    weights = _core.Weights(y)
    for wrong, out in ((x[:, :5].copy(), (4, 5)), (x, (3, 5)), (x, (4, 6))):
        with pytest.raises(InputError, match="do not take"):
            weights.multiply(wrong, np.empty(out, dtype=np.float32))
    with pytest.raises(InputError, match="without numbers"):
        _core.Weights(np.empty((3, 0), dtype=np.float32))


def test_every_layer_multiplies_in_order(ordered: Language) -> None:
    components = map(ordered.get_pipe, ("tok2vec", "tagger", "parser", "ner"))
    layers: list[Any] = [layer for component in components for layer in component.model.walk()]
    assert layers
    assert {type(layer.ops) for layer in layers} == {OrderedOps}


def test_a_parse_is_the_same_alone_and_in_company(ordered: Language) -> None:
    together = ordered.pipe(TEXTS * 3, batch_size=len(TEXTS) * 3)
    for text, doc in zip(TEXTS * 3, together, strict=True):
        alone = ordered(text)
        assert alone.tensor.tobytes() == doc.tensor.tobytes()
        assert alone.to_json() == doc.to_json()


def test_a_parse_says_what_spacys_own_says(ordered: Language, stock: Language) -> None:
    for ours, theirs in zip(ordered.pipe(TEXTS), stock.pipe(TEXTS), strict=True):
        assert np.allclose(ours.tensor, theirs.tensor, atol=1e-4)
        assert ours.to_json() == theirs.to_json()
