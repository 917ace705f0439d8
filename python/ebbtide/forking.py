"""Locks that a forked child finds free."""

from __future__ import annotations

import os
import threading
import weakref

__all__ = ["RenewedLock"]


class RenewedLock:
    """A lock, to be taken with ``with``; a thread may take it again while it has it.

    A child has one of its parent's threads: what another one had taken would stay taken for
    good, so the child has a new lock. What it guards must bear that its taker never went on:
    a model that is loaded once, or a parser whose vocabulary only grows.
    """

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        """Make it, free."""
        self._lock = threading.RLock()
        _made.add(self)

    def __enter__(self) -> None:
        """Wait for it and take it."""
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        """Give it back."""
        self._lock.release()

    def _renew(self) -> None:
        # What the thread that forked has taken itself, it gives back.
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._lock = threading.RLock()


_made: weakref.WeakSet[RenewedLock] = weakref.WeakSet()


def _renew_all() -> None:
    for lock in list(_made):
        lock._renew()


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(after_in_child=_renew_all)
