"""An archive in one SQLite file: for tests, for migrations, for carrying it away."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ebbtide.archives.base import (
    Filters,
    Hit,
    Identity,
    Source,
    agreed,
    fresh,
    one_namespace,
    unavailable,
)
from ebbtide.archives.ranking import best, query_vector, rescored
from ebbtide.archives.records import Block, Record, blocks_of, damaged, escaped, unescaped
from ebbtide.archives.sql import conditions, record_of, row_of
from ebbtide.errors import ExternalError, InputError
from ebbtide.inputs import positive
from ebbtide.kernels import cosine_top_k

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["FileArchive"]

_APPLICATION_ID = 0x65626172
"""``ebar``: marks a SQLite file as an archive, not a store."""

_TABLES = f"""
PRAGMA application_id = {_APPLICATION_ID};
CREATE TABLE archive (identity TEXT NOT NULL);
CREATE TABLE namespace (name TEXT PRIMARY KEY, source TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE record (
    namespace TEXT NOT NULL,
    id INTEGER NOT NULL,
    hash BLOB NOT NULL,
    writer TEXT NOT NULL,
    body BLOB NOT NULL,
    vectors BLOB NOT NULL,
    role TEXT NOT NULL,
    speaker TEXT,
    session TEXT,
    utc INTEGER,
    PRIMARY KEY (namespace, id)
) WITHOUT ROWID;
"""
_RECORD = "namespace, id, hash, writer, body, vectors"
_INSERT = f"INSERT INTO record VALUES ({', '.join('?' * 10)})"
_VECTORS = 5
"""Where in a row the vectors are."""
_SCAN = 1024
"""Records that a search holds at once."""
_VARIABLES = 500
_WAITING = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
"""What passes: another one is writing."""


class FileArchive:
    """See :class:`ebbtide.archives.Archive`; a search reads every vector."""

    def __init__(self, path: str | Path, embedding: Identity | None = None) -> None:
        """Open a file, or make it where ``embedding`` says what it is to hold.

        Args:
            path: The file.
            embedding: What the caller's vectors are made with; None to take the file's.

        Raises:
            InputError: For what names no file: ``""`` and ``:memory:``.
            ExternalError: ``archive.unavailable`` if it is no archive or not there.
            FingerprintError: If its vectors were made with another embedder.
        """
        self.place = str(path)
        if self.place in ("", ":memory:"):
            # SQLite takes these for a database that ends with the connection.
            message = f"an archive is kept: name a file for it, not {self.place!r}"
            raise InputError(message, "input.field")
        self._lock = threading.RLock()
        try:
            if not Path(path).exists():
                agreed(None, embedding, self.place)
            self._connection = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=30
            )
        except (sqlite3.Error, OSError, ValueError) as error:  # a NUL in the name, say
            raise self._fault(error) from error
        try:
            self._run("PRAGMA secure_delete = ON")
            with self._write():
                self.identity = self._identity(embedding)
        except BaseException:
            self._connection.close()
            raise

    def _identity(self, wanted: Identity | None) -> Identity:
        there = self._run("SELECT count(*) FROM sqlite_schema")[0][0]
        if there:
            if self._run("PRAGMA application_id")[0][0] != _APPLICATION_ID:
                raise self._fault(ValueError("it is no archive of ebbtide"))
            rows = self._run("SELECT identity FROM archive")
            found = Identity.from_json(rows[0][0] if rows else None, self.place)
            return agreed(found, wanted, self.place)
        identity = agreed(None, wanted, self.place)
        for statement in _TABLES.split(";")[:-1]:
            self._run(statement)
        self._run("INSERT INTO archive VALUES (?)", identity.to_json())
        return identity

    def _run(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        try:
            with self._lock:
                return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise self._fault(error) from error
        except OverflowError as error:
            raise InputError("an id of a turn must be below 2**63", "input.field") from error

    def _fault(self, error: Exception) -> ExternalError:
        passing = getattr(error, "sqlite_errorcode", 0) & 0xFF in _WAITING
        return unavailable(self.place, error, passing=passing)

    @contextmanager
    def _write(self) -> Iterator[None]:
        """All of it, or nothing."""
        with self._lock:
            self._run("BEGIN IMMEDIATE")
            try:
                yield
                self._run("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def put(self, namespace: str, records: Sequence[Record]) -> int:
        """See :meth:`Archive.put`."""
        one_namespace(namespace, records, self.identity.dimension)
        name = escaped(namespace)
        with self._write():
            there = dict(
                self._of_ids("id, hash", name, [record.interaction_id for record in records])
            )
            new = fresh(namespace, records, there)
            for record in new:
                self._run(_INSERT, *row_of(name, record))
            self._note(name, (self.source(namespace) or Source()).moved(records))
        return len(new)

    def _of_ids(self, columns: str, name: str, ids: Sequence[int]) -> Iterator[tuple[Any, ...]]:
        ordered = sorted(set(ids))
        for at in range(0, len(ordered), _VARIABLES):
            part = ordered[at : at + _VARIABLES]
            places = ", ".join("?" * len(part))
            yield from self._run(
                f"SELECT {columns} FROM record WHERE namespace = ? AND id IN ({places}) "
                "ORDER BY id",
                name,
                *part,
            )

    def get(self, namespace: str, ids: Sequence[int]) -> list[Record]:
        """See :meth:`Archive.get`."""
        return [self._record(row) for row in self._of_ids(_RECORD, escaped(namespace), ids)]

    def page(self, namespace: str, first: int, limit: int) -> list[Record]:
        """See :meth:`Archive.page`."""
        rows = self._run(
            f"SELECT {_RECORD} FROM record WHERE namespace = ? AND id >= ? ORDER BY id LIMIT ?",
            escaped(namespace),
            first,
            limit,
        )
        return [self._record(row) for row in rows]

    def _record(self, row: tuple[Any, ...]) -> Record:
        return record_of(row, self.identity.dimension)

    def search(
        self,
        vector: NDArray[np.int16] | NDArray[np.float32],
        limit: int,
        *,
        namespaces: Sequence[str] | None = None,
        filters: Mapping[str, Any] | None = None,
    ) -> list[Hit]:
        """See :meth:`Archive.search`."""
        limit = positive("limit", limit)
        query = query_vector(vector, self.identity.dimension)
        wanted = Filters.of(filters, namespaces)
        where, values = _where(wanted)
        hits: list[Hit] = []
        with self._lock:
            statement = f"SELECT {_RECORD} FROM record WHERE {where} ORDER BY namespace, id"
            try:
                cursor = self._connection.execute(statement, values)
                while rows := cursor.fetchmany(_SCAN):
                    if not wanted.metadata:
                        rows = _nearest(rows, query, limit)
                    records = (self._record(row) for row in rows)
                    found = rescored(filter(wanted.lets_metadata, records), query, limit)
                    hits = best([*hits, *found], limit)
            except sqlite3.Error as error:
                raise self._fault(error) from error
        return hits

    def delete(self, namespace: str, ids: Sequence[int]) -> int:
        """See :meth:`Archive.delete`."""
        name = escaped(namespace)
        with self._write():
            there = [number for (number,) in self._of_ids("id", name, ids)]
            for number in there:
                self._run("DELETE FROM record WHERE namespace = ? AND id = ?", name, number)
        return len(there)

    def delete_namespace(self, namespace: str) -> int:
        """See :meth:`Archive.delete_namespace`."""
        with self._write():
            there = self.count(namespace)
            self._run("DELETE FROM record WHERE namespace = ?", escaped(namespace))
            self._run("DELETE FROM namespace WHERE name = ?", escaped(namespace))
        return there

    def namespaces(self) -> list[str]:
        """See :meth:`Archive.namespaces`."""
        return sorted(unescaped(name) for (name,) in self._run("SELECT name FROM namespace"))

    def count(self, namespace: str | None = None) -> int:
        """See :meth:`Archive.count`."""
        if namespace is None:
            return int(self._run("SELECT count(*) FROM record")[0][0])
        statement = "SELECT count(*) FROM record WHERE namespace = ?"
        return int(self._run(statement, escaped(namespace))[0][0])

    def cursor(self, namespace: str) -> int:
        """See :meth:`Archive.cursor`."""
        return (self.source(namespace) or Source()).cursor

    def source(self, namespace: str) -> Source | None:
        """See :meth:`Archive.source`."""
        rows = self._run("SELECT source FROM namespace WHERE name = ?", escaped(namespace))
        return Source.from_json(rows[0][0], namespace) if rows else None

    def set_source(self, namespace: str, source: Source) -> None:
        """See :meth:`Archive.set_source`."""
        with self._write():
            known = self.source(namespace) or Source()
            self._note(escaped(namespace), source.not_behind(known))

    def _note(self, name: str, source: Source) -> None:
        self._run("INSERT OR REPLACE INTO namespace VALUES (?, ?)", name, source.to_json())

    def ids(self, namespace: str, first: int, end: int) -> list[int]:
        """See :meth:`Archive.ids`."""
        statement = "SELECT id FROM record WHERE namespace = ? AND id >= ? AND id < ? ORDER BY id"
        return [number for (number,) in self._run(statement, escaped(namespace), first, end)]

    def inventory(self, namespace: str) -> list[Block]:
        """See :meth:`Archive.inventory`."""
        statement = "SELECT id, hash FROM record WHERE namespace = ? ORDER BY id"
        return blocks_of(self._run(statement, escaped(namespace)))

    def close(self) -> None:
        """See :meth:`Archive.close`."""
        self._connection.close()


def _nearest(
    rows: list[tuple[Any, ...]], query: NDArray[np.int16], limit: int
) -> list[tuple[Any, ...]]:
    """Rows that may be among the best: those as near as the last of the nearest ones.

    To make a record of a row and check its hash costs more than to compare it.
    """
    dimension = len(query)
    for row in rows:
        # SQLite keeps anything anywhere; one that was cut would move the others along.
        if not isinstance(row[_VECTORS], bytes) or len(row[_VECTORS]) % (2 * dimension):
            raise damaged(unescaped(row[0]), row[1])
    counts = [len(row[_VECTORS]) // (2 * dimension) for row in rows]
    numbers = np.frombuffer(b"".join(row[_VECTORS] for row in rows), "<i2").astype(np.int16)
    matrix = numbers.reshape(-1, dimension)
    found, cosines = cosine_top_k(matrix, query, k=len(matrix))
    owners = np.repeat(np.arange(len(rows)), counts)[found]
    scores: dict[int, float] = {}
    last = 0.0
    for owner, cosine in zip(owners.tolist(), cosines.tolist(), strict=True):
        if owner in scores:
            continue
        if len(scores) >= limit and cosine < last:
            break
        scores[owner] = last = cosine
    return [rows[owner] for owner in sorted(scores)]


def _where(filters: Filters) -> tuple[str, list[Any]]:
    """The condition of a search, and its values."""
    asked, values = conditions(filters, "", "?")
    if filters.namespaces is not None:
        asked.append(f"namespace IN ({', '.join('?' * len(filters.namespaces))})")
        values += [escaped(name) for name in filters.namespaces]
    return " AND ".join(asked) or "true", values
