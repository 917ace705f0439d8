"""What the two SQL backends say alike."""

from __future__ import annotations

from typing import Any

from ebbtide.archives.base import Filters
from ebbtide.archives.records import Record, escaped, keys_of, unescaped

__all__ = ["COLUMNS", "conditions", "record_of", "row_of"]

COLUMNS = "id, hash, writer, body, vectors, role, speaker, session, utc"
"""Of the table of records, behind the namespace; the first five make a record again."""


def row_of(namespace: str | int, record: Record) -> tuple[Any, ...]:
    """A record's row: the namespace as the table knows it, then ``COLUMNS``."""
    keys = keys_of(record)
    return (
        namespace,
        record.interaction_id,
        record.hash,
        escaped(record.writer),
        record.body,
        record.vector_bytes,
        keys.role,
        keys.speaker,
        keys.session_id,
        keys.utc_micros,
    )


def record_of(row: tuple[Any, ...], dimension: int) -> Record:
    """The record of a namespace's name and the first five of ``COLUMNS``, checked."""
    name, number, digest, writer, body, vectors = row
    return Record.stored(
        unescaped(name),
        number,
        body=body,
        vectors=vectors,
        dimension=dimension,
        digest=digest,
        writer=unescaped(writer),
    )


def conditions(filters: Filters, table: str, mark: str) -> tuple[list[str], list[Any]]:
    """Conditions of a search on the columns of a record, and their values.

    Args:
        filters: What is let through; its namespaces are left to the caller.
        table: What stands before a column's name.
        mark: What stands for a value.
    """
    asked = [(f"{column} =", value) for column, value in filters.equalities]
    moments = [("utc >=", filters.since), ("utc <=", filters.until)]
    given = [*asked, *((column, moment) for column, moment in moments if moment is not None)]
    return [f"{table}{column} {mark}" for column, _ in given], [value for _, value in given]
