"""What an embedder returned, checked before anything is made of it.

Whether the numbers are finite is for the core to say, which sees every one of them anyway.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ebbtide.errors import ConfigError
from ebbtide.messages import shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Returned", "passages_of", "query_vector_of", "question_of", "vectors_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Returned:
    """One window of a text; no token vectors from an embedder that offers none."""

    start: int
    end: int
    vector: NDArray[np.float32]
    tokens: NDArray[np.float32] | None = None


def vectors_of(model: Any, texts: Sequence[str]) -> NDArray[np.float32]:
    """One vector a text, by ``embed``: float32 [n, d].

    Raises:
        ConfigError: ``config.model_unusable``: it returned something else.
    """
    shape = (len(texts), int(model.dimension))
    return _numbers(model.embed(texts), shape, f"{len(texts)} texts")


def query_vector_of(model: Any, text: str) -> NDArray[np.float32]:
    """The vector of a question, by ``embed_query``: float32 [d].

    Raises:
        ConfigError: ``config.model_unusable``: it returned something else.
    """
    return _numbers(model.embed_query(text), (int(model.dimension),), "a question")


def question_of(
    model: Any, question: Any
) -> tuple[NDArray[np.float32], NDArray[np.float32] | None, NDArray[np.int64] | None]:
    """Vector, token vectors and their spans of a question, as ``encode_query`` returned it.

    Raises:
        ConfigError: ``config.model_unusable``: it is something else.
    """
    width = int(model.dimension)
    vector = _numbers(_part(question, "vector"), (width,), "a question")
    if _part(question, "tokens") is None:
        return vector, None, None
    tokens = _numbers(question.tokens, (None, width), "the word pieces of a question")
    return vector, tokens, _spans(_part(question, "token_spans"), len(tokens))


def passages_of(model: Any, texts: Sequence[str]) -> list[list[Returned]]:
    """The passages of every text, by ``encode``.

    Raises:
        ConfigError: ``config.model_unusable``: it returned something else.
    """
    encoded = _listed(model.encode(texts))
    if len(encoded) != len(texts):
        message = f"returned passages of {len(encoded)} texts; it must be {len(texts)}, as given"
        raise _unusable(message)
    return [
        [_passage(passage, text, int(model.dimension)) for passage in _listed(passages)]
        for text, passages in zip(texts, encoded, strict=True)
    ]


def _passage(passage: Any, text: str, width: int) -> Returned:
    bounds = _part(passage, "start"), _part(passage, "end")
    try:
        start, end = map(operator.index, bounds)
    except TypeError as error:
        message = f"returned a passage with bounds that are no whole numbers: {shown(bounds)}"
        raise _unusable(message) from error
    if not 0 <= start <= end <= len(text):
        message = (
            f"returned a passage from character {start} to {end}; it must lie in the text, "
            f"which has {len(text)}"
        )
        raise _unusable(message)
    tokens = _part(passage, "tokens")
    if tokens is not None:
        tokens = _numbers(tokens, (None, width), "the word pieces of a passage")
    return Returned(start, end, _numbers(_part(passage, "vector"), (width,), "a passage"), tokens)


def _numbers(value: Any, shape: tuple[int | None, ...], of: str) -> NDArray[np.float32]:
    """An array of that shape, of any length where it says None; float32, as it lies in rows."""
    import numpy as np

    try:
        given = np.asarray(value)
        if given.dtype.kind == "c":
            raise TypeError("it is complex")
        # What is too large becomes infinite, which is refused for what it is.
        with np.errstate(over="ignore"):
            numbers = np.ascontiguousarray(given, dtype=np.float32)
    except (TypeError, ValueError) as error:
        message = f"returned what is no array of real numbers for {of}: {error}"
        raise _unusable(message) from error
    fits = len(given.shape) == len(shape)
    if not fits or any(w not in (None, n) for w, n in zip(shape, given.shape, strict=True)):
        wanted = str(shape).replace("None", "any")
        message = f"returned an array of shape {given.shape} for {of}; it must be {wanted}"
        raise _unusable(message)
    return numbers


def _spans(value: Any, count: int) -> NDArray[np.int64]:
    import numpy as np

    try:
        spans = np.asarray(value)
    except ValueError as error:  # lists of several lengths
        message = f"returned what is no array of spans of word pieces: {error}"
        raise _unusable(message) from error
    if spans.dtype.kind not in "iu" or spans.shape != (count, 2):
        message = (
            f"returned spans of type {spans.dtype} and shape {spans.shape} for {count} word "
            f"pieces; they must be whole numbers of shape ({count}, 2)"
        )
        raise _unusable(message)
    return spans.astype(np.int64)


def _listed(value: Any) -> list[Any]:
    try:
        each = iter(value)
    except TypeError as error:
        raise _unusable(f"returned a {type(value).__name__} where a list belongs") from error
    return list(each)


def _part(passage: Any, name: str) -> Any:
    try:
        return getattr(passage, name)
    except AttributeError as error:
        message = f"returned a {type(passage).__name__} without `{name}` where a passage belongs"
        raise _unusable(message) from error


def _unusable(what: str) -> ConfigError:
    return ConfigError(f"the embedder {what}", "config.model_unusable")
