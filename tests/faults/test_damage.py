"""Flipped bits and cut files: told by a typed error or by the doctor, never a wrong turn."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ebbtide import Config
from faults.damage import Sound, make, mended, seen
from faults.figures import Figures

PAGE = 4096
FLIPS = (
    "a flipped bit is told from what was written, by a typed error or by `ebbtide doctor`, or "
    "changes nothing; no turn is ever given with another text"
)
CUTS = "a file that was cut short is refused or told by `ebbtide doctor`"


@pytest.fixture
def sound(stub: Config, tmp_path: Path) -> Sound:
    return make(tmp_path / "sound.db", stub)


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
    test = "tests/faults/test_damage.py::test_five_thousand_flips"
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


def test_three_hundred_flips(sound: Sound, stub: Config, tmp_path: Path) -> None:
    flips(sound, stub, tmp_path, 300, 1)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_five_thousand_flips(sound: Sound, stub: Config, tmp_path: Path) -> None:
    flips(sound, stub, tmp_path, 5000, 2)


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


def test_a_file_cut_at_many_lengths(sound: Sound, stub: Config, tmp_path: Path) -> None:
    chance = random.Random(3)
    short = [1, 15, 16, 99, 100, 511, 512, PAGE - 1, PAGE, PAGE + 1]
    some = [chance.randrange(len(sound.data)) for _ in range(30)]
    cuts(sound, stub, tmp_path, [*short, *some, len(sound.data) - 1])


@pytest.mark.long
def test_a_file_cut_at_every_page(sound: Sound, stub: Config, tmp_path: Path) -> None:
    every = [at + off for at in range(0, len(sound.data), PAGE) for off in (1, PAGE // 2, PAGE)]
    cuts(sound, stub, tmp_path, [length for length in every if length < len(sound.data)])
