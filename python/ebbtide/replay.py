"""Replaying transcripts into a store: streamed, resumable, counted."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ebbtide.memory import Memory
from ebbtide.types import Turn, WriteReport

__all__ = ["ReplaySummary", "replay"]


@dataclass(slots=True)
class ReplaySummary:
    """What a replay did.

    Attributes:
        namespace: Memory that was written to.
        turns: Turns read from the transcript.
        accepted: Turns stored now.
        duplicates: Turns that were stored before.
        evictions: Evictions by reason.
        superseded: Turns that stopped being current.
        over_budget_turns: Insertions after which the token budget stayed exceeded.
        seconds: Wall-clock time.
        stats: :meth:`Memory.stats` afterwards.
        digest: :meth:`Memory.digest` afterwards.
    """

    namespace: str
    turns: int = 0
    accepted: int = 0
    duplicates: int = 0
    evictions: Counter[str] = field(default_factory=Counter)
    superseded: int = 0
    over_budget_turns: int = 0
    seconds: float = 0.0
    stats: dict[str, Any] = field(default_factory=dict)
    digest: str = ""

    @property
    def turns_per_second(self) -> float:
        """Turns stored a second."""
        return self.accepted / self.seconds if self.seconds > 0 else 0.0

    def note(self, report: WriteReport) -> None:
        """Count one batch."""
        self.accepted += report.accepted
        self.duplicates += report.duplicates
        self.turns += report.accepted + report.duplicates
        self.superseded += len(report.superseded)
        self.over_budget_turns += report.over_budget_turns
        self.evictions.update(e.reason for e in report.evicted)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-able data."""
        return {
            "namespace": self.namespace,
            "turns": self.turns,
            "accepted": self.accepted,
            "duplicates": self.duplicates,
            "evictions": dict(sorted(self.evictions.items())),
            "superseded": self.superseded,
            "over_budget_turns": self.over_budget_turns,
            "seconds": round(self.seconds, 3),
            "turns_per_second": round(self.turns_per_second, 1),
            "active": self.stats.get("active", 0),
            "archived": self.stats.get("archived", 0),
            "tiers": self.stats.get("tiers", {}),
            "digest": self.digest,
        }


def replay(
    memory: Memory,
    turns: Iterable[Turn],
    *,
    batch_size: int = 128,
    progress: Callable[[ReplaySummary, WriteReport], None] | None = None,
) -> ReplaySummary:
    """Store a transcript; turns whose external id is known are passed over.

    So running it again goes on where it stopped, and doubles nothing. The
    iterable is streamed; one batch is held at a time.

    Args:
        memory: Where to.
        turns: The transcript.
        batch_size: Turns analysed and committed together; the result does not
            depend on it.
        progress: Called after each batch with the summary so far and its report.

    Raises:
        InputError: If a turn is unusable; those before it were kept.
    """
    summary = ReplaySummary(memory.namespace)
    start = time.perf_counter()
    batch: list[Turn] = []

    def write() -> None:
        report = memory.add_many(batch, batch_size=batch_size)
        batch.clear()
        summary.note(report)
        if progress is not None:
            progress(summary, report)

    try:
        for turn in turns:
            batch.append(turn)
            if len(batch) >= batch_size:
                write()
    finally:
        # A broken line, or Ctrl-C while reading, loses nothing that came before it.
        if batch:
            write()
        summary.seconds = time.perf_counter() - start
    summary.stats = memory.stats()
    summary.digest = memory.digest()
    return summary
