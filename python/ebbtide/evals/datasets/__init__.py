"""Loaders for the public long-conversation benchmarks.

Two formats are read, plain or gzipped, told apart by their content: LoCoMo
(a JSON list of samples, or one sample) and LongMemEval (a JSON list, or one
instance a line). Files are read one sample at a time, so the 265 MB LongMemEval
file never sits in memory as a whole. Nothing is dropped silently: an evidence
reference that names no turn is listed in ``Conversation.unresolved``, an empty
turn is counted in ``Conversation.skipped_turns``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ebbtide.errors import InputError
from ebbtide.evals.datasets.locomo import (
    LOCOMO_CATEGORIES,
    parse_locomo,
    parse_locomo_date,
    text_with_caption,
)
from ebbtide.evals.datasets.longmemeval import parse_longmemeval, parse_longmemeval_date
from ebbtide.evals.datasets.types import Conversation, DatasetTurn, Question
from ebbtide.evals.json_stream import json_values

__all__ = [
    "LOCOMO_CATEGORIES",
    "Conversation",
    "DatasetTurn",
    "Question",
    "iter_conversations",
    "load_conversations",
    "parse_locomo",
    "parse_locomo_date",
    "parse_longmemeval",
    "parse_longmemeval_date",
    "text_with_caption",
]


def iter_conversations(path: str | Path) -> Iterator[Conversation]:
    """Yield the conversations of a LoCoMo or LongMemEval file, one at a time.

    Args:
        path: ``.json``, ``.jsonl``, or either one gzipped.

    Raises:
        OSError: The file cannot be opened.
        InputError: It is not JSON (``input.transcript``), or a sample lacks a
            field or has an unreadable one (``input.field``, ``input.timestamp``).
    """
    name = Path(path).name
    for number, sample in enumerate(json_values(path), start=1):
        if isinstance(sample, dict) and "conversation" in sample:
            yield parse_locomo(sample)
        elif isinstance(sample, dict) and "haystack_sessions" in sample:
            yield parse_longmemeval(sample)
        else:
            raise InputError(
                f"{name}: sample {number} is neither LoCoMo (no 'conversation') "
                "nor LongMemEval (no 'haystack_sessions')",
                "input.transcript",
            )


def load_conversations(path: str | Path) -> list[Conversation]:
    """Return ``list(iter_conversations(path))``."""
    return list(iter_conversations(path))
