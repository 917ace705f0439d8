"""Conditions on metadata hold whatever happened to the turns since."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reference.stand_ins import scripted

from ebbtide import Config, InputError, Memory

USERS = ("ana", "ben", "eve")


def fields(n: int) -> dict[str, Any] | None:
    """Of every fourth turn none."""
    if n % 4 == 3:
        return None
    return {"user": USERS[n % 3], "tags": ["a", {"x": n % 2, "y": 1.0}], "n": n}


def filled(memory: Memory, turns: range) -> Memory:
    for n in turns:
        memory.add(f"{scripted(n)['text']} roses", metadata=fields(n), external_id=str(n))
    return memory


def recalled(memory: Memory, wanted: dict[str, Any]) -> set[int]:
    found = memory.retrieve("Who has the roses?", limit=99, filters={"metadata": wanted})
    return {int(e.turn.external_id or -1) for e in found}


def read(memory: Memory, wanted: dict[str, Any]) -> set[int]:
    """The same by reading every turn."""
    every = [(turn, turn.metadata or {}) for turn in memory.turns()]
    return {
        int(turn.external_id or -1)
        for turn, metadata in every
        if all(name in metadata and metadata[name] == wanted[name] for name in wanted)
    }


WANTED: list[dict[str, Any]] = [
    {"user": "ana"},
    {"tags": ["a", {"y": 1.0, "x": 1}]},
    {"user": "ben", "tags": ["a", {"x": 0, "y": 1.0}]},
    {"n": 5},
    {"n": 3},
    {"user": None},
    {"nobody": "ana"},
]


def agree(memory: Memory) -> None:
    for wanted in WANTED:
        assert recalled(memory, wanted) == read(memory, wanted), wanted


def test_turns_are_found_by_their_fields(stub: Config, store_path: Path) -> None:
    with filled(Memory.open(store_path, config=stub), range(30)) as memory:
        assert recalled(memory, {"user": "ana"}) == {0, 6, 9, 12, 18, 21, 24}
        assert recalled(memory, {"n": 5}) == {5}
        agree(memory)
    with Memory.open(store_path, config=stub) as memory:
        agree(memory)


def test_an_object_equals_another_whatever_the_order_of_its_fields(stub: Config) -> None:
    with filled(Memory.in_memory(config=stub), range(8)) as memory:
        one = recalled(memory, {"tags": ["a", {"x": 1, "y": 1.0}]})
        assert one == recalled(memory, {"tags": ["a", {"y": 1.0, "x": 1}]}) == {1, 5}


def test_what_is_erased_is_not_found(stub: Config, store_path: Path) -> None:
    with filled(Memory.open(store_path, config=stub), range(30)) as memory:
        memory.delete(external_id="6")
        assert 6 not in recalled(memory, {"user": "ana"})
        agree(memory)
        filled(memory, range(30, 36))
        agree(memory)
        memory.delete_all()
        assert recalled(memory, {"user": "ana"}) == set()
        filled(memory, range(40, 44))
        agree(memory)


def test_turns_that_the_archive_drops_are_not_found(stub: Config) -> None:
    config = stub.replace(capacity={"token_budget": 64}, ltm={"storage_type": "null"})
    with filled(Memory.in_memory(config=config), range(30)) as memory:
        assert 0 < len(list(memory.turns())) < 30
        agree(memory)


def test_a_journalled_turn_is_found_once_it_is_read(stub: Config) -> None:
    with Memory.in_memory(config=stub) as memory:
        memory.add(
            "Ana has the roses.", metadata={"user": "ana"}, external_id="0", wait="journalled"
        )
        assert recalled(memory, {"user": "ana"}) == {0}


def test_reindexing_keeps_the_fields(stub: Config) -> None:
    with filled(Memory.in_memory(config=stub), range(12)) as memory:
        before = [recalled(memory, wanted) for wanted in WANTED]
        memory.reindex()
        assert [recalled(memory, wanted) for wanted in WANTED] == before
        agree(memory)


def test_the_scan_of_a_deliberation_meets_the_condition(stub: Config) -> None:
    config = stub.replace(
        policy={"deliberation": "quality"}, deliberation={"least_answerability": 1.0}
    )
    with filled(Memory.in_memory(config=config), range(30)) as memory:
        options = {"metadata": {"user": "eve"}}
        told = memory.trace("Who has the roses?", filters=options)
        scan = told["deliberation"].get("scan")
        assert scan is not None
        assert {row["interaction_id"] for row in scan["kept"]} <= read(memory, options["metadata"])


@pytest.mark.parametrize(
    ("stored", "found", "not_found"),
    [
        (1, [1, 1.0], [True, "1", -1, 2**64 - 1]),
        (-1, [-1, -1.0], [2**64 - 1, 1]),
        (1.0, [1, 1.0], [4607182418800017408, True]),
        (0.0, [0, -0.0], [False, None, ""]),
        (True, [True], [1, 1.0, "true"]),
        ([1, {"x": 2.0}], [[1.0, {"x": 2}]], [[1], [{"x": 2}, 1]]),
    ],
)
def test_numbers_compare_as_numbers(
    stub: Config, stored: Any, found: list[Any], not_found: list[Any]
) -> None:
    with Memory.in_memory(config=stub) as memory:
        memory.add("roses", metadata={"n": stored})
        for value in found:
            assert recalled(memory, {"n": value}), value
        for value in not_found:
            assert not recalled(memory, {"n": value}), value


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 2**1000 - 1])
def test_a_number_that_cannot_be_compared_is_kept_but_not_asked_for(
    stub: Config, number: int
) -> None:
    with Memory.in_memory(config=stub) as memory:
        memory.add("roses", metadata={"n": number, "k": 1})
        assert memory.get(0).metadata == {"n": number, "k": 1}
        assert recalled(memory, {"k": 1})
        for call in (
            lambda: memory.retrieve("roses", filters={"metadata": {"n": number}}),
            lambda: list(memory.turns(metadata={"n": number})),
        ):
            with pytest.raises(InputError, match="64 bits") as caught:
                call()
            assert caught.value.code == "input.field"
        memory.add("roses", metadata={"n": 2**64 - 1, "m": -(2**63)})
        assert recalled(memory, {"n": 2**64 - 1, "m": -(2**63)})


def test_a_number_that_no_reader_takes_is_refused(stub: Config) -> None:
    with Memory.in_memory(config=stub) as memory:
        with pytest.raises(InputError, match="1000 bits"):
            memory.add("roses", metadata={"deep": [{"n": 2**1000}]})
        assert len(memory) == 0


def test_turns_are_listed_by_their_metadata(stub: Config, tmp_path: Path) -> None:
    config = stub.replace(capacity={"token_budget": 40})
    turns = [{"text": f"word{n} and more", "metadata": {"n": n % 7, "k": n % 2}} for n in range(40)]
    with Memory.open(tmp_path / "memory.db", config=config) as memory:
        memory.add_many(turns)
        memory.add("roses", metadata={"n": 3, "k": 1}, wait="journalled")

        def ids(**asked: Any) -> list[int | None]:
            return [turn.interaction_id for turn in memory.turns(**asked)]

        wanted = [n for n in range(40) if n % 7 == 3 and n % 2 == 1]
        assert ids(metadata={"n": 3, "k": 1}) == [*wanted, 40]
        assert ids(metadata={"n": 3.0, "k": 1}, first=10) == [n for n in [*wanted, 40] if n >= 10]
        memory.flush()
        archived = {turn.interaction_id for turn in memory.turns(state="archived")}
        assert archived
        assert ids(metadata={"n": 3, "k": 1}, state="archived") == [
            n for n in wanted if n in archived
        ]
        assert ids(metadata={}) == list(range(41))
        assert ids(metadata={"n": True}) == []
        memory.delete(wanted[0])
        assert ids(metadata={"n": 3, "k": 1}) == [*wanted[1:], 40]


HOME = ("I live in Lisbon.", "I live in Porto now, near the bridge.")


@pytest.mark.parametrize("kept", [{"t": "a"}, {"t": "b"}])
def test_support_meets_the_conditions_too(kept: dict[str, Any]) -> None:
    with Memory.in_memory() as memory:
        for text, tenant in zip(HOME, "ab", strict=True):
            memory.add(text, speaker="Ana", metadata={"t": tenant})
        question = "Where did Ana live before?"
        assert any(e.support for e in memory.retrieve(question))
        filters = {"metadata": kept}
        for evidence in memory.retrieve(question, filters=filters):
            for turn in (evidence.turn, *(s.turn for s in evidence.support)):
                assert turn.metadata == kept
        text = memory.render_context(question, filters=filters, include_active=False)
        assert [line in text for line in HOME] == [kept["t"] == "a", kept["t"] == "b"]
