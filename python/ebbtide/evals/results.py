"""What a run leaves behind: rows, facts by conversation, and one manifest.

    DIR/plan.json               what is being run; a second call goes on with it
    DIR/parts/SYSTEM/N.*        finished conversations
    DIR/clean/SYSTEM/N.*        the same without their noise, for comparison
    DIR/rows.parquet            one row a (system, question)
    DIR/clean.parquet           the same without noise
    DIR/conversations.parquet   one row a (system, conversation)
    DIR/manifest.json           versions, hashes, machine, digest of the rows

The digest covers everything but timings: the same code on the same data gives the
same digest on any machine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ebbtide.errors import InputError
from ebbtide.evals.metrics import CUTOFFS
from ebbtide.files import made_whole

__all__ = [
    "BUDGETS",
    "DEPTH",
    "METRICS",
    "SESSION_METRICS",
    "TIMINGS",
    "read_table",
    "rows_digest",
    "write_table",
]

BUDGETS = (512, 1024, 2048, 4096)
"""Token budgets of rendered contexts in every report."""

DEPTH = 30
"""Ids kept of a ranking."""

METRICS = (
    *(f"{name}@{k}" for k in CUTOFFS for name in ("recall", "recall_any", "recall_all")),
    "mrr",
    "ndcg@10",
)
SESSION_METRICS = tuple(f"session_{name}" for name in METRICS)

TIMINGS = frozenset({"latency_ms", "ingest_s", "rss_mb"})
"""Columns that differ from run to run and are not in the digest."""

_TEXTS = ("dataset", "system", "conversation", "question_id", "category", "question", "answer")
_SUFFIXES = ("recall", "any", "all", "contains", "tokens")


def _columns(kind: str) -> dict[str, str]:
    """Column names and types of ``rows`` or ``conversations``, in order."""
    if kind == "rows":
        numbers = (
            "confidence",
            "latency_ms",
            *METRICS,
            *SESSION_METRICS,
            *(f"budget_{b}_{suffix}" for b in BUDGETS for suffix in _SUFFIXES),
        )
        return (
            dict.fromkeys(_TEXTS, "string")
            | {"abstention": "bool", "evidence": "strings", "ranked": "strings"}
            | dict.fromkeys(numbers, "double")
        )
    return (
        dict.fromkeys(("dataset", "system", "conversation"), "string")
        | dict.fromkeys(("turns", "noise_turns", "questions"), "int64")
        | dict.fromkeys(("ingest_s", "rss_mb"), "double")
        | {"llm_tokens": "int64", "state_bytes": "int64", "digest": "string"}
    )


def write_table(path: Path, kind: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as Parquet; the file is there whole or not at all.

    Args:
        path: The file.
        kind: ``rows`` or ``conversations``: which columns it has.
        rows: Mappings; what one lacks is null.

    Raises:
        StoreError: ``store.open``: it cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {
        "string": pa.string(),
        "strings": pa.list_(pa.string()),
        "bool": pa.bool_(),
        "double": pa.float64(),
        "int64": pa.int64(),
    }
    columns = _columns(kind)
    schema = pa.schema([(name, types[of]) for name, of in columns.items()])
    plain = [{name: row.get(name) for name in columns} for row in rows]
    with made_whole(path) as part:
        pq.write_table(pa.Table.from_pylist(plain, schema=schema), part)


def read_table(path: Path) -> list[dict[str, Any]]:
    """The rows of a Parquet file, as mappings.

    Raises:
        InputError: ``input.transcript``: it is missing or no Parquet file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    except (OSError, pa.ArrowInvalid) as error:
        message = f"{path} cannot be read: {error}; it is written by `ebbtide eval`"
        raise InputError(message, "input.transcript") from error
    return rows


def rows_digest(rows: Sequence[Mapping[str, Any]]) -> str:
    """SHA-256 of rows without their timings, in the order given."""
    found = hashlib.sha256()
    for row in rows:
        kept = {name: value for name, value in row.items() if name not in TIMINGS}
        found.update(json.dumps(kept, sort_keys=True, ensure_ascii=False).encode())
    return found.hexdigest()
