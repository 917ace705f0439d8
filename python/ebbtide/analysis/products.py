"""spaCy's matrix products by the core, each sum in one order.

thinc multiplies through BLIS, whose last bits depend on the processor. Here every sum
runs from first to last, whatever the processor and whatever other rows there are, and
takes about a quarter of the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from thinc.api import NumpyOps

from ebbtide import _core

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from spacy.language import Language

__all__ = ["OrderedOps", "with_ordered_products"]


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
    """The pipeline, whose layers multiply in one order from now on."""
    ops = OrderedOps()
    for _, component in nlp.pipeline:
        model = getattr(component, "model", None)
        for layer in () if model is None else model.walk():
            # What runs on a graphics card stays there.
            if isinstance(layer.ops, NumpyOps):
                layer.ops = ops
    return nlp
