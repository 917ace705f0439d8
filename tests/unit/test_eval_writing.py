"""Results that cannot be written, and parts that cannot be read: named, with what to do."""

from __future__ import annotations

import errno
import sys
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
from ebbtide.files import read_json, write_json, write_whole, writing


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


def test_what_was_there_stays_until_all_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, link = tmp_path / "page.html", tmp_path / "link.html"
    page.write_text("old")
    page.chmod(0o600)
    link.symlink_to(page)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", half_written)
        for name in (page, link, tmp_path / "new.html"):
            with pytest.raises(OSError, match="No space left"):
                write_whole(name, b"a longer page")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.html", "page.html"]
    assert page.read_text() == "old"
    write_whole(link, b"new")
    assert link.is_symlink()
    assert page.read_text() == "new"
    assert page.stat().st_mode & 0o777 == 0o600


def half_written(path: Path, content: bytes) -> int:
    path.write_text(content.decode()[: len(content) // 2])
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.skipif(sys.platform != "linux", reason="it needs /dev/full")
def test_a_device_is_written_to() -> None:
    write_whole(Path("/dev/null"), b"page")
    with pytest.raises(OSError, match="No space left"):
        write_whole(Path("/dev/full"), b"page")
    assert Path("/dev/full").is_char_device()


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
