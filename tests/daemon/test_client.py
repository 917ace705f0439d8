"""A memory behind the daemon is the memory: same calls, same answers, same errors."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from reference.stand_ins import scripted

import ebbtide
from ebbtide import Config, EbbtideError, Memory, Turn
from ebbtide.daemon import transport

from .conftest import Served

NAMES = ["100%", "a/b", "a%2Fb", "O'Brien", "foo", "foo_bar", "foo%bar", "..", "", " ", "?x=1&y#z"]
NAMES += ["Zoë 東京", "a+b", "a b", '"quoted"', "\\", "%", "new\nline"]


def plain(data: Any) -> Any:
    """Data as JSON gives it back: lists for tuples."""
    return json.loads(json.dumps(data))


def test_every_answer_is_the_one_in_process(served: Served, stub: Config) -> None:
    turns = [scripted(n) for n in range(60)]
    with Memory.in_memory(config=stub) as here, served.connect() as there:
        assert there.add(**turns[0]) == here.add(**turns[0])
        assert there.add(**turns[0]) == here.add(**turns[0])  # known by its id
        assert there.add_many(turns) == here.add_many(turns)
        assert list(there.turns()) == list(here.turns())
        assert list(there.turns(state="archived", first=3)) == list(
            here.turns(state="archived", first=3)
        )
        assert len(there) == len(here) == 60
        for question in ("the port", "what is the tea?", "deploy friday plan"):
            assert there.retrieve(question) == here.retrieve(question)
            options: dict[str, Any] = {
                "limit": 5,
                "preset": "paper",
                "query_time": datetime(2024, 1, 2, tzinfo=UTC),
                "filters": {"speaker": "Ana", "until": date(2024, 1, 2)},
            }
            assert there.retrieve(question, **options) == here.retrieve(question, **options)
            assert there.retrieve(question, max_tokens=40) == here.retrieve(question, max_tokens=40)
            assert there.context(question) == here.context(question)
            assert there.render_context(question, max_tokens=99, include_active=False) == (
                here.render_context(question, max_tokens=99, include_active=False)
            )
            assert there.trace(question) == plain(here.trace(question))
        assert there.relate(5, "corrects", 4) == here.relate(5, "corrects", 4)
        for number in (0, 4, 5, 59):
            assert there.get(number) == here.get(number)
            assert there.explain(number) == plain(here.explain(number))
            assert there.history(number) == here.history(number)
        assert there.get(external_id="t7") == there.get("t7") == here.get("t7")
        there.delete(external_id="t7")
        here.delete(external_id="t7")
        asked: dict[str, Any]
        kept: dict[str, Any]
        for asked in (
            {"query_text": "the port", "limit": 3, "dry_run": True},
            {"query_text": "the port", "limit": 3, "before": datetime(2024, 1, 1, 12, tzinfo=UTC)},
            {"ids": (20, "t21")},
            {"ids": 22},
            {"before": "2024-01-01T10:05:00Z"},
        ):
            erased = here.forget(**asked)
            assert there.forget(**asked) == erased != []
        for kept in (
            {"max_records": 30, "dry_run": True},
            {"max_records": 40},
            {"max_age": timedelta(minutes=35), "now": datetime(2024, 1, 1, 11, tzinfo=UTC)},
            {"max_age": 1800, "now": "2024-01-01T11:00:00Z", "max_records": 5},
        ):
            erased = here.retain(**kept)
            assert there.retain(**kept) == erased != []
        there.flush()
        assert there.stats() == plain(here.stats())
        assert there.digest() == here.digest()
        there.delete_all()
        here.delete_all()
        assert there.digest() == here.digest()
    with Memory.open(served.store, config=stub, read_only=True) as stored:
        assert len(stored) == 0


TIMES: list[Any] = [
    "2024-06-01",
    "2024-06-01T10:00",
    datetime(2024, 6, 1, 10, 0, 0, 123456),
    datetime(2024, 6, 1, 10, tzinfo=timezone(timedelta(hours=-3, minutes=-30))),
    date(2024, 6, 1),
    1717236000,
    1717236000.25,
]


def test_times_are_stored_as_in_process(start: Callable[..., Served], stub: Config) -> None:
    with Memory.in_memory(config=stub) as here, start().connect() as there:
        for memory in (here, there):
            for given in TIMES:
                memory.add("Tea.", timestamp=given)
            memory.add_many([Turn("Coffee.", timestamp=given) for given in TIMES])
        assert list(there.turns()) == list(here.turns())
        assert there.digest() == here.digest()


def test_whatever_a_turn_holds_arrives(start: Callable[..., Served], stub: Config) -> None:
    texts = ["\x00", "a\u2028b\u0085c\r\nd", "🜁", "x" * 50_000, "\ufeffx", *NAMES[9:]]
    metadata = {"deep": [[{"a": None}]], "big": 2**64 - 1, "float": 0.1 + 0.2, "é": "\x7f"}
    turns = [Turn(text, metadata=metadata) for text in texts if text]
    with Memory.in_memory(config=stub) as here, start().connect() as there:
        for memory in (here, there):
            memory.add_many(turns)
            memory.add(texts[1], metadata=metadata)
            frozen = MappingProxyType({"deep": MappingProxyType({"a": [MappingProxyType({})]})})
            flags = MappingProxyType({"is_constraint": True})
            memory.add("Cocoa.", metadata=frozen, provenance=flags)
            assert len(memory.retrieve("Cocoa?", filters={"metadata": frozen})) == 1
        assert list(there.turns()) == list(here.turns())
        assert there.digest() == here.digest()


def test_names_of_memories_are_exact(served: Served, stub: Config) -> None:
    for number, name in enumerate(NAMES):
        with served.connect(name) as memory:
            memory.add(f"turn {number}", external_id=name or "none")
            assert memory.get(name or "none").text == f"turn {number}"
    with served.connect("foo") as memory:
        assert memory.namespaces() == sorted(NAMES)
        memory.delete_namespace("foo%bar")
        assert memory.namespaces() == sorted(set(NAMES) - {"foo%bar"})
        for number, name in enumerate(NAMES):
            if name != "foo%bar":
                with served.connect(name) as other:
                    assert [turn.text for turn in other.turns()] == [f"turn {number}"]


BAD: list[Callable[[Any], Any]] = [
    lambda m: m.add(""),
    lambda m: m.add("\ud800"),
    lambda m: m.add("x", speaker="\udfff"),
    lambda m: m.add("x", role=""),
    lambda m: m.add("x", role=5),
    lambda m: m.add(5),
    lambda m: m.add("x", timestamp="soon"),
    lambda m: m.add("x", timestamp=float("nan")),
    lambda m: m.add("x", wait="soon"),
    lambda m: m.add("x", metadata={"a": {1, 2}}),
    lambda m: m.add("x", provenance={"colour": 1}),
    lambda m: m.add("x" * 101),
    lambda m: m.add_many([{"text": "good"}, {"role": "user"}]),
    lambda m: m.add_many([{"text": "good"}] * 3 + [{"text": "x" * 101}, {"text": "never"}]),
    lambda m: m.add_many([5]),
    lambda m: m.add_many(5),
    lambda m: m.add_many([{"text": "x", "metadata": [1], "colour": 2}]),
    lambda m: m.add_many([{"text": "x", 10**5000: 2}]),
    lambda m: m.retrieve(" "),
    lambda m: m.retrieve("\ud800"),
    lambda m: m.retrieve("x" * 51),
    lambda m: m.retrieve("x", preset="papre"),
    lambda m: m.retrieve("x", filters={"colour": 1}),
    lambda m: m.retrieve("x", filters={"since": "soon"}),
    lambda m: m.retrieve("x", query_time="soon"),
    lambda m: list(m.turns(state="gone")),
    lambda m: m.get(99),
    lambda m: m.get("none"),
    lambda m: m.get(),
    lambda m: m.get(2**80),
    lambda m: m.get(10**5000),
    lambda m: m.get(-1),
    lambda m: m.get(0, external_id="e0"),
    lambda m: m.get("e0", external_id="e0"),
    lambda m: m.history(0, external_id=""),
    lambda m: m.explain(True),
    lambda m: m.explain(99),
    lambda m: m.history(external_id="none"),
    lambda m: m.delete(99),
    lambda m: m.delete(0, external_id="e0"),
    lambda m: m.delete("e0", external_id="none"),
    lambda m: m.forget(),
    lambda m: m.forget("x", ids=[0]),
    lambda m: m.forget("x", limit=0),
    lambda m: m.forget(ids=[0, 99]),
    lambda m: m.forget(ids=7.5),
    lambda m: m.forget(before="soon"),
    lambda m: m.retain(),
    lambda m: m.retain(max_records=0),
    lambda m: m.retain(max_age=60),
    lambda m: m.retain(max_age=-1, now="2024-01-01"),
    lambda m: m.forget(ids=10**5000),
    lambda m: m.forget(ids=[0, -(10**5000)]),
    lambda m: m.forget(ids=[0, True]),
    lambda m: m.forget(ids="\ud800"),
    lambda m: m.forget("x", limit=-(10**5000)),
    lambda m: m.forget("x", limit=None),
    lambda m: m.forget("x", limit=2.0),
    lambda m: m.forget(before=10**5000),
    lambda m: m.forget(before=float("nan")),
    lambda m: m.forget(before={1}),
    lambda m: m.retain(max_age=float("nan"), now=0),
    lambda m: m.retain(max_age=float("inf"), now=0),
    lambda m: m.retain(max_age=10**400, now=0),
    lambda m: m.retain(max_age=10**5000, now=0),
    lambda m: m.retain(max_age={1}, now=0),
    lambda m: m.retain(max_age=1, now=float("nan")),
    lambda m: m.retain(max_age=1, now=[1]),
    lambda m: m.retain(max_records=-(10**5000)),
    lambda m: m.retain(max_records=True),
    lambda m: m.retrieve("x", limit=0),
    lambda m: m.retrieve("x", query_time=float("nan")),
    lambda m: m.retrieve("x", query_time=10**5000),
    lambda m: m.retrieve("x", filters={10**5000: 1}),
    lambda m: m.retrieve("x", filters=5),
    lambda m: m.context("x", max_tokens=-1),
    lambda m: list(m.turns(first=10**5000)),
    lambda m: m.relate(10**5000, "corrects", 0),
    lambda m: m.relate(0, "corrects", True),
    lambda m: m.relate(0, 5, 0),
    lambda m: m.relate(0, "hates", 0),
    lambda m: m.relate(0, "corrects", 99),
]


def test_errors_are_the_ones_in_process(start: Callable[..., Served], stub: Config) -> None:
    config = stub.replace(limits={"max_turn_chars": 100, "max_query_chars": 50})
    served = start(config=config)
    with Memory.in_memory(config=config) as here, served.connect() as there:
        for memory in (here, there):
            memory.add("kept", external_id="e0")
        for number, call in enumerate(BAD):
            failures: list[EbbtideError] = []
            for memory in (here, there):
                with pytest.raises(EbbtideError) as caught:
                    call(memory)
                failures.append(caught.value)
            first, second = failures
            assert (type(first), first.code) == (type(second), second.code), number
            assert str(first) == str(second), number
        assert list(there.turns()) == list(here.turns())
        # Far more than there is, is no error.
        for memory in (here, there):
            assert memory.retain(max_records=10**5000) == []
            assert memory.retain(max_records=5, now=float("nan")) == []
            found = memory.retrieve("kept", limit=10**5000)
            assert {item.turn.text for item in found} == {"kept", "good"}


def test_shapes_that_only_the_daemon_checks(start: Callable[..., Served]) -> None:
    both = {"interaction_id": 0, "external_id": "e"}
    with start().connect() as memory:
        memory.add("kept")
        for call in (
            lambda: memory.retrieve("x", limit=0),
            lambda: memory.retrieve("x", limit="2"),  # type: ignore[arg-type]
            lambda: memory.context("x", max_tokens=True),
            lambda: memory.retrieve(5),  # type: ignore[arg-type]
            lambda: list(memory.turns(first=-1)),
            lambda: memory._transport.read("GET", "/turn", {"interaction_id": -1}),
            lambda: memory._transport.read("GET", "/turn", both),
        ):
            with pytest.raises(EbbtideError) as caught:
                call()
            assert caught.value.code == "input.field"


def test_an_iterable_that_fails_keeps_what_came_before(start: Callable[..., Served]) -> None:
    def turns() -> Any:
        for number in range(300):
            yield {"text": f"turn {number}"}
        raise RuntimeError("the source ended")

    seen: list[int] = []
    with start().connect() as memory:
        with pytest.raises(RuntimeError, match="the source ended"):
            memory.add_many(turns(), progress=seen.append)
        assert len(memory) == 300
        assert seen == [256, 300]
        bad = [{"text": f"more {n}"} for n in range(270)] + [{"text": ""}]
        with pytest.raises(EbbtideError, match=r"turn 271 of this call: .* the 270 before it"):
            memory.add_many(bad)
        assert len(memory) == 570
        assert memory.add_many([]).accepted == 0


def test_a_journalled_turn_is_analysed_by_the_end(
    start: Callable[..., Served], stub: Config
) -> None:
    served = start()
    with served.connect() as memory:
        for number in range(20):
            memory.add(**scripted(number), wait="journalled")
        memory.flush()
        assert memory.stats()["pending"] == 0
        memory.add(**scripted(20), wait="journalled")
        digest = memory.digest()
    with Memory.in_memory(config=stub) as here:
        here.add_many(scripted(number) for number in range(21))
        assert here.digest() == digest


def test_a_closed_memory_says_so_as_the_plain_one_does(
    start: Callable[..., Served], stub: Config
) -> None:
    here = Memory.in_memory(config=stub)
    here.close()
    with pytest.raises(EbbtideError) as expected:
        here.add("x")
    served = start()
    with served.connect() as there:
        there.add("kept")
    there.close()
    for call in (lambda: there.add("x"), there.digest, lambda: list(there.turns()), there.flush):
        with pytest.raises(type(expected.value)) as caught:
            call()
        assert (caught.value.code, str(caught.value)) == ("store.closed", str(expected.value))
    with served.connect() as again:
        assert [turn.text for turn in again.turns()] == ["kept"]


def test_a_package_imports_neither_client_nor_server() -> None:
    code = (
        "import sys, ebbtide; "
        "print([m for m in ('httpx', 'fastapi', 'pydantic', 'uvicorn', 'ebbtide.daemon') "
        "if m in sys.modules], ebbtide.connect.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] connect"


def test_an_unreachable_daemon_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_PAUSES", (0.01,))
    with pytest.raises(ebbtide.ExternalError) as caught:
        ebbtide.connect(tmp_path / "none.sock")
    assert caught.value.code == "daemon.unavailable"
    assert "ebbtide serve" in str(caught.value)
    for far in ("http://192.0.2.1:8000", "http://memory.example"):
        with pytest.raises(ebbtide.ConfigError) as refused:
            ebbtide.connect(far, token="secret")
        assert refused.value.code == "config.range"
    for none in (
        "http://127.0.0.1:abc",
        "http://127.0.0.1:99999",
        "http://[::1",
        "ftp://localhost",
    ):
        with pytest.raises(ebbtide.ConfigError, match="no address of a daemon"):
            ebbtide.connect(none)
