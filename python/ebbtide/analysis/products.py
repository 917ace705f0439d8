"""spaCy's layers with the same bits on every processor.

thinc multiplies through BLIS, whose last bits depend on the processor. Here every sum
of a product runs from first to last, whatever the processor and whatever other rows
there are, by the core, in about a quarter of the time. And thinc normalises a layer by
a power, which numpy takes as wide as the processor allows and not always to the same
bit; a square root and a division are exact everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from thinc.api import Model, NumpyOps

from ebbtide import _core

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from spacy.language import Language

__all__ = ["OrderedOps", "with_ordered_products"]

_LEAST = np.float32(1e-08)
"""Added to a variance, as thinc does, so that it divides."""


class OrderedOps(NumpyOps):  # type: ignore[misc]  # compiled, without types
    """thinc's operations for layers whose weights no longer change."""

    def __init__(self) -> None:
        """No weights are laid out yet."""
        super().__init__()
        self._laid: dict[tuple[int, tuple[int, ...]], tuple[Any, _core.Weights]] = {}

    def gemm(
        self,
        x: NDArray[np.float32],
        y: NDArray[np.float32],
        out: NDArray[np.float32] | None = None,
        trans1: bool = False,
        trans2: bool = False,
    ) -> NDArray[np.float32]:
        """``x @ y.T``, the product of a forward pass; thinc's own for any other.

        Args:
            x: float32 [n, inner].
            y: float32 [columns, inner], the weights.
            out: float32 [n, columns] to fill; None for a new one.
            trans1: Whether ``x`` is to be transposed.
            trans2: Whether ``y`` is.

        Returns:
            float32 [n, columns].
        """
        if trans1 or not trans2 or x.dtype != np.float32:
            product: NDArray[np.float32] = super().gemm(x, y, out=out, trans1=trans1, trans2=trans2)
            return product
        if out is None:
            out = np.empty((x.shape[0], y.shape[0]), dtype=np.float32)
        self._weights(y).multiply(np.ascontiguousarray(x), out)
        return out

    def _weights(self, y: NDArray[np.float32]) -> _core.Weights:
        # A layer may hand out a new view each time; the numbers lie where they lay.
        key = (y.__array_interface__["data"][0], y.shape)
        if key not in self._laid:
            # The array is kept, so that no other can come to lie there.
            self._laid[key] = (y, _core.Weights(np.ascontiguousarray(y)))
        return self._laid[key][1]


def with_ordered_products(nlp: Language) -> Language:
    """The pipeline, whose layers compute the same bits everywhere from now on."""
    ops = OrderedOps()
    for _, component in nlp.pipeline:
        model: Model[Any, Any] | None = getattr(component, "model", None)
        if model is not None:
            _order(model, ops)
    return nlp


def _order(model: Model[Any, Any], ops: OrderedOps) -> None:
    for layer in list(model.walk()):
        # What runs on a graphics card stays there.
        if isinstance(layer.ops, NumpyOps):
            layer.ops = ops
            if layer.name == "layernorm":
                model.replace_node(layer, _normalising(layer, ops))


def _normalising(layer: Model[Any, Any], ops: OrderedOps) -> Model[Any, Any]:
    """A layer of those weights that does what ``thinc.layers.layernorm`` does."""
    params: dict[str, Any] = {name: layer.get_param(name) for name in ("G", "b")}
    return Model(layer.name, _normalise, params=params, ops=ops)


def _normalise(
    model: Model[Any, Any], x: NDArray[np.float32], is_train: bool
) -> tuple[NDArray[np.float32], Any]:
    mean, variance = x.mean(axis=1, keepdims=True), x.var(axis=1, keepdims=True)
    x = (x - mean) / np.sqrt(variance + _LEAST)
    return x * model.get_param("G") + model.get_param("b"), None
