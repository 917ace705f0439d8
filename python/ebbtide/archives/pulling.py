"""A memory made again from an archive: the same ids, the same turns, read anew."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ebbtide.archives.base import Archive, Source, agreed, not_there
from ebbtide.archives.reading import Reader, identity_of
from ebbtide.archives.records import Record, damaged
from ebbtide.archives.retrying import Retry
from ebbtide.inputs import checked_text

if TYPE_CHECKING:
    from ebbtide.memory import Memory
    from ebbtide.store import Store

__all__ = ["Pulled", "pull", "source_of"]

_BATCH = 256


@dataclass(frozen=True, slots=True)
class Pulled:
    """What :func:`pull` made.

    Attributes:
        namespace: The new memory's name.
        turns: Its turns.
        relations: Relations that callers had stated.
        digest: Its digest.
    """

    namespace: str
    turns: int
    relations: int
    digest: str

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-able data."""
        return asdict(self)


def pull(
    archive: Archive,
    store: Store,
    namespace: str,
    *,
    into: str | None = None,
    retry: Retry | None = None,
    progress: Callable[[int], None] | None = None,
) -> Pulled:
    """Make a memory of a store from one namespace of an archive.

    Ids stay what they were. What is derived from the turns is derived anew, and the
    vectors are compared with the archived ones. Where the settings and the models are
    those of the memory that was pushed, and nothing was erased from it, the digest is
    the same too.

    Args:
        archive: Where the turns are.
        store: Where the memory goes.
        namespace: Its name in the archive.
        into: A name in the store that is not taken; the same by default.
        retry: How a server that is away is asked again.
        progress: Called after each batch with the turns read so far.

    Raises:
        NotFoundError: If the archive has no such namespace.
        InputError: If the store has a memory of that name, or a name is unusable.
        FingerprintError: If the store's settings name another embedder.
        ExternalError: ``archive.damaged`` if a turn's vectors are not what the embedder
            makes of it; the memory is in the store then.
    """
    from ebbtide.memory import Memory

    again = retry or Retry()
    checked_text("namespace", namespace)
    name = namespace if into is None else checked_text("into", into)
    source = source_of(archive, namespace, again)
    with Memory.in_memory(config=store.config) as model:
        agreed(archive.identity, identity_of(model), archive.place)
        with tempfile.TemporaryDirectory(prefix="ebbtide-pull-") as folder:
            file = Path(folder) / "journal.jsonl"
            hashes = _write(file, archive, namespace, source, model, again, progress)
            memory = store.load(file, namespace=name)
    _verify(memory, namespace, hashes)
    return Pulled(name, len(memory), len(source.relations), memory.digest())


def source_of(archive: Archive, namespace: str, again: Retry) -> Source:
    """What an archive knows of the memory behind a namespace.

    Raises:
        NotFoundError: If the archive has no such namespace.
    """
    source = again(archive.source, namespace)
    if source is None:
        raise not_there(archive.place, namespace, again(archive.namespaces))
    return source


def _write(
    file: Path,
    archive: Archive,
    namespace: str,
    source: Source,
    model: Memory,
    again: Retry,
    progress: Callable[[int], None] | None,
) -> dict[int, bytes]:
    """A journal of the turns, in the form that ``Store.load`` reads; returns their hashes."""
    hashes: dict[int, bytes] = {}
    now = time.time_ns() // 1000
    rows = 0
    with file.open("wb") as out:
        sum_ = hashlib.sha256()

        def line(value: dict[str, Any]) -> None:
            text = json.dumps(value, ensure_ascii=False).encode() + b"\n"
            sum_.update(text)
            out.write(text)

        line(_header(namespace, source, model))
        for record in _records(archive, namespace, again):
            for row in _rows(record, model.count_tokens(record.raw["text"]), now):
                line(row)
                rows += 1
            hashes[record.interaction_id] = record.hash
            if progress is not None and len(hashes) % _BATCH == 0:
                progress(len(hashes))
        for newer, relation, older in source.relations:
            # One side may have been erased after the last push.
            if newer in hashes and older in hashes:
                edge = {"older": older, "newer": newer, "relation": relation}
                line({"table": "lineage", "row": {**edge, "topic": "", "by_caller": 1}})
                rows += 1
        last = {"end": True, "rows": rows, "sha256": sum_.hexdigest()}
        out.write(json.dumps(last).encode() + b"\n")
        out.flush()
        os.fsync(out.fileno())
    return hashes


def _header(namespace: str, source: Source, model: Memory) -> dict[str, Any]:
    return {
        "format": "ebbtide-memory",
        "version": 1,
        "schema": 1,  # the tables that are written here have not changed since
        "namespace": namespace,
        "next_id": max(source.next_id, source.cursor),
        # Everything derived is derived anew, with what the store uses.
        "analyser": model._analyser.fingerprint,
        "token_counter": model.stats()["token_counter"],
    }


def _records(archive: Archive, namespace: str, again: Retry) -> Iterator[Record]:
    first = 0
    while page := again(archive.page, namespace, first, _BATCH):
        yield from page
        first = page[-1].interaction_id + 1


def _rows(record: Record, tokens: int, now: int) -> Iterator[dict[str, Any]]:
    """A turn's lines: itself, and its external id."""
    raw = record.raw
    provenance = raw["provenance"]
    row = {
        "key": record.interaction_id,
        "record_id": raw["record_id"],
        "external_id": raw["external_id"],
        "role": raw["role"],
        "speaker": raw["speaker"],
        "text": raw["text"],
        "timestamp": raw["timestamp"],
        "utc": raw["utc_micros"],
        "naive": int(raw["naive_timestamp"]),
        "session_id": raw["session_id"],
        "provenance": None if provenance is None else json.dumps(provenance),
        "metadata": raw["metadata"],
        "received_at": now,
        "tokens": tokens,
        "archived": 0,
    }
    yield {"table": "turn", "row": {name: v for name, v in row.items() if v is not None}}
    if raw["external_id"] is not None:
        named = {"external_id": raw["external_id"], "key": record.interaction_id}
        yield {"table": "external", "row": named}


def _verify(memory: Memory, namespace: str, hashes: dict[int, bytes]) -> None:
    for record in Reader(memory, namespace, "").all():
        if hashes.pop(record.interaction_id, None) != record.hash:
            raise damaged(namespace, record.interaction_id)
    if hashes:
        raise damaged(namespace, min(hashes))
