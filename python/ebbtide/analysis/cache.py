"""Analyses kept on disk, so that the same text is read once.

A cache changes how long a replay takes and nothing else: entries are found by
the analyser's fingerprint and everything that their content depends on. It is a
SQLite file of its own, may be shared by processes, and may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
import time
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

_VERSION = 1
_WAIT_SECONDS = 60.0
_PART = 500
"""Keys of one look-up; SQLite allows 999 parameters at least."""

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
        self._readers = {"facts": facts, "passages": passages}
        self._lock = threading.Lock()
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=_WAIT_SECONDS, check_same_thread=False)
            _write_ahead(self._db)
            self._db.execute("PRAGMA synchronous = OFF")
            for table in ("facts", "passages"):
                self._db.execute(
                    f"CREATE TABLE IF NOT EXISTS {table} (key BLOB PRIMARY KEY, value BLOB)"
                    " WITHOUT ROWID"
                )
        except (OSError, sqlite3.Error) as error:
            message = f"the analysis cache {path} cannot be opened: {error}; name another file"
            raise StoreError(message, "store.open") from error

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
        with self._lock:
            self._db.close()

    def _through(
        self,
        table: str,
        keys: list[bytes],
        given: Sequence[_Given],
        read: Callable[[list[_Given]], list[_Read]],
        pack: Callable[[_Read], bytes],
        unpack: Callable[[bytes], _Read],
    ) -> list[_Read]:
        found = {key: unpack(value) for key, value in self._look_up(table, keys)}
        missing = {k: item for k, item in zip(keys, given, strict=True) if k not in found}
        if missing:
            made = dict(zip(missing, read(list(missing.values())), strict=True))
            self._keep(table, [(key, pack(value)) for key, value in made.items()])
            found |= made
        return [found[key] for key in keys]

    def _look_up(self, table: str, keys: list[bytes]) -> list[tuple[bytes, bytes]]:
        rows: list[tuple[bytes, bytes]] = []
        distinct = list(dict.fromkeys(keys))
        with self._lock:
            for first in range(0, len(distinct), _PART):
                part = distinct[first : first + _PART]
                marks = ",".join("?" * len(part))
                sql = f"SELECT key, value FROM {table} WHERE key IN ({marks})"
                with closing(self._db.execute(sql, part)) as cursor:
                    rows += cursor.fetchall()
        return rows

    def _keep(self, table: str, rows: list[tuple[bytes, bytes]]) -> None:
        with self._lock, self._db:
            # Another process may have read the same text meanwhile, to the same result.
            self._db.executemany(f"INSERT OR IGNORE INTO {table} VALUES (?, ?)", rows)

    def _turn_key(self, turn: TurnText) -> bytes:
        moment = None if turn.timestamp is None else turn.timestamp.isoformat()
        return self._key("facts", turn.text, turn.role, turn.speaker, moment)

    def _key(self, table: str, *parts: str | None) -> bytes:
        identity = json.dumps([_VERSION, table, self._readers[table], *parts])
        return hashlib.blake2b(identity.encode(), digest_size=16).digest()


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
        vector = np.frombuffer(body, "<i2", width, at).astype(np.int16, copy=False)
        at += 2 * width
        tokens = None
        if count is not None:
            tokens = np.frombuffer(body, np.int8, count * width, at).reshape(count, width)
            at += count * width
        passages.append(CanonicalPassage(start, end, vector, tokens))
    return tuple(passages)
