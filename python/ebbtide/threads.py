"""Threads where a process ends: told to by a signal, or after its main thread did."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    import asyncio

__all__ = [
    "amid_work",
    "awaited",
    "begun",
    "in_passing",
    "settled",
    "submitted",
    "when_told_to_end",
]

_AT_WORK = ("analysis", "ann", "llm", "observing", "pipeline", "telemetry", "writing")
"""What takes locks that the threads behind a memory need, too, or calls what does."""

_ENDS = ("SIGINT", "SIGTERM", "SIGBREAK", "SIGHUP")
"""Signals that tell a process to end; a system has some of them."""

_P = ParamSpec("_P")
_R = TypeVar("_R")


def submitted(
    executor: Executor, work: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs
) -> Future[_R]:
    """``executor.submit``, or the work done here and now where no thread can be had.

    Once the main thread has ended, Python starts no thread for an executor, while other
    threads, and what was registered to be called at the end, go on. Where the system gives
    no thread the executor keeps what it refused, and would do it later: it is done once.
    """
    done: Future[_R] = Future()
    claimed = threading.Lock()

    def once() -> None:
        if not claimed.acquire(blocking=False) or not done.set_running_or_notify_cancel():
            return
        try:
            done.set_result(work(*args, **kwargs))
        except BaseException as error:
            done.set_exception(error)

    try:
        executor.submit(once).add_done_callback(lambda own: own.cancelled() and done.cancel())
    except RuntimeError:
        once()
    return done


async def awaited(work: Callable[[], _R], executor: Executor | None = None) -> _R:
    """Work done off the event loop, as by :func:`begun`, and waited for."""
    return await begun(work, executor)


def begun(work: Callable[[], _R], executor: Executor | None = None) -> asyncio.Future[_R]:
    """Work that is done off the event loop, in the caller's context.

    Args:
        work: The work; it is carried out although its caller is cancelled, once it began.
        executor: Whose thread does it; one of its own by default.
    """
    import asyncio
    import contextvars

    pool = executor or ThreadPoolExecutor(1, thread_name_prefix="ebbtide-once")
    # Whoever traces the caller finds what is done for it in its trace.
    context = contextvars.copy_context()
    future = asyncio.wrap_future(submitted(pool, context.run, work))
    if executor is None:
        # What was submitted is done, and then its thread ends.
        pool.shutdown(wait=False)
    return future


async def settled(future: asyncio.Future[Any]) -> asyncio.CancelledError | None:
    """Wait until it is done, however often the caller is cancelled; the first time is returned."""
    import asyncio

    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait({future})
        except asyncio.CancelledError as error:
            cancelled = cancelled or error
    return cancelled


def in_passing(work: Callable[[], object]) -> None:
    """Begin what somebody will need, in a thread of its own.

    What goes wrong there goes wrong again, and is told, where it is needed; so does a thread
    that the system does not give.
    """

    def quietly() -> None:
        with suppress(Exception):
            work()

    with suppress(RuntimeError):
        threading.Thread(target=quietly, name="ebbtide-in-passing").start()


def amid_work() -> bool:
    """Whether the caller came in while its own thread reads or writes a memory.

    So does a signal's handler, or what an embedder calls. Its thread may have any lock
    then, and gives none back before the caller is done: to wait for another thread that
    needs one would never end.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        package, _, rest = str(frame.f_globals.get("__name__")).partition(".")
        if package == "ebbtide" and rest.partition(".")[0] in _AT_WORK:
            return True
        frame = frame.f_back
    return False


@contextmanager
def when_told_to_end(call: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """Within the block, a signal that tells the process to end calls a function instead.

    Signals reach the main thread alone: in another one nothing is changed.
    """
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for name in _ENDS:
            number = getattr(signal, name, None)
            # What was started to outlive its terminal has the last one ignored.
            if number is None or (name == "SIGHUP" and signal.getsignal(number) is signal.SIG_IGN):
                continue
            before[number] = signal.signal(number, call)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
