"""An archive on a Chroma server (``ebbtide[chroma]``)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ebbtide.archives.base import (
    Filters,
    Hit,
    Identity,
    Source,
    UnusableError,
    agreed,
    conflict,
    fresh,
    one_namespace,
    unavailable,
)
from ebbtide.archives.chroma_entries import (
    PAGE,
    entries_of,
    key_of,
    pages,
    record_of,
    requests,
    where_of,
)
from ebbtide.archives.ranking import query_vector, rescored, unit
from ebbtide.archives.records import Block, Record, blocks_of, escaped, unescaped
from ebbtide.extras import MissingExtraError
from ebbtide.inputs import ID_LIMIT, positive

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ChromaArchive"]

_Result = TypeVar("_Result")

_IDENTITY = "archive"
_PATIENCE = 60.0
"""Seconds that a request may take; the client itself would wait for ever."""


class ChromaArchive:
    """See :class:`ebbtide.archives.Archive`.

    Each passage is an entry; that of a turn's first passage carries the turn. A
    second collection, ``NAME-sources``, knows the namespaces. Chroma has no
    transactions over several requests: entries are written first and the cursor after
    them, so that what was interrupted is written again.
    """

    def __init__(
        self,
        host: str,
        port: int,
        collection: str = "ebbtide",
        embedding: Identity | None = None,
        *,
        exact_below: int = 2000,
        ssl: bool = False,
    ) -> None:
        """Connect, and make the collections where ``embedding`` says what they hold.

        Args:
            host: The server's name or address.
            port: Its port.
            collection: The collection, a name of at least 3 characters.
            embedding: What the caller's vectors are made with; None to take the archive's.
            exact_below: Where a search covers fewer passages than this, all are
                compared; else the server's index finds the candidates.
            ssl: Whether the server speaks HTTPS.

        Raises:
            ExternalError: ``archive.unavailable`` if it cannot be reached, or has no
                archive and ``embedding`` is None.
            FingerprintError: If its vectors were made with another embedder.
            MissingExtraError: If no Chroma client is installed.
        """
        try:
            import chromadb
            import chromadb.errors
            import httpx
        except ImportError as error:
            raise MissingExtraError(error, "chroma") from error
        # The client says with ValueError that it cannot connect.
        self._errors = (chromadb.errors.ChromaError, httpx.HTTPError, ValueError, OSError)
        self._missing = chromadb.errors.NotFoundError
        self._exact_below = exact_below
        self._lock = threading.RLock()
        self._address = {"host": host, "port": port, "ssl": ssl}
        self._name = collection
        self.place = f"chroma://{host}:{port}/{collection}"
        self._connected: Any = None
        self._collections: tuple[Any, Any] | None = None
        try:
            self.identity = self._prepare(embedding)
        except BaseException:
            self.close()
            raise

    def _prepare(self, wanted: Identity | None) -> Identity:
        def found() -> str | None:
            try:
                sources = self._client().get_collection(f"{self._name}-sources", None)
            except self._missing:
                return None
            rows = sources.get(ids=[_IDENTITY], include=["metadatas"])["metadatas"]
            return str((rows[0] or {}).get("identity")) if rows else None

        text = self._call(found)
        kept = None if text is None else Identity.from_json(text, self.place)
        identity = agreed(kept, wanted, self.place)
        if text is not None:
            self._call(self._both)
            return identity

        def make() -> None:
            client = self._client()
            options = {"embedding_function": None, "metadata": {"hnsw:space": "ip"}}
            self._refuse_anothers(found)
            client.get_or_create_collection(self._name, **options)
            client.get_or_create_collection(f"{self._name}-sources", embedding_function=None)
            _, sources = self._both()
            row = {"identity": identity.to_json()}
            sources.upsert(ids=[_IDENTITY], embeddings=[[0.0]], metadatas=[row])

        self._call(make)
        return identity

    def _refuse_anothers(self, found: Callable[[], str | None]) -> None:
        """Leave a collection alone that holds something and is no archive's."""
        try:
            holds = self._client().get_collection(self._name, None).count()
        except self._missing:
            return
        # Who makes an archive says what it holds before putting anything.
        if holds and found() is None:
            raise UnusableError(
                f"the collection {self.place} is in use by something else: name another one",
                "archive.unavailable",
            )

    def _client(self) -> Any:
        if self._connected is None:
            import chromadb
            from chromadb.config import Settings

            settings = Settings(anonymized_telemetry=False)
            self._connected = chromadb.HttpClient(
                **self._address,  # type: ignore[arg-type]
                settings=settings,
            )
            for server in _servers(self._connected):
                server._session.timeout = _PATIENCE
        return self._connected

    def _both(self) -> tuple[Any, Any]:
        """The entries and the sources."""
        if self._collections is None:
            client = self._client()
            entries = client.get_collection(self._name, None)
            self._collections = entries, client.get_collection(f"{self._name}-sources", None)
        return self._collections

    def _ask(self, method: str, **given: Any) -> Any:
        """Call a method of the collection of entries."""
        return self._call(lambda: getattr(self._both()[0], method)(**given))

    def _ask_sources(self, method: str, **given: Any) -> Any:
        """Call a method of the collection of sources."""
        return self._call(lambda: getattr(self._both()[1], method)(**given))

    def _call(self, work: Callable[[], _Result]) -> _Result:
        """Talk to the server; after a fault the next call connects anew."""
        with self._lock:
            try:
                return work()
            except self._errors as error:
                self.close()
                raise unavailable(self.place, error, passing=_passes(error)) from error

    def put(self, namespace: str, records: Sequence[Record]) -> int:
        """See :meth:`Archive.put`.

        Two writers of one namespace at the same time are told apart afterwards: who
        came second gets ``archive.conflict``.
        """
        one_namespace(namespace, records, self.identity.dimension)
        ids = [record.interaction_id for record in records]
        new = fresh(namespace, records, self._hashes(namespace, ids))
        for part in requests([list(entries_of(record)) for record in new]):
            keys, vectors, fields = zip(*part, strict=True)
            numbers = [vector.tolist() for vector in vectors]
            self._ask("add", ids=list(keys), embeddings=numbers, metadatas=list(fields))
        kept = self._hashes(namespace, [record.interaction_id for record in new])
        for record in new:
            if kept.get(record.interaction_id) != record.hash:
                raise conflict(namespace, record.interaction_id)
        self._note(namespace, (self.source(namespace) or Source()).moved(records))
        return len(new)

    def _hashes(self, namespace: str, ids: Sequence[int]) -> dict[int, bytes]:
        rows = self._of_ids(namespace, ids, ["metadatas"])
        return {int(row["id"]): bytes.fromhex(row["hash"]) for row in rows}

    def _of_ids(
        self, namespace: str, ids: Sequence[int], include: list[str]
    ) -> list[dict[str, Any]]:
        keys = [key_of(namespace, number, 0) for number in sorted(set(ids))]
        rows: list[dict[str, Any]] = []
        for part in pages(keys):
            rows += self._ask("get", ids=part, include=include)["metadatas"]
        return sorted(rows, key=lambda row: int(row["id"]))

    def get(self, namespace: str, ids: Sequence[int]) -> list[Record]:
        """See :meth:`Archive.get`."""
        return [self._record(row) for row in self._of_ids(namespace, ids, ["metadatas"])]

    def page(self, namespace: str, first: int, limit: int) -> list[Record]:
        """See :meth:`Archive.page`; Chroma keeps no order, so ids are read first."""
        ids: list[int] = []
        start, width = first, max(limit, PAGE)
        cursor = self.cursor(namespace)
        while len(ids) < limit and start < cursor:
            ids += self.ids(namespace, start, start + width)
            start += width
            width *= 2
        if len(ids) < limit:  # a put that was cut off leaves turns past the cursor
            ids += self.ids(namespace, start, ID_LIMIT)
        return self.get(namespace, ids[:limit])

    def _record(self, row: Mapping[str, Any]) -> Record:
        return record_of(row, self.identity.dimension)

    def search(
        self,
        vector: NDArray[np.int16] | NDArray[np.float32],
        limit: int,
        *,
        namespaces: Sequence[str] | None = None,
        filters: Mapping[str, Any] | None = None,
    ) -> list[Hit]:
        """See :meth:`Archive.search`.

        Exact where the collection has fewer passages than ``exact_below``. Else the
        server's approximate index finds the candidates, ten for each hit wanted and at
        least 200, more where filters drop them; their order is exact.
        """
        limit = positive("limit", limit)
        query = query_vector(vector, self.identity.dimension)
        wanted = Filters.of(filters, namespaces)
        where = where_of(wanted)
        if not query.any() or wanted.namespaces == ():
            return []  # Chroma refuses a list of no names
        total = int(self._ask("count"))
        if total < self._exact_below:
            every = self._rows({"$and": [{"part": 0}, *where]} if where else {"part": 0})
            records = [self._record(row) for row in every]
            return rescored(filter(wanted.lets_metadata, records), query, limit)
        passages = max(200, 10 * limit)
        while True:
            records = self._nearest(query, min(passages, total), where)
            hits = rescored(filter(wanted.lets_metadata, records), query, limit)
            if len(hits) == limit or passages >= total:
                return hits
            passages *= 4

    def _nearest(
        self, query: NDArray[np.int16], passages: int, where: list[dict[str, Any]]
    ) -> list[Record]:
        condition = {"$and": where} if len(where) > 1 else (where[0] if where else None)
        asked = unit(query).tolist()
        found = self._ask(
            "query",
            query_embeddings=[asked],
            n_results=passages,
            where=condition,
            include=["metadatas"],
        )
        turns: dict[str, set[int]] = {}
        for row in found["metadatas"][0]:
            turns.setdefault(unescaped(row["namespace"]), set()).add(int(row["id"]))
        return [record for name, ids in turns.items() for record in self.get(name, list(ids))]

    def _rows(self, where: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Entries that match, a page at a time."""
        at = 0
        while True:
            page = {"where": where, "limit": PAGE, "offset": at}
            rows = self._ask("get", **page, include=["metadatas"])["metadatas"]
            yield from rows
            if len(rows) < PAGE:
                return
            at += len(rows)

    def delete(self, namespace: str, ids: Sequence[int]) -> int:
        """See :meth:`Archive.delete`."""
        rows = self._of_ids(namespace, ids, ["metadatas"])
        keys = [
            [key_of(namespace, int(row["id"]), part) for part in range(row["parts"])]
            for row in rows
        ]
        for request in requests(keys):
            self._ask("delete", ids=request)
        return len(rows)

    def delete_namespace(self, namespace: str) -> int:
        """See :meth:`Archive.delete_namespace`."""
        there = self.count(namespace)
        name = escaped(namespace)
        self._ask("delete", where={"namespace": name})
        self._ask_sources("delete", ids=[f"n:{name}"])
        return there

    def namespaces(self) -> list[str]:
        """See :meth:`Archive.namespaces`."""
        keys = self._ask_sources("get", include=[])["ids"]
        return sorted(unescaped(key[2:]) for key in keys if key != _IDENTITY)

    def count(self, namespace: str | None = None) -> int:
        """See :meth:`Archive.count`; Chroma counts by listing ids."""
        where: dict[str, Any] = {"part": 0}
        if namespace is not None:
            where = {"$and": [where, {"namespace": escaped(namespace)}]}
        return len(self._ask("get", where=where, include=[])["ids"])

    def cursor(self, namespace: str) -> int:
        """See :meth:`Archive.cursor`."""
        return (self.source(namespace) or Source()).cursor

    def source(self, namespace: str) -> Source | None:
        """See :meth:`Archive.source`."""
        key = f"n:{escaped(namespace)}"
        rows = self._ask_sources("get", ids=[key], include=["metadatas"])
        if not rows["ids"]:
            return None
        return Source.from_json((rows["metadatas"][0] or {}).get("source"), namespace)

    def set_source(self, namespace: str, source: Source) -> None:
        """See :meth:`Archive.set_source`."""
        self._note(namespace, source.not_behind(self.source(namespace) or Source()))

    def _note(self, namespace: str, source: Source) -> None:
        key, row = f"n:{escaped(namespace)}", {"source": source.to_json()}
        self._ask_sources("upsert", ids=[key], embeddings=[[0.0]], metadatas=[row])

    def ids(self, namespace: str, first: int, end: int) -> list[int]:
        """See :meth:`Archive.ids`."""
        where = {
            "$and": [
                {"namespace": escaped(namespace)},
                {"part": 0},
                {"id": {"$gte": first}},
                {"id": {"$lt": end}},
            ]
        }
        keys = self._ask("get", where=where, include=[])["ids"]
        return sorted(int(key.rsplit("/", 2)[1]) for key in keys)

    def inventory(self, namespace: str) -> list[Block]:
        """See :meth:`Archive.inventory`; every id and hash is read for it."""
        where = {"$and": [{"namespace": escaped(namespace)}, {"part": 0}]}
        rows = ((int(row["id"]), bytes.fromhex(row["hash"])) for row in self._rows(where))
        return blocks_of(sorted(rows))

    def close(self) -> None:
        """See :meth:`Archive.close`."""
        with self._lock:
            client, self._connected, self._collections = self._connected, None, None
            _hang_up(client)


def _passes(error: Exception) -> bool:
    """Whether the server was not reached, or says that it is in trouble."""
    status = getattr(error, "code", None)
    if callable(status):  # a ChromaError
        return bool(status() >= 500 or status() == 429)
    # The client says with a ValueError what went wrong on the way, and what it does not take.
    return not isinstance(error, ValueError) or error.__context__ is not None


def _servers(client: Any) -> list[Any]:
    """What a client sends its requests by: its own, and that of the part which manages."""
    ends: tuple[Any, ...] = (client, getattr(client, "_admin_client", None))
    return [end._server for end in ends if hasattr(getattr(end, "_server", None), "_session")]


def _hang_up(client: Any) -> None:
    """Close a client, and the connections that Chroma's own ``close`` leaves open."""
    close = getattr(client, "close", None)
    if close is None:  # not connected, or a release that has nothing to close with
        return
    servers = _servers(client)
    close()
    for server in servers:
        # Where clients share one, it is stopped with the last of them.
        if not getattr(server, "_running", True):
            server._session.close()
