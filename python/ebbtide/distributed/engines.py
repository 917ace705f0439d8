"""Where batches are made: in this process, or in worker processes of this machine.

An engine takes tasks one by one, as many at a time as it can make, and tells what
became of each in the order in which they end.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol

from ebbtide.distributed.work import Done, Task, perform
from ebbtide.evals.parts import end_with

__all__ = ["TRIES", "Engine", "Here", "LocalEngine", "Lost"]

TRIES = 3
"""Times that a batch is begun whose worker ends on its own."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A batch that ended its worker every time it was tried."""

    task: Task


class Engine(Protocol):
    """What makes batches."""

    def run(self, tasks: Iterable[Task]) -> Generator[Done | Lost, None, None]:
        """Make parts of tasks.

        Closing the iterator, or an exception in it, ends what is under way.

        Args:
            tasks: Taken from only when there is room for another one.

        Yields:
            What became of each, in the order of their ends.

        Raises:
            Exception: What a worker raised.
        """
        ...


class Here:
    """This process, one batch after the other."""

    def run(self, tasks: Iterable[Task]) -> Generator[Done | Lost, None, None]:
        """Make parts of tasks; see :class:`Engine`."""
        for task in tasks:
            yield perform(task)


class LocalEngine:
    """Worker processes, each with models of its own (about 350 MB).

    Processes are spawned, not forked: a script that uses them needs the guard
    ``if __name__ == "__main__":``. They end with this process, however that ends.
    """

    def __init__(self, workers: int) -> None:
        """Start no process yet; ``workers`` is how many."""
        self._workers = workers

    def run(self, tasks: Iterable[Task]) -> Generator[Done | Lost, None, None]:
        """Make parts of tasks; see :class:`Engine`."""
        waiting = iter(tasks)
        with closing(_Lanes(self._workers)) as lanes:
            while True:
                while lanes.idle and (task := next(waiting, None)) is not None:
                    lanes.begin(task)
                if not lanes.busy:
                    return
                yield from lanes.ended()


class _Lanes:
    """Pools of one process each: a process that ends takes no other's batch with it."""

    def __init__(self, count: int) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._watched, self._alive = self._context.Pipe(duplex=False)
        self.idle = [self._lane() for _ in range(count)]
        self.busy: dict[Future[Done], tuple[ProcessPoolExecutor, Task, int]] = {}

    def _lane(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            1, mp_context=self._context, initializer=end_with, initargs=(self._watched,)
        )

    def begin(self, task: Task, tries: int = 1) -> None:
        lane = self.idle.pop()
        self.busy[lane.submit(perform, task)] = lane, task, tries

    def ended(self) -> Iterator[Done | Lost]:
        """Wait for at least one to end; a lost one is begun again, up to so many times."""
        for future in wait(self.busy, return_when=FIRST_COMPLETED).done:
            lane, task, tries = self.busy.pop(future)
            try:
                result: Done | Lost = future.result()
            except BrokenProcessPool:
                lane.shutdown()
                self.idle.append(self._lane())
                if tries < TRIES:
                    self.begin(task, tries + 1)
                    continue
                result = Lost(task)
            else:
                self.idle.append(lane)
            yield result

    def close(self) -> None:
        """End every process, now."""
        self._alive.close()
        for lane in [*self.idle, *(lane for lane, _, _ in self.busy.values())]:
            lane.shutdown(wait=True, cancel_futures=True)
        self._watched.close()
