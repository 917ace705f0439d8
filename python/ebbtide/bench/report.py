"""Figures as a table, as JSON, and as a page with the command that made them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ebbtide.bench.figures import Figure, Machine

__all__ = ["markdown", "read_json", "sections", "spoken", "write_json"]


def spoken(value: float | None) -> str:
    """Three significant digits, thousands apart."""
    if value is None:
        return ""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def markdown(figures: Iterable[Figure], machine: Machine, command: str) -> str:
    """The tables, under how and where they were made."""
    return f"Measured with `{command}`: {machine.sentence()}. Medians.\n\n{sections(figures)}"


def sections(figures: Iterable[Figure]) -> str:
    """A table a section."""
    by_section: dict[str, list[Figure]] = {}
    for figure in figures:
        by_section.setdefault(figure.section, []).append(figure)
    lines = []
    for section, rows in by_section.items():
        lines += [f"### {section.capitalize()}", "", "| | at | median | p99 | unit |"]
        lines.append("|---|---:|---:|---:|---|")
        for row in rows:
            name = f"{row.name} ({row.note})" if row.note else row.name
            at = "" if row.size is None else f"{row.size:,}"
            cells = (name, at, spoken(row.value), spoken(row.p99), row.unit)
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def write_json(path: Path, figures: Sequence[Figure], machine: Machine, command: str) -> None:
    """Everything, for machines."""
    from dataclasses import asdict

    document = {
        "command": command,
        "machine": asdict(machine),
        "figures": [figure.to_dict() for figure in figures],
    }
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def read_json(path: Path) -> tuple[list[Figure], Machine, str]:
    """What :func:`write_json` wrote."""
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    figures = [Figure(**row) for row in document["figures"]]
    return figures, Machine(**document["machine"]), str(document["command"])
