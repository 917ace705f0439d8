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
from ebbtide.inputs import checked_text
from ebbtide.messages import reason

__all__ = [
    "LOCOMO_CATEGORIES",
    "Conversation",
    "DatasetTurn",
    "Question",
    "iter_conversations",
    "load_conversations",
    "measured_conversations",
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
                "nor LongMemEval (no 'haystack_sessions'); `ebbtide import` reads the exports of "
                "chat programs",
                "input.transcript",
            )


def measured_conversations(path: str | Path) -> Iterator[Conversation]:
    """Like :func:`iter_conversations`, of a file that something is to be measured on.

    Raises:
        InputError: As that does; two samples have one id (``input.field``), which no
            table of results would tell apart, or a text is no Unicode (``input.unicode``);
            or it cannot be opened, or is a pipe or a device (``input.transcript``).
    """
    if Path(path).exists() and not Path(path).is_dir() and not Path(path).is_file():
        message = f"{path} is no file that can be read twice; write what it holds to one"
        raise InputError(message, "input.transcript")
    try:
        yield from _checked(path)
    except OSError as error:
        message = f"{path} cannot be read: {reason(error)}; name another file"
        raise InputError(message, "input.transcript") from error


def _checked(path: str | Path) -> Iterator[Conversation]:
    seen: set[str] = set()
    for conversation in iter_conversations(path):
        if conversation.id in seen:
            message = (
                f"{Path(path).name}: two samples are called {conversation.id!r}; give each "
                "an id of its own"
            )
            raise InputError(message, "input.field")
        seen.add(conversation.id)
        _check_unicode(conversation)
        yield conversation


def _check_unicode(conversation: Conversation) -> None:
    where = repr(conversation.id)
    checked_text("a sample's id", conversation.id)
    for turn in conversation.turns:
        checked_text(f"a turn's id in {where}", turn.external_id)
        for text in (turn.text, turn.role, turn.speaker or "", turn.session_id):
            # A role may be empty here; a memory says so itself.
            checked_text(f"{where}, turn {turn.external_id}", text)
    for question in conversation.questions:
        checked_text(f"a question's id in {where}", question.id)
        for text in (question.text, question.answer, question.category, *question.evidence):
            checked_text(f"{where}, question {question.id}", text)


def load_conversations(path: str | Path) -> list[Conversation]:
    """Return ``list(iter_conversations(path))``."""
    return list(iter_conversations(path))
