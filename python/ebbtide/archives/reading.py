"""A memory read as an archive wants it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ebbtide.archives.base import Identity, Source
from ebbtide.archives.records import Record

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ebbtide.memory import Memory

__all__ = ["Reader", "identity_of"]

_MARK = ";embedder="


def identity_of(memory: Memory) -> Identity:
    """What a memory's vectors are made with."""
    analyser = memory._analyser.fingerprint
    return Identity(
        # What reads the text besides the embedder does not change a vector.
        embedding=analyser.partition(_MARK)[2] or analyser,
        dimension=int(memory.config["nlp"]["vector_dim"]),
    )


class Reader:
    """The turns of a memory as records."""

    def __init__(self, memory: Memory, namespace: str, writer: str) -> None:
        """Read ``memory``; the records go into ``namespace``, from ``writer``."""
        memory.flush()
        self._handle = memory._handle
        self._namespace = namespace
        self._writer = writer
        self._dimension = int(memory.config["nlp"]["vector_dim"])

    def ids(self) -> NDArray[np.uint64]:
        """Ids of every turn, in order."""
        return self._handle.ids()

    def waiting(self) -> int:
        """Turns that are not analysed yet."""
        return len(self._handle.pending())

    def source(self) -> Source:
        """What the archive is told of the memory."""
        stats = self._handle.stats()
        return Source(
            next_id=stats["next_id"],
            analyser=stats["analyser"],
            token_counter=stats["token_counter"],
            relations=tuple(self._handle.stated()),
        )

    def page(self, first: int, limit: int) -> list[Record]:
        """Up to ``limit`` records from id ``first`` on, ending before an unanalysed turn."""
        rows = self._handle.page(first, limit)
        vectors = dict(self._handle.vectors(first, limit))
        records: list[Record] = []
        for row in rows:
            raw = vectors.get(row["interaction_id"])
            if raw is None:
                break
            numbers = np.frombuffer(raw, "<i2").astype(np.int16).reshape(-1, self._dimension)
            records.append(Record.of(self._namespace, row, numbers, self._writer))
        return records

    def one(self, interaction_id: int) -> Record | None:
        """The record of one turn; None where it is not there or not analysed."""
        page = self.page(interaction_id, 1)
        return page[0] if page and page[0].interaction_id == interaction_id else None

    def all(self, batch: int = 256) -> Iterator[Record]:
        """Every record, in order of id."""
        first = 0
        while page := self.page(first, batch):
            yield from page
            first = page[-1].interaction_id + 1
