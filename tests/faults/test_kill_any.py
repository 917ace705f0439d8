"""kill -9 in the middle of anything that writes: done, or not begun, or can be gone on with."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from reference.stand_ins import scripted

from ebbtide import Config, Memory, Store
from faults.children import Nursery
from faults.figures import Figures
from faults.nursery import config

WRITING = ("add", "batch", "journalled", "delete", "forget", "reindex")
COPYING = ("load", "export", "backup", "create")


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as opened:
        yield opened


class Twin:
    """A memory that is never killed and is told what the killed one had done."""

    def __init__(self, store: Path, nursery: Nursery, chance: random.Random) -> None:
        self.store = store
        self.given = 40
        self._nursery = nursery
        self._chance = chance
        self._memory = Memory.in_memory(config=config())
        self._memory.add_many(scripted(n) for n in range(self.given))
        self._nursery.whole("batch", store, 0, self.given)
        self.spans = {"reindex": self._nursery.whole("reindex", store)}

    def strike(self, operation: str) -> bool:
        """Kill one operation somewhere; what is left is compared. False: it was faster."""
        words = self._words(operation)
        span = self.spans.get(operation, 0.02)
        after = self._chance.random() * span
        done, status = self._nursery.interrupted(
            after, signal.SIGKILL, operation, self.store, *words
        )
        # The next one is aimed better.
        self.spans[operation] = span * (0.8 if status == 0 else 1.1)
        self._compare(operation, words, done)
        return status == -signal.SIGKILL

    def _words(self, operation: str) -> list[int]:
        if operation in ("add", "batch", "journalled"):
            return [self.given, self._chance.randint(8, 20)]
        there = [turn.interaction_id for turn in self._memory.turns()]
        if operation in ("delete", "forget"):
            return sorted(self._chance.sample(there, 6))  # type: ignore[type-var]
        return []

    def _compare(self, operation: str, words: list[int], done: list[str]) -> None:
        twin = self._memory
        with Store.open(self.store, config=config()) as store:
            assert store.check() == [], operation
            memory = store.memory()
            there = {turn.interaction_id for turn in memory.turns()}
            if operation in ("add", "batch", "journalled"):
                first, count = words
                # The newest may have been erased before; its id is not given again.
                new = max(first, max(there) + 1)
                assert new <= first + count
                assert not done or new >= int(done[-1]), "an acknowledged turn is lost"
                twin.add_many(scripted(n) for n in range(first, new))
                self.given = new
            elif operation == "delete":
                gone = [one for one in words if one not in there]
                assert gone == words[: len(gone)]
                assert len(gone) >= len(done), "an acknowledged erasure is lost"
                for one in gone:
                    twin.delete(one)
            elif operation == "forget":
                gone = [one for one in words if one not in there]
                assert gone in ([], words), "half of a transaction"
                assert gone or not done
                twin.forget(ids=gone)
            elif memory.digest() != twin.digest():
                twin.reindex()
            assert memory.digest() == twin.digest(), operation
            assert [t.text for t in memory.turns()] == [t.text for t in twin.turns()]

    def close(self) -> None:
        self._memory.close()


def strikes(nursery: Nursery, folder: Path, kills: int, seed: int, figures: Figures) -> None:
    chance = random.Random(seed)
    twin = Twin(folder / "memory.db", nursery, chance)
    landed = 0
    while landed < kills:
        operation = chance.choice(WRITING)
        if twin.given > 400 or len(twin._memory) < 20:
            operation = "delete" if twin.given > 400 and len(twin._memory) > 60 else "batch"
        if twin.strike(operation):
            landed += 1
            figures.counts["processes killed while they wrote"] += 1
    twin.close()


def copies(nursery: Nursery, folder: Path, kills: int, seed: int, figures: Figures) -> None:
    """What makes a new file or memory is complete or not there."""
    chance = random.Random(seed)
    store, file = folder / "source.db", folder / "source.jsonl"
    nursery.whole("batch", store, 0, 120)
    with Memory.open(store, config=config()) as memory:
        digest = memory.digest()
        rows = memory.export(file)
    whole = file.read_bytes()
    spans = dict.fromkeys(COPYING, 0.05)
    landed = 0
    for turn in range(100 * kills):
        if landed >= kills:
            break
        operation = COPYING[turn % len(COPYING)]
        other = folder / f"other-{turn}"
        words: list[object] = {
            "load": [other, file, "copy"],
            "export": [store, other],
            "backup": [store, other],
            "create": [other],
        }[operation]
        after = chance.random() * spans[operation]
        done, status = nursery.interrupted(after, signal.SIGKILL, operation, *words)
        killed = status == -signal.SIGKILL
        spans[operation] *= 1.1 if killed else 0.9
        landed += killed
        figures.counts["processes killed while they copied"] += killed
        assert other.exists() or not done
        if operation == "export":
            assert not other.exists() or other.read_bytes() == whole
            assert not done or other.exists()
        elif operation == "backup" and other.exists():
            with Store.open(other, config=config(), read_only=True) as copy:
                assert copy.check() == []
                assert copy.memory().digest() == digest
        elif operation in ("load", "create"):
            with Store.open(other, config=config()) as opened:
                assert opened.check() == []
                names = opened.namespaces()
                if operation == "load" and names:
                    assert opened.memory("copy").digest() == digest
                elif operation == "load":
                    assert not done
                    assert opened.load(file, namespace="copy").digest() == digest
        for left in folder.glob(f"{other.name}*"):
            left.unlink()
    assert rows > 120


def suite(nursery: Nursery, folder: Path, writing: int, copying: int, seed: int) -> Figures:
    promise = (
        "kill -9 at any moment loses no acknowledged turn and leaves nothing half done: adding, "
        "journalling, erasing, reindexing, loading, exporting, backing up, creating"
    )
    test = "tests/faults/test_kill_any.py::test_two_hundred_and_fifty_kills"
    with Figures("kills", promise, test) as figures:
        strikes(nursery, folder, writing, seed, figures)
        copies(nursery, folder, copying, seed, figures)
    return figures


def test_fifty_kills(stub: Config, nursery: Nursery, tmp_path: Path) -> None:
    suite(nursery, tmp_path, 40, 16, 3)


@pytest.mark.long
def test_two_hundred_and_fifty_kills(stub: Config, nursery: Nursery, tmp_path: Path) -> None:
    figures = suite(nursery, tmp_path, 200, 60, 5)
    assert figures.counts.total() >= 250
