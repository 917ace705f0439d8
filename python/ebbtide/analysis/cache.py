"""Analyses kept on disk, so that the same text is read once.

A cache changes how long a replay takes and nothing else: entries are found by
the analyser's fingerprint and everything that their content depends on. It is a
SQLite file of its own, may be shared by processes, and may be deleted at any time.
Once open it never fails: an entry that is damaged is read anew, and a file that is
damaged, busy or full is done without, and so is one that was open before a fork.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

import numpy as np

from ebbtide.analysis.canonical import CanonicalPassage
from ebbtide.analysis.facts import (
    CardFacts,
    Claim,
    Cue,
    Entity,
    TimeExpression,
    TurnFacts,
    TurnText,
)
from ebbtide.errors import StoreError

__all__ = ["AnalysisCache"]

_LOG = logging.getLogger(__name__)
_VERSION = 2
_APPLICATION_ID = 0x65626163
_TABLES = ("facts", "passages")
_WAIT_SECONDS = 60.0
_CHECK_BYTES = 8
_PART = 500
"""Keys of one look-up; SQLite allows 999 parameters at least."""
_FAILURES = (sqlite3.Error, UnicodeDecodeError)
"""Raised by SQLite's functions; the second where the error quotes what is no text any more."""

_Given = TypeVar("_Given")
_Read = TypeVar("_Read")


class AnalysisCache:
    """Facts by turn and passages by text. Safe to share between threads and processes."""

    def __init__(self, path: str | Path, *, facts: str, passages: str) -> None:
        """Open the file, creating it where it is missing.

        Args:
            path: The cache file.
            facts: Fingerprint of what reads facts; those of another are not seen.
            passages: Fingerprint of the embedding model; likewise.

        Raises:
            StoreError: ``store.open``: the file cannot be opened, or is something else.
        """
        self._path = path
        self._readers = {"facts": facts, "passages": passages}
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._usable = True
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=_WAIT_SECONDS, check_same_thread=False)
        except (OSError, sqlite3.Error) as error:
            raise _unusable(path, error) from error
        # Who shares a cache does not know who is the last.
        weakref.finalize(self, self._db.close)
        try:
            self._prepare()
        except _FAILURES as error:
            if not _passing(error):
                self._db.close()
                raise _unusable(path, error) from error
            self._give_up(error)

    def _prepare(self) -> None:
        (application,) = self._db.execute("PRAGMA application_id").fetchone()
        tables = {name for (name,) in self._db.execute("SELECT name FROM sqlite_master")}
        if application != _APPLICATION_ID and (application or tables - set(_TABLES)):
            raise sqlite3.DatabaseError("it is a database of another kind")
        _write_ahead(self._db)
        self._db.execute("PRAGMA synchronous = OFF")
        self._db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        for table in _TABLES:
            self._db.execute(
                f"CREATE TABLE IF NOT EXISTS {table} (key BLOB PRIMARY KEY, value BLOB)"
                " WITHOUT ROWID"
            )

    def _give_up(self, error: Exception) -> None:
        """Go on without the file: it saves time, and is no reason to fail."""
        if self._usable:
            fields = {"event": "cache.unusable", "path": str(self._path)}
            message = "the analysis cache %s is not used from here on: %s"
            _LOG.warning(message, self._path, error, extra=fields)
        self._usable = False

    def facts(
        self, turns: Sequence[TurnText], read: Callable[[list[TurnText]], list[TurnFacts]]
    ) -> list[TurnFacts]:
        """Facts of turns in order; ``read`` makes those that are missing."""
        keys = [self._turn_key(turn) for turn in turns]
        return self._through("facts", keys, turns, read, _pack_facts, _unpack_facts)

    def passages(
        self,
        texts: Sequence[str],
        read: Callable[[list[str]], list[tuple[CanonicalPassage, ...]]],
    ) -> list[tuple[CanonicalPassage, ...]]:
        """Passages of texts in order; ``read`` makes those that are missing."""
        keys = [self._key("passages", text) for text in texts]
        return self._through("passages", keys, texts, read, _pack_passages, _unpack_passages)

    def close(self) -> None:
        """Free the file."""
        if not self._forked():
            with self._lock:
                self._db.close()

    def _forked(self) -> bool:
        # The connection is the parent's, and so may be what another thread had taken.
        return os.getpid() != self._process

    def _through(
        self,
        table: str,
        keys: list[bytes],
        given: Sequence[_Given],
        read: Callable[[list[_Given]], list[_Read]],
        pack: Callable[[_Read], bytes],
        unpack: Callable[[bytes], _Read],
    ) -> list[_Read]:
        found = {}
        for key, value in self._look_up(table, keys):
            payload = _unsealed(value)
            if payload is not None:
                found[key] = unpack(payload)
        missing = {k: item for k, item in zip(keys, given, strict=True) if k not in found}
        if missing:
            made = dict(zip(missing, read(list(missing.values())), strict=True))
            self._keep(table, [(key, _sealed(pack(value))) for key, value in made.items()])
            found |= made
        return [found[key] for key in keys]

    def _look_up(self, table: str, keys: list[bytes]) -> list[tuple[bytes, bytes]]:
        rows: list[tuple[bytes, bytes]] = []
        if self._forked():
            return rows
        distinct = list(dict.fromkeys(keys))
        with self._lock:
            for first in range(0, len(distinct) if self._usable else 0, _PART):
                part = distinct[first : first + _PART]
                marks = ",".join("?" * len(part))
                sql = f"SELECT key, value FROM {table} WHERE key IN ({marks})"
                try:
                    with closing(self._db.execute(sql, part)) as cursor:
                        rows += cursor.fetchall()
                except _FAILURES as error:
                    self._give_up(error)
                    break
        return rows

    def _keep(self, table: str, rows: list[tuple[bytes, bytes]]) -> None:
        if self._forked():
            return
        with self._lock:
            if not self._usable:
                return
            try:
                with self._db:
                    # Another process may have read the same text meanwhile, to the same
                    # result; what is there may also be a damaged entry.
                    self._db.executemany(f"INSERT OR REPLACE INTO {table} VALUES (?, ?)", rows)
            except _FAILURES as error:
                self._give_up(error)

    def _turn_key(self, turn: TurnText) -> bytes:
        moment = None if turn.timestamp is None else turn.timestamp.isoformat()
        return self._key("facts", turn.text, turn.role, turn.speaker, moment)

    def _key(self, table: str, *parts: str | None) -> bytes:
        identity = json.dumps([_VERSION, table, self._readers[table], *parts])
        return hashlib.blake2b(identity.encode(), digest_size=16).digest()


