"""Analysis in worker processes: the whole of each core, past Python's one lock.

Only language is read there. What comes back is plain facts and integers, and the
calling process stores them in order, so a store still has one writer.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, Any, NoReturn

from ebbtide.analysis.facts import TurnText
from ebbtide.errors import ExternalError

if TYPE_CHECKING:
    from ebbtide.analysis.analyser import Analyser, Analysis

__all__ = ["ProcessReaders"]

_analyser: Analyser | None = None
"""A worker's own, made when it starts."""


class ProcessReaders:
    """Worker processes, each with models of its own (about 350 MB).

    Processes are spawned, not forked: a script that uses them needs the guard
    ``if __name__ == "__main__":``.
    """

    chunk_turns = 128
    """Smaller than a thread's: at the end of the turns no worker should have much left."""

    def __init__(self, nlp: Mapping[str, Any], *, embedder: Any, cards: bool, workers: int) -> None:
        """Start no process yet; the arguments are those of the analyser.

        Args:
            nlp: The ``[nlp]`` section of the configuration.
            embedder: Replaces the configured embedding model; must be picklable.
            cards: Whether cards get vectors of their own.
            workers: How many processes, 1 or more.
        """
        # One chunk in work and one waiting for each worker.
        self.ahead = 2 * workers - 1
        self._executor = ProcessPoolExecutor(
            workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_start,
            initargs=(dict(nlp), embedder, cards),
        )

    def begin(self, turns: Sequence[TurnText]) -> Callable[[], list[Analysis]]:
        """Start reading; see :class:`~ebbtide.analysis.reading_ahead.Readers`.

        The result raises ``worker.failed`` where a process ended on its own.
        """
        try:
            future = self._executor.submit(_read, turns)
        except BrokenProcessPool:
            return _fail  # when it is its turn: what came before may be there already
        return lambda: _result(future)

    def close(self) -> None:
        """End the processes; a chunk in work is finished first."""
        self._executor.shutdown(wait=True, cancel_futures=True)


def _result(future: Future[list[Analysis]]) -> list[Analysis]:
    try:
        return future.result()
    except BrokenProcessPool:
        return _fail()


def _fail() -> NoReturn:
    message = (
        "a worker process ended on its own, mostly for want of memory; use fewer workers, "
        "and run it again to go on"
    )
    raise ExternalError(message, "worker.failed")


def _start(nlp: Mapping[str, Any], embedder: Any, cards: bool) -> None:
    """Make this process a worker; Ctrl-C is for the process that started it."""
    global _analyser
    from ebbtide.analysis.analyser import Analyser

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _analyser = Analyser(nlp, embedder=embedder, cards=cards)


def _read(turns: Sequence[TurnText]) -> list[Analysis]:
    assert _analyser is not None
    return _analyser.analyse_here(turns)
