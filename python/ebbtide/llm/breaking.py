"""A circuit breaker: an endpoint that is gone is not asked for every turn."""

from __future__ import annotations

import threading

__all__ = ["CircuitBreaker"]


class CircuitBreaker:
    """Says whether to ask, by counting and not by a clock: so it decides the same in every run.

    Safe to share between threads.
    """

    def __init__(self, failures: int, skipped: int) -> None:
        """Ask from now on.

        Args:
            failures: So many in a row open it; 0 never does.
            skipped: Requests that it then keeps back before one is tried again.
        """
        self._most = failures
        self._skipped = skipped
        self._failures = 0
        self._left = 0
        self._reason = ""
        self._lock = threading.Lock()

    def refusal(self) -> str | None:
        """Why not to ask: what was said of the last failure; None: ask."""
        with self._lock:
            if not self._most or self._failures < self._most:
                return None
            if self._left == 0:
                # While this one is tried, other threads are kept back.
                self._left = self._skipped
                return None
            self._left -= 1
            return self._reason

    def tell(self, failure: str | None) -> None:
        """What came of asking: why nobody was there; None: somebody answered, whatever it was."""
        with self._lock:
            if failure is None:
                self._failures = 0
            else:
                self._failures += 1
                self._left, self._reason = self._skipped, failure
