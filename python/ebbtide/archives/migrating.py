"""Records copied from one archive to another, whatever keeps them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ebbtide.archives.base import Archive, Source, agreed, conflict, names_of, not_there, strangers
from ebbtide.archives.records import BLOCK, Block
from ebbtide.archives.retrying import Retry
from ebbtide.errors import ExternalError

__all__ = ["Migrated", "migrate"]

_BATCH = 256


@dataclass(frozen=True, slots=True)
class Migrated:
    """What :func:`migrate` did with one namespace.

    Attributes:
        namespace: Its name.
        copied: Records that were new in the target.
        erased: Records erased in the target because the source has them no more.
        records: Records in each of the two now.
    """

    namespace: str
    copied: int
    erased: int
    records: int

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-able data."""
        return asdict(self)


def migrate(
    source: Archive,
    target: Archive,
    *,
    namespaces: Sequence[str] | None = None,
    retry: Retry | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Migrated]:
    """Copy namespaces from one archive to another and compare the two.

    Only ranges of ids whose sums differ are read, so a migration that was interrupted
    goes on where it got to, and one that is repeated has nothing to do.

    Args:
        source: Where the records are; it is not changed.
        target: Where they go.
        namespaces: Which; all by default.
        retry: How a server that is away is asked again.
        progress: Called after each request with the records read so far.

    Raises:
        NotFoundError: ``not_found.namespace``: the source does not have one; nothing is
            copied then.
        FingerprintError: If the vectors of the two were made with different embedders.
        ExternalError: ``archive.conflict`` where the target holds another memory's turns
            under a name, or only turns that the source has no more; ``archive.damaged``
            where the two differ afterwards.
    """
    again = retry or Retry()
    agreed(target.identity, source.identity, target.place)
    seen = [0]

    def note(count: int) -> None:
        seen[0] += count
        if progress is not None:
            progress(seen[0])

    there = again(source.namespaces)
    named = names_of(namespaces)
    names = there if named is None else named
    for name in names:
        if name not in there:
            raise not_there(source.place, name, there)
    return [_one(source, target, name, again, note) for name in names]


def _one(
    source: Archive, target: Archive, name: str, again: Retry, note: Callable[[int], None]
) -> Migrated:
    known = again(source.source, name) or Source()
    if again(target.cursor, name) > known.cursor:
        raise conflict(name, known.cursor)
    wanted = {block.first: block for block in again(source.inventory, name)}
    there = {block.first: block for block in again(target.inventory, name)}
    differing = [
        first
        for first in sorted(wanted.keys() | there.keys())
        if wanted.get(first) != there.get(first)
    ]
    if there and not _any_common(source, target, name, wanted, there, again):
        raise strangers(name)
    # Everything is put before anything is erased: of turns that both have, those that
    # belong to another memory are found out by then.
    copied = sum(_copied(source, target, name, first, again, note) for first in differing)
    erased = sum(_erased(source, target, name, first, again) for first in differing)
    if known != again(target.source, name):
        again(target.set_source, name, known)
    found = again(target.inventory, name)
    if found != again(source.inventory, name):
        raise ExternalError(
            f"{name!r} differs in {source.place} and {target.place} after the migration: "
            "somebody wrote to one of them; run it again",
            "archive.damaged",
        )
    return Migrated(name, copied, erased, sum(block.count for block in found))


def _any_common(
    source: Archive,
    target: Archive,
    name: str,
    wanted: Mapping[int, Block],
    there: Mapping[int, Block],
    again: Retry,
) -> bool:
    """Whether any turn of the target is one of the source's."""
    for first in sorted(wanted.keys() & there.keys()):
        if wanted[first].ids == there[first].ids:
            return True
        end = first + BLOCK
        listed = again(target.ids, name, first, end)
        if not set(listed).isdisjoint(again(source.ids, name, first, end)):
            return True
    return False


def _copied(
    source: Archive,
    target: Archive,
    name: str,
    first: int,
    again: Retry,
    note: Callable[[int], None],
) -> int:
    """Put a range's records; returns how many were new."""
    copied, at, end = 0, first, first + BLOCK
    while page := again(source.page, name, at, _BATCH):
        records = [record for record in page if record.interaction_id < end]
        if records:
            copied += again(target.put, name, records)
            note(len(records))
        if len(records) < len(page):
            break
        at = page[-1].interaction_id + 1
    return copied


def _erased(source: Archive, target: Archive, name: str, first: int, again: Retry) -> int:
    """Erase a range's records that the source does not have; returns how many."""
    end = first + BLOCK
    listed = again(target.ids, name, first, end)
    extra = sorted(set(listed).difference(again(source.ids, name, first, end)))
    return again(target.delete, name, extra) if extra else 0
