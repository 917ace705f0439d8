"""Ctrl-C in every phase of a replay: a clean store that the same command goes on with."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from reference.stand_ins import scripted

from ebbtide import Config, EbbtideError, Memory, Store
from faults.children import Nursery
from faults.figures import Figures
from faults.nursery import config

TURNS = 120


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as opened:
        yield opened


def transcript(folder: Path) -> Path:
    file = folder / "talk.jsonl"
    lines = [scripted(n) for n in range(TURNS)]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return file


def interrupts(nursery: Nursery, folder: Path, wanted: int, seed: int) -> None:
    promise = (
        "Ctrl-C in any phase of a replay ends it with 130; run again it goes on, with the digest "
        "of one that was never interrupted"
    )
    test = "tests/faults/test_interrupt.py::test_a_hundred_interrupts"
    chance = random.Random(seed)
    file = transcript(folder)
    with Figures("interrupts", promise, test) as figures:
        span = nursery.whole("replay", folder / "whole.db", file)
        with Memory.open(folder / "whole.db", config=config(), read_only=True) as memory:
            digest = memory.digest()
        number = 0
        while figures.counts["replays interrupted"] < wanted:
            number += 1
            assert number < 20 * wanted
            store = folder / f"{number}.db"
            before = 0
            while True:
                done, status = nursery.interrupted(
                    chance.random() * span, signal.SIGINT, "replay", store, file
                )
                # In the first moments, before it looks out for Ctrl-C, Python ends the process.
                assert (done, status) in ((["0"], 0), (["130"], 0), ([], 1)), (done, status)
                if done == ["0"]:
                    span *= 0.8  # too late: what is left to do takes less time
                    break
                span *= 1.1
                figures.counts["replays interrupted"] += 1
                figures.counts["of these, once it looked out for Ctrl-C"] += done == ["130"]
                before = _left(store, before)
            with Store.open(store, config=config()) as opened:
                assert opened.memory().digest() == digest
            for left in folder.glob(f"{number}.db*"):
                left.unlink()
            figures.counts["replays gone on with to the end"] += 1


def _left(store: Path, before: int) -> int:
    """Turns in the store after an interruption: the first ones, and none fewer than before."""
    try:
        with Store.open(store, config=config(), read_only=True) as opened:
            assert opened.check() == []
            if not opened.namespaces():
                return before
            ids = [turn.external_id for turn in opened.memory().turns()]
    except EbbtideError as error:
        if error.code != "not_found.store":
            raise
        return before
    assert ids == [f"t{n}" for n in range(len(ids))]
    assert len(ids) >= before
    return len(ids)


def test_six_interrupts(stub: Config, nursery: Nursery, tmp_path: Path) -> None:
    interrupts(nursery, tmp_path, 6, 1)


@pytest.mark.long
def test_a_hundred_interrupts(stub: Config, nursery: Nursery, tmp_path: Path) -> None:
    interrupts(nursery, tmp_path, 100, 2)
