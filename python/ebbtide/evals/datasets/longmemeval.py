"""LongMemEval: one JSON instance a haystack, with its one question."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ebbtide.errors import InputError
from ebbtide.evals.datasets.fields import (
    UniqueNames,
    answer_text,
    bad_date,
    field,
    listed,
    mapped,
    utc,
)
from ebbtide.evals.datasets.types import Conversation, DatasetTurn, Question

__all__ = ["parse_longmemeval", "parse_longmemeval_date"]

_LONGMEMEVAL_DATE = re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2})(?:\s*\([^)]*\))?\s+(\d{1,2}):(\d{2})")


def parse_longmemeval(sample: Mapping[str, Any]) -> Conversation:
    """Read one LongMemEval instance: one haystack with its one question.

    Sessions are sorted by date, those of one date staying in published order
    (the file has them out of order in some 40 % of the instances). A session id
    that comes again gets ``#2``, ``#3`` in that order. Sessions later than the
    question stay, as published.

    Raises:
        InputError: A field is missing or unreadable, or the three haystack lists
            differ in length.
    """
    where = field(sample, "question_id", str, "LongMemEval")
    turns, gold, skipped, lost = _longmemeval_turns(sample, where)
    known = {turn.session_id for turn in turns}
    wanted = dict.fromkeys(str(name) for name in listed(sample, "answer_session_ids", where))
    category = field(sample, "question_type", str, where)
    question = Question(
        id=where,
        text=field(sample, "question", str, where),
        answer=answer_text(sample.get("answer")),
        category=category,
        evidence=tuple(gold),
        evidence_sessions=tuple(name for name in wanted if name in known),
        query_time=parse_longmemeval_date(field(sample, "question_date", str, where)),
        abstention=where.endswith("_abs"),
    )
    lost.extend(name for name in wanted if name not in known)
    unresolved = [f"{where}: {reference}" for reference in lost]
    return Conversation(where, (), turns, [question], unresolved, skipped)


def parse_longmemeval_date(text: str) -> datetime:
    """Read ``2023/05/30 (Tue) 23:54``; the dataset names no zone, UTC is taken.

    Raises:
        InputError: ``input.timestamp``.
    """
    match = _LONGMEMEVAL_DATE.fullmatch(text.strip())
    if match is None:
        raise bad_date(text)
    return utc(text, *(int(part) for part in match.groups()))


def _longmemeval_turns(
    sample: Mapping[str, Any], where: str
) -> tuple[list[DatasetTurn], list[str], int, list[str]]:
    """Return the turns, the gold turns' ids, the empty turns' count and lost gold ids."""
    sessions = field(sample, "haystack_sessions", list, where)
    names = field(sample, "haystack_session_ids", list, where)
    dates = field(sample, "haystack_dates", list, where)
    if not len(sessions) == len(names) == len(dates):
        raise InputError(
            f"{where}: {len(sessions)} sessions, {len(names)} session ids, {len(dates)} dates",
            "input.field",
        )
    dated = sorted(
        zip((parse_longmemeval_date(str(date)) for date in dates), names, sessions, strict=True),
        key=lambda entry: entry[0],
    )
    turns: list[DatasetTurn] = []
    gold: list[str] = []
    lost: list[str] = []
    skipped = 0
    unique = UniqueNames()
    for timestamp, name, raw_turns in dated:
        session_id = unique(str(name))
        if not isinstance(raw_turns, list):
            message = f"{where}: session {session_id!r} must be a list of turns"
            raise InputError(message, "input.field")
        for number, given in enumerate(raw_turns, start=1):
            external_id = f"{session_id}:{number}"
            raw = mapped(given, f"{where} {external_id}")
            text = str(raw.get("content") or "")
            empty = not text.strip()
            if raw.get("has_answer"):
                (lost if empty else gold).append(external_id)
            if empty:
                skipped += 1
                continue
            role = field(raw, "role", str, external_id)
            turns.append(DatasetTurn(external_id, text, role, None, timestamp, session_id))
    return turns, gold, skipped, lost
