"""Batches made by the workers of a Dask cluster, of this machine or of many."""

from __future__ import annotations

import contextlib
import logging
import signal
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from typing import Any

from ebbtide.distributed.engines import TRIES, Lost
from ebbtide.distributed.work import Done, Task, perform
from ebbtide.errors import ExternalError, InputError
from ebbtide.extras import MissingExtraError

try:
    import dask
    import distributed as untyped
except ImportError as error:
    raise MissingExtraError(error, "dask") from error

distributed: Any = untyped

__all__ = ["DaskEngine"]

_PATIENCE = 60
"""Seconds that a scheduler, and a worker where there is none, may take to be there."""
_LOOK = 1
"""Seconds after which it is looked whether there is a worker still."""


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

        Raises:
            InputError: If nothing can be reached by such an address, or only with settings
                of Dask's that are missing.
        """
        if scheduler is not None:
            _check(scheduler)
        self._scheduler = scheduler
        self._workers = workers

    def run(self, tasks: Iterable[Task]) -> Generator[Done | Lost, None, None]:
        """Make parts of tasks; see :class:`~ebbtide.distributed.engines.Engine`.

        Raises:
            ExternalError: ``worker.failed``: there is no scheduler at the address, or no
                worker at the scheduler for so long, or the scheduler ended.
        """
        waiting = iter(tasks)
        with ExitStack() as stack:
            # What is to be said of a scheduler that ends is said once, and in a sentence.
            stack.enter_context(distributed.utils.silence_logging_cmgr(logging.CRITICAL))
            client = self._client(stack)
            under_way: dict[Any, Task] = {}
            # What cannot be cancelled must not hide why it was to be.
            stack.callback(_cancel, client, under_way)
            while True:
                with self._there():
                    while len(under_way) < _room(client):
                        task = next(waiting, None)
                        if task is None:
                            break
                        future = client.submit(perform, task, pure=False, retries=TRIES - 1)
                        under_way[future] = task
                    if not under_way:
                        return
                    future = _ended(client, under_way)
                    result = _result(future, under_way.pop(future))
                yield result

    @contextmanager
    def _there(self) -> Iterator[None]:
        """Whatever comes of a scheduler that ends is one error that says what to do."""
        gone = (OSError, CancelledError, distributed.client.FutureCancelledError)
        try:
            yield
        except gone as error:
            message = (
                f"the Dask scheduler at {self._scheduler or '127.0.0.1'} ended ({error}); parts "
                "that are done are kept: start it, and run the same command again"
            )
            raise ExternalError(message, "worker.failed") from error

    def _client(self, stack: ExitStack) -> Any:
        address: Any = self._scheduler
        if address is None:
            # How often a worker may end under a batch before the batch is to blame.
            stack.enter_context(
                dask.config.set({"distributed.scheduler.allowed-failures": TRIES - 1})
            )
            address = stack.enter_context(_cluster(self._workers))
        try:
            client = stack.enter_context(
                distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
            )
            client.wait_for_workers(1, timeout=_patience())
            if self._scheduler is None:
                client.register_plugin(_Quiet())
        except (OSError, TimeoutError, TypeError, ValueError) as error:
            message = (
                f"there is no Dask scheduler with a worker at {self._scheduler} ({error}); start "
                "both with `dask scheduler` and `dask worker`"
            )
            raise ExternalError(message, "worker.failed") from error
        return client


def _check(address: str) -> None:
    """Refuse what a client would fail at in a way that it does not get over."""
    from distributed.comm.addressing import parse_address
    from distributed.comm.registry import get_backend

    try:
        scheme, place = parse_address(address)
        backend: Any = get_backend(scheme)
        backend.get_address_host_port(place)
    except (NotImplementedError, ValueError) as error:
        message = f"a Dask scheduler has an address like tcp://10.0.0.5:8786, not {address!r}"
        raise InputError(message, "input.field") from error
    secure = scheme in ("tls", "wss")
    try:
        settings = distributed.Security().get_connection_args("client")
        known = settings.get("ssl_context") is not None
        sound = known if secure else not settings.get("require_encryption")
        why = "distributed.comm.tls is not set" if secure else "its settings ask for encryption"
    except (OSError, ValueError) as error:
        sound, why = not secure, str(error)
    if not sound:
        message = f"{address} cannot be reached with Dask's own settings of TLS: {why}"
        raise InputError(message, "input.field")


def _cluster(workers: int) -> Any:
    """A cluster on this machine."""
    before = set(_clusters())
    try:
        return distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=None,
            worker_dashboard_address=None,
            silence_logs=logging.CRITICAL,
        )
    except BaseException:
        # Dask closes at exit what is half made, and insists that every worker was there once.
        for cluster in set(_clusters()) - before:
            cluster.shutdown_on_close = False
            with contextlib.suppress(AssertionError, TimeoutError):
                cluster.close(timeout=_PATIENCE)
        raise


def _clusters() -> Iterable[Any]:
    """Those that Dask would close at exit."""
    found: Iterable[Any] = getattr(distributed.SpecCluster, "_instances", ())
    return found


def _cancel(client: Any, under_way: Mapping[Any, Task]) -> None:
    with contextlib.suppress(OSError, CancelledError, distributed.client.FutureCancelledError):
        client.cancel(list(under_way))


def _room(client: Any) -> int:
    """Batches to have under way, one a thread: a waiting one would be lost with its worker."""
    threads: dict[str, int] = client.nthreads()
    return max(1, sum(threads.values()))


def _patience() -> float:
    """Seconds to do without a worker: Dask's own setting of it, where there is one."""
    given = dask.config.get("distributed.scheduler.no-workers-timeout", None)
    return _PATIENCE if given is None else float(dask.utils.parse_timedelta(given))


def _ended(client: Any, under_way: Mapping[Any, Task]) -> Any:
    """The first of them to end.

    Raises:
        ExternalError: ``worker.failed``: there was no worker for too long.
    """
    seen = time.monotonic()
    while True:
        with contextlib.suppress(TimeoutError), client.as_current():
            waited = distributed.wait(list(under_way), _LOOK, return_when="FIRST_COMPLETED")
            return next(future for future in under_way if future in waited.done)
        if client.nthreads():
            seen = time.monotonic()
        elif time.monotonic() - seen > _patience():
            raise _deserted()


def _deserted() -> ExternalError:
    message = (
        "the Dask scheduler had no worker for too long (distributed.scheduler.no-workers-timeout "
        "in Dask's settings says how long, a minute without it); parts that are done are kept: "
        "start workers with `dask worker`, and run the same command again"
    )
    return ExternalError(message, "worker.failed")


def _result(future: Any, task: Task) -> Done | Lost:
    try:
        done: Done = future.result()
    except distributed.scheduler.KilledWorker:
        return Lost(task)
    except distributed.scheduler.NoValidWorkerError:  # the scheduler was quicker to say so
        raise _deserted() from None
    return done
