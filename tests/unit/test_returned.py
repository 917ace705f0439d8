"""What an embedder returns: taken where it can be, and named where it cannot."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from reference.stand_ins import HashEmbedder

from ebbtide import Config, ConfigError, InputError, Memory, _core
from ebbtide.analysis.returned import passages_of, query_vector_of, question_of, vectors_of

TEXT = "I live in Porto."
ROW = np.arange(8, dtype=np.float32)
PIECES = np.stack([ROW, ROW])
SPANS = np.array([[0, 1], [2, 6]], np.int32)


def window(**changes: Any) -> SimpleNamespace:
    sound = {"start": 0, "end": len(TEXT), "vector": ROW, "tokens": PIECES, "token_spans": SPANS}
    return SimpleNamespace(**(sound | changes))


class Returning:
    """An embedder that returns what it was told to, whatever it is asked."""

    dimension = 8
    fingerprint = "returning"

    def __init__(self, value: Any) -> None:
        self.value = value

    def embed(self, texts: Sequence[str]) -> Any:
        return self.value

    embed_query = encode = embed


@pytest.mark.parametrize(
    "rows",
    [
        PIECES.astype(">f4"),
        PIECES.astype(np.float64),
        PIECES.astype(np.int16),
        np.asfortranarray(PIECES),
        np.repeat(PIECES, 2, axis=1)[:, ::2],
        PIECES.tolist(),
        [ROW, ROW],
    ],
)
def test_numbers_are_taken_in_any_form(rows: Any) -> None:
    found = vectors_of(Returning(rows), ["a", "b"])
    assert found.dtype == np.dtype("=f4")
    assert found.flags.c_contiguous
    assert np.array_equal(found, PIECES)
    assert np.array_equal(query_vector_of(Returning(rows[0]), "a"), ROW)


@pytest.mark.parametrize(
    "rows",
    [None, ROW, PIECES[None], PIECES[:1], PIECES[:, :3], PIECES + 1j, [[1.0], [1.0, 2.0]],
     (row for row in PIECES), "vectors", [{}]],
)  # fmt: skip
def test_other_rows_are_refused(rows: Any) -> None:
    with pytest.raises(ConfigError, match="the embedder returned") as caught:
        vectors_of(Returning(rows), ["a", "b"])
    assert caught.value.code == "config.model_unusable"


@pytest.mark.parametrize("vector", [None, PIECES[:1], ROW[:3], ROW[:0], ROW * 1j, "vector"])
def test_another_vector_of_a_question_is_refused(vector: Any) -> None:
    for call in (
        lambda: query_vector_of(Returning(vector), "a"),
        lambda: question_of(Returning(None), window(vector=vector)),
    ):
        with pytest.raises(ConfigError, match="question") as caught:
            call()
        assert caught.value.code == "config.model_unusable"


def test_passages_and_questions_are_taken_as_they_should_be() -> None:
    several = [window(end=np.int64(6), tokens=None), window(start=7)]
    (found,) = passages_of(Returning(iter([several])), [TEXT])
    assert [(p.start, p.end, p.tokens is None) for p in found] == [(0, 6, True), (7, 16, False)]
    vector, tokens, spans = question_of(Returning(None), window(token_spans=SPANS.tolist()))
    assert tokens is not None
    assert spans is not None
    assert [vector.tolist(), tokens.tolist()] == [ROW.tolist(), PIECES.tolist()]
    assert spans.tolist() == SPANS.tolist()
    assert question_of(Returning(None), window(tokens=None, token_spans=None))[1:] == (None, None)


@pytest.mark.parametrize(
    "encoded",
    [
        None,
        [],
        [None],
        [[window()], [window()]],
        [[object()]],
        [[window(start=-1)]],
        [[window(start=9, end=2)]],
        [[window(end=2**33)]],
        [[window(end=1.5)]],
        [[window(vector=ROW[:3])]],
        [[window(tokens=ROW)]],
        [[window(tokens=PIECES[:, :3])]],
    ],
)
def test_other_passages_are_refused(encoded: Any) -> None:
    with pytest.raises(ConfigError, match="the embedder returned") as caught:
        passages_of(Returning(encoded), [TEXT])
    assert caught.value.code == "config.model_unusable"


@pytest.mark.parametrize(
    "question",
    [
        None,
        window(tokens=PIECES[:, :3]),
        window(tokens=ROW),
        window(token_spans=SPANS[:1]),
        window(token_spans=np.concatenate([SPANS, SPANS])),
        window(token_spans=SPANS.astype(np.float32)),
        window(token_spans=None),
        window(token_spans=[[0, 1], [2]]),
    ],
)
def test_other_questions_are_refused(question: Any) -> None:
    with pytest.raises(ConfigError, match="the embedder returned") as caught:
        question_of(Returning(None), question)
    assert caught.value.code == "config.model_unusable"


class Spoiling(HashEmbedder):
    """One number of each vector is another one once it is told which."""

    number: float | None = None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = super().embed(texts)
        if self.number is not None:
            rows[:, 0] = self.number
        return rows


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_is_neither_stored_nor_asked(
    cheap: Config, number: float
) -> None:
    embedder = Spoiling()
    with Memory.in_memory(config=cheap.with_embedder(embedder)) as memory:
        memory.add(TEXT)
        embedder.number = number
        for call in (
            lambda: memory.add("I moved to Lisbon."),
            lambda: memory.retrieve("Where do I live?"),
            lambda: memory.render_context("Where do I live?"),
        ):
            with pytest.raises(InputError, match="not finite") as caught:
                call()
            assert caught.value.code == "input.facts"
        assert len(memory) == 1
        embedder.number = None
        assert memory.retrieve("Where do I live?", limit=1)[0].turn.text == TEXT


def test_the_core_takes_no_number_that_is_not_finite() -> None:
    rows = np.ones((3, 8), np.float32)
    rows[1, 5] = np.nan
    for call in (_core.unit_vectors, _core.token_vectors):
        with pytest.raises(InputError, match="not finite") as caught:
            call(rows)
        assert caught.value.code == "input.facts"


@pytest.mark.parametrize("width", [0, 31, 33])
def test_the_core_compares_no_vectors_of_different_dimensions(stub: Config, width: int) -> None:
    class Cut(HashEmbedder):
        wide = 32

        def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
            rows = np.ones((len(texts), 33), np.float32)
            return rows[:, : self.wide].copy()

    embedder = Cut()
    with Memory.in_memory(config=stub.with_embedder(embedder)) as memory:
        memory.add("one")
        embedder.wide = width
        for call in (lambda: memory.retrieve("one"), lambda: memory.render_context("one")):
            with pytest.raises(InputError, match=f"has {width} numbers") as caught:
                call()
            assert caught.value.code == "input.facts"
