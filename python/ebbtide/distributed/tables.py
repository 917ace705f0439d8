"""The two tables of a replay: turns and conversations, as Parquet.

Nothing in them depends on when, where or in what company a conversation was replayed,
so two runs of the same code on the same data write the same bytes. That is how a file is
told to be whole, too: what is read of it, written again, is the file.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ebbtide.errors import StoreError
from ebbtide.extras import MissingExtraError

__all__ = ["Table", "data_of", "is_whole", "read_rows"]

_COLUMNS = {
    "turns": {
        "conversation": "string",
        "turn": "int64",
        "external_id": "string",
        "record_id": "string",
        "session_id": "string",
        "tokens": "int64",
        "omega": "double",
        "effective": "double",
        "tier": "string",
        "state": "string",
        "validity": "string",
        "evicted_by": "string",
        "evicted_at": "int64",
        "superseded_by": "int64",
    },
    "conversations": {
        "conversation": "string",
        "file": "string",
        "turns": "int64",
        "skipped": "int64",
        "duplicates": "int64",
        "active": "int64",
        "archived": "int64",
        "active_tokens": "int64",
        "healthy": "int64",
        "unstable": "int64",
        "critical": "int64",
        "hard_kill": "int64",
        "budget": "int64",
        "skip": "int64",
        "superseded": "int64",
        "relations": "int64",
        "digest": "string",
        "store": "string",
        "error_code": "string",
        "error": "string",
    },
}
_ROWS = 65_536
"""Rows of a row group: what is held in memory of a table that is written."""

_DATA = b"ebbtide.data_sha256"


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError(error, "dask") from error
    return pyarrow, pyarrow.parquet


def _schema(pa: Any, kind: str, data_sha256: str) -> Any:
    types = {"string": pa.string(), "int64": pa.int64(), "double": pa.float64()}
    fields = [(name, types[of]) for name, of in _COLUMNS[kind].items()]
    return pa.schema(fields, metadata={_DATA: data_sha256.encode()})


def _writer(parquet: Any, place: Path | io.BytesIO, schema: Any) -> Any:
    # The checksums are for other readers as well: they notice a changed page themselves.
    return parquet.ParquetWriter(place, schema, write_page_checksum=True)


class Table:
    """A Parquet file that is written row by row."""

    def __init__(self, path: Path, kind: str, data_sha256: str) -> None:
        """Begin a file.

        Args:
            path: The file.
            kind: ``turns`` or ``conversations``.
            data_sha256: What it was made of, kept in its metadata.

        Raises:
            MissingExtraError: Without pyarrow.
        """
        self._pa, parquet = _arrow()
        self._schema = _schema(self._pa, kind, data_sha256)
        self._rows: list[Mapping[str, Any]] = []
        self._writer = _writer(parquet, path, self._schema)

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write rows; what one lacks is null."""
        for row in rows:
            self._rows.append(row)
            if len(self._rows) == _ROWS:
                self._flush()

    def _flush(self) -> None:
        columns = [[row.get(name) for row in self._rows] for name in self._schema.names]
        self._writer.write_table(self._pa.table(columns, schema=self._schema))
        self._rows = []

    def __enter__(self) -> Self:
        """Use as a context manager: complete at the end."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Write what is left, and the end of the file."""
        if kind is None and self._rows:
            self._flush()
        self._writer.close()


def data_of(path: Path) -> str | None:
    """The ``data_sha256`` of a file; None where it is no part of a replay, or none at all."""
    pa, parquet = _arrow()
    try:
        metadata = parquet.read_schema(path).metadata or {}
        found: bytes | None = metadata.get(_DATA)
        return None if found is None else found.decode()
    except (OSError, ValueError, pa.ArrowException):
        return None


def is_whole(path: Path, kind: str, data_sha256: str) -> bool:
    """Whether a file is what :class:`Table` wrote, to the last bit.

    The checksums of pages leave out what stands around them, where a changed bit makes
    other rows as well; so the file is written again, in memory, and compared.
    """
    pa, parquet = _arrow()
    try:
        found = path.read_bytes()
        file = parquet.ParquetFile(io.BytesIO(found), page_checksum_verification=True)
        again = io.BytesIO()
        writer = _writer(parquet, again, _schema(pa, kind, data_sha256))
        for number in range(file.num_row_groups):
            writer.write_table(file.read_row_group(number))
        writer.close()
    except (OSError, ValueError, pa.ArrowException):
        return False
    return again.getvalue() == found


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of one file.

    Raises:
        StoreError: ``store.corrupt``: it is damaged or missing.
    """
    pa, parquet = _arrow()
    try:
        file = parquet.ParquetFile(path, page_checksum_verification=True)
        rows: list[dict[str, Any]] = file.read().to_pylist()
    except (OSError, ValueError, pa.ArrowException) as error:
        message = f"{path} cannot be read ({error}); run the replay again, it makes it anew"
        raise StoreError(message, "store.corrupt") from error
    return rows
