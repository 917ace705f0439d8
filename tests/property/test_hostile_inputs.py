"""Whatever is handed in: a typed error or a faithful round trip, and nothing before it lost."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ebbtide import Config, EbbtideError, InputError, Memory, NotFoundError, Store, Turn
from ebbtide._core import count_tokens, error_codes

CODES = frozenset(error_codes())
FEW = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

odd_text = st.one_of(
    st.text(st.characters(codec=None), max_size=20),
    st.sampled_from(
        [
            "",
            " ",
            "\x00",
            "\ud800",
            "a\udfff",
            "\ufeff",
            "'; DROP TABLE turn;--",
            "%",
            "_",
            "\u2028",
        ]
    ),
)
odd_number = st.one_of(
    st.integers(),
    st.sampled_from([2**31, 2**32, 2**63, 2**64, 10**30, -(10**30), -1, 0]),
    st.floats(),
)
odd_scalar = st.one_of(
    st.none(),
    st.booleans(),
    odd_number,
    odd_text,
    st.binary(max_size=4),
    st.datetimes(),
    st.dates(),
    st.sampled_from([object(), (), datetime.min, datetime.max, date.min, {1, 2}, Ellipsis]),
)
odd_value = st.recursive(
    odd_scalar,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(odd_text, st.integers()), inner, max_size=3),
    ),
    max_leaves=6,
)
FIELDS = [
    "text",
    "content",
    "role",
    "speaker",
    "name",
    "timestamp",
    "session_id",
    "external_id",
    "id",
    "provenance",
    "metadata",
    "tool_calls",
    "interaction_id",
    "record_id",
]


def attempt(call: Callable[[], Any]) -> tuple[Any, EbbtideError | None]:
    """The call's result or its typed error; any other exception is the test's failure."""
    try:
        return call(), None
    except EbbtideError as error:
        return None, error


def guarded(memory: Memory, call: Callable[[], Any]) -> Any:
    """The call's result, or None after a typed error; what was there before is there still."""
    before = [(turn.interaction_id, turn.text) for turn in memory.turns()]
    result, error = attempt(call)
    if error is not None:
        assert error.code in CODES, error.code
        assert str(error)
    after = [(turn.interaction_id, turn.text) for turn in memory.turns()]
    assert after[: len(before)] == before
    return result


@pytest.fixture
def memory(stub: Config) -> Any:
    with Memory.in_memory(config=stub) as opened:
        opened.add("The port is v1.", speaker="Ana", external_id="first", metadata={"a": 1})
        opened.add("The port is v2.", speaker="Ana", timestamp="2024-01-01")
        yield opened


@FEW
@given(
    text=st.one_of(odd_text, odd_scalar),
    fields=st.fixed_dictionaries(
        {},
        optional={
            "role": st.one_of(odd_text, odd_scalar),
            "speaker": odd_scalar,
            "timestamp": odd_value,
            "session_id": odd_scalar,
            "external_id": odd_scalar,
            "provenance": odd_value,
            "metadata": odd_value,
            "wait": st.sampled_from(["complete", "journalled", "", None, 5]),
        },
    ),
)
def test_add(memory: Memory, text: Any, fields: dict[str, Any]) -> None:
    count = len(memory)
    report = guarded(memory, lambda: memory.add(text, **fields))
    memory.flush()
    if report is None:
        assert len(memory) == count
        return
    assert len(memory) == count + report.accepted
    if report.accepted:
        stored = list(memory.turns())[-1]
        assert stored.text == text
        assert stored.role == fields.get("role", "user")
        assert stored.speaker == fields.get("speaker")
        given_metadata = fields.get("metadata")
        if given_metadata is not None:
            assert stored.metadata == json.loads(json.dumps(given_metadata))


@FEW
@given(
    items=st.lists(
        st.one_of(
            odd_value,
            st.dictionaries(st.sampled_from(FIELDS), odd_value, max_size=5),
            st.builds(Turn, text=odd_scalar, timestamp=odd_scalar, metadata=odd_value),
            st.fixed_dictionaries({"text": st.just("fine")}),
        ),
        max_size=5,
    )
)
def test_add_many(memory: Memory, items: list[Any]) -> None:
    guarded(memory, lambda: memory.add_many(items))
    assert memory.add("still here").accepted == 1


@FEW
@given(
    query=st.one_of(odd_text, st.just("port"), odd_scalar),
    options=st.fixed_dictionaries(
        {},
        optional={
            "limit": st.one_of(odd_number, odd_scalar),
            "max_tokens": st.one_of(odd_number, odd_scalar),
            "query_time": odd_scalar,
            "preset": st.one_of(st.sampled_from(["default", "paper", "x", ""]), odd_scalar),
            "filters": st.one_of(
                odd_value,
                st.dictionaries(
                    st.sampled_from(
                        ["role", "speaker", "session_id", "since", "until", "metadata", "x"]
                    ),
                    odd_value,
                    max_size=3,
                ),
            ),
        },
    ),
)
def test_questions(memory: Memory, query: Any, options: dict[str, Any]) -> None:
    for call in (memory.retrieve, memory.render_context):
        guarded(memory, lambda call=call: call(query, **options))
    options.pop("max_tokens", None)
    guarded(memory, lambda: memory.trace(query, **options))


