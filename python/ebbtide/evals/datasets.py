"""Loaders for the public long-conversation benchmarks.

Two formats are read, plain or gzipped, told apart by their content: LoCoMo
(a JSON list of samples, or one sample) and LongMemEval (a JSON list, or one
instance a line). Files are read one sample at a time, so the 265 MB LongMemEval
file never sits in memory as a whole. Nothing is dropped silently: an evidence
reference that names no turn is listed in ``Conversation.unresolved``, an empty
turn is counted in ``Conversation.skipped_turns``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from ebbtide.errors import InputError
from ebbtide.evals.json_stream import json_values
from ebbtide.types import Turn

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

LOCOMO_CATEGORIES: Mapping[int, str] = {
    1: "multi-hop",
    2: "temporal",
    3: "open-domain",
    4: "single-hop",
    5: "adversarial",
}
"""LoCoMo's category numbers; the paper's averages leave out ``adversarial``."""

_Kind = TypeVar("_Kind")

_NOISE_PREFIX = "NOISE:"
_SESSION_KEY = re.compile(r"session_(\d+)")
# "D8:6", and the slips seen in the published file: "D:11:26", "D08:06", "d8 : 6".
_DIA_ID = re.compile(r"(?<![A-Za-z0-9])[Dd]\s*:?\s*(\d+)\s*:\s*(\d+)")
_LOCOMO_DATE = re.compile(
    r"(\d{1,2}):(\d{2})\s*([ap])\.?m\.?\s+on\s+(\d{1,2})\s+([a-z]+),?\s+(\d{4})", re.IGNORECASE
)
_LONGMEMEVAL_DATE = re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2})(?:\s*\([^)]*\))?\s+(\d{1,2}):(\d{2})")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


@dataclass(frozen=True, slots=True)
class DatasetTurn:
    """One turn of a benchmark conversation.

    Attributes:
        external_id: Unique in its conversation. LoCoMo: the ``dia_id``;
            LongMemEval: ``<session>:<n>``, n from 1 over the session's turns as
            published, so that skipped empty turns leave a gap.
        text: What was said, with the image's caption for LoCoMo (see
            :func:`parse_locomo`).
        role: ``user`` or ``assistant``. Both LoCoMo speakers are people, so
            both are ``user``.
        speaker: The speaker's name; None where the format has none.
        timestamp: UTC. The formats date sessions, not turns: all turns of a
            session carry its date.
        session_id: The session it belongs to.
        noise: Whether it is one of LoCoMo-Noise's inserted turns.
    """

    external_id: str
    text: str
    role: str
    speaker: str | None
    timestamp: datetime
    session_id: str
    noise: bool = False

    def as_turn(self, prefix: str = "") -> Turn:
        """The turn as a memory takes it, its external id behind ``prefix``."""
        return Turn(
            text=self.text,
            role=self.role,
            speaker=self.speaker,
            timestamp=self.timestamp,
            session_id=self.session_id,
            external_id=f"{prefix}{self.external_id}",
        )


@dataclass(frozen=True, slots=True)
class Question:
    """One benchmark question.

    Attributes:
        id: Unique in its conversation.
        text: The question.
        answer: The gold answer, ``""`` where the dataset gives none.
        category: LoCoMo's category name or LongMemEval's question type.
        evidence: External ids of the gold turns, in published order, each once.
        evidence_sessions: Session ids of the gold sessions, each once.
        query_time: When it is asked, UTC; None for LoCoMo.
        abstention: Whether the right answer is that the conversation does not
            say (LoCoMo category 5, LongMemEval ids that end in ``_abs``).
    """

    id: str
    text: str
    answer: str
    category: str
    evidence: tuple[str, ...]
    evidence_sessions: tuple[str, ...]
    query_time: datetime | None = None
    abstention: bool = False


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation with its questions.

    Attributes:
        id: LoCoMo's ``sample_id`` or LongMemEval's ``question_id``.
        speakers: The speakers' names; empty for LongMemEval.
        turns: In the order to be replayed.
        questions: In published order.
        unresolved: ``"<question id>: <reference>"`` for every piece of an
            evidence entry that names no turn or session of the conversation.
        skipped_turns: Turns left out since their text is empty.
    """

    id: str
    speakers: tuple[str, ...]
    turns: list[DatasetTurn]
    questions: list[Question]
    unresolved: list[str]
    skipped_turns: int = 0


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


# LoCoMo


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
    body = _field(sample, "conversation", dict, sample_id)
    speakers = tuple(str(body[key]) for key in ("speaker_a", "speaker_b") if body.get(key))
    turns, skipped = _locomo_turns(body, sample_id)
    resolver = _DiaIds(turns)
    questions: list[Question] = []
    unresolved: list[str] = []
    for number, qa in enumerate(sample.get("qa") or [], start=1):
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
        raise _bad_date(text)
    # 12 am is hour 0 and 12 pm is hour 12.
    hour = int(match[1]) % 12 + (12 if match[3].lower() == "p" else 0)
    month = _MONTHS.index(match[5][:3].lower()) + 1
    return _utc(text, int(match[6]), month, int(match[4]), hour, int(match[2]))


