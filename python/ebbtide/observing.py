"""What a memory tells whoever watches it: that a call began, and how it ended.

Nobody watches by default, and then a call costs one look at an attribute more.
``ebbtide.telemetry`` watches with OpenTelemetry; a logger is enough to see the calls
go by. Neither is ever told the text of a turn or a question.
"""

from __future__ import annotations

import functools
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from ebbtide.errors import EbbtideError
from ebbtide.types import RenderedContext, WriteReport

__all__ = [
    "Ended",
    "Observer",
    "Outcome",
    "Watch",
    "begin",
    "facts_of",
    "name_of",
    "observed",
    "scrubbed",
]

_LOG = logging.getLogger("ebbtide.operations")
_ERASING = logging.getLogger("ebbtide.erasing")


def scrubbed(done: bool) -> None:
    """Warn where what was erased is still in the store's write-ahead log.

    No error: the turns are gone, and whoever would erase them again found none.
    """
    if not done:
        _ERASING.warning(
            "another process reads the store as it was: the write-ahead log keeps what was"
            " erased until a later write finds it done, or the store is closed",
            extra={"event": "erase.delayed"},
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended.

    Attributes:
        seconds: How long it took.
        facts: Numbers about its result, by name, such as ``accepted``.
        error: The code of an :class:`EbbtideError`, or the name of another exception's
            class; None where it went well. Never a message: those quote what was given.
    """

    seconds: float
    facts: Mapping[str, int]
    error: str | None = None


Ended = Callable[[Outcome], None]


class Observer(Protocol):
    """Someone who watches a memory's calls; called from whichever thread makes them."""

    def begin(self, operation: str, *, encloses: bool) -> Ended:
        """A call began; what is returned is called once, when it ended.

        Args:
            operation: Such as ``"add"`` or ``"recall"``.
            encloses: It ends on this thread before anything that began earlier does, so
                that what happens meanwhile is part of it.
        """
        ...

    def closed(self) -> None:
        """The memory was closed; nothing more will begin."""
        ...


class Watch:
    """Who watches one memory; its parts share it.

    Attributes:
        namespace: The memory's name.
        observer: Who is told of its calls; None where nobody is.
    """

    def __init__(self, namespace: str) -> None:
        """Nobody yet."""
        self.namespace = namespace
        self.observer: Observer | None = None

    def set(self, observer: Observer | None) -> None:
        """Have another one watch; the one before is told that nothing more will begin."""
        before, self.observer = self.observer, observer
        if before is not None:
            before.closed()

    def close(self) -> None:
        """The memory is closed."""
        self.set(None)


class Watched(Protocol):
    """A part of a memory, as far as it matters here."""

    _watch: Watch


_W = TypeVar("_W", bound=Watched)
_P = ParamSpec("_P")
_R = TypeVar("_R")


def observed(
    operation: str,
) -> Callable[[Callable[Concatenate[_W, _P], _R]], Callable[Concatenate[_W, _P], _R]]:
    """Tell the memory's observer, and the log at level DEBUG, of every call of a method."""

    def decorate(method: Callable[Concatenate[_W, _P], _R]) -> Callable[Concatenate[_W, _P], _R]:
        @functools.wraps(method)
        def call(self: _W, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
            if self._watch.observer is None and not _LOG.isEnabledFor(logging.DEBUG):
                return method(self, *args, **kwargs)
            end = begin(self._watch, operation)
            try:
                result = method(self, *args, **kwargs)
            except BaseException as error:
                end({}, error)
                raise
            end(facts_of(operation, result), None)
            return result

        return call

    return decorate


def begin(
    watch: Watch, operation: str, *, encloses: bool = True
) -> Callable[[Mapping[str, int], BaseException | None], None]:
    """Tell that something began; what is returned tells its facts, or its error, at the end."""
    ended = None
    if watch.observer is not None:
        ended = watch.observer.begin(operation, encloses=encloses)
    start = time.perf_counter()

    def end(facts: Mapping[str, int], error: BaseException | None) -> None:
        name = None if error is None else name_of(error)
        outcome = Outcome(time.perf_counter() - start, facts, name)
        if ended is not None:
            ended(outcome)
        if _LOG.isEnabledFor(logging.DEBUG):
            _log(watch.namespace, operation, outcome)

    return end


def facts_of(operation: str, result: Any) -> dict[str, int]:
    """Numbers about what a method of a memory returned; no text."""
    match result:
        case WriteReport():
            return {
                "accepted": result.accepted,
                "duplicates": result.duplicates,
                "superseded": len(result.superseded),
                "evicted": len(result.evicted),
                "active_tokens": result.active_tokens,
            } | {
                f"evicted_{reason}": count
                for reason, count in sorted(Counter(e.reason for e in result.evicted).items())
            }
        case RenderedContext():
            return {"shown": len(result.shown), "tokens": result.tokens}
        case {"candidates": candidates, "evidence": evidence}:
            return {"candidates": len(candidates), "evidence": len(evidence)}
        case list():
            return {"evidence" if operation == "recall" else "turns": len(result)}
        case int():
            return {"turns": result}
    return {}


def name_of(error: BaseException) -> str:
    """What an error is called where its message must not be seen: its code, or its class."""
    return error.code if isinstance(error, EbbtideError) else type(error).__name__


def _log(namespace: str, operation: str, outcome: Outcome) -> None:
    _LOG.debug(
        "%s in %.1f ms%s",
        operation,
        1e3 * outcome.seconds,
        "" if outcome.error is None else f": {outcome.error}",
        extra={
            **outcome.facts,
            "event": f"memory.{operation}",
            "namespace": namespace,
            "seconds": outcome.seconds,
            "error": outcome.error,
        },
    )
