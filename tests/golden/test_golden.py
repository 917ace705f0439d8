"""Stores of earlier schema versions open, hold what they held, and go on."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ebbtide import Config, Store, _core
from golden.make_golden import FOLDER, config, golden_store, record

STORES = sorted(FOLDER.glob("store-*.db"))


def test_there_is_a_store_of_this_version() -> None:
    assert golden_store(_core.schema_version()) in STORES


@pytest.mark.parametrize("golden", STORES, ids=[store.name for store in STORES])
def test_a_golden_store_still_opens(stub: Config, tmp_path: Path, golden: Path) -> None:
    expected: dict[str, Any] = json.loads(golden.with_suffix(".json").read_text(encoding="utf-8"))
    assert golden.stat().st_size <= 200_000
    before = hashlib.sha256(golden.read_bytes()).hexdigest()
    path = tmp_path / "memory.db"
    shutil.copyfile(golden, path)
    with Store.open(path, config=config(), read_only=True) as store:
        assert record(store) == expected
        assert len(store.memory("luis").retrieve("garden friday log", limit=3)) == 3
        assert store.memory("ana").retrieve("東京", limit=1)[0].turn.speaker == "Ana"
        store.memory("ana").export(tmp_path / "ana.jsonl")
    with Store.open(tmp_path / "other.db", config=config()) as other:
        copy = other.load(tmp_path / "ana.jsonl")
        assert copy.digest() == expected["ana"]["digest"]
    with Store.open(path, config=config()) as store:
        assert record(store) == expected
        memory = store.memory("ana")
        assert expected["ana"]["archived"] > 0
        assert expected["ana"]["superseded"] > 0
        report = memory.add("The umbrella is v9.", speaker="Ana", external_id="new")
        assert report.accepted == 1
        assert memory.add("again", external_id="t3").duplicates == 1
        assert memory.get(external_id="new").interaction_id == 41
        assert memory.retrieve("umbrella", limit=1)[0].turn.external_id == "new"
        assert memory.get(3).validity == "corrected"
        assert memory.explain(5)["score"]
        assert store.memory("luis").digest() == expected["luis"]["digest"]
    assert hashlib.sha256(golden.read_bytes()).hexdigest() == before
