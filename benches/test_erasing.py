"""Erasing some of a memory's turns, as a rule of retention does (``make bench``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benches.cheap import turns
from ebbtide import Config, _core

ROUNDS = 3


@pytest.mark.parametrize("gone", [1, 100, 1_000])
@pytest.mark.parametrize("size", [10_000, 50_000])
def test_erase_the_oldest(benchmark: Any, tmp_path: Path, size: int, gone: int) -> None:
    store = _core.StoreHandle(
        tmp_path / "memory.db", read_only=False, holder="bench", synchronous_full=False
    )
    config = Config().to_json()
    memory = _core.MemoryHandle(
        store, "long", config=config, presets={}, analyser="cheap", reindexing=False
    )
    for chunk in turns(size):
        memory.add(chunk)
    oldest = iter(range(0, gone * (ROUNDS + 1), gone))

    def some() -> tuple[tuple[list[int]], dict[str, Any]]:
        first = next(oldest)
        return (list(range(first, first + gone)),), {}

    benchmark.pedantic(memory.delete_many, setup=some, rounds=ROUNDS, warmup_rounds=1)
    assert memory.stats()["turns"] == size - gone * (ROUNDS + 1)
    memory.close()
    store.close()
