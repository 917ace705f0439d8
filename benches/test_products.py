"""spaCy's matrix products: the core's beside thinc's (BLIS) and numpy's (OpenBLAS).

``pytest benches/test_products.py``, one thread each (``OPENBLAS_NUM_THREADS=1``). The rows
are the tokens of one turn and of a batch; the weights are as large as those of a layer of
``en_core_web_sm``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from thinc.api import NumpyOps

from ebbtide.analysis.products import OrderedOps

OPS = {"ordered": OrderedOps(), "blis": NumpyOps(), "numpy": NumpyOps(use_blis=False)}


@pytest.mark.parametrize("ops", OPS)
@pytest.mark.parametrize("rows", [20, 5_000])
def test_a_layers_product(benchmark: Any, rows: int, ops: str) -> None:
    drawn = np.random.default_rng(rows)
    x = drawn.standard_normal((rows, 288), np.float32)
    y = drawn.standard_normal((288, 288), np.float32)
    benchmark.group = f"{rows} rows"
    out = benchmark(OPS[ops].gemm, x, y, trans2=True)
    assert np.allclose(out, x @ y.T, atol=1e-3)
