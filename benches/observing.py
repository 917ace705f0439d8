"""What it costs a call that nobody watches: nanoseconds more than the bare method.

python benches/observing.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ebbtide.observing import Watch, observed

CALLS, ROUNDS = 200_000, 7


class Bare:
    """A memory as far as it matters here, with a method that does nothing."""

    _watch = Watch("bench")

    def bare(self, text: str, *, limit: int) -> None: ...

    watched = observed("bench")(bare)


def nanoseconds(call: Callable[..., None]) -> float:
    """Processor time of one call, the best of several rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time_ns()
        for _ in range(CALLS):
            call("tea", limit=3)
        best = min(best, (time.process_time_ns() - start) / CALLS)
    return best


if __name__ == "__main__":
    memory = Bare()
    bare, watched = nanoseconds(memory.bare), nanoseconds(memory.watched)
    print(f"bare {bare:.0f} ns, watched by nobody {watched:.0f} ns")
