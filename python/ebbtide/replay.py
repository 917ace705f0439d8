"""Replaying transcripts into a store: streamed, resumable, counted."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from ebbtide.errors import EbbtideError, InputError, NotFoundError
from ebbtide.inputs import prepare
from ebbtide.memory import BATCH, Memory
from ebbtide.types import Turn, WriteReport

__all__ = ["ReplaySummary", "replay"]


@dataclass(slots=True)
class ReplaySummary:
    """What a replay did.

    Attributes:
        namespace: Memory that was written to.
        turns: Turns read from the transcript, without the skipped ones.
        accepted: Turns stored now.
        duplicates: Turns that were stored before.
        skipped: Messages left out: without content, or nothing but a block that
            ``render_context`` made.
        evictions: Evictions by reason.
        superseded: Turns that stopped being current.
        over_budget_turns: Insertions after which the token budget stayed exceeded.
        seconds: Wall-clock time.
        finished: False if it was asked to stop before the transcript's end.
        stats: :meth:`Memory.stats` afterwards.
        digest: :meth:`Memory.digest` afterwards.
    """

    namespace: str
    turns: int = 0
    accepted: int = 0
    duplicates: int = 0
    skipped: int = 0
    evictions: Counter[str] = field(default_factory=Counter)
    superseded: int = 0
    over_budget_turns: int = 0
    seconds: float = 0.0
    finished: bool = True
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
            "skipped": self.skipped,
            "active": self.stats.get("active", 0),
            "archived": self.stats.get("archived", 0),
            "tiers": self.stats.get("tiers", {}),
            "evictions": {
                name: self.evictions[name]
                for name in ("hard_kill", "budget", "skip")
                if name != "skip" or self.evictions[name]
            },
            "superseded": self.superseded,
            "over_budget_turns": self.over_budget_turns,
            "over_budget_tokens": self.stats.get("over_budget_tokens", 0),
            "seconds": round(self.seconds, 3),
            "turns_per_second": round(self.turns_per_second, 1),
            "finished": self.finished,
            "digest": self.digest,
        }


def replay(
    memory: Memory,
    turns: Iterable[Turn],
    *,
    batch_size: int = BATCH,
    progress: Callable[[ReplaySummary, WriteReport], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> ReplaySummary:
    """Store a transcript; turns whose external id is known are passed over.

    So running it again goes on where it stopped, and doubles nothing. The
    iterable is streamed; one batch is held at a time.

    Args:
        memory: Where to.
        turns: The transcript. One that ``ebbtide.transcripts`` reads has its
            place named in errors and its empty messages counted.
        batch_size: Turns analysed and committed together; the result does not
            depend on it.
        progress: Called after each batch with the summary so far and its report.
        stop: Asked before each turn; once true, what was read is stored and the
            summary comes back with ``finished`` False.

    Raises:
        InputError: If a turn is unusable, naming where it stands; those before
            it were kept.
    """
    summary = ReplaySummary(memory.namespace)
    checked = _Checked(memory, turns, stop)
    stream = iter(checked)
    start = time.perf_counter()
    while True:
        before = checked.read
        report = memory.add_many(islice(stream, batch_size), batch_size=batch_size)
        if checked.read == before:
            break
        summary.note(report)
        summary.turns = checked.read
        summary.skipped = checked.skipped
        summary.seconds = time.perf_counter() - start
        if progress is not None:
            progress(summary, report)
    if checked.failure is not None:
        raise checked.failure
    summary.skipped = checked.skipped
    summary.finished = not checked.stopped
    summary.stats = memory.stats()
    summary.digest = memory.digest()
    return summary


class _Checked:
    """Usable turns; the error that ended them waits in ``failure``.

    Raising it at once would lose the turns of the same batch that came before it.
    """

    def __init__(
        self, memory: Memory, turns: Iterable[Turn], stop: Callable[[], bool] | None
    ) -> None:
        self.read = 0
        self.failure: InputError | None = None
        self.stopped = False
        self._memory = memory
        self._turns = turns
        self._stop = stop or (lambda: False)
        self._rendered = 0

    @property
    def skipped(self) -> int:
        return self._rendered + int(getattr(self._turns, "skipped", 0))

    def __iter__(self) -> Iterator[Turn]:
        most = self._memory.config["limits"]["max_turn_chars"]
        try:
            for turn in self._turns:
                if self._stop():
                    self.stopped = True
                    return
                prepared = prepare(turn, max_chars=most)
                if prepared is None:
                    self._rendered += 1
                    continue
                if getattr(self._turns, "local", False):
                    self._same(turn, prepared.text)
                self.read += 1
                yield turn
        except EbbtideError as error:
            self.failure = self._placed(error)

    def _placed(self, error: EbbtideError) -> InputError:
        place = getattr(self._turns, "place", f"turn {self.read + self.skipped + 1}")
        kept = f"the {self.read} before it were kept" if self.read else "nothing came before it"
        if self.read == 1:
            kept = "the one before it was kept"
        return InputError(f"{place}: {error}; {kept}", error.code)

    def _same(self, turn: Turn, text: str) -> None:
        """Refuse another conversation's turn that would pass for a known one."""
        try:
            stored = self._memory.get(external_id=turn.external_id)
        except NotFoundError:
            return
        if stored.text != text:
            message = (
                f"a turn {turn.external_id!r} with another text is stored, from another file or "
                "another state of this one; replay it into another namespace"
            )
            raise InputError(message, "input.transcript")
