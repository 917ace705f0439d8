"""Replaying transcripts into a store: streamed, resumable, counted."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from ebbtide.errors import EbbtideError, InputError
from ebbtide.inputs import positive, prepare, whole
from ebbtide.mappings import turn_from
from ebbtide.memory import Memory
from ebbtide.observing import begin
from ebbtide.pipeline import BATCH, Intake, Item, take_in
from ebbtide.types import Turn, WriteReport

__all__ = ["ReplayJob", "ReplaySummary", "replay", "replay_all"]


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


@dataclass(frozen=True, slots=True, eq=False)
class ReplayJob:
    """One transcript and where it goes.

    Attributes:
        memory: Where to.
        turns: The transcript, of what :meth:`Memory.add_many` takes. One that
            ``ebbtide.transcripts`` reads has its place named in errors and its empty
            messages counted.
        progress: Called after each batch with the summary so far and its report.
    """

    memory: Memory
    turns: Iterable[Turn | Mapping[str, Any]]
    progress: Callable[[ReplaySummary, WriteReport], None] | None = None


def replay(
    memory: Memory,
    turns: Iterable[Turn | Mapping[str, Any]],
    *,
    batch_size: int = BATCH,
    workers: int = 1,
    progress: Callable[[ReplaySummary, WriteReport], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> ReplaySummary:
    """Store a transcript; turns whose external id is known are passed over.

    So running it again goes on where it stopped, and doubles nothing. The
    iterable is streamed; what comes next is analysed while a batch is stored.

    Args:
        memory: Where to.
        turns: The transcript, see :class:`ReplayJob`.
        batch_size: Turns committed together; the result does not depend on it.
        workers: Processes that analyse; 1 analyses in this one, with two threads, 0 in
            the calling thread.
            More need the guard ``if __name__ == "__main__":`` in a script.
        progress: Called after each batch with the summary so far and its report.
        stop: Asked before each turn and after each batch; once true, what was
            read ahead is dropped and the summary comes back with ``finished`` False.

    Raises:
        InputError: If a turn is unusable, naming where it stands; those before
            it were kept. If ``batch_size`` or ``workers`` is no such number.
        ExternalError: ``worker.failed``: a process ended on its own; the batches
            before that were kept.
    """
    job = ReplayJob(memory, turns, progress)
    return next(replay_all([job], batch_size=batch_size, workers=workers, stop=stop))


def replay_all(
    jobs: Iterable[ReplayJob],
    *,
    batch_size: int = BATCH,
    workers: int = 1,
    stop: Callable[[], bool] | None = None,
) -> Iterator[ReplaySummary]:
    """Store transcripts one after the other, with no pause between them.

    Args:
        jobs: The transcripts, into memories of one configuration; asked for the
            next one when the last turn of the one before was read.
        batch_size: As for :func:`replay`, like the rest.
        workers: Processes that analyse.
        stop: Whether to stop; jobs that were not begun have no summary then.

    Yields:
        A summary for each job, in order.

    Raises:
        InputError: As :func:`replay`; the jobs before have had their summaries.
    """
    batch_size = positive("batch_size", batch_size)
    workers = whole("workers", workers, least=0)
    queue = _Jobs(jobs, stop or (lambda: False))
    if queue.waiting is None:
        return
    try:
        with closing(queue.waiting.memory._writing.readers(workers)) as readers:
            while queue.waiting is not None:
                for intake, report, seen in take_in(queue.items(), readers, batch_size):
                    while queue.started[0].intake is not intake:
                        yield queue.started.popleft().finish()
                    queue.started[0].note(report, seen)
                    if queue.stop():
                        yield from queue.dropped()
                        return
                while queue.started:
                    yield queue.started.popleft().finish()
    except BaseException as error:
        for run in queue.started:
            run.failed(error)
        raise


class _Jobs:
    """Jobs as one stream of turns; those begun wait in ``started`` for their storing."""

    def __init__(self, jobs: Iterable[ReplayJob], stop: Callable[[], bool]) -> None:
        self.stop = stop
        self.started: deque[_Run] = deque()
        self._jobs = iter(jobs)
        self._clock = _Clock()
        self.waiting: ReplayJob | None = next(self._jobs, None)

    def items(self) -> Iterator[Item]:
        """Turns up to where a job is for a memory that still has turns on the way.

        What such a job may skip, or has to refuse, is known once those are stored.
        """
        busy: list[Memory] = []
        while self.waiting is not None and self.waiting.memory not in busy:
            job, self.waiting = self.waiting, None
            busy.append(job.memory)
            run = _Run(job, self.stop, self._clock)
            self.started.append(run)
            yield from run.intake.read(run.checked)
            if not run.checked.ended:
                return
            self.waiting = next(self._jobs, None)

    def dropped(self) -> Iterator[ReplaySummary]:
        """Summaries of what was begun, or would have been next, when it was stopped."""
        if self.waiting is not None:
            self.started.append(_Run(self.waiting, self.stop, self._clock))
        while self.started:
            yield self.started.popleft().finish()


class _Clock:
    """Seconds since the job before was finished."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    def seconds(self) -> float:
        return time.perf_counter() - self._start

    def restart(self) -> None:
        self._start = time.perf_counter()


