"""Order by our own exact cosines, whatever a server found its candidates with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ebbtide import _core
from ebbtide.archives.base import Filters, Hit
from ebbtide.archives.records import Record
from ebbtide.errors import InputError
from ebbtide.kernels import cosine_top_k

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["best", "certain", "error_bound", "query_vector", "rescored", "unit"]

_SCALE = np.float32(32767)
"""Length of a unit vector in the integers that are stored."""

Candidates = Callable[[int], tuple[Sequence[Record], float | None]]
"""Given a number of passages, the records of the nearest ones and the server's cosine
of the last of them; None where there are no more passages than those."""


def query_vector(
    vector: NDArray[np.int16] | NDArray[np.float32], dimension: int
) -> NDArray[np.int16]:
    """A question's vector in the integers that are stored.

    Raises:
        InputError: If it has another length or type.
    """
    given = np.ascontiguousarray(vector)
    if given.shape != (dimension,) or given.dtype not in (np.int16, np.float32, np.float64):
        message = (
            f"the question's vector must be int16 or float32 [{dimension}], not {given.dtype} "
            f"{list(given.shape)}"
        )
        raise InputError(message, "input.facts")
    if given.dtype == np.int16:
        return given.astype(np.int16)
    rows: NDArray[np.int16] = _core.unit_vectors(given.astype(np.float32).reshape(1, -1))
    return rows.reshape(-1)


def unit(vector: NDArray[np.int16]) -> NDArray[np.float32]:
    """A stored vector as servers take it, float32 [d] of length 1: a product is a cosine."""
    return vector.astype(np.float32) / _SCALE


def rescored(records: Iterable[Record], query: NDArray[np.int16], limit: int) -> list[Hit]:
    """The best records by the exact cosine of their best passage."""
    kept = [record for record in records if len(record.vectors)]
    if not kept:
        return []
    owners = np.repeat(np.arange(len(kept)), [len(record.vectors) for record in kept])
    rows = np.ascontiguousarray(np.concatenate([record.vectors for record in kept]))
    found, cosines = cosine_top_k(rows, query, k=len(rows))
    scores: dict[int, float] = {}
    for row, cosine in zip(found.tolist(), cosines.tolist(), strict=True):
        scores.setdefault(int(owners[row]), cosine)  # best first: the first is the best
    hits = [Hit(score, kept[owner]) for owner, score in scores.items()]
    return best(hits, limit)


def best(hits: Iterable[Hit], limit: int) -> list[Hit]:
    """The first hits: by score, then namespace, then id."""
    key = lambda hit: (-hit.score, hit.record.namespace, hit.record.interaction_id)  # noqa: E731
    return sorted(hits, key=key)[:limit]


def error_bound(dimension: int) -> float:
    """How far a server's float32 inner product of two unit vectors may be off.

    Each of the d products and sums is rounded once, relative 2^-24, as are the two
    numbers of each product; the sum of their sizes is at most that of the vectors'
    lengths, 1. Doubled, for vectors whose length is not quite 1.
    """
    return float((dimension + 4) * 2.0**-23)


def certain(
    fetch: Candidates, query: NDArray[np.int16], limit: int, filters: Filters, slack: float
) -> list[Hit]:
    """The exact best records from a server that ranks every passage inexactly.

    Asks for more passages until the last hit is better than any passage that was not
    fetched can be.
    """
    if not query.any():
        return []
    wanted = 2 * limit + 32
    while True:
        records, last = fetch(wanted)
        hits = rescored(filter(filters.lets_metadata, records), query, limit)
        if last is None:
            return hits
        if len(hits) == limit and hits[-1].score > last + slack:
            return hits
        wanted *= 4
