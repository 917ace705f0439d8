"""Questions that are answered while the page is written, so that it can replay them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ebbtide.memory import Memory
from ebbtide.moments import iso_day
from ebbtide.types import KNOWS

__all__ = ["replayed"]

_CANDIDATES = 60
"""Candidates of a question that are shown; the rest is counted."""

_TEXT = 400
"""Characters of a candidate's text."""


def replayed(memory: Memory, question: str) -> dict[str, Any]:
    """A question's way from its frame to the evidence.

    Raises:
        InputError: If the question is unusable.
    """
    found = memory.trace(question)
    candidates, evidence = found["candidates"], found["evidence"]
    shown = candidates[:_CANDIDATES]
    best = evidence[0]["confidence"] if evidence else None
    return {
        "question": question,
        "frame": {k: v for k, v in found["frame"].items() if v not in (None, [], "", False)},
        "confidence": _short(best),
        "knows": best is not None and best >= KNOWS,
        "fates": dict(Counter(row["fate"] for row in candidates)),
        "evidence": [_evidence(row, candidates, memory) for row in evidence],
        "candidates": [_candidate(row, memory) for row in shown],
        "left_out": len(candidates) - len(shown),
        "deliberation": _deliberation(found["deliberation"]),
    }


def _evidence(
    row: Mapping[str, Any], candidates: Sequence[Mapping[str, Any]], memory: Memory
) -> dict[str, Any]:
    """A piece of evidence with the terms that ranked it; a scan finds some without any."""
    number = row["turn"]["interaction_id"]
    ranked = next((c for c in candidates if c["rank"] and c["interaction_id"] == number), None)
    terms = row["features"] if ranked is None else _terms(ranked)
    return {
        **_said(number, memory),
        "rank": row["rank"],
        "fate": "kept",
        "kind": row["kind"],
        **_scores(row, terms),
        "support": [
            {"turn": s["turn"]["interaction_id"], "relation": s["relation"]} for s in row["support"]
        ],
    }


def _candidate(row: Mapping[str, Any], memory: Memory) -> dict[str, Any]:
    return {
        **_said(row["interaction_id"], memory),
        "rank": row["rank"],
        "fate": row["fate"],
        "kind": "raw" if row["card"] is None else "card",
        **_scores(row, _terms(row)),
    }


def _terms(row: Mapping[str, Any]) -> Mapping[str, float]:
    """What a candidate's score is made of; what was dropped early has its features alone."""
    return row["terms"] or {**row["features"], **row["penalties"]}


def _scores(row: Mapping[str, Any], terms: Mapping[str, float]) -> dict[str, Any]:
    return {
        "score": _short(row["score"]),
        "confidence": _short(row["confidence"]),
        "channels": {name: _short(value) for name, value in row["channels"].items()},
        "terms": {name: _short(value) for name, value in terms.items()},
    }


def _said(number: int, memory: Memory) -> dict[str, Any]:
    turn = memory.get(number)
    text = " ".join(turn.text.split())
    return {
        "turn": number,
        "who": turn.speaker or turn.role,
        "day": iso_day(turn.utc, turn.timestamp),
        "validity": turn.validity,
        "text": text if len(text) <= _TEXT else text[: _TEXT - 1] + "…",
    }


def _deliberation(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Whether the question escalated, for want of what, and what a scan then kept."""
    if found is None:
        return None
    scan = found.get("scan")
    return {
        "policy": found["policy"],
        "escalated": found["escalated"],
        "missed": [f"{c['check']} ({c['gate']})" for c in found["gates"] if not c["passed"]],
        "read": None if scan is None else scan["messages"],
        "kept": None if scan is None else len(scan["kept"]),
    }


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
