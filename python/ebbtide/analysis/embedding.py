"""Text to vectors: one per passage, and one per word piece for late interaction.

Every result of the default model is a function of the text alone, bit for bit: no text of
a call sees another (:mod:`~.networks`), and pooling is done here, text by text. A graph that
ONNX Runtime runs gets rows of one length in a call (no padding).
Vectors come out raw, not of unit length: whoever compares them normalises.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ebbtide import _core
from ebbtide.analysis.batching import portions
from ebbtide.analysis.canonical import CanonicalPassage
from ebbtide.analysis.embedding_model import default_directory, load_model
from ebbtide.errors import ConfigError

__all__ = ["Embedder", "ModelEmbedder", "Passage", "Pending", "Submit", "at_once"]

GROUP_ROWS = 16
"""Rows of one forward pass; beyond it, nothing is gained."""

GROUP_TOKENS = 1024
"""Word pieces of one forward pass: more take memory, and no less time."""

OVERLAP = 64
"""Word pieces that neighbouring passages of a long text share, at least."""

_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a pair, which alone has no UTF-8 form."""

_Ids = tuple[int, ...]
_Rows = NDArray[np.float32]
_Kept = TypeVar("_Kept")
_Array = TypeVar("_Array", bound=NDArray[Any])
_Result = TypeVar("_Result", covariant=True)


class Pending(Protocol[_Result]):
    """A result on its way, such as a ``Future``."""

    def result(self) -> _Result:
        """Wait for it."""
        ...


Submit = Callable[..., Pending[Any]]
"""``submit(function, *arguments)``: run it now or later, here or beside."""


@runtime_checkable
class Embedder(Protocol):
    """What the memory needs of an embedder; any object with these will do.

    Optional: ``embed_query(text) -> float32 [d]``, for models that treat a
    question differently from a passage. Where it is absent, a question is
    embedded with ``embed([text])``. Optional too: ``encode`` and
    ``encode_query`` as in :class:`ModelEmbedder`; without them long texts have
    one vector and there is no late interaction. ``begin``, ``begin_query`` and
    ``assist`` let two threads share the work.

    Attributes:
        dimension: Width d of the vectors, 1 or more.
        fingerprint: Must change whenever the vectors of equal texts change.
    """

    dimension: int
    fingerprint: str

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One vector a text, float32 [n, d], finite; they need not have unit length."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Passage:
    """One window of a text. The arrays are read-only and may be shared.

    Attributes:
        start: First character of the window in the text.
        end: One past its last character.
        vector: float32 [d], not normalised; zeros where there is no word piece.
        tokens: float32 [t, d], a vector for every word piece, special ones left
            out, not normalised.
        token_spans: int32 [t, 2], characters ``[start, end)`` of each word piece
            in the text (not in the window).
    """

    start: int
    end: int
    vector: NDArray[np.float32]
    tokens: NDArray[np.float32]
    token_spans: NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class _Window:
    """What of a text goes into one forward pass."""

    ids: _Ids
    start: int
    end: int
    spans: NDArray[np.int32]


