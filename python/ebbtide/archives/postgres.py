"""An archive in PostgreSQL with pgvector (``ebbtide[postgres]``)."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ebbtide.archives.base import (
    Filters,
    Hit,
    Identity,
    Source,
    UnusableError,
    agreed,
    fresh,
    one_namespace,
    unavailable,
)
from ebbtide.archives.ranking import certain, error_bound, query_vector, unit
from ebbtide.archives.records import BLOCK, Block, Record, escaped, unescaped
from ebbtide.archives.sql import conditions, record_of, row_of
from ebbtide.errors import EbbtideError, InputError
from ebbtide.extras import MissingExtraError
from ebbtide.inputs import positive

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from psycopg import Connection

__all__ = ["PostgresArchive"]

_LOCK = 0x65626172
"""The advisory lock under which tables are made: two clients may come first."""

_PATIENCE_MS = 60_000
"""For a peer that is gone without a word, and for another writer of a namespace."""

_LINE = {
    "tcp_user_timeout": _PATIENCE_MS,  # where something was sent, the rest where nothing was
    "keepalives_idle": 15,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}

_UNREADABLE = (
    "the address of a PostgreSQL archive cannot be read: write postgresql://user@host:port/"
    "database, and percent-encode the password in it (%2F for a slash, %40 for an @), or leave "
    "it to ~/.pgpass; a file with = in its name is ./NAME"
)

_TABLES = """
CREATE TABLE ebbtide_archive (identity text NOT NULL);
CREATE TABLE ebbtide_namespace (
    ns integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    source text NOT NULL
);
CREATE TABLE ebbtide_record (
    ns integer NOT NULL REFERENCES ebbtide_namespace ON DELETE CASCADE,
    id bigint NOT NULL,
    hash bytea NOT NULL,
    writer text NOT NULL,
    body bytea NOT NULL,
    vectors bytea NOT NULL,
    role text NOT NULL,
    speaker text,
    session text,
    utc bigint,
    PRIMARY KEY (ns, id)
);
CREATE TABLE ebbtide_passage (
    ns integer NOT NULL,
    id bigint NOT NULL,
    part integer NOT NULL,
    embedding vector({dimension}) NOT NULL,
    PRIMARY KEY (ns, id, part),
    FOREIGN KEY (ns, id) REFERENCES ebbtide_record ON DELETE CASCADE
);
"""
_RECORD = "n.name, r.id, r.hash, r.writer, r.body, r.vectors"
_FROM = "FROM ebbtide_record r JOIN ebbtide_namespace n USING (ns)"


class PostgresArchive:
    """See :class:`ebbtide.archives.Archive`.

    The body and the vectors of a turn are kept as bytes; a ``vector`` of pgvector
    stands beside them to find candidates with.
    """

    def __init__(
        self, uri: str, embedding: Identity | None = None, *, exact: bool = True, timeout: int = 10
    ) -> None:
        """Connect, and make the tables where ``embedding`` says what they are to hold.

        Args:
            uri: ``postgresql://user@host:port/database``, or another libpq string. What it
                says of timeouts holds.
            embedding: What the caller's vectors are made with; None to take the archive's.
            exact: Compare with every vector, whether or not there is an index; else
                the index of :meth:`build_index` finds the candidates.
            timeout: Seconds to wait for a connection.

        Raises:
            InputError: If the address cannot be read.
            ExternalError: ``archive.unavailable`` if it cannot be reached, keeps text in
                another encoding than UTF-8, or has no archive and ``embedding`` is None.
            FingerprintError: If its vectors were made with another embedder.
            MissingExtraError: If psycopg or pgvector is not installed.
        """
        try:
            import pgvector.psycopg  # noqa: F401
            import psycopg
        except ImportError as error:
            raise MissingExtraError(error, "postgres") from error
        self._errors: type[Exception] = psycopg.Error
        self._uri = uri
        self._given = self._parts()
        self._exact = exact
        self._timeout = timeout
        self._lock = threading.RLock()
        self._open: Connection[Any] | None = None
        self.identity: Identity = None  # type: ignore[assignment]  # known once connected
        self.place = self._shown()
        try:
            with self._transaction() as connection:
                self.identity = self._prepare(connection, embedding)
        except BaseException:
            self._drop()
            raise

    def _parts(self) -> dict[str, Any]:
        """What the address says, by libpq's names.

        Raises:
            InputError: If libpq cannot read it, or took a part of the password for another.
        """
        from psycopg.conninfo import conninfo_to_dict

        try:
            parts: dict[str, Any] = dict(conninfo_to_dict(self._uri))
        except (self._errors, ValueError):
            # What libpq says of it quotes what may be the password.
            raise InputError(_UNREADABLE, "input.field") from None
        where = [str(parts.get(name) or "") for name in ("host", "port", "dbname")]
        ports = filter(None, where[1].split(","))
        cut = "://" in self._uri and any("@" in part for part in where)
        if cut or not all(port.isdecimal() for port in ports):
            raise InputError(_UNREADABLE, "input.field")
        return parts

    def _shown(self) -> str:
        """The server without its password."""
        host = self._given.get("host") or "localhost"
        port = f":{self._given['port']}" if self._given.get("port") else ""
        return f"postgresql://{host}{port}/{self._given.get('dbname') or ''}"

    @contextmanager
    def _transaction(self) -> Iterator[Connection[Any]]:
        """All of it, or nothing; after a fault the next one connects anew."""
        with self._lock:
            try:
                with self._undisturbed():
                    connection = self._connection()
                    with connection.transaction(), self._undisturbed():
                        yield connection
            except self._errors as error:
                self._drop()
                raise unavailable(self.place, error, passing=_passes(error)) from error

    @contextmanager
    def _undisturbed(self) -> Iterator[None]:
        """Drop the connection where a Ctrl-C comes, which leaves a command under way."""
        try:
            yield
        except (EbbtideError, self._errors):
            raise
        except BaseException:
            self._drop()
            raise

    def _connection(self) -> Connection[Any]:
        if self._open is None or self._open.closed:
            import psycopg

            unsaid: dict[str, Any] = {"connect_timeout": self._timeout, **_LINE}
            self._open = psycopg.connect(
                self._uri,
                **{name: value for name, value in unsaid.items() if name not in self._given},
                client_encoding="UTF8",
                autocommit=True,
                # A pooler may give each transaction another server: none knows the statements
                # that were prepared.
                prepare_threshold=None,
            )
            if self.identity is not None:
                self._knows_vectors(self._open)
        return self._open

    @staticmethod
    def _knows_vectors(connection: Connection[Any]) -> None:
        from pgvector.psycopg import register_vector

        register_vector(connection)

    def _drop(self) -> None:
        connection, self._open = self._open, None
        if connection is not None:
            connection.close()

    def _prepare(self, connection: Connection[Any], wanted: Identity | None) -> Identity:
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise UnusableError(
                f"the database {self.place} keeps text as {encoding}: an archive needs one that "
                "was made with ENCODING 'UTF8'",
                "archive.unavailable",
            )
        self._waits_so_long(connection)
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        there = connection.execute("SELECT to_regclass('ebbtide_archive')").fetchone()
        if there is not None and there[0] is not None:
            row = connection.execute("SELECT identity FROM ebbtide_archive").fetchone()
            found = Identity.from_json(row[0] if row else None, self.place)
            identity = agreed(found, wanted, self.place)
            self._knows_vectors(connection)
            return identity
        identity = agreed(None, wanted, self.place)
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute(_TABLES.format(dimension=int(identity.dimension)).encode())
        connection.execute("INSERT INTO ebbtide_archive VALUES (%s)", [identity.to_json()])
        self._knows_vectors(connection)
        return identity

    @staticmethod
    def _waits_so_long(connection: Connection[Any]) -> None:
        """Let no lock of another client, which may be gone, hold this transaction for ever."""
        connection.execute(f"SET LOCAL lock_timeout = {_PATIENCE_MS:d}".encode())

    def build_index(self) -> None:
        """Make an HNSW index over the vectors, for searches with ``exact=False``."""
        with self._transaction() as connection:
            connection.execute(
                "CREATE INDEX IF NOT EXISTS ebbtide_passage_hnsw ON ebbtide_passage "
                "USING hnsw (embedding vector_ip_ops)"
            )

    def put(self, namespace: str, records: Sequence[Record]) -> int:
        """See :meth:`Archive.put`."""
        one_namespace(namespace, records, self.identity.dimension)
        with self._transaction() as connection, connection.cursor() as cursor:
            ns, source = self._locked(connection, namespace)
            ids = [record.interaction_id for record in records]
            rows = connection.execute(
                "SELECT id, hash FROM ebbtide_record WHERE ns = %s AND id = ANY(%s)", [ns, ids]
            )
            new = fresh(namespace, records, dict(rows.fetchall()))
            cursor.executemany(
                "INSERT INTO ebbtide_record VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
                [row_of(ns, record) for record in new],
            )
            cursor.executemany(
                "INSERT INTO ebbtide_passage VALUES (%s, %s, %s, %s)",
                [
                    (ns, record.interaction_id, part, unit(vector))
                    for record in new
                    for part, vector in enumerate(record.vectors)
                ],
            )
            self._note(connection, ns, source.moved(records))
        return len(new)

    def _locked(self, connection: Connection[Any], namespace: str) -> tuple[int, Source]:
        """A namespace's number and source, its row locked: one writer at a time."""
        from psycopg.errors import ProgramLimitExceeded

        name = escaped(namespace)
        self._waits_so_long(connection)
        try:
            connection.execute(
                "INSERT INTO ebbtide_namespace (name, source) VALUES (%s, %s) "
                "ON CONFLICT (name) DO NOTHING",
                [name, Source().to_json()],
            )
        except ProgramLimitExceeded as error:
            message = (
                f"a namespace of {len(name):,} characters is too long for PostgreSQL; push under "
                "a shorter name"
            )
            raise InputError(message, "input.field") from error
        row = connection.execute(
            "SELECT ns, source FROM ebbtide_namespace WHERE name = %s FOR UPDATE", [name]
        ).fetchone()
        assert row is not None
        return row[0], Source.from_json(row[1], namespace)

    def _note(self, connection: Connection[Any], ns: int, source: Source) -> None:
        connection.execute(
            "UPDATE ebbtide_namespace SET source = %s WHERE ns = %s", [source.to_json(), ns]
        )

    def _all(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._transaction() as connection:
            return connection.execute(statement.encode(), values).fetchall()

    def get(self, namespace: str, ids: Sequence[int]) -> list[Record]:
        """See :meth:`Archive.get`."""
        rows = self._all(
            f"SELECT {_RECORD} {_FROM} WHERE n.name = %s AND r.id = ANY(%s) ORDER BY r.id",
            [escaped(namespace), list(ids)],
        )
        return [self._record(row) for row in rows]

    def page(self, namespace: str, first: int, limit: int) -> list[Record]:
        """See :meth:`Archive.page`."""
        rows = self._all(
            f"SELECT {_RECORD} {_FROM} WHERE n.name = %s AND r.id >= %s ORDER BY r.id LIMIT %s",
            [escaped(namespace), first, limit],
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
        slack = error_bound(self.identity.dimension)

        def fetch(passages: int) -> tuple[list[Record], float | None]:
            return self._nearest(query, passages, where, values)

        return certain(fetch, query, limit, wanted, slack)

    def _nearest(
        self, query: NDArray[np.int16], passages: int, where: str, values: Sequence[Any]
    ) -> tuple[list[Record], float | None]:
        # The planner would join every record, though nothing is asked of it.
        joins = (
            ""
            if where == "true"
            else ("JOIN ebbtide_record r USING (ns, id) JOIN ebbtide_namespace n USING (ns) ")
        )
        near = (
            "SELECT p.ns, p.id, p.embedding <#> %s AS distance FROM ebbtide_passage p "
            f"{joins} WHERE {where} ORDER BY distance LIMIT %s"
        )
        with self._transaction() as connection:
            if self._exact:
                connection.execute("SET LOCAL enable_indexscan = off")
            else:
                effort = min(1000, max(100, passages))
                connection.execute(f"SET LOCAL hnsw.ef_search = {effort:d}".encode())
                connection.execute("SET LOCAL hnsw.iterative_scan = strict_order")
            found = connection.execute(near.encode(), [unit(query), *values, passages])
            rows = found.fetchall()
            # The btree of the primary key is welcome again.
            connection.execute("SET LOCAL enable_indexscan = on")
            distinct = sorted({(ns, number) for ns, number, _ in rows})
            records = connection.execute(
                f"SELECT {_RECORD} {_FROM} JOIN unnest(%s::int[], %s::bigint[]) AS w (ns, id) "
                "ON r.ns = w.ns AND r.id = w.id".encode(),
                [[ns for ns, _ in distinct], [number for _, number in distinct]],
            ).fetchall()
        last = -rows[-1][2] if len(rows) == passages else None
        return [self._record(row) for row in records], last

    def delete(self, namespace: str, ids: Sequence[int]) -> int:
        """See :meth:`Archive.delete`."""
        with self._transaction() as connection:
            return connection.execute(
                "DELETE FROM ebbtide_record r USING ebbtide_namespace n "
                "WHERE n.ns = r.ns AND n.name = %s AND r.id = ANY(%s)",
                [escaped(namespace), list(ids)],
            ).rowcount

    def delete_namespace(self, namespace: str) -> int:
        """See :meth:`Archive.delete_namespace`."""
        with self._transaction() as connection:
            self._waits_so_long(connection)
            there = connection.execute(
                "DELETE FROM ebbtide_record r USING ebbtide_namespace n "
                "WHERE n.ns = r.ns AND n.name = %s",
                [escaped(namespace)],
            ).rowcount
            connection.execute(
                "DELETE FROM ebbtide_namespace WHERE name = %s", [escaped(namespace)]
            )
            return there

    def namespaces(self) -> list[str]:
        """See :meth:`Archive.namespaces`."""
        rows = self._all("SELECT name FROM ebbtide_namespace")
        return sorted(unescaped(name) for (name,) in rows)

    def count(self, namespace: str | None = None) -> int:
        """See :meth:`Archive.count`."""
        if namespace is None:
            return int(self._all("SELECT count(*) FROM ebbtide_record")[0][0])
        statement = f"SELECT count(*) {_FROM} WHERE n.name = %s"
        return int(self._all(statement, [escaped(namespace)])[0][0])

    def cursor(self, namespace: str) -> int:
        """See :meth:`Archive.cursor`."""
        return (self.source(namespace) or Source()).cursor

    def source(self, namespace: str) -> Source | None:
        """See :meth:`Archive.source`."""
        statement = "SELECT source FROM ebbtide_namespace WHERE name = %s"
        rows = self._all(statement, [escaped(namespace)])
        return Source.from_json(rows[0][0], namespace) if rows else None

    def set_source(self, namespace: str, source: Source) -> None:
        """See :meth:`Archive.set_source`."""
        with self._transaction() as connection:
            ns, known = self._locked(connection, namespace)
            self._note(connection, ns, source.not_behind(known))

    def ids(self, namespace: str, first: int, end: int) -> list[int]:
        """See :meth:`Archive.ids`."""
        rows = self._all(
            f"SELECT r.id {_FROM} WHERE n.name = %s AND r.id >= %s AND r.id < %s ORDER BY r.id",
            [escaped(namespace), first, end],
        )
        return [number for (number,) in rows]

    def inventory(self, namespace: str) -> list[Block]:
        """See :meth:`Archive.inventory`; the server sums up."""
        rows = self._all(
            f"SELECT r.id / {BLOCK} * {BLOCK}, count(*), "
            "sha256(convert_to(string_agg(r.id::text, ',' ORDER BY r.id), 'UTF8')), "
            "sha256(string_agg(r.hash, ''::bytea ORDER BY r.id)) "
            f"{_FROM} WHERE n.name = %s GROUP BY 1 ORDER BY 1",
            [escaped(namespace)],
        )
        return [Block(*row) for row in rows]

    def close(self) -> None:
        """See :meth:`Archive.close`."""
        with self._lock:
            self._drop()


def _passes(error: Exception) -> bool:
    """Whether the connection is at fault, or a server that stops or starts."""
    from psycopg import InterfaceError, OperationalError

    if not isinstance(error, InterfaceError | OperationalError):
        return False
    if error.sqlstate is not None:
        return error.sqlstate.startswith(("08", "57P0"))
    # A server that asked for the password is there: what it says next, it will say again.
    failed = error.pgconn
    return failed is None or not (failed.needs_password or failed.used_password)


def _where(filters: Filters) -> tuple[str, list[Any]]:
    """The condition of a search, and its values."""
    asked, values = conditions(filters, "r.", "%s")
    if filters.namespaces is not None:
        asked.append("n.name = ANY(%s)")
        values.append([escaped(name) for name in filters.namespaces])
    return " AND ".join(asked) or "true", values
