"""What the loaders of the public benchmarks read: conversations, turns, questions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ebbtide.types import Turn

__all__ = ["Conversation", "DatasetTurn", "Question"]


@dataclass(frozen=True, slots=True)
class DatasetTurn:
    """One turn of a benchmark conversation.

    Attributes:
        external_id: Unique in its conversation. LoCoMo: the ``dia_id``;
            LongMemEval: ``<session>:<n>``, n from 1 over the session's turns as
            published, so that skipped empty turns leave a gap.
        text: What was said, with the image's caption for LoCoMo (see
            :func:`~ebbtide.evals.datasets.parse_locomo`).
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

    @property
    def measured_questions(self) -> list[Question]:
        """Those that recall can be measured on: they have an answer and name its evidence."""
        return [q for q in self.questions if q.evidence and not q.abstention]
