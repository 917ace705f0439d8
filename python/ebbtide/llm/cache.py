"""Replies of a language model kept on disk, so that the same request is paid once.

A SQLite file of its own: it may be shared by processes and deleted at any time.
It holds what was replied and the tokens that it cost; requests are kept as hashes
only, so no prompt and no credential is ever in the file.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from ebbtide.errors import StoreError

__all__ = ["LlmCache"]

_VERSION = 1
_WAIT_SECONDS = 60.0


class LlmCache:
    """Replies by request. Safe to share between threads and processes."""

    def __init__(self, path: str | Path) -> None:
        """Open the file, creating it where it is missing.

        Args:
            path: The cache file.

        Raises:
            StoreError: ``store.open``: the file cannot be opened, or is something else.
        """
        self._path = path
        self._lock = threading.Lock()
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=_WAIT_SECONDS, check_same_thread=False)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS replies (key BLOB PRIMARY KEY, value TEXT NOT NULL)"
                " WITHOUT ROWID"
            )
        except (OSError, sqlite3.Error) as error:
            message = f"the reply cache {path} cannot be opened: {error}; name another file"
            raise StoreError(message, "store.open") from error

    @staticmethod
    def key(request: Mapping[str, Any]) -> bytes:
        """SHA-256 of a request in canonical JSON: every field of it counts."""
        identity = json.dumps([_VERSION, request], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).digest()

    def get(self, key: bytes) -> dict[str, Any] | None:
        """What was put for a key; None where there is nothing readable.

        Raises:
            StoreError: ``store.sqlite``: the file cannot be read.
        """
        try:
            with (
                self._lock,
                closing(
                    self._db.execute("SELECT value FROM replies WHERE key = ?", (key,))
                ) as rows,
            ):
                row = rows.fetchone()
        except sqlite3.Error as error:
            raise self._failed(error) from error
        try:
            value = None if row is None else json.loads(row[0])
        except (RecursionError, TypeError, ValueError):
            return None
        return value if isinstance(value, dict) else None

    def put(self, key: bytes, value: Mapping[str, Any]) -> None:
        """Keep a value; an older one of that key is replaced.

        Raises:
            StoreError: ``store.sqlite``: the file cannot be written.
        """
        row = (key, json.dumps(value, ensure_ascii=True))
        try:
            with self._lock, self._db:
                self._db.execute("INSERT OR REPLACE INTO replies VALUES (?, ?)", row)
        except sqlite3.Error as error:
            raise self._failed(error) from error

    def close(self) -> None:
        """Free the file."""
        with self._lock:
            self._db.close()

    def _failed(self, error: sqlite3.Error) -> StoreError:
        message = (
            f"the reply cache {self._path} cannot be used: {error}; delete it, or name another"
        )
        return StoreError(message, "store.sqlite")
