"""How a memory takes turns in and lets them go: one writer after the other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from ebbtide.errors import InputError
from ebbtide.observing import observed, scrubbed
from ebbtide.opened import closed
from ebbtide.pipeline import (
    BATCH,
    BackgroundFlush,
    Intake,
    analysed,
    for_core,
    stored_input,
    take_in,
    text_of,
)
from ebbtide.types import Turn, WriteReport

if TYPE_CHECKING:
    from ebbtide.analysis.reading_ahead import Readers
    from ebbtide.inputs import Prepared
    from ebbtide.opened import Opened

__all__ = ["Writing"]


class Writing:
    """The writers of one memory; arguments as for ``Memory``'s methods, already checked."""

    def __init__(self, opened: Opened) -> None:
        """Write into an open memory."""
        from ebbtide.llm.part import WritingPart

        self._handle = opened.handle
        self._analyser = opened.analyser
        self._graphs = opened.graphs
        self._config = opened.config
        self._watch = opened.watch
        self._writable = opened.writable
        self._part = WritingPart(opened.config["policy"], opened.llm)
        # Whoever needs several takes them in this order. Writers queue for the first, for as
        # long as a stream of turns lasts; who reads, journals or closes does not. Then a
        # writer waits for a language model that writes before it keeps readers out, only
        # one thread analyses journalled turns, and journalling does not wait for it.
        self._queue_lock = threading.RLock()
        self._settle_lock = threading.RLock()
        self._flush_lock = threading.RLock()
        self._write_lock = threading.RLock()
        # By the thread that holds the locks of settling and flushing: what it calls, a progress
        # callback or a model that writes, may read the memory.
        self._draining = False
        self._background: BackgroundFlush | None = None
        # A signal's handler that closes the memory may come in while its own thread has it.
        self._background_lock = threading.RLock()
        self._stopped = False
        self._seen: int | None = None

    @contextmanager
    def exclusively(self) -> Iterator[None]:
        """Nobody else writes, and nothing journalled is left."""
        self._handle.check_process()
        with self._queue_lock, self._settle_lock, self._flush_lock, self._write_lock:
            self.flush()
            yield

    # Taking in

    def add(self, turn: Prepared, numbers: list[int] | None = None) -> WriteReport:
        """Store one turn, unless its external id is known.

        Args:
            turn: The turn.
            numbers: Gets its interaction id; nothing where it was known or not kept.
        """
        known = turn.external_id
        if known is not None and self._handle.knows_external(known):
            return WriteReport(duplicates=1) + self._store_batch([])
        analysis = self._analyser.analyse([text_of(turn)])[0]
        return self._store_batch([for_core(turn, analysis, self._part.assess(turn))], numbers)

    @observed("journal")
    def journal(self, turn: Prepared, numbers: list[int] | None = None) -> WriteReport:
        """Make one turn safe, and have it analysed in the background; as :meth:`add`."""
        self._handle.check_process()
        with self._write_lock:
            if self._stopped:  # else closing would wait for as long as turns come
                raise closed()
            given, report = self._handle.journal([turn])
        if numbers is not None:
            numbers += given
        self._wake()
        return WriteReport._from_core(report)

    def _wake(self) -> None:
        """Have what was journalled analysed in the background."""
        with self._background_lock:
            # Closed meanwhile: the turn is safe, and analysed after the next opening.
            if self._stopped:
                return
            try:
                self._background = self._background or BackgroundFlush(self.flush)
            except RuntimeError:
                return  # the interpreter ends, and starts no thread: whoever reads next does it
            self._background.wake()

    def add_many(
        self,
        turns: Iterable[Turn | Mapping[str, Any]],
        progress: Callable[[int], None] | None,
        batch_size: int,
    ) -> WriteReport:
        """Store a stream of turns in batches."""
        reports: list[WriteReport] = []
        done = 0
        self._handle.check_process()
        with self._queue_lock, closing(self.readers()) as readers:
            reports.append(self._store_batch([]))
            for _, report, seen in take_in(self.intake().read(turns), readers, batch_size):
                reports.append(report)
                done += seen
                if progress is not None:
                    progress(done)
        return WriteReport.total(reports)

    def intake(self) -> Intake:
        """The memory's way in, for whoever feeds it a stream."""
        return Intake(
            self._handle.knows_external,
            self._store_batch,
            self._config["limits"]["max_turn_chars"],
            self._part.assess,
        )

    def says_other(self, external_id: str, text: str) -> bool:
        """Whether the turn known by that id says another text, or did before it was discarded."""
        return self._handle.says_other(external_id, text)

    def readers(self, workers: int = 1) -> Readers:
        """Threads that analyse with this memory's models, or processes with their own.

        With 0 workers it is done in the calling thread.
        """
        if workers == 0:
            from ebbtide.analysis.reading_ahead import HereReaders

            return HereReaders(self._analyser)
        if workers == 1:
            from ebbtide.analysis.reading_ahead import ThreadReaders

            return ThreadReaders(self._analyser)
        from ebbtide.analysis.processes import ProcessReaders

        return ProcessReaders(
            self._config["nlp"],
            embedder=self._config.embedder,
            cards=bool(self._config["retrieval"]["enable_card_semantic"]),
            workers=workers,
        )

    @observed("store")
    def _store_batch(
        self, batch: list[tuple[Any, ...]], numbers: list[int] | None = None
    ) -> WriteReport:
        reports = [self._store_part(part, numbers) for part in self._part.parts(batch)]
        return WriteReport.total(reports)

    def _store_part(self, part: list[tuple[Any, ...]], numbers: list[int] | None) -> WriteReport:
        self._handle.check_process()
        with self._queue_lock, self._settle_lock:
            with self.exclusively():
                # Asked while nobody else writes: later, the newest may be another's.
                before = None if numbers is None else self._newest()
                report = self._handle.add(part)
                if numbers is not None and (newest := self._newest()) != before:
                    numbers.append(newest)
                self._graphs.settle()
            # Readers need not wait for a language model; whoever writes next does.
            self._part.settle(self._handle)
        return WriteReport._from_core(report)

    def _newest(self) -> int:
        """The greatest number of a turn so far; the caller writes alone.

        Counted once: to count a memory takes time with its size, to read on does not.
        """
        if self._seen is None:
            self._seen = int(self._handle.stats()["next_id"]) - 1
        while page := self._handle.page(self._seen + 1, BATCH):
            self._seen = int(page[-1]["interaction_id"])
        return self._seen

    # Letting go

    def erase(self, numbers: list[int]) -> None:
        """Erase turns by interaction id, all of them or none; the caller writes alone."""
        if numbers:
            scrubbed(self._handle.delete_many(numbers))
            self._graphs.settle()

    def erase_all(self) -> None:
        """Erase every turn."""
        with self.exclusively():
            scrubbed(self._handle.delete_all())
            self._graphs.forget()

    # Analysing what is stored

    def reindex(self, progress: Callable[[int], None] | None) -> int:
        """Begin everything derived anew, and go through with it; the turns read."""
        self._handle.check_process()
        with self._queue_lock, self._settle_lock, self._flush_lock:
            if self._draining:
                message = "turns are being analysed by this very thread; reindex when that is done"
                raise InputError(message, "input.field")
            with self._write_lock:
                self._handle.begin_reindex()
                self._graphs.forget()
            return self._drain(progress)

    def flush(self) -> None:
        """Wait until every journalled turn is analysed and taken in.

        Who is called while that is done, and reads, sees those that have been.
        """
        self._handle.check_process()
        if not self._writable:
            return
        # Looked at before a lock is taken: what was journalled is pending until it is taken
        # in, so where nothing is, who reads waits for no writer.
        if self._part.settled and not self._handle.pending():
            return
        with self._flush_lock:
            self._part.settle_leftovers(self._handle, self._settle_lock)
            if not self._handle.pending():
                return
        with self._settle_lock, self._flush_lock:
            self._drain()

    def _drain(self, progress: Callable[[int], None] | None = None) -> int:
        if self._draining:
            return 0
        self._draining = True
        try:
            return self._drain_all(progress)
        finally:
            self._draining = False

    def _drain_all(self, progress: Callable[[int], None] | None) -> int:
        done = 0

        def note(turns: int) -> None:
            nonlocal done
            done += turns
            if progress is not None:
                progress(done)

        self._part.settle_leftovers(self._handle, self._settle_lock)
        while pending := self._handle.pending():
            self._complete(pending, note)
        return done

    @observed("flush")
    def _complete(self, pending: list[int], note: Callable[[int], None]) -> WriteReport:
        """Analyse journalled turns and take them in; ``note`` gets the size of each batch."""
        reports: list[WriteReport] = []
        turns = ((number, stored_input(self._handle.get(number))) for number in pending)
        known = set(self._handle.assessed()) if self._part.judges else set()
        assess = partial(self._part.assess_pending, known)
        with closing(self.readers()) as readers:
            for batch in analysed(turns, readers, assess):
                with self._write_lock:
                    for part in self._part.parts(batch):
                        report = self._handle.complete_pending(part)
                        reports.append(WriteReport._from_core(report))
                        self._part.settle(self._handle)
                    self._graphs.settle()
                note(len(batch))
        return WriteReport.total(reports)

    def stop(self, *, finish: bool = True) -> None:
        """End what is analysed in the background; nothing is written afterwards.

        Args:
            finish: Analyse what is journalled first; else that is left to the next opening.
        """
        # A fork has a copy of the locks, and not the thread.
        if self._handle.forked():
            return
        with self._background_lock:
            self._stopped = True
            background, self._background = self._background, None
        if background is not None:
            background.stop(finish=finish)
