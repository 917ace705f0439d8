"""What one piece of work used of a model, apart from what others use of it meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ebbtide.errors import InputError
from ebbtide.llm.replies import MOST, Usage, plausible

__all__ = ["Tally", "tallied", "used"]


class Tally:
    """A sum of what was used.

    Attributes:
        usage: The sum so far.
    """

    def __init__(self) -> None:
        """Nothing yet."""
        self.usage = Usage()


# A context and not the model: a model may be shared, and its own sums are everyone's.
_OPEN: ContextVar[tuple[Tally, ...]] = ContextVar("ebbtide_llm_tallies", default=())


@contextmanager
def tallied() -> Iterator[Tally]:
    """Sum up what this thread or task uses of any model within the block."""
    tally = Tally()
    token = _OPEN.set((*_OPEN.get(), tally))
    try:
        yield tally
    finally:
        _OPEN.reset(token)


def used(usage: Usage) -> None:
    """A model tells what a reply cost, in the thread or task that asked for it.

    Args:
        usage: What it cost, whole numbers from 0 to 2**40.

    Raises:
        InputError: ``input.field``: it is something else.
    """
    if not plausible(usage):
        message = f"used() takes a Usage of whole numbers from 0 to {MOST:,}"
        raise InputError(message, "input.field")
    for tally in _OPEN.get():
        tally.usage += usage