class ModelEmbedder:
    """An encoder from a directory; by default the installed bge-small-en-v1.5.

    Safe to call from several Python threads at once; two of them with
    ``threads=1`` are faster than one with ``threads=2``.

    Attributes:
        dimension: Width of the vectors.
        fingerprint: Name, pooling, length limit and hashes of model and tokenizer.
        query_prefix: What the model wants before a question.
    """

    def __init__(self, directory: str | Path | None = None, *, threads: int = 1) -> None:
        """Open the model.

        Args:
            directory: A directory with ``model.onnx`` or ``model.safetensors``,
                ``tokenizer.json`` and an optional ``manifest.json`` (see
                :mod:`~.embedding_model`).
            threads: ONNX Runtime's own threads within one call; changes the
                speed, never the result. The core's encoder has one.

        Raises:
            ConfigError: If the package, the directory or a file of it is
                missing, damaged or not a BERT-like encoder.
        """
        path = default_directory() if directory is None else Path(directory)
        self._model = load_model(path, threads)
        self.dimension = self._model.dimension
        self.fingerprint = self._model.fingerprint
        self.query_prefix = self._model.query_prefix
        sample = self._model.tokenizer.encode("a")
        content = [i for i, special in enumerate(sample.special_tokens_mask) if not special]
        if not content:
            message = f"the tokenizer in {str(path)!r} does not know the letter a"
            raise ConfigError(message, "config.model_unusable")
        self._lead = tuple(sample.ids[: content[0]])
        self._trail = tuple(sample.ids[content[-1] + 1 :])
        self._ends = len(self._lead) + len(self._trail)
        self._size = self._model.max_tokens - self._ends
        if self._size < 1:
            message = f"max_tokens of the model in {str(path)!r} leaves no room for text"
            raise ConfigError(message, "config.model_unusable")

    def encode(self, texts: Sequence[str]) -> list[list[Passage]]:
        """All passages of every text, with their token vectors.

        A text of up to ``max_tokens`` word pieces is one passage that spans it
        all. A longer one is cut into overlapping passages that begin with a
        word. An empty text is one passage with a zero vector and no tokens.

        The result takes 4 * d bytes a word piece (48 kB a short turn): give
        large collections in parts.
        """
        windows = [self._windows(text) for text in texts]
        hidden = self._forward((window.ids for some in windows for window in some), np.copy)
        return [[self._passage(window, hidden) for window in some] for some in windows]

    def begin(
        self, texts: Sequence[str], submit: Submit
    ) -> Callable[[], list[tuple[CanonicalPassage, ...]]]:
        """Hand out the forward passes of many texts; the result comes when called for.

        The same as ``canonical_passages`` of each of :meth:`encode`, but no more
        than one forward pass a thread is held in float32.

        Args:
            texts: The texts.
            submit: Called as ``submit(function, *arguments)`` for every forward
                pass, as that of an executor; it may run them in any order.
        """
        windows = [self._windows(text) for text in texts]
        sequences = (window.ids for some in windows for window in some)
        parts = self._begin(sequences, submit, self._canonical)

        def finish() -> list[tuple[CanonicalPassage, ...]]:
            found = _merged(parts)
            found[()] = self._canonical(np.zeros((self._ends, self.dimension), np.float32))
            return [
                tuple(CanonicalPassage(w.start, w.end, *found[w.ids]) for w in some)
                for some in windows
            ]

        return finish

    def _canonical(self, rows: _Rows) -> tuple[NDArray[np.int16], NDArray[np.int8]]:
        """What a sequence of word pieces is stored as: its vector, and those of its pieces."""
        vector = _core.unit_vectors(self._pool(rows).reshape(1, -1))[0]
        return vector, _core.token_vectors(self._without_ends(rows))

    def _without_ends(self, rows: _Rows) -> _Rows:
        return rows[len(self._lead) : len(rows) - len(self._trail)]

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One vector a text, float32 [n, d]: that of its first passage.

        Zeros for an empty text.
        """
        first = [self._windows(text, only_first=True)[0].ids for text in texts]
        pooled = self._forward(first, self._pool)
        result = np.zeros((len(first), self.dimension), np.float32)
        for row, ids in enumerate(first):
            if ids:
                result[row] = pooled[ids]
        return result

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The vector of a question, float32 [d], made with the model's query prefix."""
        if not self._windows(text, only_first=True)[0].ids:
            return np.zeros(self.dimension, np.float32)
        vector: NDArray[np.float32] = self.embed([self.query_prefix + text])[0]
        return vector

    def encode_query(self, text: str) -> Passage:
        """A question for late interaction: two forward passes.

        The vector is that of :meth:`embed_query`; token vectors and spans are
        those of the bare question, whose word pieces the prefix would blur. Of
        a question over the length limit, the first passage.
        """
        return self.begin_query(text, at_once)()

    def begin_query(self, text: str, submit: Submit) -> Callable[[], Passage]:
        """Hand out the forward passes of :meth:`encode_query`; the result comes when called for.

        Args:
            text: The question.
            submit: Called as ``submit(function, *arguments)`` for each of them, the
                longer one first.
        """
        vector = submit(self.embed_query, text) if self.query_prefix else None
        bare = submit(self._first_passage, text)

        def finish() -> Passage:
            passage: Passage = bare.result()
            if vector is None:
                return passage
            return replace(passage, vector=_frozen(vector.result()))

        return finish

    def assist(self) -> bool:
        """Help another thread with the text that it embeds, for a millisecond or so.

        False where there is nothing to help with. The result is the same with help and
        without.
        """
        return self._model.network.help()

    def _first_passage(self, text: str) -> Passage:
        window = self._windows(text, only_first=True)[0]
        return self._passage(window, self._forward([window.ids], np.copy))

    def _windows(self, text: str, only_first: bool = False) -> list[_Window]:
        # One character for one keeps the spans right.
        clean = _SURROGATE.sub("\ufffd", text)
        encoding = self._model.tokenizer.encode(clean, add_special_tokens=False)
        ids = encoding.ids
        if not ids:
            return [_Window((), 0, len(text), np.zeros((0, 2), np.int32))]
        spans = np.array(encoding.offsets, np.int32)
        bounds = [(0, len(ids))]
        if len(ids) > self._size:
            bounds = list(_window_bounds(encoding.word_ids, self._size))
        return [
            _Window(
                ids=(*self._lead, *ids[first:last], *self._trail),
                start=0 if first == 0 else int(spans[first, 0]),
                end=len(text) if last == len(ids) else int(spans[last - 1, 1]),
                spans=_frozen(spans[first:last]),
            )
            for first, last in bounds[: 1 if only_first else None]
        ]

    def _passage(self, window: _Window, hidden: dict[_Ids, NDArray[np.float32]]) -> Passage:
        if window.ids:
            rows = _frozen(hidden[window.ids])
            vector = _frozen(self._pool(rows))
            tokens = self._without_ends(rows)
        else:
            vector = _frozen(np.zeros(self.dimension, np.float32))
            tokens = _frozen(np.zeros((0, self.dimension), np.float32))
        return Passage(window.start, window.end, vector, tokens, window.spans)

    def _pool(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        pooled: NDArray[np.float32] = rows[0].copy()
        if self._model.pooling == "mean":
            pooled = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
        return pooled

    def _forward(
        self, sequences: Iterable[_Ids], keep: Callable[[_Rows], _Kept]
    ) -> dict[_Ids, _Kept]:
        """Run every distinct sequence once; ``keep`` takes what is wanted of its rows."""
        return _merged(self._begin(sequences, at_once, keep))

    def _begin(
        self, sequences: Iterable[_Ids], submit: Submit, keep: Callable[[_Rows], _Kept]
    ) -> list[Pending[dict[_Ids, _Kept]]]:
        unique = sorted((ids for ids in dict.fromkeys(sequences) if ids), key=len)
        return [submit(self._run, group, keep) for group in self._groups(unique)]

    def _groups(self, sequences: list[_Ids]) -> Iterator[list[_Ids]]:
        """Sequences, sorted by length, in parts of one forward pass each."""
        if self._model.network.of_one_length:
            return _of_one_length(sequences)
        return portions(sequences, GROUP_TOKENS)

    def _run(self, group: list[_Ids], keep: Callable[[_Rows], _Kept]) -> dict[_Ids, _Kept]:
        """One forward pass; ``keep`` must copy, for it is given views of the whole output."""
        rows = self._model.network.rows(group)
        return {key: keep(some) for key, some in zip(group, rows, strict=True)}


class _AtOnce:
    """A result that is there already."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def result(self) -> Any:
        return self._value


def at_once(function: Callable[..., Any], *arguments: Any) -> Pending[Any]:
    """A ``submit`` that waits."""
    return _AtOnce(function(*arguments))


def _merged(parts: Iterable[Pending[dict[_Ids, _Kept]]]) -> dict[_Ids, _Kept]:
    return {ids: rows for part in parts for ids, rows in part.result().items()}


def _frozen(array: _Array) -> _Array:
    array.setflags(write=False)
    return array


def _of_one_length(sequences: Iterable[_Ids]) -> Iterator[list[_Ids]]:
    """Runs of one length out of ``sequences``, which are sorted by length."""
    group: list[_Ids] = []
    for ids in sequences:
        rows = max(1, min(GROUP_ROWS, GROUP_TOKENS // len(ids)))
        if group and (len(group[0]) != len(ids) or len(group) >= rows):
            yield group
            group = []
        group.append(ids)
    if group:
        yield group


def _window_bounds(words: Sequence[int | None], size: int) -> Iterator[tuple[int, int]]:
    """Word piece ranges ``[first, last)`` of at most ``size`` that cover ``words``.

    Args:
        words: For each word piece, the word it belongs to.
        size: Longest range, in word pieces.
    """
    overlap = min(OVERLAP, size // 4)
    first = 0
    while first + size < len(words):
        yield first, first + size
        # Never further back than twice the overlap, lest a giant word stops all progress.
        start = first + size - overlap
        back = start
        while back > start - overlap and words[back] == words[back - 1]:
            back -= 1
        first = start if words[back] == words[back - 1] else back
    yield first, len(words)