@FEW
@given(value=st.one_of(odd_value, st.sampled_from(["first", "nobody"])), other=odd_value)
def test_ids(memory: Memory, value: Any, other: Any) -> None:
    for call in (memory.get, memory.history, memory.explain):
        guarded(memory, lambda call=call: call(value))
        guarded(memory, lambda call=call: call(external_id=value))
    guarded(memory, lambda: memory.relate(value, other, value))
    guarded(memory, lambda: memory.relate(1, other, 0))
    guarded(memory, lambda: list(memory.turns(state=value)))
    guarded(memory, lambda: memory.count_tokens(value))


SECTIONS = sorted(Config().to_dict())


@FEW
@example(section="policy", key="rpe", known=40, value={}, bare=False)
@example(section="nlp", key="entity_labels", known=40, value=[], bare=False)
@given(
    section=st.one_of(st.sampled_from(SECTIONS), odd_text),
    key=odd_text,
    known=st.integers(0, 40),
    value=odd_value,
    bare=st.booleans(),
)
def test_config(section: str, key: str, known: int, value: Any, bare: bool) -> None:
    keys = list(Config().to_dict().get(section, {}))
    name = keys[known % len(keys)] if keys and known < 30 else key
    changes = {section: value if bare else {name: value}}
    config, error = attempt(lambda: Config().replace(**changes))
    if error is not None:
        assert error.code in CODES, error.code
        assert error.code.startswith("config.")
        return
    for values in config.to_dict().values():
        for setting in values.values():
            assert not isinstance(setting, float) or math.isfinite(setting)
    if bare:
        return
    kept = config.to_dict()[section][name]
    if isinstance(value, dict):  # settings of a section within the section
        assert {key: kept[key] for key in value} == value
    else:
        assert kept == value


@FEW
@given(name=odd_scalar)
def test_presets(name: Any) -> None:
    _, error = attempt(lambda: Config.preset(name))
    assert error is None or error.code in CODES


@pytest.mark.parametrize(
    "text", ["é", "😀 smile", 'tab\tquote"back\\slash', "line\nbreak", "\x7f\x1b"]
)
def test_any_text_may_be_a_setting(text: str) -> None:
    config = Config().replace(ltm={"storage_path": text})
    assert config["ltm"]["storage_path"] == text


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(texts=st.lists(st.text(max_size=60), min_size=1, max_size=4), query=st.text(max_size=40))
def test_any_unicode_through_the_real_analysis(cheap: Config, texts: list[str], query: str) -> None:
    with Memory.in_memory(config=cheap) as opened:
        kept = [text for text in texts if text]
        opened.add_many({"text": text} for text in kept)
        assert [turn.text for turn in opened.turns()] == kept
        guarded(opened, lambda: opened.retrieve(query, limit=3))
        context = guarded(opened, lambda: opened.render_context(query, max_tokens=30))
        assert context is None or opened.count_tokens(context) <= 30


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    max_tokens=st.integers(1, 400),
    preset=st.sampled_from(["default", "paper"]),
    include_active=st.booleans(),
    lengths=st.lists(st.integers(1, 300), min_size=1, max_size=12),
)
def test_a_context_never_exceeds_its_budget(
    stub: Config, max_tokens: int, preset: str, include_active: bool, lengths: list[int]
) -> None:
    with Memory.in_memory(config=stub) as opened:
        for length in lengths:
            opened.add(" ".join(f"tea{n}." for n in range(length)), speaker="Ana")
        text = opened.render_context(
            "tea1 tea7", max_tokens=max_tokens, preset=preset, include_active=include_active
        )
        assert opened.count_tokens(text) <= max_tokens


runs_on = st.text("a1 /.'\n\r\t=[]\u00e9\u0301\u2028", min_size=1, max_size=12)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    said=st.lists(st.tuples(runs_on, runs_on), min_size=1, max_size=8),
    max_tokens=st.integers(1, 200),
    counter=st.sampled_from(["o200k_base", "cl100k_base"]),
)
def test_a_context_says_what_it_costs(
    stub: Config, said: list[tuple[str, str]], max_tokens: int, counter: str
) -> None:
    config = stub.replace(capacity={"token_counter": counter})
    with Memory.in_memory(config=config) as opened:
        for speaker, text in said:
            attempt(lambda speaker=speaker, text=text: opened.add(text, speaker=speaker))
        context = opened.context("a1", max_tokens=max_tokens)
        assert context.tokens == count_tokens(context.text, counter) <= max_tokens


