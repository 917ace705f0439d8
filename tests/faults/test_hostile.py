"""Bad input for every parser: no crash, no hang, nothing lost, nothing reached outside."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from importers.makers import written, zipped

from ebbtide import Config, InputError
from ebbtide.importers import FORMATS, detect, read
from faults.figures import Figures
from faults.targets import EXPORTS, Parsers, mutated

TARGETS = (
    *FORMATS, "detect", "zip", "transcript", "config", "load", "store", "query", "turn",
)  # fmt: skip


@pytest.fixture
def parsers(stub: Config, tmp_path: Path) -> Iterator[Parsers]:
    opened = Parsers(tmp_path)
    yield opened
    opened.close()


def test_the_corpus_is_sound(parsers: Parsers) -> None:
    assert set(parsers.targets) == set(parsers.corpus) == set(TARGETS)
    for target, seeds in parsers.corpus.items():
        for seed in seeds:
            assert parsers.attempt(target, seed) == "taken", (target, seed[:200])
    parsers.unharmed()


def tried(parsers: Parsers, each: int, seed: int) -> Figures:
    promise = (
        "no input crashes, hangs or loses data: exports of every format, archives, transcripts, "
        "settings, stored memories, store files, questions, turns"
    )
    test = "tests/faults/test_hostile.py::test_ten_thousand_bad_inputs"
    with Figures("hostile", promise, test) as figures:
        for target in TARGETS:
            chance = random.Random(f"{seed} {target}")
            seeds = parsers.corpus[target]
            bad = 0
            while bad < each:
                data = mutated(chance.choice(seeds), chance, parsers.corpus)
                if data in seeds:
                    continue
                bad += 1
                outcome = parsers.attempt(target, data)
                figures.counts["refused with a typed error"] += outcome != "taken"
                figures.counts["taken as they could be read"] += outcome == "taken"
            parsers.unharmed()
            figures.counts["parsers"] += 1
            figures.counts["bad inputs"] += bad
    return figures


def test_some_hundred_bad_inputs(parsers: Parsers) -> None:
    assert tried(parsers, 25, 1).counts["bad inputs"] == 25 * len(TARGETS)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_ten_thousand_bad_inputs(parsers: Parsers) -> None:
    figures = tried(parsers, -(-10_000 // len(TARGETS)), 2)
    assert figures.counts["bad inputs"] >= 10_000


@pytest.mark.parametrize("target", ["transcript", "config", "load", "store", "query", "zip"])
def test_any_bytes(parsers: Parsers, target: str) -> None:
    start = parsers.corpus[target][0]

    @settings(
        max_examples=25,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(st.binary(max_size=400), st.integers(0, len(start)), st.integers(0, 40))
    def check(data: bytes, at: int, cut: int) -> None:
        parsers.attempt(target, data)
        parsers.attempt(target, start[:at] + data + start[at + cut :])

    check()
    parsers.unharmed()


@pytest.mark.parametrize(
    "name", ["../../2025-01-02.json", "/etc/2025-01-02.json", "a\\..\\..\\x.json"]
)
def test_an_archive_whose_names_lead_out_of_it_is_refused(tmp_path: Path, name: str) -> None:
    path = zipped(tmp_path / "x.zip", {
        "general/2025-01-01.json": EXPORTS["slack"], name: EXPORTS["slack"],
    })  # fmt: skip
    before = sorted(entry.name for entry in tmp_path.rglob("*"))
    for call in (lambda: list(read("slack", path)), lambda: detect(path)):
        with pytest.raises(InputError, match="leads out of it") as caught:
            call()
        assert caught.value.code == "input.transcript"
    assert sorted(entry.name for entry in tmp_path.rglob("*")) == before


def test_a_folder_with_a_link_out_of_it_is_refused(tmp_path: Path) -> None:
    secret = written(tmp_path / "secret.json", EXPORTS["slack"])
    folder = tmp_path / "workspace"
    written(folder / "general" / "2025-01-01.json", EXPORTS["slack"])
    inside = folder / "general" / "2025-01-02.json"
    inside.symlink_to(folder / "general" / "2025-01-01.json")
    assert len(list(read("slack", folder))) == 4
    inside.unlink()
    inside.symlink_to(secret)
    with pytest.raises(InputError, match="leads out of it"):
        list(read("slack", folder))