def _locomo_turns(body: Mapping[str, Any], where: str) -> tuple[list[DatasetTurn], int]:
    numbers = [
        int(match[1])
        for key, value in body.items()
        if (match := _SESSION_KEY.fullmatch(key)) and isinstance(value, list) and value
    ]
    turns: list[DatasetTurn] = []
    unique = _UniqueNames()
    skipped = 0
    for number in sorted(numbers):
        session = f"session_{number}"
        timestamp = parse_locomo_date(_field(body, f"{session}_date_time", str, where))
        for raw in body[session]:
            dia_id = _field(raw, "dia_id", str, f"{where} {session}").strip()
            text = text_with_caption(raw)
            if not text:
                skipped += 1
                continue
            turns.append(
                DatasetTurn(
                    external_id=unique(dia_id),
                    text=text,
                    role="user",
                    speaker=_field(raw, "speaker", str, f"{where} {dia_id}"),
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
        for rest in re.split(r"[\s,;]+", _DIA_ID.sub(" ", entry)):
            # Brackets and dots around an id say nothing; letters and digits do.
            if rest in self.session_of:
                found.append(rest)
            elif any(character.isalnum() for character in rest):
                missing.append(rest)
        return found, missing


def _locomo_question(
    qa: Mapping[str, Any], question_id: str, resolver: _DiaIds
) -> tuple[Question, list[str]]:
    entries = qa.get("evidence") or []
    found: list[str] = []
    missing: list[str] = []
    for entry in [entries] if isinstance(entries, str) else entries:
        hits, misses = resolver.find(str(entry))
        found.extend(hits)
        missing.extend(misses)
    number = qa.get("category")
    category = LOCOMO_CATEGORIES.get(number) if isinstance(number, int) else None
    category = category or f"category-{number}"
    evidence = tuple(dict.fromkeys(found))
    question = Question(
        id=question_id,
        text=_field(qa, "question", str, question_id),
        answer=_answer(qa.get("answer")),
        category=category,
        evidence=evidence,
        evidence_sessions=tuple(dict.fromkeys(resolver.session_of[hit] for hit in evidence)),
        abstention=category == "adversarial",
    )
    return question, missing


# LongMemEval


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
    where = _field(sample, "question_id", str, "LongMemEval")
    turns, gold, skipped, lost = _longmemeval_turns(sample, where)
    known = {turn.session_id for turn in turns}
    wanted = dict.fromkeys(str(name) for name in sample.get("answer_session_ids") or [])
    category = _field(sample, "question_type", str, where)
    question = Question(
        id=where,
        text=_field(sample, "question", str, where),
        answer=_answer(sample.get("answer")),
        category=category,
        evidence=tuple(gold),
        evidence_sessions=tuple(name for name in wanted if name in known),
        query_time=parse_longmemeval_date(_field(sample, "question_date", str, where)),
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
        raise _bad_date(text)
    return _utc(text, *(int(part) for part in match.groups()))


def _longmemeval_turns(
    sample: Mapping[str, Any], where: str
) -> tuple[list[DatasetTurn], list[str], int, list[str]]:
    """Return the turns, the gold turns' ids, the empty turns' count and lost gold ids."""
    sessions = _field(sample, "haystack_sessions", list, where)
    names = _field(sample, "haystack_session_ids", list, where)
    dates = _field(sample, "haystack_dates", list, where)
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
    unique = _UniqueNames()
    for timestamp, name, raw_turns in dated:
        session_id = unique(str(name))
        for number, raw in enumerate(raw_turns, start=1):
            external_id = f"{session_id}:{number}"
            text = str(raw.get("content") or "")
            empty = not text.strip()
            if raw.get("has_answer"):
                (lost if empty else gold).append(external_id)
            if empty:
                skipped += 1
                continue
            role = _field(raw, "role", str, external_id)
            turns.append(DatasetTurn(external_id, text, role, None, timestamp, session_id))
    return turns, gold, skipped, lost


# Shared


class _UniqueNames:
    """Gives a name that was used before the suffix ``#2``, ``#3`` and so on."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def __call__(self, name: str) -> str:
        candidate, number = name, 1
        while candidate in self._taken:
            number += 1
            candidate = f"{name}#{number}"
        self._taken.add(candidate)
        return candidate


def _answer(value: object) -> str:
    # Some gold answers are numbers, a few of other datasets' variants are lists.
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(str(part) for part in value)
    return str(value)


def _field(mapping: object, key: str, kind: type[_Kind], where: str) -> _Kind:
    value = mapping.get(key) if isinstance(mapping, Mapping) else None
    if not isinstance(value, kind):
        raise InputError(f"{where}: field {key!r} must be a {kind.__name__}", "input.field")
    return value


def _bad_date(text: str) -> InputError:
    return InputError(f"cannot read the date {text!r}", "input.timestamp")


def _utc(text: str, *parts: int) -> datetime:
    year, month, day, hour, minute = parts
    try:
        return datetime(year, month, day, hour, minute, tzinfo=UTC)
    except ValueError:
        raise _bad_date(text) from None
