"""LoCoMo and LoCoMo-Noise: one JSON sample a conversation, with all its questions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

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

__all__ = ["LOCOMO_CATEGORIES", "parse_locomo", "parse_locomo_date", "text_with_caption"]

LOCOMO_CATEGORIES: Mapping[int, str] = {
    1: "multi-hop",
    2: "temporal",
    3: "open-domain",
    4: "single-hop",
    5: "adversarial",
}
"""LoCoMo's category numbers; the paper's averages leave out ``adversarial``."""

_NOISE_PREFIX = "NOISE:"
_SESSION_KEY = re.compile(r"session_(\d+)")
# "D8:6", and the slips seen in the published file: "D:11:26", "D08:06", "d8 : 6".
_DIA_ID = re.compile(r"(?<![A-Za-z0-9])[Dd]\s*:?\s*(\d+)\s*:\s*(\d+)")
_SEPARATORS = re.compile(r"[\s,;]+")
_LOCOMO_DATE = re.compile(
    r"(\d{1,2}):(\d{2})\s*([ap])\.?m\.?\s+on\s+(\d{1,2})\s+([a-z]+),?\s+(\d{4})", re.IGNORECASE
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def parse_locomo(sample: Mapping[str, Any]) -> Conversation:
    """Read one LoCoMo or LoCoMo-Noise sample.

    Sessions come in numeric order (``session_2`` before ``session_10``); a date
    without turns is ignored. A turn that shares an image reads ``text [shares an
    image: caption]``, the caption being ``blip_caption``, or the image search
    ``query`` where there is no caption: the image itself is not part of the
    dataset, and questions ask about it. Noise turns stay in their place.

    Raises:
        InputError: A field is missing or unreadable.
    """
    sample_id = str(sample.get("sample_id", "locomo"))
    body = field(sample, "conversation", dict, sample_id)
    speakers = tuple(str(body[key]) for key in ("speaker_a", "speaker_b") if body.get(key))
    turns, skipped = _locomo_turns(body, sample_id)
    resolver = _DiaIds(turns)
    questions: list[Question] = []
    unresolved: list[str] = []
    for number, qa in enumerate(listed(sample, "qa", sample_id), start=1):
        question, missing = _locomo_question(qa, f"{sample_id}:q{number}", resolver)
        questions.append(question)
        unresolved.extend(f"{question.id}: {reference}" for reference in missing)
    return Conversation(sample_id, speakers, turns, questions, unresolved, skipped)


def parse_locomo_date(text: str) -> datetime:
    """Read ``1:56 pm on 8 May, 2023``; the dataset names no zone, UTC is taken.

    Raises:
        InputError: ``input.timestamp``.
    """
    match = _LOCOMO_DATE.fullmatch(text.strip())
    if match is None or match[5][:3].lower() not in _MONTHS or not 1 <= int(match[1]) <= 12:
        raise bad_date(text)
    # 12 am is hour 0 and 12 pm is hour 12.
    hour = int(match[1]) % 12 + (12 if match[3].lower() == "p" else 0)
    month = _MONTHS.index(match[5][:3].lower()) + 1
    return utc(text, int(match[6]), month, int(match[4]), hour, int(match[2]))


def _locomo_turns(body: Mapping[str, Any], where: str) -> tuple[list[DatasetTurn], int]:
    numbers = [
        int(match[1])
        for key, value in body.items()
        if (match := _SESSION_KEY.fullmatch(key)) and isinstance(value, list) and value
    ]
    turns: list[DatasetTurn] = []
    unique = UniqueNames()
    skipped = 0
    for number in sorted(numbers):
        session = f"session_{number}"
        timestamp = parse_locomo_date(field(body, f"{session}_date_time", str, where))
        for raw in body[session]:
            dia_id = field(raw, "dia_id", str, f"{where} {session}").strip()
            text = text_with_caption(raw)
            if not text:
                skipped += 1
                continue
            turns.append(
                DatasetTurn(
                    external_id=unique(dia_id),
                    text=text,
                    role="user",
                    speaker=field(raw, "speaker", str, f"{where} {dia_id}"),
                    timestamp=timestamp,
                    session_id=session,
                    noise=dia_id.startswith(_NOISE_PREFIX),
                )
            )
    return turns, skipped


def text_with_caption(raw: Mapping[str, Any]) -> str:
    """What a raw LoCoMo turn reads as; see :func:`parse_locomo`."""
    text = str(raw.get("text") or "").strip()
    caption = str(raw.get("blip_caption") or raw.get("query") or "").strip()
    return f"{text} [shares an image: {caption}]".strip() if caption else text


class _DiaIds:
    """Finds turns by evidence strings, exact or by their two numbers."""

    def __init__(self, turns: Sequence[DatasetTurn]) -> None:
        self.session_of = {turn.external_id: turn.session_id for turn in turns}
        self._by_numbers: dict[tuple[int, int], str] = {}
        for external_id in self.session_of:
            if match := _DIA_ID.fullmatch(external_id):
                self._by_numbers.setdefault((int(match[1]), int(match[2])), external_id)

    def find(self, entry: str) -> tuple[list[str], list[str]]:
        """Return the ids an evidence entry names, and the pieces that name none."""
        if entry.strip() in self.session_of:
            return [entry.strip()], []
        found: list[str] = []
        missing: list[str] = []
        for match in _DIA_ID.finditer(entry):
            external_id = self._by_numbers.get((int(match[1]), int(match[2])))
            if external_id is None:
                missing.append(match[0])
            else:
                found.append(external_id)
        for rest in _SEPARATORS.split(_DIA_ID.sub(" ", entry)):
            # Brackets and dots around an id say nothing; letters and digits do.
            if rest in self.session_of:
                found.append(rest)
            elif any(character.isalnum() for character in rest):
                missing.append(rest)
        return found, missing


def _locomo_question(
    raw: object, question_id: str, resolver: _DiaIds
) -> tuple[Question, list[str]]:
    qa = mapped(raw, question_id)
    entries = qa.get("evidence")
    found: list[str] = []
    missing: list[str] = []
    for entry in [entries] if isinstance(entries, str) else listed(qa, "evidence", question_id):
        hits, misses = resolver.find(str(entry))
        found.extend(hits)
        missing.extend(misses)
    number = qa.get("category")
    category = LOCOMO_CATEGORIES.get(number) if isinstance(number, int) else None
    category = category or f"category-{number}"
    evidence = tuple(dict.fromkeys(found))
    question = Question(
        id=question_id,
        text=field(qa, "question", str, question_id),
        answer=answer_text(qa.get("answer")),
        category=category,
        evidence=evidence,
        evidence_sessions=tuple(dict.fromkeys(resolver.session_of[hit] for hit in evidence)),
        abstention=category == "adversarial",
    )
    return question, missing
