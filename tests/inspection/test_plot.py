"""The plot: both formats, the same bytes each time, and what it refuses."""

from __future__ import annotations

import re
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

from ebbtide import Config, ConfigError, InputError, Memory
from ebbtide.inspection import gather
from ebbtide.inspection.plot import draw_memory


def test_a_png_is_written_the_same_each_time(data: dict[str, Any], tmp_path: Path) -> None:
    first, second = tmp_path / "a.png", tmp_path / "b.PNG"
    draw_memory(data, first)
    draw_memory(data, second)
    assert first.read_bytes() == second.read_bytes()
    head = first.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    assert struct.unpack(">II", head[16:]) == (1536, 1024)


def test_an_svg_says_what_it_shows(data: dict[str, Any], tmp_path: Path) -> None:
    data["memory"]["namespace"] = "$x$ <ana>"
    file = tmp_path / "memory.svg"
    draw_memory(data, file)
    text = file.read_text(encoding="utf-8")
    assert "Memory $x$ &lt;ana&gt;" in text
    for words in ("active tokens", "turn", "tier", "Ω"):
        assert f">{words}</text>" in text
    active = sum(row["state"] == "active" for row in data["turns"])
    shown = {name: int(n) for name, n in re.findall(r">(\w+) \((\d+)\)</text>", text)}
    assert shown["archived"] == 70 - active
    assert sum(shown.values()) == 70
    assert "<dc:date>" not in text


def test_other_files_and_empty_memories_are_refused(
    stub: Config, data: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"a \.png or \.svg file, not 'memory\.pdf'"):
        draw_memory(data, tmp_path / "memory.pdf")
    with Memory.in_memory(config=stub) as memory, pytest.raises(InputError, match="nothing to"):
        draw_memory(gather(memory), tmp_path / "memory.png")
    assert list(tmp_path.glob("memory.p*")) == []


def test_without_matplotlib_the_extra_is_named(
    data: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError) as caught:
        draw_memory(data, tmp_path / "memory.png")
    assert caught.value.code == "config.model_missing"
    assert str(caught.value) == 'matplotlib is not installed: pip install "ebbtide[plot]"'
