"""Flipped bits and cut files: told by a typed error or by the doctor, never a wrong turn."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from reference.stand_ins import scripted

from ebbtide import Config, Memory, Store
from faults.damage import Sound, make, mended, seen
from faults.figures import Figures

PAGE = 4096
FLIPS = (
    "a flipped bit is told from what was written, by a typed error or by `ebbtide doctor`, or "
    "changes nothing; no turn is ever given with another text"
)
CUTS = "a file that was cut short is refused or told by `ebbtide doctor`"


@pytest.fixture
def config(stub: Config) -> Config:
    """With every policy on, so that there are rows in every table."""
    return stub.replace(
        policy={
            "gate": "rpe",
            "consolidation": "recurrence",
            "recurrence": {"theta_sim": 0.6, "theta_count": 3},
        }
    )


@pytest.fixture
def sound(config: Config, tmp_path: Path) -> Sound:
    return make(tmp_path / "sound.db", config)


def flip(data: bytes, chance: random.Random, bits: int) -> bytes:
    changed = bytearray(data)
    for _ in range(bits):
        changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def clear(folder: Path, name: str) -> Path:
    path = folder / name
    for left in folder.glob(f"{name}*"):
        left.unlink()
    return path


def flips(sound: Sound, config: Config, folder: Path, count: int, seed: int) -> None:
    test = "tests/faults/test_damage.py::test_two_thousand_flips"
    chance = random.Random(seed)
    with Figures("flips", FLIPS, test) as figures:
        for number in range(count):
            data = flip(sound.data, chance, 1 if number % 4 else chance.randint(2, 40))
            path = clear(folder, "flipped.db")
            path.write_bytes(data)
            how = seen(path, config, sound)
            figures.counts["files with flipped bits"] += 1
            figures.counts[how] += 1
            if how != "harmless" and number % 3 == 0:
                figures.counts[f"repaired: {mended(path, config, sound)}"] += 1
    assert figures.counts["found by doctor"] + figures.counts["refused"] > count / 4


def test_a_hundred_flips(sound: Sound, config: Config, tmp_path: Path) -> None:
    flips(sound, config, tmp_path, 100, 1)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_two_thousand_flips(sound: Sound, config: Config, tmp_path: Path) -> None:
    flips(sound, config, tmp_path, 2000, 2)


def cuts(sound: Sound, config: Config, folder: Path, lengths: list[int]) -> None:
    test = "tests/faults/test_damage.py::test_a_file_cut_at_every_page"
    with Figures("cuts", CUTS, test) as figures:
        for length in lengths:
            path = clear(folder, "cut.db")
            path.write_bytes(sound.data[:length])
            how = seen(path, config, sound)
            assert how != "harmless", length
            figures.counts["files cut short"] += 1
            figures.counts[how] += 1
            figures.counts[f"repaired: {mended(path, config, sound)}"] += 1


def test_a_file_cut_at_many_lengths(sound: Sound, config: Config, tmp_path: Path) -> None:
    chance = random.Random(3)
    short = [1, 15, 16, 99, 100, 511, 512, PAGE - 1, PAGE, PAGE + 1]
    some = [chance.randrange(len(sound.data)) for _ in range(30)]
    cuts(sound, config, tmp_path, [*short, *some, len(sound.data) - 1])


@pytest.mark.long
def test_a_file_cut_at_every_page(sound: Sound, config: Config, tmp_path: Path) -> None:
    every = [at + off for at in range(0, len(sound.data), PAGE) for off in (1, PAGE // 2, PAGE)]
    cuts(sound, config, tmp_path, [length for length in every if length < len(sound.data)])


def test_a_damaged_log_of_a_killed_writer_gives_the_turns_before_it(
    stub: Config, tmp_path: Path
) -> None:
    """SQLite takes a frame whose checksum is wrong for the end of the log."""
    path = tmp_path / "memory.db"
    with Memory.open(path, config=stub) as memory:
        memory.add_many(scripted(n) for n in range(10))
    with Memory.open(path, config=stub) as memory:
        for number in range(10, 40):
            memory.add(**scripted(number))
        store, log = path.read_bytes(), path.with_name("memory.db-wal").read_bytes()
    chance = random.Random(4)
    lengths = []
    for number in range(40):
        copy = clear(tmp_path, "copy.db")
        copy.write_bytes(store)
        cut = log[: chance.randrange(len(log))] if number % 2 else flip(log, chance, 1)
        copy.with_name("copy.db-wal").write_bytes(cut)
        with Store.open(copy, config=stub) as opened:
            memory = opened.memory()
            turns = [turn.text for turn in memory.turns()]
            assert turns == [scripted(n)["text"] for n in range(len(turns))]
            lengths.append(len(turns))
            assert opened.check() == []
            with Memory.in_memory(config=stub) as twin:
                twin.add_many(scripted(n) for n in range(len(turns)))
                assert memory.digest() == twin.digest()
    assert min(lengths) == 10
    assert max(lengths) > 30
