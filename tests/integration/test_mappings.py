"""Turns given as mappings: nothing that was said is lost, and what cannot be kept is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from ebbtide import Config, InputError, Memory, Turn
from ebbtide.mappings import turn_from
from ebbtide.replay import replay
from ebbtide.transcripts import read_transcripts


def kept(given: Mapping[str, Any]) -> dict[str, Any]:
    turn = turn_from(given)
    fields = {
        "text": turn.text,
        "speaker": turn.speaker,
        "external_id": turn.external_id,
        "metadata": turn.metadata,
    }
    return {name: value for name, value in fields.items() if value is not None}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"content": None, "text": "hi"}, {"text": "hi"}),
        ({"text": None, "content": "hi"}, {"text": "hi"}),
        ({"text": "hi", "content": None}, {"text": "hi"}),
        ({"text": "", "content": "hi"}, {"text": "hi"}),
        ({"content": [], "text": "hi"}, {"text": "hi"}),
        ({"text": "hi", "content": ""}, {"text": "hi"}),
        ({"text": "t", "id": ""}, {"text": "t"}),
        ({"id": None, "external_id": "a9", "text": "t"}, {"text": "t", "external_id": "a9"}),
        ({"external_id": "a9", "id": None, "text": "t"}, {"text": "t", "external_id": "a9"}),
        ({"external_id": None, "id": 7, "text": "t"}, {"text": "t", "external_id": "7"}),
        ({"name": None, "speaker": "Ana", "text": "t"}, {"text": "t", "speaker": "Ana"}),
        ({"speaker": None, "name": "Ana", "text": "t"}, {"text": "t", "speaker": "Ana"}),
        ({"text": "t", "metadata": None, "foo": 2}, {"text": "t", "metadata": {"foo": 2}}),
        ({"text": "t", "foo": None}, {"text": "t", "metadata": {"foo": None}}),
        # Two names that both say something: the first is the field.
        (
            {"name": "Ana", "speaker": "Ben", "text": "t"},
            {"text": "t", "speaker": "Ana", "metadata": {"speaker": "Ben"}},
        ),
    ],
)
def test_a_name_that_says_nothing_takes_nothing_away(
    given: dict[str, Any], wanted: dict[str, Any]
) -> None:
    assert kept(given) == wanted
    assert kept(MappingProxyType(given)) == wanted


def test_metadata_that_is_no_mapping_is_refused_beside_other_fields(stub: Config) -> None:
    with Memory.in_memory(config=stub) as memory:
        for metadata in ([1, 2], "important", 0, ""):
            for more in ({}, {"foo": 2}):
                with pytest.raises(InputError, match=r"turn 1 .*metadata must be a mapping"):
                    memory.add_many([{"text": "x", "metadata": metadata, **more}])
        assert len(memory) == 0


def test_an_id_that_is_a_long_number_is_kept_whole(stub: Config) -> None:
    """Cut short, two of them were one, and the second turn a duplicate."""
    first, second = 10**100, 10**100 + 1
    with Memory.in_memory(config=stub) as memory:
        report = memory.add_many({"text": "x", "id": number} for number in (first, second))
        assert (report.accepted, report.duplicates) == (2, 0)
        assert memory.get(str(second)).interaction_id == 1


def test_a_tool_call_is_kept_whole() -> None:
    arguments = {"query": "the port " * 50}
    turn = turn_from({"tool_calls": [{"function": {"name": "look", "arguments": arguments}}]})
    assert turn.text == f"look({arguments})"


def test_any_mapping_is_metadata_and_provenance(stub: Config) -> None:
    metadata = MappingProxyType({"b": [MappingProxyType({"x": 1})], "a": MappingProxyType({})})
    plain = {"b": [{"x": 1}], "a": {}}
    provenance = MappingProxyType({"is_constraint": True})
    with Memory.in_memory(config=stub) as one, Memory.in_memory(config=stub) as two:
        one.add("x", metadata=metadata, provenance=provenance)
        one.add_many([Turn("y", metadata=metadata), {"text": "z", "m": metadata}])
        two.add("x", metadata=plain, provenance=dict(provenance))
        two.add_many([Turn("y", metadata=plain), {"text": "z", "m": plain}])
        assert list(one.turns()) == list(two.turns())
        assert one.digest() == two.digest()
        found = one.retrieve("x", limit=3, filters=MappingProxyType({"metadata": metadata}))
        assert {item.turn.interaction_id for item in found} == {0, 1}


@pytest.mark.parametrize("odd", [7, None, [], "text", object()])
def test_what_is_no_turn_is_named(stub: Config, odd: Any) -> None:
    calls: list[Callable[[Memory, list[Any]], Any]] = [Memory.add_many, replay]
    for call in calls:
        with Memory.in_memory(config=stub) as memory:
            with pytest.raises(InputError, match=r"turn 2\b.* a turn is a Turn or a mapping, not"):
                call(memory, [{"text": "good"}, odd, {"text": "never"}])
            assert [turn.text for turn in memory.turns()] == ["good"]


def test_what_is_no_iterable_is_refused(stub: Config) -> None:
    with Memory.in_memory(config=stub) as memory:
        for turns in (None, 7, Turn("x")):
            with pytest.raises(InputError, match="turns must be an iterable") as caught:
                memory.add_many(turns)  # type: ignore[arg-type]
            assert caught.value.code == "input.field"


def test_a_line_whose_first_name_says_nothing_is_no_empty_line(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_text('{"content": null, "text": "hi"}\n{"content": null}\n', encoding="utf-8")
    reader = next(read_transcripts(path)).turns
    assert [turn.text for turn in reader] == ["hi"]
    assert reader.skipped == 1
