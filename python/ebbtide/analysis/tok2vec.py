"""spaCy's token vectors: words looked up, their neighbours seen by the core.

What a network makes of a word by itself depends on a few of its attributes (norm, prefix,
suffix, shape), so it is asked once for each kind of word. The layers that see a word's
neighbours are run by the core: the same sums in the same order, without an array of numpy's
for each step.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from thinc.api import Model, NumpyOps

from ebbtide import _core
from ebbtide.analysis.batching import rows_of

if TYPE_CHECKING:
    from typing import TypeAlias

    from numpy.typing import NDArray
    from spacy.language import Language
    from spacy.tokens import Doc

    Rows: TypeAlias = NDArray[np.float32]

__all__ = ["WordRows", "with_own_encoders"]

_MOST = 20_000
"""Kinds of words that are remembered before all of them are let go."""
_EMBEDDINGS = re.compile(r"with_array\((ints-getitem>>hashembed\|)+ints-getitem>>hashembed\)")
_BEFORE = ["extract_features", "list2ragged"]
_AFTER = ["with_array(maxout>>layernorm>>dropout)", "ragged2list"]
_LAYER = r"residual\(expand_window>>maxout>>layernorm>>dropout\)"
_WINDOWS = re.compile(rf"with_array\({_LAYER}(>>{_LAYER})*\)")


class WordRows:
    """What layers make of each word by itself, looked up."""

    def __init__(self, layer: Model[Any, Any]) -> None:
        """Take layers that :func:`with_own_encoders` knows."""
        features, _, embeddings, mix, _ = layer.layers
        self._columns: list[int | str] = features.attrs["columns"]
        self._embeddings, self._mix = embeddings.layers[0], mix.layers[0]
        self._kinds: dict[bytes, int] = {}
        self._rows: Rows = np.empty((256, layer.get_dim("nO")), dtype=np.float32)

    def __call__(self, docs: Sequence[Doc]) -> list[Rows]:
        """Of each text its words' rows, float32 [tokens, width]."""
        attributes = np.concatenate([doc.to_array(self._columns) for doc in docs])
        keys: list[bytes] = attributes.view(f"V{attributes.strides[0]}").ravel().tolist()
        unknown = {key: at for at, key in enumerate(keys) if key not in self._kinds}
        if self._kinds and len(self._kinds) + len(unknown) > _MOST:
            self._kinds.clear()
            unknown = {key: at for at, key in enumerate(keys)}
        if unknown:
            self._learn(unknown, attributes)
        return rows_of(docs, self._rows[[self._kinds[key] for key in keys]])

    def _learn(self, unknown: dict[bytes, int], attributes: NDArray[np.uint64]) -> None:
        """Ask the layers for kinds of words that stand at these places."""
        known = len(self._kinds)
        wanted = known + len(unknown)
        if wanted > len(self._rows):
            grown: Rows = np.empty((2 * wanted, self._rows.shape[1]), dtype=np.float32)
            grown[:known] = self._rows[:known]
            self._rows = grown
        embedded = self._embeddings.predict(attributes[list(unknown.values())])
        self._rows[known:wanted] = self._mix.predict(embedded)
        self._kinds.update((key, known + new) for new, key in enumerate(unknown))


def with_own_encoders(nlp: Language) -> Language:
    """The pipeline, whose token vectors are made in these two ways from now on.

    Layers of another kind, and those that run elsewhere than on the processor, stay.
    """
    for _, component in nlp.pipeline:
        model: Model[Any, Any] | None = getattr(component, "model", None)
        if model is None or not isinstance(model.ops, NumpyOps):
            continue
        for layer in list(model.walk()):
            if _are_words(layer):
                model.replace_node(layer, _looked_up(layer))
            elif _are_windows(layer):
                model.replace_node(layer, _in_the_core(layer))
    return nlp


def _are_words(layer: Model[Any, Any]) -> bool:
    names = [part.name for part in layer.layers]
    return (
        len(names) == 5
        and (names[:2], names[3:]) == (_BEFORE, _AFTER)
        and _EMBEDDINGS.fullmatch(names[2]) is not None
    )


def _are_windows(layer: Model[Any, Any]) -> bool:
    if not _WINDOWS.fullmatch(layer.name):
        return False
    windows = _parts(layer, "expand_window")
    seen = {window.attrs["window_size"] for window in windows}
    return seen == {1} and layer.attrs["pad"] == len(windows)


def _looked_up(layer: Model[Any, Any]) -> Model[list[Doc], list[Rows]]:
    rows = WordRows(layer)

    def forward(_: Any, docs: list[Doc], is_train: bool) -> tuple[list[Rows], Any]:
        return rows(docs) if docs else [], None

    return Model(layer.name, forward, dims={"nO": layer.get_dim("nO")}, ops=layer.ops)


def _in_the_core(layer: Model[Any, Any]) -> Model[list[Rows], list[Rows]]:
    numbers: list[Any] = [
        (maxout.get_param("W"), maxout.get_param("b"), norm.get_param("G"), norm.get_param("b"))
        for maxout, norm in zip(_parts(layer, "maxout"), _parts(layer, "layernorm"), strict=True)
    ]
    windows = _core.Windows(numbers)

    def forward(_: Any, texts: list[Rows], is_train: bool) -> tuple[list[Rows], Any]:
        if not texts:
            return [], None
        encoded = windows.encode(np.concatenate(texts), list(map(len, texts)))
        return rows_of(texts, encoded), None

    return Model(layer.name, forward, dims={"nO": layer.get_dim("nO")}, ops=layer.ops)


def _parts(layer: Model[Any, Any], name: str) -> list[Model[Any, Any]]:
    """The parts of a layer that are called so, first to last."""
    return [part for part in layer.walk() if part.name == name]
