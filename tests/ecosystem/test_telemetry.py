"""OpenTelemetry and the log: what they are told of a memory's calls, and what they are not."""

from __future__ import annotations

import asyncio
import inspect
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from ebbtide import AsyncMemory, Config, InputError, Memory, NotFoundError, Store, StoreError, Turn
from ebbtide.observing import Outcome
from ebbtide.pipeline import BackgroundFlush
from ebbtide.replay import replay
from ebbtide.telemetry import instrument, uninstrument

SECRET = "swordfish"
TURNS = [{"content": f"tea {i} and {SECRET}", "id": f"t{i}"} for i in range(5)]


class Seen:
    """An exporter of spans and a reader of metrics, in memory."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider([self.reader])

    def watch(self, target: Any) -> Any:
        return instrument(target, tracer_provider=self.tracers, meter_provider=self.meters)

    def names(self) -> list[str]:
        return [span.name for span in self.exporter.get_finished_spans()]

    def last(self) -> Any:
        return self.exporter.get_finished_spans()[-1]

    def points(self, name: str) -> list[Any]:
        data = self.reader.get_metrics_data()
        every = [] if data is None else data.resource_metrics
        return [
            point
            for resource in every
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]

    def value(self, name: str) -> int:
        return sum(point.value for point in self.points(name))


@pytest.fixture
def seen() -> Iterator[Seen]:
    seen = Seen()
    yield seen
    seen.tracers.shutdown()
    seen.meters.shutdown()


def test_each_call_has_a_span_with_its_numbers(stub: Config, seen: Seen) -> None:
    with Memory.in_memory(config=stub) as memory:
        seen.watch(memory)
        memory.add_many(TURNS)
        attributes = seen.last().attributes
        assert attributes["ebbtide.namespace"] == "default"
        assert (attributes["ebbtide.accepted"], attributes["ebbtide.duplicates"]) == (5, 0)
        memory.add("tea 0 again", external_id="t0")
        assert seen.last().attributes["ebbtide.duplicates"] == 1
        found = memory.retrieve("tea?", limit=3)
        assert seen.last().attributes["ebbtide.evidence"] == len(found) > 0
        rendered = memory.context("tea?", max_tokens=50)
        assert seen.last().attributes["ebbtide.tokens"] == rendered.tokens
        assert memory.render_context("tea?", max_tokens=50) == rendered.text
        memory.trace("tea?")
        memory.relate(1, "corrects", 0)
        memory.delete(4)
        for before in ("1970-01-01", "1970-01-02"):
            gone = memory.forget(before=before)
            assert seen.last().attributes["ebbtide.turns"] == len(gone)
            assert "ebbtide.evidence" not in seen.last().attributes
        memory.reindex()
    assert seen.names() == [
        "ebbtide.add_many",
        "ebbtide.add",
        "ebbtide.recall",
        "ebbtide.render",
        "ebbtide.render",
        "ebbtide.trace",
        "ebbtide.relate",
        "ebbtide.delete",
        "ebbtide.forget",
        "ebbtide.forget",
        "ebbtide.flush",
        "ebbtide.reindex",
    ]
    flush, reindex = seen.exporter.get_finished_spans()[-2:]
    assert flush.parent.span_id == reindex.context.span_id


def test_metrics_say_what_the_reports_say(stub: Config, seen: Seen) -> None:
    small = stub.replace(capacity={"token_budget": 40, "protect_last": 1})
    with Memory.in_memory(config=small) as memory:
        memory.add("tea before anyone watched")
        seen.watch(memory)
        before = memory.stats()["active_tokens"]
        assert seen.value("ebbtide.tokens.active") == before > 0
        report = memory.add_many({"content": f"turn {i} is about the garden"} for i in range(20))
        memory.add_many(TURNS)
        memory.add_many(TURNS)
        assert seen.value("ebbtide.turns.accepted") == 25
        assert seen.value("ebbtide.turns.duplicates") == 5
        reasons = {p.attributes["ebbtide.reason"] for p in seen.points("ebbtide.turns.evicted")}
        assert "budget" in reasons <= {"budget", "hard_kill"}
        assert seen.value("ebbtide.turns.evicted") >= len(report.evicted) > 0
        assert seen.value("ebbtide.turns.evicted") == memory.stats()["archived"]
        assert seen.value("ebbtide.tokens.active") == memory.stats()["active_tokens"]
        memory.delete(memory.stats()["next_id"] - 1)
        assert seen.value("ebbtide.tokens.active") == memory.stats()["active_tokens"]
        memory.retrieve("tea?")
        calls = {
            point.attributes["ebbtide.operation"]: point.count
            for point in seen.points("ebbtide.operation.duration")
        }
        assert calls == {"add_many": 3, "delete": 1, "recall": 1}
    assert seen.value("ebbtide.tokens.active") == 0


def test_tokens_go_with_what_is_erased(stub: Config, seen: Seen) -> None:
    with Memory.in_memory(config=stub) as memory:
        seen.watch(memory)
        memory.add_many(TURNS)
        tokens = memory.stats()["active_tokens"]
        for erase in (
            lambda: memory.forget(ids=[0]),
            lambda: memory.retain(max_records=2),
            lambda: memory.delete(4),
        ):
            erase()
            assert tokens > memory.stats()["active_tokens"] > 0
            tokens = memory.stats()["active_tokens"]
            assert seen.value("ebbtide.tokens.active") == tokens


def test_journalled_turns_are_counted_once(stub: Config, seen: Seen, store_path: Path) -> None:
    with Memory.open(store_path, config=stub) as memory:
        seen.watch(memory)
        for i in range(3):
            memory.add(f"tea {i}", wait="journalled")
        memory.flush()
        assert seen.value("ebbtide.turns.accepted") == 3
        assert seen.value("ebbtide.tokens.active") == memory.stats()["active_tokens"] > 0
    names = seen.names()
    assert names.count("ebbtide.add") == names.count("ebbtide.journal") == 3
    assert 1 <= names.count("ebbtide.flush") <= 3


def test_a_replay_has_a_span_of_its_own(stub: Config, seen: Seen) -> None:
    turns = [Turn(f"tea {i}", external_id=f"t{i}") for i in range(70)]
    with Memory.in_memory(config=stub) as memory:
        seen.watch(memory)
        replay(memory, turns)
        replay(memory, turns[:10])
        assert seen.names() == ["ebbtide.replay", "ebbtide.replay"]
        assert seen.last().attributes["ebbtide.duplicates"] == 10
        assert seen.value("ebbtide.turns.accepted") == 70
        assert seen.value("ebbtide.turns.duplicates") == 10
        with pytest.raises(InputError):
            replay(memory, [Turn("tea 70"), Turn("x", timestamp="someday")])
        assert seen.last().attributes["error.type"] == "input.timestamp"
        assert seen.value("ebbtide.turns.accepted") == 71

        def broken() -> Iterator[Turn]:
            yield Turn("tea 71")
            raise RuntimeError(SECRET)

        with pytest.raises(RuntimeError):
            replay(memory, broken())
        assert seen.last().attributes["error.type"] == "RuntimeError"


def test_nothing_said_leaves_the_process(
    stub: Config, seen: Seen, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "ebbtide")
    with Memory.in_memory(config=stub) as memory:
        seen.watch(memory)
        memory.add_many(TURNS)
        memory.retrieve(f"What about {SECRET}?")
        memory.trace(f"What about {SECRET}?")
        with pytest.raises(InputError):
            memory.add("tea", timestamp=SECRET)
        failed = seen.last()
        with pytest.raises(NotFoundError):
            memory.delete(external_id=SECRET)
    assert failed.status.status_code is StatusCode.ERROR
    assert (failed.status.description, len(failed.events)) == (None, 0)
    assert failed.attributes["error.type"] == "input.timestamp"
    spans = "".join(span.to_json() for span in seen.exporter.get_finished_spans())
    logged = "".join(str(vars(record)) + record.getMessage() for record in caplog.records)
    data = seen.reader.get_metrics_data()
    assert data is not None
    assert "error.type" in data.to_json()
    for told in (spans, logged, data.to_json()):
        assert told
        assert SECRET not in told


def test_spans_are_part_of_the_trace_of_their_caller(stub: Config, seen: Seen) -> None:
    tracer = seen.tracers.get_tracer("app")

    async def main() -> None:
        async with AsyncMemory.in_memory(config=stub) as memory:
            seen.watch(memory)
            with tracer.start_as_current_span("request"):
                await memory.add("tea")
                await asyncio.gather(memory.retrieve("tea?"), memory.retrieve("garden?"))

    asyncio.run(main())
    *calls, request = seen.exporter.get_finished_spans()
    assert sorted(span.name for span in calls) == [
        "ebbtide.add",
        "ebbtide.recall",
        "ebbtide.recall",
    ]
    assert {span.parent.span_id for span in calls} == {request.context.span_id}


def test_a_store_passes_it_on_until_it_is_told_otherwise(
    stub: Config, seen: Seen, store_path: Path
) -> None:
    with Store.open(store_path, config=stub) as store:
        store.memory("ana").add("tea")
        seen.watch(store)
        store.memory("ana").add("cat")
        store.memory("ben").add("cat")
        assert seen.names() == ["ebbtide.add"] * 2
        both = sum(store.memory(name).stats()["active_tokens"] for name in ("ana", "ben"))
        assert seen.value("ebbtide.tokens.active") == both
        store.release("ben")
        left = store.memory("ana").stats()["active_tokens"]
        assert seen.value("ebbtide.tokens.active") == left
        seen.watch(store)
        assert seen.value("ebbtide.tokens.active") == left
        uninstrument(store)
        store.memory("ana").add("garden")
        store.memory("cleo").add("garden")
        assert seen.value("ebbtide.tokens.active") == 0
    assert seen.names() == ["ebbtide.add"] * 2


def test_the_global_providers_are_the_default(stub: Config) -> None:
    with instrument(Memory.in_memory(config=stub)) as memory:
        assert memory.add("tea").accepted == 1  # no SDK set up: nothing goes anywhere


def test_watching_changes_no_memory(stub: Config, seen: Seen) -> None:
    digests = set()
    for watched in (False, True):
        with Memory.in_memory(config=stub) as memory:
            if watched:
                seen.watch(memory)
            memory.add_many(TURNS)
            digests.add(memory.digest())
    assert len(digests) == 1


def test_the_log_has_a_record_a_call_with_its_fields(
    stub: Config, caplog: pytest.LogCaptureFixture
) -> None:
    with Memory.in_memory(config=stub) as memory:
        memory.add("tea")
        assert caplog.records == []
        caplog.set_level(logging.DEBUG, "ebbtide")
        memory.add("tea", external_id="a")
        with pytest.raises(NotFoundError):
            memory.delete(99)
    store, add, failed = caplog.records
    assert {record.name for record in caplog.records} == {"ebbtide.operations"}
    assert {record.levelname for record in caplog.records} == {"DEBUG"}
    fields: Any = vars(add)
    assert fields["event"] == "memory.add"
    assert (fields["namespace"], fields["accepted"], fields["error"]) == ("default", 1, None)
    assert fields["seconds"] > 0
    assert vars(store)["event"] == "memory.store"
    assert vars(failed)["error"] == "not_found.turn"
    assert add.getMessage().startswith("add in ")


def test_a_flush_that_fails_in_the_background_is_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Failing:
        def flush(self) -> None:
            raise StoreError(SECRET, "store.io")

    failing = Failing()
    flush = BackgroundFlush(failing.flush)
    flush.wake()
    flush.stop()
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("ebbtide.pipeline", "WARNING")
    assert (vars(record)["event"], vars(record)["error"]) == ("flush.failed", "store.io")
    assert SECRET not in record.getMessage()


def test_facts_never_hide_a_field_of_the_log() -> None:
    taken = set(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
    fields = {"event", "namespace", "seconds", "error", "accepted", "tokens", "evidence", "turns"}
    assert not taken & fields
    assert list(inspect.signature(Outcome).parameters) == ["seconds", "facts", "error"]


def test_without_it_nothing_is_imported_and_calls_keep_their_signatures() -> None:
    code = (
        "import sys, ebbtide\n"
        "with ebbtide.Memory.in_memory() as memory:\n    memory.stats()\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert "wait" in inspect.signature(Memory.add).parameters
    assert (Memory.retrieve.__doc__ or "").startswith("Turns that answer a question")
