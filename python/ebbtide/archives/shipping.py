"""A memory's turns shipped to an archive: what is missing there, nothing twice.

The memory itself is the queue. What was shipped is known to the server alone, so
there is no state to lose: after an outage the next call goes on where the last one
got to, and a turn that was erased here is erased there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ebbtide.archives.base import Archive, Source, agreed, conflict, strangers
from ebbtide.archives.reading import Reader, identity_of
from ebbtide.archives.records import BLOCK, Block, Record, blocks_of
from ebbtide.archives.retrying import Retry
from ebbtide.errors import ExternalError
from ebbtide.inputs import checked_text, positive

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ebbtide.memory import Memory

__all__ = ["Shipped", "ship"]

_BATCH = 256
_COMPARED = 16
"""Turns of which a push compares the contents before it changes anything."""


@dataclass(frozen=True, slots=True)
class Shipped:
    """What a call of :func:`ship` did.

    Attributes:
        namespace: Where the turns went.
        shipped: Turns that were new there.
        erased: Turns erased there because they were erased here.
        waiting: Turns not shipped yet, because their analysis is still to come.
        turns: Turns there now.
    """

    namespace: str
    shipped: int
    erased: int
    waiting: int
    turns: int

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-able data."""
        return asdict(self)


def ship(
    memory: Memory,
    archive: Archive,
    *,
    namespace: str | None = None,
    writer: str | None = None,
    batch_size: int = _BATCH,
    retry: Retry | None = None,
    progress: Callable[[int], None] | None = None,
) -> Shipped:
    """Make an archive hold a memory's turns: ship those it lacks, erase those gone.

    Call it as often as you like, from one process at a time for a namespace. After an
    error, call it again: what was shipped stays, and the rest is still in the memory.

    Args:
        memory: Where the turns are.
        archive: Where they go.
        namespace: Their name there; the memory's own by default.
        writer: Who ships them, kept beside each turn; the namespace by default.
        batch_size: Turns a request; the result does not depend on it.
        retry: How a server that is away is asked again.
        progress: Called after each batch with the turns handled so far.

    Raises:
        InputError: If a name is no text that can be stored.
        ExternalError: ``archive.unavailable`` where the server stays away;
            ``archive.conflict`` where the namespace holds another memory's turns, or only
            turns that this one has no more.
        FingerprintError: If the archive's vectors were made with another embedder.
    """
    name = memory.namespace if namespace is None else checked_text("namespace", namespace)
    by = name if writer is None else checked_text("writer", writer)
    batch_size = positive("batch_size", batch_size)
    again = retry or Retry()
    agreed(archive.identity, identity_of(memory), archive.place)
    reader = Reader(memory, name, by)
    source, ids = reader.source(), reader.ids()
    known = again(archive.source, name) or Source()
    missing, gone = _differences(archive, name, known, source, ids, reader, again)
    erased = 0
    for at in range(0, len(gone), batch_size):
        part = gone[at : at + batch_size]
        erased += again(archive.delete, name, part)
    shipped = handled = 0
    for records in _batches(reader, missing, known.cursor, batch_size):
        shipped += again(archive.put, name, records)
        handled += len(records)
        if progress is not None:
            progress(handled)
    noted = again(archive.source, name) or Source()
    if replace(noted, cursor=0) != source and (len(ids) or noted.cursor):
        again(archive.set_source, name, source)
    turns = again(archive.count, name)
    return Shipped(name, shipped, erased, reader.waiting(), turns)


def _differences(
    archive: Archive,
    name: str,
    known: Source,
    source: Source,
    ids: NDArray[np.uint64],
    reader: Reader,
    again: Retry,
) -> tuple[list[int], list[int]]:
    """Ids below the cursor that the archive lacks, and those that the memory lost.

    Compared by the sums of ranges; only where one differs are ids asked for.
    """
    if known.cursor > source.next_id:
        raise ExternalError(
            f"the archive is at turn {known.cursor} of {name!r}, this memory at "
            f"{source.next_id}: it is not the memory that was pushed there; pull it, or push "
            "under another name",
            "archive.conflict",
        )
    mine = {block.first: block for block in _sums(ids[ids < known.cursor])}
    theirs = {block.first: block for block in again(archive.inventory, name)}
    missing: list[int] = []
    gone: list[int] = []
    common: list[int] = []
    for first in sorted(mine.keys() | theirs.keys()):
        one, other = mine.get(first), theirs.get(first)
        end = first + BLOCK
        low, high = np.searchsorted(ids, np.array([first, end], ids.dtype))
        ours = set(ids[low:high].tolist())
        if one is not None and other is not None and one.ids == other.ids:
            common += sorted(number for number in ours if number < known.cursor)
            continue
        listed = set(again(archive.ids, name, first, end))
        common += sorted(ours & listed)
        # What comes after the cursor is shipped anyway.
        missing += sorted(number for number in ours - listed if number < known.cursor)
        gone += sorted(listed - ours)
    if gone and not common:
        raise strangers(name)
    if common:
        _same_memory(archive, name, common, reader, again)
    if gone and gone[-1] >= source.next_id:
        raise conflict(name, gone[-1])  # an id that this memory never gave
    return missing, gone


def _sums(ids: NDArray[np.uint64]) -> list[Block]:
    return blocks_of((number, b"") for number in ids.tolist())


def _same_memory(
    archive: Archive, name: str, common: list[int], reader: Reader, again: Retry
) -> None:
    """Refuse to ship over another memory's turns: common ones agree, from first to last.

    Without it, a memory pushed under a wrong name would erase what is there.
    """
    places = {part * (len(common) - 1) // (_COMPARED - 1) for part in range(_COMPARED)}
    for found in again(archive.get, name, [common[place] for place in sorted(places)]):
        mine = reader.one(found.interaction_id)
        if mine is not None and found.hash != mine.hash:
            raise conflict(name, found.interaction_id)


def _batches(reader: Reader, missing: list[int], cursor: int, size: int) -> Iterator[list[Record]]:
    """What is to be put, in order of id."""
    for at in range(0, len(missing), size):
        found = (reader.one(number) for number in missing[at : at + size])
        records = [record for record in found if record is not None]
        if records:
            yield records
    first = cursor
    while records := reader.page(first, size):
        yield records
        first = records[-1].interaction_id + 1
