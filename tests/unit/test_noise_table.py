"""What noise costs, from numbers worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ebbtide.evals.report.noise import noise_table
from ebbtide.evals.report.runs import Run
from ebbtide.evals.results import METRICS

NUMBERS = (*METRICS, "budget_2048_all", "budget_2048_contains")


def run(values: dict[str, list[float | None]], **options: object) -> Run:
    """A run of three questions; ``values`` are the same for every metric."""
    columns: dict[str, list[object]] = {
        "system": [system for system in values for _ in range(3)],
        "conversation": ["c"] * 3 * len(values),
        "question_id": ["q1", "q2", "q3"] * len(values),
    }
    columns |= {name: [v for held in values.values() for v in held] for name in NUMBERS}
    facts = [{"conversation": "c", "turns": 700, "noise_turns": 300}]
    return Run(Path(), dict(options), "", columns, facts)


def test_the_loss_is_in_points_and_paired() -> None:
    clean = run({"bm25": [1.0, 0.5, None], "default": [1.0, 1.0, None]})
    noisy = run(
        {"bm25": [0.5, 0.5, None], "default": [1.0, 0.98, None]},
        dataset="noise",
        options={"noise": 0.75, "ratio_of": "original"},
    )
    table = noise_table(replace(noisy, clean=clean))
    assert table is not None
    shown = [[cell.text for cell in row[:5]] for row in table.rows]
    assert shown == [
        ["bm25", "none", "2", "0.750", "0.750"],
        ["bm25", "75 % of the original", "2", "0.500", "0.500"],
        ["bm25", "points", "2", "−25.0", "−25.0"],
        ["default", "none", "2", "1.000", "1.000"],
        ["default", "75 % of the original", "2", "0.990", "0.990"],
        ["default", "points", "2", "−1.0", "−1.0"],
    ]
    assert table.rows[2][3].interval == "−50.0 to 0.0"
    assert not table.rows[2][3].strong


def test_a_published_file_says_its_own_share() -> None:
    noisy = run({"bm25": [0.5, 0.5, None]}, dataset="noise", options={"noise": None})
    table = noise_table(replace(noisy, clean=run({"bm25": [0.6, 0.6, None]})))
    assert table is not None
    assert table.rows[1][1].text == "43 % of the timeline"
    assert table.rows[2][3].strong


def test_without_clean_rows_there_is_no_table() -> None:
    assert noise_table(run({"bm25": [1.0, 1.0, 1.0]})) is None
    noisy = run({"bm25": [1.0, 1.0, 1.0]})
    assert noise_table(replace(noisy, clean=run({"dense": [1.0, 1.0, 1.0]}))) is None