class _Run:
    """A job under way."""

    def __init__(self, job: ReplayJob, stop: Callable[[], bool], clock: _Clock) -> None:
        self._job = job
        self._clock = clock
        self._summary = ReplaySummary(job.memory.namespace)
        # Its turns are stored while the caller has the thread: it encloses nothing.
        self._ended = begin(job.memory._watch, "replay", encloses=False)
        self.intake = job.memory._writing.intake()
        self.checked = _Checked(job.memory, self.intake, job.turns, stop)

    def note(self, report: WriteReport, turns: int) -> None:
        """Count one stored batch."""
        summary = self._summary
        summary.note(report)
        summary.turns += turns
        summary.skipped = self.checked.skipped
        summary.seconds = self._clock.seconds()
        if self._job.progress is not None:
            self._job.progress(summary, report)

    def finish(self) -> ReplaySummary:
        """Its summary, or the error that ended it."""
        summary = self._summary
        stored = summary.turns == self.checked.read
        if stored and self.checked.failure is not None:
            self.failed(self.checked.failure)
            raise self.checked.failure
        summary.skipped = self.checked.skipped
        summary.finished = stored and self.checked.ended
        summary.stats = self._job.memory.stats()
        summary.digest = self._job.memory.digest()
        self._clock.restart()
        self._ended(self._facts(), None)
        return summary

    def failed(self, error: BaseException) -> None:
        """Tell whoever watches that it ended early."""
        self._ended(self._facts(), error)

    def _facts(self) -> dict[str, int]:
        return {"accepted": self._summary.accepted, "duplicates": self._summary.duplicates}


class _Checked:
    """Usable turns; the error that ended them waits in ``failure``.

    Raising it at once would lose the turns of the same batch that came before it.
    """

    def __init__(
        self,
        memory: Memory,
        intake: Intake,
        turns: Iterable[Turn | Mapping[str, Any]],
        stop: Callable[[], bool],
    ) -> None:
        self.read = 0
        self.failure: InputError | None = None
        self.ended = False
        self._memory = memory
        self._intake = intake
        self._turns = turns
        self._stop = stop
        self._rendered = 0

    @property
    def skipped(self) -> int:
        return self._rendered + int(getattr(self._turns, "skipped", 0))

    def __iter__(self) -> Iterator[Turn]:
        most = self._memory.config["limits"]["max_turn_chars"]
        try:
            for given in self._turns:
                if self._stop():
                    return
                turn = turn_from(given)
                prepared = prepare(turn, max_chars=most)
                if prepared is None:
                    self._rendered += 1
                    continue
                if getattr(self._turns, "local", False):
                    self._same(turn, prepared.text)
                self.read += 1
                yield turn
            # An export that was stopped while it was put in order has no turns.
            self.ended = not self._stop()
        except EbbtideError as error:
            self.failure = self._placed(error)

    def _placed(self, error: EbbtideError) -> InputError:
        place = getattr(self._turns, "place", f"turn {self.read + self.skipped + 1}")
        kept = f"the {self.read} before it were kept" if self.read else "nothing came before it"
        if self.read == 1:
            kept = "the one before it was kept"
        # Errors of importers name the place themselves; they are raised without replay, too.
        words = str(error) if str(error).startswith(f"{place}: ") else f"{place}: {error}"
        return InputError(f"{words}; {kept}", error.code)

    def _same(self, turn: Turn, text: str) -> None:
        """Refuse another conversation's turn that would pass for a known one."""
        if self._says_other(turn.external_id or "", text):
            message = (
                f"a turn {turn.external_id!r} with another text is stored, from another file or "
                "another state of this one, or stands in this one before; "
                "replay it into another namespace, or give each an id of its own"
            )
            raise InputError(message, "input.transcript")

    def _says_other(self, external_id: str, text: str) -> bool:
        """Whether a turn of that id with another text is stored, or was, or is on its way."""
        coming = self._intake.on_the_way.get(external_id)
        if coming is not None:
            return coming != text
        return self._memory._writing.says_other(external_id, text)
