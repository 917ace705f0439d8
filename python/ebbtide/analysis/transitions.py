"""spaCy's parser and entity recogniser, whose moves are made by the core.

Both go through a text move by move. spaCy sums the scores of a move through BLIS, whose last
bits depend on the processor, and takes Python's lock some two hundred times a token, which
is most of what the two cost. The core makes the same moves by the same weights; every sum
has one order, and threads do not wait for each other. What comes before the moves (the
tokens' vectors) and after them (arcs that cross) stays spaCy's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from spacy.attrs import (  # type: ignore[import-not-found]
    DEP,
    ENT_IOB,
    ENT_TYPE,
    HEAD,
    IS_SPACE,
    SENT_START,
)
from spacy.language import Language
from spacy.pipeline import DependencyParser, EntityRecognizer
from thinc.api import NumpyOps

from ebbtide import _core
from ebbtide.analysis.batching import portions, rows_of

if TYPE_CHECKING:
    from spacy.tokens import Doc

__all__ = ["Arcs", "Entities", "with_own_moves"]

_NAME = "ebbtide_moves"
_READ = [SENT_START, IS_SPACE]
_AT_ONCE = 1024
"""Tokens whose vectors are in memory at once; a text is never cut."""


class _Moves:
    """What a component of spaCy's does, with its moves made by the core."""

    looks_at: ClassVar[int]
    """Tokens that score a move."""
    letters: ClassVar[frozenset[str]]
    """Of the moves that the core knows."""
    written: ClassVar[list[int | str]]
    """What is set on each token."""

    def __init__(self, component: Any) -> None:
        """Lay out the weights of a component that :func:`with_own_moves` takes."""
        self._component = component
        self._vectors = component.model.layers[0]
        self._lower = component.model.get_ref("lower")
        upper = component.model.get_ref("upper")
        strings = component.vocab.strings
        self._moves = self._made(
            [(letter, strings[label] if label else 0) for letter, label in _moves_of(component)],
            (self._lower.get_param("b"), upper.get_param("W"), upper.get_param("b")),
        )

    def _made(self, moves: list[tuple[str, int]], layers: tuple[Any, Any, Any]) -> Any:
        raise NotImplementedError

    def __call__(self, doc: Doc) -> Doc:
        """Annotate a text."""
        if len(doc):
            self._annotate([doc])
        return doc

    def pipe(self, docs: Iterable[Doc], *, batch_size: int = 256) -> Iterator[Doc]:
        """Annotate texts; each as if it were alone.

        Args:
            docs: Any number of texts.
            batch_size: How many of them are read ahead.

        Returns:
            The texts, in order.
        """
        stream = iter(docs)
        while batch := list(islice(stream, batch_size)):
            for some in portions(filter(len, batch), _AT_ONCE):
                self._annotate(some)
            yield from batch

    def _annotate(self, docs: Sequence[Doc]) -> None:
        if any(map(self._is_annotated, docs)):
            self._component.set_annotations(docs, self._component.predict(docs))
            return
        tokens = np.concatenate([doc.to_array(_READ) for doc in docs])
        vectors = self._lower.predict(self._vectors.predict(docs))
        found = self._moves.find(vectors, tokens, list(map(len, docs)))
        of_texts: list[Any] = rows_of(docs, found)
        for doc, rows in zip(docs, of_texts, strict=True):
            doc.from_array(self.written, rows)
            for finish in self._component.postprocesses:
                finish(doc)

    def _is_annotated(self, doc: Doc) -> bool:
        """Whether there is something on a text that only spaCy's component heeds."""
        return False


class Arcs(_Moves):
    """Finds dependencies, and by them sentences, as a :class:`DependencyParser`."""

    looks_at = _core.ArcMoves.LOOKED_AT
    letters = frozenset("SDLRB")
    written: ClassVar[list[int | str]] = [HEAD, DEP]

    def _made(self, moves: list[tuple[str, int]], layers: tuple[Any, Any, Any]) -> _core.ArcMoves:
        return _core.ArcMoves(moves, layers, self._component.vocab.strings["ROOT"])


class Entities(_Moves):
    """Finds entities as an :class:`EntityRecognizer`."""

    looks_at = _core.EntityMoves.LOOKED_AT
    letters = frozenset("BILUO")
    written: ClassVar[list[int | str]] = [ENT_IOB, ENT_TYPE]

    def _made(
        self, moves: list[tuple[str, int]], layers: tuple[Any, Any, Any]
    ) -> _core.EntityMoves:
        return _core.EntityMoves(moves, layers)

    def _is_annotated(self, doc: Doc) -> bool:
        # Entities of an earlier component stay, and those beside them heed them.
        return bool(doc.to_array(ENT_IOB).any())


_OWN: dict[type, type[_Moves]] = {DependencyParser: Arcs, EntityRecognizer: Entities}


def with_own_moves(nlp: Language) -> Language:
    """The pipeline, whose parser and entity recogniser go move by move in the core from now on.

    A component of another kind, or with a beam, stays as it is.
    """
    for name, component in nlp.pipeline:
        own = _OWN.get(type(component))
        if own is not None and _can_take(own, component):
            nlp.add_pipe(_NAME, f"ebbtide_{name}", config={"component": name}, after=name)
            nlp.disable_pipe(name)
    return nlp


@Language.factory(_NAME)
def _of_component(nlp: Language, name: str, component: str) -> _Moves:
    taken: Any = nlp.get_pipe(component)
    return _OWN[type(taken)](taken)


def _can_take(own: type[_Moves], component: Any) -> bool:
    model = component.model
    return (
        component.cfg["beam_width"] == 1
        and isinstance(model.ops, NumpyOps)
        and model.attrs["has_upper"]
        and not model.attrs["unseen_classes"]
        and model.get_ref("lower").get_dim("nF") == own.looks_at
        # Tokens in parts are joined by rules of their own.
        and all(
            letter in own.letters and label != "subtok" for letter, label in _moves_of(component)
        )
    )


def _moves_of(component: Any) -> list[tuple[str, str]]:
    """Letter and label of each move, in the order of the weights."""
    moves = component.moves
    names = (moves.get_class_name(i).partition("-") for i in range(moves.n_moves))
    return [(letter, label) for letter, _, label in names]
