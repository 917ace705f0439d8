"""How many processes are worth starting."""

from __future__ import annotations

import os

__all__ = ["usable_cores"]


def usable_cores() -> int:
    """Cores that this process may run on, 1 or more.

    Where the system does not keep a process to some of them, or does not tell (macOS,
    Windows), these are all that the machine has.
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
