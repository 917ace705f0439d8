"""Batches made by the workers of a Dask cluster, of this machine or of many."""

from __future__ import annotations

import contextlib
import logging
import signal
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any

from ebbtide.distributed.engines import TRIES, Lost
from ebbtide.distributed.work import Done, Task, perform
from ebbtide.errors import ExternalError
from ebbtide.extras import MissingExtraError

try:
    import dask
    import distributed as untyped
except ImportError as error:
    raise MissingExtraError(error, "dask") from error

distributed: Any = untyped

__all__ = ["DaskEngine"]

_PATIENCE = 60
"""Seconds that a scheduler, and its first worker, may take to be there."""


class _Quiet(untyped.WorkerPlugin):
    """A worker for which Ctrl-C is nothing: what follows from it is the caller's to say."""

    def setup(self, worker: Any) -> None:
        with contextlib.suppress(ValueError):  # where it is a thread, signals do not reach it
            signal.signal(signal.SIGINT, signal.SIG_IGN)


class DaskEngine:
    """The workers of a scheduler, or of a cluster that is started on this machine.

    A worker that ends takes its batch with it; the scheduler gives it to another one.
    """

    def __init__(self, scheduler: str | None, workers: int) -> None:
        """Connect to nothing yet.

        Args:
            scheduler: Address like ``tcp://10.0.0.5:8786``; None starts a cluster on
                127.0.0.1, without its dashboard, and ends it with the run.
            workers: Processes of the cluster that is started.
        """
        self._scheduler = scheduler
        self._workers = workers

    def run(self, tasks: Iterable[Task]) -> Iterator[Done | Lost]:
        """Make parts of tasks; see :class:`~ebbtide.distributed.engines.Engine`.

        Raises:
            ExternalError: ``worker.failed``: there is no scheduler at the address, or no
                worker at the scheduler.
        """
        waiting = iter(tasks)
        with ExitStack() as stack:
            client = self._client(stack)
            ended: Any = distributed.as_completed(loop=client.loop)
            under_way: dict[Any, Task] = {}
            try:
                while True:
                    while len(under_way) < _room(client):
                        task = next(waiting, None)
                        if task is None:
                            break
                        future = client.submit(perform, task, pure=False, retries=TRIES - 1)
                        under_way[future] = task
                        ended.add(future)
                    if not under_way:
                        return
                    future = next(ended)
                    yield _result(future, under_way.pop(future))
            finally:
                client.cancel(list(under_way))

    def _client(self, stack: ExitStack) -> Any:
        address: Any = self._scheduler
        if address is None:
            # How often a worker may end under a batch before the batch is to blame.
            stack.enter_context(
                dask.config.set({"distributed.scheduler.allowed-failures": TRIES - 1})
            )
            address = stack.enter_context(
                distributed.LocalCluster(
                    n_workers=self._workers,
                    threads_per_worker=1,
                    host="127.0.0.1",
                    dashboard_address=None,
                    worker_dashboard_address=None,
                    silence_logs=logging.CRITICAL,
                )
            )
        try:
            client = stack.enter_context(
                distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
            )
            client.wait_for_workers(1, timeout=_PATIENCE)
            if self._scheduler is None:
                client.register_plugin(_Quiet())
        except (OSError, TimeoutError, ValueError) as error:
            message = (
                f"there is no Dask scheduler with a worker at {self._scheduler} ({error}); start "
                "both with `dask scheduler` and `dask worker`"
            )
            raise ExternalError(message, "worker.failed") from error
        return client


def _room(client: Any) -> int:
    """Batches to have under way, one a thread: a waiting one would be lost with its worker."""
    threads: dict[str, int] = client.nthreads()
    return max(1, sum(threads.values()))


def _result(future: Any, task: Task) -> Done | Lost:
    try:
        done: Done = future.result()
    except distributed.scheduler.KilledWorker:
        return Lost(task)
    return done
