"""OpenTelemetry for a memory: spans of its calls, counters of what they did.

Off unless :func:`instrument` is called. Attributes are names, numbers and error codes;
the text of a turn, a question or an error never leaves the process. docs/observability.md
lists them.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from ebbtide import _core
from ebbtide.aio import AsyncMemory
from ebbtide.extras import MissingExtraError
from ebbtide.memory import Memory
from ebbtide.observing import Ended, Outcome
from ebbtide.store import Store

try:
    from opentelemetry import context as contexts
    from opentelemetry import metrics, trace
    from opentelemetry.trace import StatusCode
except ImportError as error:
    raise MissingExtraError(error, "otel") from error

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, Tracer, TracerProvider

__all__ = ["instrument", "uninstrument"]

_T = TypeVar("_T", Memory, AsyncMemory, Store)

_COMMITS = "store"
"""One batch written: it is counted, and has no span beside that of its call."""

_DELETES = ("delete", "delete_all", "forget", "retain")

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
"""Upper bounds of the buckets of a duration."""


def instrument(
    target: _T,
    *,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
) -> _T:
    """Send spans and metrics of a memory, or of all memories of a store, from now on.

    Args:
        target: An open :class:`Memory` or :class:`AsyncMemory`; or a :class:`Store`: the
            memories that are open, and those that it opens later.
        tracer_provider: Where spans go; by default OpenTelemetry's global provider.
        meter_provider: Where metrics go; by default the global one.

    Returns:
        ``target``. Instrumenting it again replaces the providers.
    """
    tracer = trace.get_tracer("ebbtide", _core.__version__, tracer_provider)
    instruments = _Instruments(meter_provider)

    def watch(memory: Memory) -> None:
        memory._watch.set(_Telemetry(memory, tracer, instruments))

    if isinstance(target, Store):
        target._opened = watch
    for memory in _memories(target):
        watch(memory)
    return target


def uninstrument(target: _T) -> _T:
    """Send nothing more; returns ``target``."""
    if isinstance(target, Store):
        target._opened = None
    for memory in _memories(target):
        memory._watch.set(None)
    return target


def _memories(target: Memory | AsyncMemory | Store) -> list[Memory]:
    if isinstance(target, Store):
        return list(target._memories.values())
    return [target._memory if isinstance(target, AsyncMemory) else target]


class _Instruments:
    """The metrics; memories share them, so their numbers have no label for the memory."""

    def __init__(self, provider: MeterProvider | None) -> None:
        meter = metrics.get_meter("ebbtide", _core.__version__, provider)
        self.accepted = meter.create_counter(
            "ebbtide.turns.accepted", "{turn}", "Turns stored for the first time"
        )
        self.duplicates = meter.create_counter(
            "ebbtide.turns.duplicates", "{turn}", "Turns known by their external id"
        )
        self.superseded = meter.create_counter(
            "ebbtide.turns.superseded", "{turn}", "Turns that stopped being current"
        )
        self.evicted = meter.create_counter(
            "ebbtide.turns.evicted", "{turn}", "Turns archived, by reason"
        )
        self.tokens = meter.create_up_down_counter(
            "ebbtide.tokens.active", "{token}", "Tokens of the active turns of open memories"
        )
        self.duration = meter.create_histogram(
            "ebbtide.operation.duration",
            "s",
            "How long calls took, by operation",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )


class _Telemetry:
    """Watches one memory."""

    def __init__(self, memory: Memory, tracer: Tracer, instruments: _Instruments) -> None:
        self._memory = memory
        self._tracer = tracer
        self._instruments = instruments
        self._lock = threading.Lock()
        self._tokens = 0
        self._set_tokens(self._active_tokens())

    def begin(self, operation: str, *, encloses: bool) -> Ended:
        """Start a span; what is returned ends it and counts."""
        if operation == _COMMITS:
            return lambda outcome: self._count(operation, outcome)
        # An exception's message may quote a turn: the span is told its code alone.
        span = self._tracer.start_span(
            f"ebbtide.{operation}",
            attributes={"ebbtide.namespace": self._memory.namespace},
            record_exception=False,
            set_status_on_exception=False,
        )
        token = contexts.attach(trace.set_span_in_context(span)) if encloses else None

        def end(outcome: Outcome) -> None:
            if token is not None:
                contexts.detach(token)
            _finish(span, outcome)
            self._count(operation, outcome)
            self._time(operation, outcome)

        return end

    def closed(self) -> None:
        """The memory is closed, or no longer watched."""
        self._set_tokens(0)

    def _count(self, operation: str, outcome: Outcome) -> None:
        facts = outcome.facts
        # Turns are counted where they are written, so that a call that fails half way, or
        # the replay of a file, counts what it kept; duplicates are only known to the call.
        if operation in (_COMMITS, "journal", "flush", "relate"):
            self._written(facts, new=operation in (_COMMITS, "journal"))
        elif duplicates := facts.get("duplicates"):
            self._instruments.duplicates.add(duplicates)
        if operation in _DELETES and outcome.error is None:
            self._set_tokens(self._active_tokens())

    def _written(self, facts: Mapping[str, int], *, new: bool) -> None:
        if new and facts.get("accepted"):
            self._instruments.accepted.add(facts["accepted"])
        if facts.get("superseded"):
            self._instruments.superseded.add(facts["superseded"])
        for name, count in facts.items():
            if name.startswith("evicted_"):
                reason = {"ebbtide.reason": name.removeprefix("evicted_")}
                self._instruments.evicted.add(count, reason)
        if "active_tokens" in facts:
            self._set_tokens(facts["active_tokens"])

    def _time(self, operation: str, outcome: Outcome) -> None:
        attributes = {"ebbtide.operation": operation}
        if outcome.error is not None:
            attributes["error.type"] = outcome.error
        self._instruments.duration.record(outcome.seconds, attributes)

    def _active_tokens(self) -> int:
        return int(self._memory.stats()["active_tokens"])

    def _set_tokens(self, tokens: int) -> None:
        with self._lock:
            change, self._tokens = tokens - self._tokens, tokens
            if change:
                self._instruments.tokens.add(change)


def _finish(span: Span, outcome: Outcome) -> None:
    span.set_attributes({f"ebbtide.{name}": value for name, value in outcome.facts.items()})
    if outcome.error is not None:
        span.set_attribute("error.type", outcome.error)
        span.set_status(StatusCode.ERROR)
    span.end()