def test_numbers_too_long_to_print(memory: Memory) -> None:
    """Python refuses to write an integer of 5,000 digits; so must the message about it."""
    huge = 10**5000
    calls: list[Callable[[], Any]] = [
        lambda: memory.add(huge),
        lambda: memory.add("x", timestamp=huge),
        lambda: memory.add("x", metadata={"a": huge}),
        lambda: memory.add("x", provenance={"is_constraint": huge}),
        lambda: memory.add("x", provenance={huge: 1}),
        lambda: memory.add("x", wait=huge),
        lambda: memory.add_many([{"text": "x", "id": -huge, "timestamp": huge}]),
        lambda: memory.add_many([{"text": "x", "id": huge}]),
        lambda: memory.add_many([{"text": "x", huge: 1}]),
        lambda: memory.add_many([{"text": "x", "colour": {huge: 1}}]),
        lambda: memory.add_many([{"tool_calls": [{"function": {"arguments": [huge]}}]}]),
        lambda: memory.add_many([{"content": [{"type": huge}], "id": {huge}}]),
        lambda: memory.retrieve("port", limit=-huge),
        lambda: memory.retrieve("port", query_time=huge),
        lambda: memory.retrieve("port", filters={"since": huge}),
        lambda: memory.retrieve("port", filters={huge: 1}),
        lambda: memory.get(huge),
        lambda: memory.get(-huge),
        lambda: memory.relate(huge, "corrects", 0),
        lambda: list(memory.turns(state=huge)),
        lambda: Config().replace(capacity={"token_budget": huge}),
        lambda: Config().replace(capacity={"token_counter": [huge]}),
    ]
    for call in calls:
        with pytest.raises(EbbtideError) as caught:
            call()
        assert caught.value.code in CODES
    assert len(memory.retrieve("port", limit=huge)) == 2
    assert memory.render_context("port", max_tokens=huge)


def test_an_id_never_reaches_into_another_namespace(stub: Config, store_path: Path) -> None:
    """Keys are namespace << 40 | id: an id with high bits set names no turn."""
    with Store.open(store_path, config=stub) as store:
        one, two = store.memory("one"), store.memory("two")
        one.add("ours")
        two.add("theirs")
        for shift in range(4):
            for call in (one.get, one.explain, one.history, one.delete):
                with pytest.raises(NotFoundError):
                    call((shift << 40) + 2**40)
        assert (len(one), len(two)) == (1, 1)


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize("depth", [100, 127, 128, 129, 500, 900, 5000, 100_000])
def test_deeply_nested_metadata(stub: Config, depth: int) -> None:
    with Memory.in_memory(config=stub) as memory:
        memory.add("before")
        _, error = attempt(lambda: memory.add("deep", metadata=nested(depth), external_id="deep"))
        if error is not None:
            assert isinstance(error, InputError)
            assert error.code == "input.field"
            assert len(memory) == 1
        else:
            again = memory.get(external_id="deep").metadata
            assert again == nested(depth)
            found = memory.retrieve("deep", filters={"metadata": {"a": again["a"] if again else 1}})
            assert [item.turn.text for item in found] == ["deep"]
        memory.add("after")
        assert memory.retrieve("before", filters={"metadata": {"b": 1}}) == []


def branching_cycle() -> dict[str, Any]:
    parent: dict[str, Any] = {"name": "p"}
    parent["children"] = [{"parent": parent} for _ in range(3)]
    return parent


def shared_at_every_level() -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(60):
        value = {"a": value, "b": [value]}
    return value


@pytest.mark.parametrize("make", [branching_cycle, shared_at_every_level])
def test_metadata_that_would_never_end(stub: Config, make: Callable[[], dict[str, Any]]) -> None:
    with Memory.in_memory(config=stub) as memory:
        memory.add("before")
        value = make()
        for call in (
            lambda: memory.add("x", metadata=value),
            lambda: memory.retrieve("before", filters={"metadata": value}),
        ):
            with pytest.raises(InputError) as caught:
                call()
            assert caught.value.code == "input.field"
        assert len(memory) == 1


def test_parts_of_metadata_may_be_shared(stub: Config) -> None:
    part = {"names": ["ana", "luis"]}
    with Memory.in_memory(config=stub) as memory:
        memory.add("shared", metadata={"one": part, "two": [part, part]})
        assert memory.get(0).metadata == {"one": part, "two": [part, part]}


@pytest.mark.parametrize(
    "moment",
    [
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
        datetime(9999, 12, 31, 23, 59, tzinfo=timezone(-timedelta(hours=12))),
        datetime.min,
        datetime.max,
        date.max,
        -62135596800,
        253402300799.999999,
        0,
        -0.0,
    ],
)
def test_moments_at_the_edges(memory: Memory, moment: Any) -> None:
    report = guarded(memory, lambda: memory.add("edge", timestamp=moment))
    if report is not None:
        assert memory.retrieve("edge", limit=1, filters={"until": moment, "since": moment})
        assert memory.render_context("edge", max_tokens=200)
