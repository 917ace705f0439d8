"""Results that cannot be written, and parts that cannot be read: named, with what to do."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ebbtide import InputError, StoreError
from ebbtide.evals.gate import Measured
from ebbtide.evals.parts import claim
from ebbtide.evals.recurrence import draw_events
from ebbtide.evals.report.escalation import draw_escalation
from ebbtide.evals.report.gate_plots import draw_gate
from ebbtide.evals.results import write_table
from ebbtide.files import read_json, write_json, writing


def measured() -> Measured:
    return Measured("data", [], {}, {}, {}, {}, {}, {})


@pytest.mark.parametrize(
    "write",
    [
        lambda place: claim(place, {"seed": 1}),
        lambda place: claim(place / "below", {"seed": 1}),
        lambda place: write_json(place / "part.json", [1]),
        lambda place: write_table(place / "rows.parquet", "rows", []),
        lambda place: draw_gate(measured(), place),
        lambda place: draw_events([], place),
        lambda place: draw_escalation({"quality": {}}, place / "x.png"),
    ],
)
def test_a_file_in_the_way_is_named(tmp_path: Path, write: Callable[[Path], Any]) -> None:
    place = tmp_path / "file"
    place.write_text("in the way")
    with pytest.raises(StoreError, match="cannot be written: a file is in its way") as caught:
        write(place)
    assert caught.value.code == "store.open"
    assert str(place) in str(caught.value)
    assert place.read_text() == "in the way"


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(StoreError, match=r"plan\.json cannot be written: No space left"):
        claim(tmp_path, {"seed": 1})


def test_a_plan_that_is_no_file_is_another_run(tmp_path: Path) -> None:
    (tmp_path / "plan.json").mkdir()
    with pytest.raises(InputError, match="holds another run"):
        claim(tmp_path, {"seed": 1})


def test_only_what_the_system_refuses_is_renamed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="ours"), writing(tmp_path):
        raise ValueError("ours")


@pytest.mark.parametrize("text", [None, "", "{", "[" * 100_000, "5", "{}"])
def test_a_part_that_cannot_be_read_is_named(tmp_path: Path, text: str | None) -> None:
    part = tmp_path / "part.json"
    if text is not None:
        part.write_text(text)
    with pytest.raises(InputError, match=r"part\.json cannot be read: .*delete it") as caught:
        read_json(part, list)
    assert caught.value.code == "input.transcript"
    write_json(part, [1])
    assert read_json(part, list) == [1]
