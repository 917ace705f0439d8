"""`ebbtide bench`: the figures are what was timed, the report says how they were made."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import pytest

from ebbtide import Config
from ebbtide.bench import SECTIONS, Figure, Machine, run
from ebbtide.bench.figures import milliseconds, quantile, sample
from ebbtide.bench.report import markdown, read_json, spoken, write_json
from ebbtide.bench.workload import conversation


def test_the_workload_is_the_same_each_time_and_never_repeats() -> None:
    turns = list(conversation(500, seed=3))
    assert turns == list(conversation(500, seed=3))
    assert turns != list(conversation(500, seed=4))
    assert len({turn["text"] for turn in turns}) == 500
    assert len({turn["external_id"] for turn in islice(conversation(), 500)}) == 500


def test_a_sample_calls_as_often_as_it_says() -> None:
    calls: list[int] = []
    seconds = sample(lambda: calls.append(1), 5, warm_up=2)
    assert (len(seconds), len(calls)) == (5, 7)
    assert all(s >= 0 for s in seconds)


def test_quantiles_are_values_that_were_measured() -> None:
    values = [float(n) for n in range(200)]
    assert quantile(values, 0.99) == 198.0
    assert quantile([3.0], 0.99) == 3.0
    figure = milliseconds("add", "x", [n / 1000 for n in values])
    assert (figure.value, figure.p99, figure.unit) == (99.5, 198.0, "ms")
    assert milliseconds("add", "x", [0.001] * 99).p99 is None


@pytest.mark.parametrize(
    ("value", "text"), [(None, ""), (0.0123456, "0.0123"), (12.345, "12.3"), (12345.6, "12,346")]
)
def test_numbers_are_short(value: float | None, text: str) -> None:
    assert spoken(value) == text


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    figures = [Figure("add", "add, whole", "ms", 1.5, size=10, p99=2.0, rounds=3, note="n")]
    machine = Machine.here()
    file = tmp_path / "bench.json"
    write_json(file, figures, machine, "ebbtide bench")
    assert read_json(file) == (figures, machine, "ebbtide bench")
    assert json.loads(file.read_text())["figures"][0]["p99"] == 2.0
    page = markdown(figures, machine, "ebbtide bench")
    assert page.startswith("Measured with `ebbtide bench`: ebbtide ")
    assert "| add, whole (n) | 10 | 1.5 | 2 | ms |" in page


def test_the_sections_measure_what_they_name(stub: Config) -> None:
    """With stand-ins for the models: the figures mean nothing, their names and units do."""
    figures = run(["kernels"], rounds=1, turns=50)
    assert {f.section for f in figures} == {"kernels"}
    assert all(f.value > 0 and f.unit == "ms" and f.size for f in figures)
    assert list(SECTIONS) == ["start-up", "replay", "add", "recall", "kernels"]


def test_with_the_real_models() -> None:
    seen: list[Figure] = []
    figures = run(["add", "recall"], rounds=1, turns=50, progress=seen.append)
    assert figures == seen
    named = {f.name: f for f in figures}
    assert named["add, until all is stored"].rounds == 50
    assert named["retrieve, whole"].size == 50
    assert named["retrieve, whole"].p99 is not None
    assert all(f.value > 0 for f in figures)
