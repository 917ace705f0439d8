"""Conversations of several kinds, and what one process makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from reference.stand_ins import StubAnalyser, Travelling

from ebbtide import Config, ReplayReport
from replay_many.makers import messages, parts, replayed, written


@dataclass(frozen=True)
class Whole:
    """A run in one process that nothing disturbed."""

    sources: Path
    report: ReplayReport
    parts: dict[str, bytes]


@pytest.fixture
def config(stub: Config, tmp_path: Path) -> Config:
    """Settings whose stand-ins go along to other processes."""
    return travelling(tmp_path)


def travelling(folder: Path, kills: int = 0) -> Config:
    return Config().replace(capacity={"token_budget": 256}).with_embedder(Travelling(folder, kills))


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """Nine conversations; in the fifth, a turn at which some embedders end."""
    folder = tmp_path_factory.mktemp("whole")
    sources = folder / "transcripts"
    for number in range(9):
        lines = messages(1000 * number, 40)
        if number == 4:
            lines[20]["text"] = "and that was the end"
        written(sources / f"{number // 3}" / f"chat{number}.jsonl", lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ebbtide.analysis.analyser.Analyser", StubAnalyser)
        report = replayed(sources, folder / "out", config=travelling(folder))
    return Whole(sources, report, parts(folder / "out"))