def _unusable(path: str | Path, error: Exception) -> StoreError:
    message = f"the analysis cache {path} cannot be opened: {error}; name another file"
    return StoreError(message, "store.open")


def _passing(error: Exception) -> bool:
    """Whether the right file was named, and only cannot be used now."""
    if isinstance(error, UnicodeDecodeError) or str(error) == "unsupported file format":
        return True  # a schema or a header that is damaged
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in (
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
    )


def _sealed(payload: bytes) -> bytes:
    """With a checksum in front: SQLite notices damage to pages, not to values."""
    return hashlib.blake2b(payload, digest_size=_CHECK_BYTES).digest() + payload


def _unsealed(value: object) -> bytes | None:
    """What was sealed; None where it is not as it was."""
    if not isinstance(value, bytes):
        return None
    payload = value[_CHECK_BYTES:]
    return payload if _sealed(payload) == value else None


def _write_ahead(database: sqlite3.Connection) -> None:
    """Switch to the write-ahead log; two processes that both find the file new must wait."""
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            # This one change of lock is not covered by SQLite's own waiting.
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _pack_facts(facts: TurnFacts) -> bytes:
    return json.dumps(asdict(facts) | {"signals": sorted(facts.signals)}).encode()


def _unpack_facts(data: bytes) -> TurnFacts:
    row = json.loads(data)
    cards = [CardFacts(**(card | {"terms": tuple(card["terms"])})) for card in row["cards"]]
    return TurnFacts(
        **(
            row
            | {
                "entities": tuple(Entity(**item) for item in row["entities"]),
                "signals": frozenset(row["signals"]),
                "cues": tuple(Cue(**item) for item in row["cues"]),
                "claims": tuple(Claim(**item) for item in row["claims"]),
                "terms": tuple(row["terms"]),
                "times": tuple(TimeExpression(**item) for item in row["times"]),
                "cards": tuple(cards),
            }
        )
    )


def _pack_passages(passages: Sequence[CanonicalPassage]) -> bytes:
    """A JSON line with the bounds and shapes, then the arrays, little-endian."""
    heads, arrays = [], []
    for passage in passages:
        count = None if passage.tokens is None else len(passage.tokens)
        heads.append([passage.start, passage.end, len(passage.vector), count])
        arrays.append(passage.vector.astype("<i2").tobytes())
        if passage.tokens is not None:
            arrays.append(passage.tokens.tobytes())
    return json.dumps(heads).encode() + b"\n" + b"".join(arrays)


def _unpack_passages(data: bytes) -> tuple[CanonicalPassage, ...]:
    head, _, body = data.partition(b"\n")
    passages = []
    at = 0
    for start, end, width, count in json.loads(head):
        # A copy: behind an odd number of bytes the buffer's own numbers lie unaligned.
        vector = np.frombuffer(body, "<i2", width, at).astype(np.int16)
        at += 2 * width
        tokens = None
        if count is not None:
            tokens = np.frombuffer(body, np.int8, count * width, at).reshape(count, width)
            at += count * width
        passages.append(CanonicalPassage(start, end, vector, tokens))
    return tuple(passages)
