"""Precision of the cards on hand-labelled turns of the development conversations."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from reference.scripts import load_script

from ebbtide.analysis.cards import CARD_KINDS_ON

ROOT = Path(__file__).resolve().parents[2]
FLOOR = 0.80


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return load_script("measure_cards")


@pytest.fixture(scope="module")
def scores(script: ModuleType) -> dict[str, tuple[int, int]]:
    path = script.data_file()
    if not path.exists():
        pytest.skip("LoCoMo development conversations not found; set EBBTIDE_DATA")
    found, _ = script.find_cards(path)
    result: dict[str, tuple[int, int]] = script.precision_by_kind(found)
    return result


def test_labels_are_well_formed(script: ModuleType) -> None:
    labels = script.load_labels()
    assert len(labels) >= 200
    for conversation, dia_id, _kind, subject, predicate, digest in labels:
        assert conversation.startswith("conv-")
        assert dia_id.startswith("D")
        assert subject
        assert predicate
        assert len(digest) == 10
    assert any(not right for right in labels.values())


def test_enough_current_cards_are_labelled(scores: dict[str, tuple[int, int]]) -> None:
    assert sum(labelled for _, labelled in scores.values()) >= 200


def test_kinds_that_are_on_are_precise(scores: dict[str, tuple[int, int]]) -> None:
    for kind, (right, labelled) in scores.items():
        if kind in CARD_KINDS_ON:
            assert right >= FLOOR * labelled, f"{kind}: {right} of {labelled}"
