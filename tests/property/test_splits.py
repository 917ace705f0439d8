"""The same turns give the same memory, however they are cut into calls and sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference.stand_ins import scripted

from ebbtide import Config, Memory, NotFoundError, Store

TURNS = [scripted(number) for number in range(120)]
BUDGETS = (256, 1024, 4096)
MODES = ("add", "add_many", "journalled")

steps = st.lists(
    st.tuples(st.sampled_from(MODES), st.integers(1, 40), st.booleans()), min_size=1, max_size=25
)


def one_by_one(config: Config, turns: list[dict[str, Any]]) -> str:
    with Memory.in_memory(config=config) as memory:
        for turn in turns:
            memory.add(**turn)
        return memory.digest()


def write(memory: Memory, mode: str, turns: list[dict[str, Any]]) -> None:
    if mode == "add_many":
        memory.add_many(turns)
        return
    for turn in turns:
        memory.add(**turn, wait="complete" if mode == "add" else "journalled")


@pytest.fixture(scope="module")
def digests() -> dict[int, str]:
    return {}


@pytest.mark.parametrize("budget", BUDGETS)
@given(steps=steps)
@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_split_with_any_restart_gives_the_same_digest(
    stub: Config,
    tmp_path_factory: pytest.TempPathFactory,
    digests: dict[int, str],
    budget: int,
    steps: list[tuple[str, int, bool]],
) -> None:
    config = stub.replace(capacity={"token_budget": budget})
    if budget not in digests:
        digests[budget] = one_by_one(config, TURNS)
    path = tmp_path_factory.mktemp("split") / "memory.db"
    memory = Memory.open(path, config=config)
    at = 0
    for mode, count, restart in [*steps, ("add_many", len(TURNS), True)]:
        write(memory, mode, TURNS[at : at + count])
        at += count
        if restart:
            memory.close()
            memory = Memory.open(path, config=config)
    found = memory.digest()
    assert len(memory) == len(TURNS)
    memory.close()
    assert found == digests[budget]


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("size", [1, 7, 64])
def test_batch_size_does_not_matter(stub: Config, budget: int, size: int) -> None:
    config = stub.replace(capacity={"token_budget": budget})
    with Memory.in_memory(config=config) as memory:
        memory.add_many(TURNS, batch_size=size)
        assert memory.digest() == one_by_one(config, TURNS)


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_restart_between_any_two_adds(stub: Config, store_path: Path, budget: int) -> None:
    config = stub.replace(capacity={"token_budget": budget})
    for turn in TURNS:
        with Memory.open(store_path, config=config) as memory:
            memory.add(**turn)
    with Memory.open(store_path, config=config) as memory:
        assert memory.digest() == one_by_one(config, TURNS)


def test_reports_do_not_depend_on_the_split(stub: Config) -> None:
    config = stub.replace(capacity={"token_budget": 256})
    with Memory.in_memory(config=config) as memory:
        whole = memory.add_many(TURNS)
    with Memory.in_memory(config=config) as memory:
        parts = [memory.add(**turn) for turn in TURNS]
    total = parts[0]
    for part in parts[1:]:
        total += part
    assert total == whole
    assert whole.evicted
    assert whole.superseded


@pytest.mark.parametrize("storage", ["sqlite", "file", "null"])
@pytest.mark.parametrize("preset", ["default", "paper"])
def test_restarts_do_not_show_in_any_kind_of_archive(
    stub: Config, tmp_path: Path, storage: str, preset: str
) -> None:
    config = stub.on_preset(preset).replace(
        capacity={"token_budget": 100},
        ltm={"storage_type": storage, "storage_path": str(tmp_path / "archive.jsonl")},
    )
    expected = one_by_one(config, TURNS)
    for at in range(0, len(TURNS), 5):
        with Memory.open(tmp_path / "memory.db", config=config) as memory:
            memory.add_many(TURNS[at : at + 5])
    with Memory.open(tmp_path / "memory.db", config=config) as memory:
        assert memory.digest() == expected


@pytest.mark.parametrize("ltm", [{"enabled": False}, {"storage_type": "null"}])
def test_a_turn_that_was_discarded_is_known_again(
    stub: Config, store_path: Path, ltm: dict[str, Any]
) -> None:
    """The same external id is one turn, in one batch or in many, now or after a restart."""
    config = stub.replace(
        ltm=ltm,
        capacity={"token_budget": 12, "protect_last": 1},
        temporal_decay={"lambda_base": 2.0},
    )
    turns = [{**scripted(n), "external_id": f"e{n % 4}"} for n in range(12)]
    found = []
    for size in (64, 1):
        with Memory.in_memory(config=config) as memory:
            report = memory.add_many(turns, batch_size=size)
            found.append((report.accepted, report.duplicates, memory.digest()))
    accepted = 0
    for turn in turns:
        with Store.open(store_path, config=config) as store:
            accepted += store.memory("ana").add(**turn).accepted
            digest = store.memory("ana").digest()
            assert store.check() == []
    found.append((accepted, 12 - accepted, digest))
    assert found == [(4, 8, found[0][2])] * 3
    with Store.open(store_path, config=config) as store:
        memory = store.memory("ana")
        assert len(memory) < 4
        with pytest.raises(NotFoundError, match="was discarded"):
            memory.get(external_id="e0")
        kept = next(memory.turns()).external_id
        memory.delete(external_id=kept)
        assert memory.add("It was erased.", external_id=kept).accepted == 1
        memory.delete_all()
        assert memory.add("All were erased.", external_id="e0").accepted == 1


@given(
    numbers=st.lists(st.integers(0, 60), min_size=4, max_size=40),
    drop=st.lists(st.integers(0, 39), max_size=6),
    where=st.integers(0, 39),
)
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_deleting_then_reopening_changes_nothing_more(
    stub: Config,
    tmp_path_factory: pytest.TempPathFactory,
    numbers: list[int],
    drop: list[int],
    where: int,
) -> None:
    """After a delete, a memory that stays open and one that is reopened go on alike."""
    config = stub.replace(capacity={"token_budget": 150})
    digests = []
    for reopen in (False, True):
        path = tmp_path_factory.mktemp("delete") / "memory.db"
        memory = Memory.open(path, config=config)
        for at, number in enumerate(numbers):
            memory.add(**{**scripted(number), "external_id": None})
            if at == where % len(numbers):
                for interaction_id in sorted({d for d in drop if d <= at}):
                    memory.delete(interaction_id)
                if reopen:
                    memory.close()
                    memory = Memory.open(path, config=config)
        digests.append(memory.digest())
        memory.close()
    assert digests[0] == digests[1]
