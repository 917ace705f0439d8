"""The page of promises: from whatever the suites left, each with its test and figures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from reference.scripts import load_script

from faults.figures import Figures

ROOT = Path(__file__).resolve().parents[2]


def test_every_suite_is_on_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EBBTIDE_FIGURES", str(tmp_path))
    with Figures("kills", "nothing is lost", "tests/x.py::test_y") as found:
        found.counts["kills"] = 1250
    with pytest.raises(ValueError, match="failed"), Figures("broken", "x", "y"):
        raise ValueError("failed")
    other = {
        "promise": "Threads agree.",
        "test": "tests/load.py::test_z",
        "figures": {"adds": {"threads": 8, "each": 10_000}, "equal": True, "rate": 12.345},
        "seconds": 61.25,
    }
    (tmp_path / "load.json").write_text(json.dumps(other), encoding="utf-8")
    page = load_script("reliability_page").page(tmp_path)
    assert "## Kills\n\nNothing is lost.\n" in page
    assert "- kills: 1,250\n" in page
    assert "pytest 'tests/x.py::test_y'" in page
    assert "Threads agree.\n" in page
    assert "- adds: threads 8, each 10,000\n- equal: yes\n- rate: 12.3\n- seconds: 61" in page
    assert "Broken" not in page


def test_the_tests_that_the_page_names_are_there() -> None:
    for line in (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8").splitlines():
        if "pytest '" in line:
            file, _, name = line.split("'")[1].partition("::")
            text = (ROOT / file).read_text(encoding="utf-8")
            assert not name or f"def {name.split('[')[0]}(" in text
