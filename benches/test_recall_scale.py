"""Recall with the question read beforehand, by size of the memory (``make bench``)."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from scale_data import Source, as_query, batches, open_handle, read_source

from ebbtide import Config


@pytest.fixture(scope="module")
def source() -> Source:
    return read_source(Config(), turns=1000, questions=20)


@pytest.mark.parametrize("size", [1_000, 10_000])
def test_recall(benchmark: Any, source: Source, tmp_path: Path, size: int) -> None:
    store, handle = open_handle(tmp_path / "memory.db", Config(), source.fingerprint)
    for batch in batches(source, size):
        handle.add(batch)
    questions = itertools.cycle([as_query(q) for q in source.questions])
    options: dict[str, Any] = {"limit": None, "preset": None, "filters": None, "trace": False}
    found = benchmark(lambda: handle.recall(next(questions), **options))
    assert found["evidence"]
    handle.close()
    store.close()
