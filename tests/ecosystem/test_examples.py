"""The examples run against the real libraries and print what they found."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRINTS = {
    "with_langchain.py": "Known: I moved to Porto in May, and I drink green tea every morning.",
    "with_langgraph.py": "I drink green tea every morning.",
    "with_llamaindex.py": "My sister Ana moved to Porto in May [",
    "with_mem0.py": "UPDATE: I drink black coffee every morning.",
    "with_openai_agents.py": "The memory knows: I drink green tea.",
}


def test_every_example_is_run() -> None:
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == set(PRINTS)


@pytest.mark.parametrize("name", PRINTS)
def test_example(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / name), str(tmp_path / "memory.db")],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert PRINTS[name] in done.stdout
