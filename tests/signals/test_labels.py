"""The signals keep the precision and recall that docs/signals.md states."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from reference.scripts import load_script

ROOT = Path(__file__).resolve().parents[2]

MEASURE = load_script("measure_signals")
needs_data = pytest.mark.skipif(
    not (MEASURE.data_folder() / "locomo" / "locomo_dev5.json.gz").exists(),
    reason="the dialogue data is not there (set EBBTIDE_DATA)",
)

# (signal, half) -> (precision, recall), a little under the values in docs/signals.md.
# A half with fewer than ten turns that carry the label has no floor.
FLOORS = {
    ("constraint", "dev"): (0.93, 0.93),
    ("constraint", "held_out"): (0.74, 0.86),
    ("preference", "dev"): (0.96, 0.88),
    ("preference", "held_out"): (0.88, 0.84),
    ("current_state", "dev"): (0.93, 0.84),
    ("current_state", "held_out"): (0.74, 0.87),
    ("past_state", "held_out"): (0.76, 0.75),
    ("correction", "dev"): (0.90, 0.90),
    ("correction", "held_out"): (0.84, 0.90),
    ("replacement", "dev"): (0.90, 0.81),
    ("replacement", "held_out"): (0.90, 0.83),
    ("query_like", "dev"): (0.98, 0.98),
    ("query_like", "held_out"): (0.98, 0.98),
    ("ack_like", "dev"): (0.92, 0.84),
    ("ack_like", "held_out"): (0.88, 0.78),
}


@pytest.fixture(scope="module")
def pairs() -> list[object]:
    return list(MEASURE.read_signals(MEASURE.labelled_turns()))


@needs_data
@pytest.mark.parametrize(("signal", "half"), sorted(FLOORS))
def test_precision_and_recall_hold(pairs: list[object], signal: str, half: str) -> None:
    result = MEASURE.score(pairs, signal, half, MEASURE.STRATA)
    precision, recall = FLOORS[signal, half]
    assert result.support >= 10
    assert result.precision >= precision
    assert result.recall >= recall


def test_the_labels_are_many_and_hold_no_text() -> None:
    entries = json.loads((ROOT / "tests/signals/labels.json").read_text(encoding="utf-8"))
    assert len([entry for entry in entries if entry["stratum"] == "base"]) >= 300
    assert {key for entry in entries for key in entry} == {
        "conversation",
        "dia_id",
        "stratum",
        "half",
        "labels",
    }
    ids = [(entry["conversation"], entry["dia_id"]) for entry in entries]
    assert len(ids) == len(set(ids))


@needs_data
def test_the_base_sample_is_every_ninth_turn() -> None:
    turns = [(conversation, dia_id) for conversation, dia_id, _ in MEASURE.dev_turns()]
    entries = json.loads((ROOT / "tests/signals/labels.json").read_text(encoding="utf-8"))
    base = [(e["conversation"], e["dia_id"]) for e in entries if e["stratum"] == "base"]
    assert base == turns[4::9]
