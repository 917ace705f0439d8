"""What a Chroma server keeps of a record, and in which portions it is sent."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ebbtide.archives.base import Filters
from ebbtide.archives.ranking import unit
from ebbtide.archives.records import Record, damaged, escaped, keys_of, unescaped

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PAGE", "entries_of", "key_of", "pages", "record_of", "requests", "where_of"]

PAGE = 500
"""Entries that one request reads or writes."""


def key_of(namespace: str, number: int, part: int) -> str:
    """The key of a turn's passage."""
    return f"{escaped(namespace)}/{number}/{part}"


def entries_of(record: Record) -> Iterator[tuple[str, NDArray[np.float32], dict[str, Any]]]:
    """What is kept of a record: key, unit vector and fields of each passage."""
    keys = keys_of(record)
    shared: dict[str, Any] = {
        "namespace": escaped(record.namespace),
        "id": record.interaction_id,
        "role": keys.role,
        "speaker": keys.speaker,
        "session": keys.session_id,
        "utc": keys.utc_micros,
        "writer": escaped(record.writer),
    }
    shared = {name: value for name, value in shared.items() if value is not None}
    # A turn without a passage is an entry too; the zero vector is near nothing.
    none = np.zeros((1, record.vectors.shape[1]), np.int16)
    for part, vector in enumerate(record.vectors if len(record.vectors) else none):
        fields = {**shared, "part": part}
        if part == 0:
            fields["hash"] = record.hash.hex()
            fields["parts"] = max(1, len(record.vectors))
            fields["body"] = base64.b85encode(record.body).decode()
            fields["vectors"] = base64.b85encode(record.vector_bytes).decode()
        yield key_of(record.namespace, record.interaction_id, part), unit(vector), fields


def requests(turns: Sequence[list[Any]]) -> Iterator[list[Any]]:
    """Entries of turns in requests of about a page.

    A request is done whole or not at all; one turn's entries never go in two, so that
    a turn cannot be there in part.
    """
    request: list[Any] = []
    for entries in turns:
        request += entries
        if len(request) >= PAGE:
            yield request
            request = []
    if request:
        yield request


def pages(items: Sequence[Any]) -> Iterator[list[Any]]:
    """Items in lists of at most a page."""
    for at in range(0, len(items), PAGE):
        yield list(items[at : at + PAGE])


def where_of(filters: Filters) -> list[dict[str, Any]]:
    """The conditions of a search."""
    conditions: list[dict[str, Any]] = [
        {column: {"$eq": value}} for column, value in filters.equalities
    ]
    if filters.namespaces is not None:
        names = [escaped(name) for name in filters.namespaces]
        conditions.append({"namespace": {"$in": names}})
    for operator, moment in (("$gte", filters.since), ("$lte", filters.until)):
        if moment is not None:
            conditions.append({"utc": {operator: moment}})
    return conditions


def record_of(fields: Mapping[str, Any], dimension: int) -> Record:
    """The record of its first passage's fields, checked.

    Raises:
        ExternalError: ``archive.damaged`` if they are not what was put there.
    """
    try:
        return Record.stored(
            unescaped(fields["namespace"]),
            int(fields["id"]),
            body=base64.b85decode(fields["body"]),
            vectors=base64.b85decode(fields["vectors"]),
            dimension=dimension,
            digest=bytes.fromhex(fields["hash"]),
            writer=unescaped(fields["writer"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(str(fields.get("namespace")), fields.get("id")) from error
