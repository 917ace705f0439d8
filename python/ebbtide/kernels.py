"""The engine's arithmetic over numpy arrays.

Every function runs the code that the engine runs turn by turn, so a number is the
same bit for bit whichever way it was computed. Arrays are read where they lie and
must be contiguous in rows; the GIL is released. Rankings are ordered by score, then
by row. Equations are those of the DMF paper.

All raise :class:`ebbtide.InputError` (``input.facts``) for a wrong dtype, shape or
memory layout, for arrays that do not belong together, and for numbers that are not
finite.
"""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import TYPE_CHECKING

from ebbtide import _core
from ebbtide.errors import InputError
from ebbtide.messages import shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["bm25", "cosine_top_k", "decay", "divergence", "overlap", "prune"]


def decay(
    omega: NDArray[np.float64],
    age: NDArray[np.int64],
    *,
    lambda_base: float = 0.035,
    inertia: float = 0.5,
    healthy_min: float = 0.75,
    critical_max: float = 0.30,
) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """Effective scores and tiers of turns (eq. 16-20).

    ``omega * exp(-lambda_base * (1 - inertia * omega) * age)``. A Survival Score lies in
    [0, 1]. Of numbers over ``1 / inertia`` the score grows with age, to infinity at last.

    Args:
        omega: float64 [n], Survival Scores.
        age: int64 [n], newer turns, from 0 on.
        lambda_base: Base decay rate, per turn, from 0 on.
        inertia: How much a high score slows decay, in [0, 1).
        healthy_min: Tier 2 lies strictly above.
        critical_max: Tier 1 lies strictly above, tier 0 at or below.

    Returns:
        Effective scores, float64 [n], and tiers, uint8 [n]: 0 critical, 1 unstable,
        2 healthy.
    """
    return _core.kernel_decay(
        omega,
        age,
        lambda_base=_real("lambda_base", lambda_base, 0.0),
        inertia=_real("inertia", inertia, 0.0, 1.0),
        healthy_min=_real("healthy_min", healthy_min),
        critical_max=_real("critical_max", critical_max),
    )


def prune(
    effective: NDArray[np.float64],
    adjustment: NDArray[np.float64],
    tokens: NDArray[np.int64],
    *,
    budget: int,
    healthy_min: float = 0.75,
    evict_healthy: bool = False,
) -> tuple[NDArray[np.int64], int]:
    """Rows that leave until the tokens fit into the budget (eq. 22-26).

    The least ``effective + adjustment`` leaves first; ties go by row.

    Args:
        effective: float64 [n], effective scores.
        adjustment: float64 [n], retention bonus minus supersession penalty.
        tokens: int64 [n], not negative.
        budget: Tokens that may stay, from 0 on.
        healthy_min: Rows strictly above are no candidates.
        evict_healthy: Let them go too, after all others.

    Returns:
        Rows, int64, in the order in which they leave, and the tokens still over the
        budget.
    """
    return _core.kernel_prune(
        effective,
        adjustment,
        tokens,
        budget=_whole("budget", budget),
        healthy_min=_real("healthy_min", healthy_min),
        evict_healthy=_flag("evict_healthy", evict_healthy),
    )


def divergence(
    vectors: NDArray[np.int16] | NDArray[np.float32], *, window: int = 10
) -> NDArray[np.float64]:
    """Divergence of each row from the rows before it (eq. 6-7).

    One minus the cosine to the sum of the ``window`` rows before; 0 for the first row
    and for a row or sum of zeros.

    Args:
        vectors: int16 [n, d], exact; or float32 [n, d], taken as unit vectors of
            scale 32767 first, as the engine takes them.
        window: Rows that count, at least 1.

    Returns:
        float64 [n], in [0, 2].
    """
    return _core.kernel_divergence(vectors, _whole("window", window, 1))


def cosine_top_k(
    vectors: NDArray[np.int16] | NDArray[np.float32],
    query: NDArray[np.int16] | NDArray[np.float32],
    *,
    k: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The rows nearest to a query, exactly.

    Args:
        vectors: int16 [n, d], unit vectors of scale 32767; or float32 [n, d], which
            are made such first (that costs more than the search). Of longer rows the
            products, which have 32 bits, may wrap around.
        query: int16 or float32 [d].
        k: Rows at most.

    Returns:
        Rows, int64, best first, ties by row, and their cosines, float64. Empty for a
        query of zeros.
    """
    return _core.kernel_cosine_top_k(vectors, query, _whole("k", k))


def overlap(
    offsets: NDArray[np.int64],
    documents: NDArray[np.uint32],
    count: int,
    query: NDArray[np.uint32],
    *,
    k: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Documents by the share of the query's terms that they contain (Table 4).

    Args:
        offsets: int64 [terms + 1]; term ``t`` stands in
            ``documents[offsets[t]:offsets[t + 1]]``.
        documents: uint32 [postings], ascending within a term, below ``count``.
        count: Number of documents.
        query: uint32 [q], term numbers; repetitions and unknown terms are allowed.
        k: Documents at most.

    Returns:
        Documents that share a term, int64, best first, ties by number, and their
        shares, float64 in (0, 1].
    """
    return _core.kernel_overlap(offsets, documents, _whole("count", count), query, _whole("k", k))


def bm25(
    offsets: NDArray[np.int64],
    documents: NDArray[np.uint32],
    counts: NDArray[np.uint32],
    lengths: NDArray[np.uint32],
    query: NDArray[np.uint32],
    *,
    k: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Documents by BM25 with k1 = 1.2, b = 0.75 and idf = ln(1 + (N - n + 0.5) / (n + 0.5)).

    Args:
        offsets: int64 [terms + 1], as for :func:`overlap`.
        documents: uint32 [postings], ascending within a term.
        counts: uint32 [postings], occurrences of the term in the document, from 1 on.
        lengths: uint32 [N], terms of each document.
        query: uint32 [q], term numbers; each counts once.
        k: Documents at most.

    Returns:
        Documents that share a term, int64, best first, ties by number, and their
        scores, float64.
    """
    return _core.kernel_bm25(offsets, documents, counts, lengths, query, _whole("k", k))


def _whole(name: str, value: int, least: int = 0) -> int:
    is_number = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_number or not least <= value < 2**63:
        message = f"{name} must be a whole number from {least} on, not {shown(value)}"
        raise InputError(message, "input.facts")
    return int(value)


def _real(name: str, value: float, least: float = -math.inf, most: float = math.inf) -> float:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not _finite(value) or not least <= value <= most:
        message = f"{name} must be a finite number"
        if least > -math.inf:
            message += f" from {least:g} on" if most == math.inf else f" in [{least:g}, {most:g}]"
        raise InputError(f"{message}, not {shown(value)}", "input.facts")
    return float(value)


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number or a fraction past every float
        return False


def _flag(name: str, value: bool) -> bool:
    import numpy as np

    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} must be True or False, not {shown(value)}", "input.facts")
    return bool(value)
