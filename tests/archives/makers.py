"""Records and memories for the tests of archives."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebbtide import _core
from ebbtide.archives import Archive, Hit, Identity, Record
from ebbtide.kernels import cosine_top_k

__all__ = ["DIMENSION", "IDENTITY", "brute", "holds", "keys", "record", "vector"]

DIMENSION = 32
IDENTITY = Identity("hash-32", DIMENSION)


def vector(seed: str) -> NDArray[np.int16]:
    """A unit vector that follows from a text."""
    raw = hashlib.shake_128(seed.encode()).digest(DIMENSION)
    numbers = np.frombuffer(raw, np.uint8).astype(np.float32) - 127.5
    return _core.unit_vectors(numbers.reshape(1, -1))[0]


def record(number: int, namespace: str = "ana", passages: int = 1, **changes: Any) -> Record:
    """Turn ``number`` of a memory."""
    raw: dict[str, Any] = {
        "text": f"{namespace} says {number}",
        "role": "user" if number % 3 else "assistant",
        "speaker": ("Ana", "Luis")[number % 2],
        "timestamp": f"2024-01-01T00:00:{number % 60:02d}Z",
        "utc_micros": 1_704_067_200_000_000 + number * 1_000_000,
        "naive_timestamp": False,
        "session_id": f"s{number // 10}",
        "external_id": f"t{number}",
        "provenance": None,
        "metadata": f'{{"parity": {number % 2}}}',
        "record_id": f"r{number}",
        **changes,
    }
    vectors = np.stack([vector(f"{namespace}/{number}/{part}") for part in range(passages)])
    return Record(namespace, number, raw, vectors, writer=f"{namespace}@home")


def brute(records: Sequence[Record], query: NDArray[np.int16], limit: int) -> list[Any]:
    """The best records by definition: every passage compared, one record at a time."""
    scored = [
        (cosine_top_k(np.ascontiguousarray(one.vectors), query, k=1)[1][0], one) for one in records
    ]
    scored.sort(key=lambda item: (-item[0], item[1].namespace, item[1].interaction_id))
    return [(score, one.namespace, one.interaction_id) for score, one in scored[:limit]]


def keys(hits: Sequence[Hit]) -> list[Any]:
    return [(hit.score, hit.record.namespace, hit.record.interaction_id) for hit in hits]


def holds(archive: Archive) -> dict[str, Any]:
    """What an archive holds, in sums: equal for equal archives."""
    return {name: archive.inventory(name) for name in archive.namespaces()}
