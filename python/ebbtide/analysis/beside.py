"""One thread beside the caller's, shared by all who use it, gone with the last of them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

__all__ = ["Beside", "Task"]


class Task:
    """Work for the thread, and for whoever waits for its result."""

    def __init__(
        self,
        future: Future[Any],
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        help_with: Callable[[], bool],
    ) -> None:
        """Hold what is under way in ``future``."""
        self._future = future
        self._function = function
        self._arguments = arguments
        self._help = help_with

    def result(self) -> Any:
        """What came of it, once: work that has not begun is done here.

        What has begun is helped with, unless others have work for the thread too: two threads
        at one text go in step, which pays only where each has a processor of its own.
        """
        if self._future.cancel():
            Beside._left()
            return self._function(*self._arguments)
        while not self._future.done() and Beside._waiting == 0 and self._help():
            pass
        return self._future.result()


def _nothing() -> bool:
    return False


class Beside:
    """A user's share of the thread; it starts at the first ``submit`` of anyone.

    spaCy and the embedder read one turn side by side: two threads are enough for
    that, however many memories a process has open.
    """

    _lock = threading.Lock()
    _executor: ThreadPoolExecutor | None = None
    _users = 0
    _waiting = 0
    """Tasks that nobody has begun."""

    def __init__(self, help_with: Callable[[], bool] = _nothing) -> None:
        """Take no thread yet.

        Args:
            help_with: Called by who waits for the thread, again and again while it is true;
                it helps the thread for a moment.
        """
        self._help = help_with
        self._taken = False

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Task:
        """Have a function run by the shared thread, or by who asks for its result first."""
        with Beside._lock:
            if not self._taken:
                self._taken = True
                Beside._users += 1
            if Beside._executor is None:
                Beside._executor = ThreadPoolExecutor(1, thread_name_prefix="ebbtide-beside")
            try:
                future = Beside._executor.submit(Beside._begun, function, *arguments)
            except RuntimeError:
                # The main thread has ended: Python starts no thread any more, and who
                # asks for the result does the work.
                future, Beside._executor = Future(), None
            Beside._waiting += 1
        # The thread begins now: else it waits for the interpreter until this one pauses.
        time.sleep(0)
        return Task(future, function, arguments, self._help)

    def close(self) -> None:
        """Give it up; the last user waits for the thread to end."""
        ended = None
        with Beside._lock:
            if self._taken:
                self._taken = False
                Beside._users -= 1
                if Beside._users == 0:
                    ended, Beside._executor = Beside._executor, None
        if ended is not None:
            ended.shutdown(wait=True)

    @staticmethod
    def _begun(function: Callable[..., Any], *arguments: Any) -> Any:
        Beside._left()
        return function(*arguments)

    @staticmethod
    def _left() -> None:
        with Beside._lock:
            Beside._waiting -= 1

    @staticmethod
    def _forget() -> None:
        """In a forked child no thread is left: the next use starts one."""
        Beside._lock = threading.Lock()
        Beside._executor = None
        Beside._waiting = 0


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(after_in_child=Beside._forget)
