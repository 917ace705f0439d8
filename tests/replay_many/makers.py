"""Transcripts to replay, and what a replay of them left behind."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from reference.stand_ins import scripted

from ebbtide import ReplayReport, replay_many

__all__ = ["figures", "messages", "parts", "replayed", "written"]


def messages(first: int, count: int) -> list[dict[str, Any]]:
    """Messages of the fixed conversation, as a transcript has them."""
    found = [scripted(number) for number in range(first, first + count)]
    return [{name: value for name, value in one.items() if value is not None} for one in found]


def written(path: Path, lines: Iterable[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


def parts(out: Path) -> dict[str, bytes]:
    """The tables of a run, byte by byte."""
    return {
        path.relative_to(out).as_posix(): path.read_bytes()
        for kind in ("turns", "conversations")
        for path in out.glob(f"{kind}/*.parquet")
    }


def replayed(sources: Path, out: Path, **options: Any) -> ReplayReport:
    """A replay in parts of two conversations, in this process unless it is said otherwise."""
    return replay_many([sources], out, **{"workers": 1, "batch": 2, **options})


def figures(folder: str | None, name: str, found: dict[str, Any]) -> None:
    """Write what was found where figures are collected."""
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        Path(folder, name).write_text(f"{json.dumps(found, indent=1)}\n", encoding="utf-8")
