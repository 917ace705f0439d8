"""Results of the tools: what a model needs to go on, and nothing it would have to skip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ebbtide.types import KNOWS, RetrievedEvidence, Turn, WriteReport

__all__ = ["recalled", "remembered", "turn_data"]

_ORIGINALS = ("langchain", "openai")
"""Where adapters keep the message that a turn was made of, pictures and all; its text is told."""


def turn_data(turn: Turn) -> dict[str, Any]:
    """A stored turn without its empty fields and without what only the engine uses."""
    data = turn.to_dict()
    kept = {
        name: value
        for name, value in (turn.metadata or {}).items()
        if name not in _ORIGINALS or not isinstance(value, Mapping)
    }
    data["metadata"] = kept or None
    for name in ("record_id", "tokens", "utc", "provenance"):
        del data[name]
    return {name: value for name, value in data.items() if value is not None}


def recalled(evidence: Sequence[RetrievedEvidence]) -> dict[str, Any]:
    """Evidence, best first, and a sentence about how far it can be trusted."""
    if not evidence:
        note = "The memory knows nothing about this. Do not guess."
    elif evidence[0].confidence < KNOWS:
        note = "The memory may not know this: even the best turn is doubtful."
    else:
        note = "Best first. A turn that is superseded, corrected or invalidated is history."
    return {
        "note": note,
        "turns": [
            {
                **turn_data(item.turn),
                "confidence": round(item.confidence, 3),
                "related": [
                    {"relation": s.relation, **turn_data(s.turn)}
                    for s in item.support
                    if s.relation in ("history", "newer")
                ],
            }
            for item in evidence
        ],
    }


def remembered(report: WriteReport, turn: Turn | None) -> dict[str, Any]:
    """What became of a turn that was to be stored.

    Args:
        report: What the write did.
        turn: The turn that the memory has now; None where nothing was stored.
    """
    if turn is None and report.accepted:
        return {
            "stored": False,
            "note": "It was not kept: there is no room, and no archive.",
        }
    if turn is None:
        return {
            "stored": False,
            "note": "Nothing was stored: the text is only a block that this memory rendered.",
        }
    if report.duplicates:
        return {
            "stored": False,
            "interaction_id": turn.interaction_id,
            "note": "Known already under this external id; it was not changed.",
        }
    found: dict[str, Any] = {"stored": True, "interaction_id": turn.interaction_id}
    if report.superseded:
        found["superseded"] = report.superseded
    return found
