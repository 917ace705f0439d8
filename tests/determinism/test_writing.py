"""One memory, however it was written: batches, threads, processes, modes, restarts, presets."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from reference.stand_ins import scripted

from ebbtide import Config, Memory, Turn
from ebbtide.analysis import reading_ahead
from ebbtide.evals.datasets import load_conversations
from ebbtide.replay import replay

SCRIPTED = [scripted(number) for number in range(1100)]
BATCHES = (1, 7, 64, 1000)


def written(config: Config, turns: list[dict[str, Any]], batch_size: int = 64) -> str:
    with Memory.in_memory(config=config) as memory:
        memory.add_many(turns, batch_size=batch_size)
        assert len(memory) == len(turns)
        return memory.digest()


def turns_of(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"external_id" if k == "id" else k: v for k, v in turn.items()} for turn in given]


@pytest.fixture(scope="module")
def locomo(data_folder: Path) -> list[list[dict[str, Any]]]:
    """The development conversations."""
    names = ("text", "role", "speaker", "timestamp", "session_id", "external_id")
    return [
        [{name: getattr(turn, name) for name in names} for turn in conversation.turns]
        for conversation in load_conversations(data_folder / "locomo" / "locomo_dev5.json.gz")
    ]


# Without models: many turns, every way


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_batches(stub: Config, preset: str) -> None:
    config = Config(preset).with_embedder(stub.embedder).replace(capacity={"token_budget": 1024})
    assert len({written(config, SCRIPTED, size) for size in BATCHES}) == 1


def test_chunks(stub: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    digests = {written(stub, SCRIPTED)}
    for size, first, characters in ((1, 1, 10**6), (3, 2, 10**6), (10**6, 10**6, 10**9), (9, 9, 1)):
        monkeypatch.setattr(reading_ahead.ThreadReaders, "chunk_turns", size)
        monkeypatch.setattr(reading_ahead, "FIRST_CHUNK", first)
        monkeypatch.setattr(reading_ahead, "CHUNK_CHARACTERS", characters)
        digests.add(written(stub, SCRIPTED))
    assert len(digests) == 1


def modes(seed: int) -> Iterator[tuple[str, int]]:
    """Ways to write the next few turns, without end; a negative number restarts after them."""
    draw = random.Random(seed)
    while True:
        yield draw.choice(["add", "journalled", "add_many"]), draw.randint(-40, 40) or 1


def write_anyhow(path: Path, config: Config, turns: list[dict[str, Any]], seed: int) -> str:
    at = 0
    memory = Memory.open(path, config=config)
    try:
        for mode, count in itertools.islice(modes(seed), 10_000):
            some = turns[at : at + abs(count)]
            at += len(some)
            if mode == "add_many":
                memory.add_many(some, batch_size=1 + seed % 5)
            else:
                for turn in some:
                    memory.add(**turn, wait="complete" if mode == "add" else mode)
            if count < 0:
                memory.close()
                memory = Memory.open(path, config=config)
            if at == len(turns):
                break
        return memory.digest()
    finally:
        memory.close()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_wait_modes_and_restarts_at_random_places(stub: Config, tmp_path: Path, seed: int) -> None:
    turns = SCRIPTED[:400]
    assert write_anyhow(tmp_path / "m.db", stub, turns, seed) == written(stub, turns)


# With the models


def test_threads(example_turns: list[dict[str, Any]]) -> None:
    turns = turns_of(example_turns)[:100]
    digests = {
        written(Config().replace(nlp={"threads": threads}), turns, batch_size)
        for threads, batch_size in ((1, 64), (2, 7), (4, 1000))
    }
    with Memory.in_memory() as memory:
        for turn in turns:
            memory.add(**turn)
        digests.add(memory.digest())
    assert len(digests) == 1


def test_worker_counts(example_turns: list[dict[str, Any]]) -> None:
    turns = [Turn(**turn) for turn in turns_of(example_turns)[:100]]
    digests = set()
    for workers in (1, 2):
        with Memory.in_memory() as memory:
            digests.add(replay(memory, turns, workers=workers).digest)
    assert len(digests) == 1


@pytest.mark.long
@pytest.mark.parametrize("preset", ["default", "paper"])
def test_locomo_in_any_batches_threads_and_processes(
    locomo: list[list[dict[str, Any]]], preset: str
) -> None:
    for turns in locomo:
        digests = set()
        for threads, batch_size in zip((1, 2, 4, 1), BATCHES, strict=True):
            config = Config(preset).replace(nlp={"threads": threads})
            digests.add(written(config, turns, batch_size))
        for workers in (2, 3):
            with Memory.in_memory(config=Config(preset)) as memory:
                given = [Turn(**turn) for turn in turns]
                digests.add(replay(memory, given, workers=workers).digest)
        assert len(digests) == 1


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10, 14))
def test_locomo_with_restarts_at_random_places(
    locomo: list[list[dict[str, Any]]], tmp_path: Path, seed: int
) -> None:
    turns = locomo[seed % len(locomo)]
    assert write_anyhow(tmp_path / "m.db", Config(), turns, seed) == written(Config(), turns)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 130))
def test_more_restarts_at_random_places(stub: Config, tmp_path: Path, seed: int) -> None:
    assert write_anyhow(tmp_path / "m.db", stub, SCRIPTED, seed) == written(stub, SCRIPTED)
