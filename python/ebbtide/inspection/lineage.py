"""Lineage as threads: turns that relations connect, and lanes to draw the relations in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["threads"]


def threads(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Threads of turns that relations connect, the newest thread first.

    Returns:
        A mapping a thread: ``turns`` (interaction ids, in order) and ``edges``
        (``older``, ``newer``, ``relation``, ``topic``, ``by_caller``, ``lane``). Edges
        of one lane do not overlap; lane 0 is next to the turns. Relations to turns
        that are not among the rows are left out.
    """
    held = {row["id"]: row for row in rows}
    edges = [
        {"older": edge["turn"], "newer": number, **_of(edge)}
        for number, row in held.items()
        for edge in row.get("older", ())
        if edge["turn"] in held
    ]
    found: dict[int, dict[str, Any]] = {}
    root = _roots(edges)
    for edge in sorted(edges, key=lambda e: (e["newer"], e["older"], e["topic"], e["relation"])):
        thread = found.setdefault(_find(root, edge["older"]), {"turns": set(), "edges": []})
        thread["turns"] |= {edge["older"], edge["newer"]}
        thread["edges"].append(edge)
    for thread in found.values():
        thread["turns"] = sorted(thread["turns"])
        _lanes(thread["edges"])
    return sorted(found.values(), key=lambda thread: thread["turns"][-1], reverse=True)


def _of(edge: Mapping[str, Any]) -> dict[str, Any]:
    return {name: edge[name] for name in ("relation", "topic", "by_caller")}


def _roots(edges: Iterable[Mapping[str, Any]]) -> dict[int, int]:
    """Each turn's way to the oldest of its thread."""
    root: dict[int, int] = {}
    for edge in edges:
        one, other = sorted((_find(root, edge["older"]), _find(root, edge["newer"])))
        root[other] = one
    return root


def _find(root: dict[int, int], number: int) -> int:
    while root.setdefault(number, number) != number:
        number = root[number]
    return number


def _lanes(edges: list[dict[str, Any]]) -> None:
    """Give each edge the first lane that is free over its whole length, short ones first."""
    taken: list[list[tuple[int, int]]] = []
    for edge in sorted(edges, key=lambda e: (e["newer"] - e["older"], e["newer"], e["topic"])):
        low, high = edge["older"], edge["newer"]
        free = (
            lane
            for lane, spans in enumerate(taken)
            if all(high <= start or low >= end for start, end in spans)
        )
        edge["lane"] = next(free, len(taken))
        if edge["lane"] == len(taken):
            taken.append([])
        taken[edge["lane"]].append((low, high))
