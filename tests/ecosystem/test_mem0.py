"""The mem0-shaped facade: shapes, scopes, versions."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ebbtide import Config, InputError, NotFoundError, Store
from ebbtide.adapters.mem0 import Memory


@pytest.fixture
def memory(store_path: Path, cheap: Config) -> Iterator[Memory]:
    moments = (datetime(2024, 6, 1, tzinfo=UTC) + timedelta(hours=n) for n in range(1000))
    with Memory(store_path, config=cheap, clock=lambda: next(moments)) as opened:
        yield opened


def texts(found: dict[str, list[dict[str, str]]]) -> list[str]:
    return [item["memory"] for item in found["results"]]


def test_add_search_get(memory: Memory) -> None:
    added = memory.add(
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "I drink green tea.", "name": "Ana"},
            {"role": "assistant", "content": [{"type": "text", "text": "Noted."}]},
        ],
        user_id="ana",
        run_id="r1",
        metadata={"topic": "drinks"},
    )
    assert [(r["memory"], r["event"], r["role"]) for r in added["results"]] == [
        ("I drink green tea.", "ADD", "user"),
        ("Noted.", "ADD", "assistant"),
    ]
    first = memory.get(added["results"][0]["id"])
    assert first is not None
    assert first["id"] == "0@user_id=ana"
    assert first["user_id"] == "ana"
    assert first["run_id"] == "r1"
    assert first["actor_id"] == "Ana"
    assert first["metadata"] == {"topic": "drinks"}
    assert first["created_at"] == "2024-06-01T00:00:00+00:00"
    assert first["updated_at"] is None
    found = memory.search("Which tea do I drink?", user_id="ana")["results"]
    assert {item["memory"] for item in found} == {"I drink green tea.", "Noted."}
    assert all(0 <= item["score"] <= 1 for item in found)
    same = memory.search("Which tea do I drink?", filters={"user_id": "ana"}, top_k=1)
    assert same["results"] == found[:1]
    assert memory.search("tea?", user_id="ana", threshold=1.0) == {"results": []}
    every = memory.search("tea?", user_id="ana", threshold=None)
    assert every == memory.search("tea?", user_id="ana")


def test_messages_without_content_are_passed_over(memory: Memory) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "order", "arguments": "tea"}}
    picture = {"type": "image_url", "image_url": {"url": "x"}}
    added = memory.add(
        [
            {"role": "user", "content": "Tea, please."},
            {"role": "assistant", "content": None},
            {"role": "assistant", "content": ""},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "user", "content": picture},
            {"role": "user", "content": "Thanks.", "name": "Ana"},
        ],
        user_id="ana",
    )["results"]
    assert [(item["memory"], item["actor_id"]) for item in added] == [
        ("Tea, please.", None),
        ("order(tea)", None),
        ("[image_url]", None),
        ("Thanks.", "Ana"),
    ]
    for wrong, why in (
        ("", "empty"),
        ([{"role": "user"}], "text"),
        (5, "messages"),
        (None, "messages"),
        ([5], "mapping"),
    ):
        with pytest.raises(InputError, match=why):
            memory.add(wrong, user_id="ana")  # type: ignore[arg-type]
    assert len(memory.get_all(user_id="ana")["results"]) == 4


def test_what_has_no_effect_is_taken(memory: Memory) -> None:
    memory.add("Tea.", user_id="ana", infer=False, memory_type="procedural_memory", prompt="Brief.")
    found = memory.search("Tea?", user_id="ana", rerank=True, explain=True)
    assert texts(found) == ["Tea."]


def test_what_is_around_an_id_makes_no_other_user(memory: Memory) -> None:
    memory.add("Tea.", user_id=" ana\n", run_id="r1 ")
    assert texts(memory.get_all(user_id="ana", run_id="r1")) == ["Tea."]
    assert texts(memory.search("Tea?", filters={"user_id": "ana "})) == ["Tea."]
    memory.delete_all("ana ")
    assert texts(memory.get_all(user_id="ana")) == []


def test_long_questions_are_cut(memory: Memory) -> None:
    memory.add("Tea.", user_id="ana")
    assert texts(memory.search("tea " * 20_000, user_id="ana")) == ["Tea."]


def test_scopes(memory: Memory) -> None:
    memory.add("Tea.", user_id="ana", agent_id="cook")
    memory.add("Coffee.", user_id="luis", agent_id="cook", run_id="r1")
    memory.add("Water.", agent_id="cook")
    memory.add("Milk.", run_id="r1")
    assert texts(memory.get_all(user_id="ana")) == ["Tea."]
    assert texts(memory.get_all(user_id="ana", agent_id="other")) == []
    assert sorted(texts(memory.get_all(agent_id="cook"))) == ["Coffee.", "Tea.", "Water."]
    assert sorted(texts(memory.search("tea?", run_id="r1"))) == ["Coffee.", "Milk."]
    memory.delete_all(agent_id="cook")
    assert texts(memory.get_all(run_id="r1")) == ["Milk."]
    memory.reset()
    assert texts(memory.get_all(run_id="r1")) == []


def test_filters(memory: Memory) -> None:
    for n in range(5):
        memory.add(f"Note {n}.", user_id="ana", metadata={"n": n % 2})
    assert texts(memory.get_all(user_id="ana", filters={"n": 1})) == ["Note 1.", "Note 3."]
    assert len(memory.search("note?", user_id="ana", filters={"n": 0}, limit=2)["results"]) == 2
    assert texts(memory.get_all(user_id="ana", limit=2)) == ["Note 0.", "Note 1."]


def test_many_memories_are_found_whole_and_once(stub: Config, store_path: Path) -> None:
    with Memory(store_path, config=stub) as memory:
        names: list[str] = []
        for n in range(240):
            added = memory.add(f"On day {n} I bought apples.", user_id="ana", metadata={"n": n % 2})
            names.append(added["results"][0]["id"])
        for name in names[::3]:
            memory.update(name, f"Corrected: {name} was a market day.")

        def ids(**asked: Any) -> list[str]:
            found = memory.search("apples from the market", user_id="ana", **asked)
            return [item["id"] for item in found["results"]]

        order = ids(limit=1000)
        assert sorted(order) == sorted(names)
        for limit in (1, 40, 64, 65, 239):
            assert ids(limit=limit) == order[:limit]
        half = [name for name in order if int(name.partition("@")[0]) % 2]
        assert sorted(ids(limit=1000, filters={"n": 1})) == sorted(half)


def test_memories_with_the_same_words_are_found_each(memory: Memory) -> None:
    for _ in range(2):
        memory.add("I drink green tea.", user_id="ana")
    found = memory.search("Which tea do I drink?", user_id="ana")["results"]
    assert [item["id"] for item in found] == ["0@user_id=ana", "1@user_id=ana"]
    assert found[0]["score"] == found[1]["score"] > 0


def test_filters_compare_as_json_does(memory: Memory) -> None:
    for value in (True, 1, 1.0, [1, True], None):
        memory.add(f"It is {value!r}.", user_id="ana", metadata={"n": value})

    def both(value: Any) -> list[str]:
        asked: Any = {"user_id": "ana", "filters": {"n": value}}
        listed = texts(memory.get_all(**asked))
        assert sorted(texts(memory.search("What is it?", **asked))) == sorted(listed)
        return listed

    assert both(True) == ["It is True."]
    assert both(1) == both(1.0) == ["It is 1.", "It is 1.0."]
    assert both([1.0, True]) == ["It is [1, True]."]
    assert both([True, True]) == both("1") == both(False) == []
    assert both(None) == ["It is None."]


def test_a_messages_own_time_counts(memory: Memory) -> None:
    said = [
        {"role": "user", "content": "I drink tea.", "timestamp": "2023-01-01T08:00:00+00:00"},
        {"role": "user", "content": "I drink milk."},
    ]
    memory.add(said, user_id="ana", timestamp="2023-02-02T08:00:00+00:00")
    memory.add(said, user_id="luis")
    times = [item["created_at"] for item in memory.get_all(user_id="ana")["results"]]
    assert times == ["2023-01-01T08:00:00+00:00", "2023-02-02T08:00:00+00:00"]
    times = [item["created_at"] for item in memory.get_all(user_id="luis")["results"]]
    assert times[0] == "2023-01-01T08:00:00+00:00"
    assert times[1] > "2024"


def test_update_keeps_the_id_and_a_history(memory: Memory) -> None:
    memory.add("Unrelated.", user_id="ana")
    name = memory.add("I drink tea.", user_id="ana", metadata={"topic": "tea"})["results"][0]["id"]
    memory.update(name, "I drink coffee.")
    memory.update(name, "I drink water.", metadata={"topic": "water", "user_id": "luis"})
    now = memory.get(name)
    assert now is not None
    assert now["memory"] == "I drink water."
    assert now["id"] == name
    assert now["metadata"] == {"topic": "water"}
    assert now["user_id"] == "ana"
    assert now["created_at"] < now["updated_at"]
    assert sorted(texts(memory.get_all(user_id="ana"))) == ["I drink water.", "Unrelated."]
    found = memory.search("What do I drink?", user_id="ana")
    assert sorted(texts(found)) == ["I drink water.", "Unrelated."]
    assert [(h["event"], h["old_memory"], h["new_memory"]) for h in memory.history(name)] == [
        ("ADD", None, "I drink tea."),
        ("UPDATE", "I drink tea.", "I drink coffee."),
        ("UPDATE", "I drink coffee.", "I drink water."),
    ]
    memory.delete(name)
    assert memory.get(name) is None
    assert texts(memory.get_all(user_id="ana")) == ["Unrelated."]


def test_a_changed_fact_stays_a_memory_and_is_marked(memory: Memory) -> None:
    memory.add("I live in Lisbon.", user_id="ana")
    memory.add("I live in Porto now.", user_id="ana")
    found = memory.get_all(user_id="ana")["results"]
    assert [(item["memory"], item["validity"]) for item in found] == [
        ("I live in Lisbon.", "superseded"),
        ("I live in Porto now.", "current"),
    ]


def test_it_is_there_after_reopening(store_path: Path, cheap: Config) -> None:
    with Memory(store_path, config=cheap) as memory:
        name = memory.add("I drink tea.", user_id="ana@home")["results"][0]["id"]
        memory.update(name, "I drink coffee.")
    with Memory(store_path, config=cheap) as memory:
        item = memory.get(name)
        assert item is not None
        assert item["memory"] == "I drink coffee."
        assert item["user_id"] == "ana@home"


def test_an_update_that_was_cut_short_is_finished(store_path: Path, cheap: Config) -> None:
    with Memory(store_path, config=cheap) as memory:
        name = memory.add("I drink tea.", user_id="ana")["results"][0]["id"]
        memory.update(name, "I drink coffee.")
    # As if the process had ended between storing the new words and relating them.
    with Store.open(store_path, config=cheap) as raw:
        turns = raw.memory("mem0:user_id=ana")
        turns.add("Rain is coming.", metadata=turns.get(1).metadata)
        assert len(turns.history(0)) == 2
    with Memory(store_path, config=cheap) as memory:
        assert texts(memory.get_all(user_id="ana")) == ["Rain is coming."]
        assert [version["event"] for version in memory.history(name)] == ["ADD", "UPDATE", "UPDATE"]


def test_a_first_version_that_was_erased_locks_nobody_out(store_path: Path, cheap: Config) -> None:
    with Memory(store_path, config=cheap) as memory:
        name = memory.add("I drink tea.", user_id="ana", agent_id="cook")["results"][0]["id"]
        memory.update(name, "I drink coffee.")
        memory.update(name, "I drink water.")
        memory.add("I own a cat.", user_id="ana")
    with Store.open(store_path, config=cheap) as raw:
        raw.memory("mem0:user_id=ana").delete(0)  # as `ebbtide delete` or `retain` does
    with Memory(store_path, config=cheap) as memory:
        assert texts(memory.get_all(user_id="ana")) == ["I drink water.", "I own a cat."]
        assert texts(memory.search("What do I drink?", agent_id="cook")) == ["I drink water."]
        item = memory.get(name)
        assert item is not None
        assert item["id"] == name
        assert [version["new_memory"] for version in memory.history(name)] == [
            "I drink coffee.",
            "I drink water.",
        ]
        memory.update(name, "I drink milk.")
        assert texts(memory.get_all(agent_id="cook")) == ["I drink milk."]
        memory.delete(name)
        assert memory.get(name) is None
        memory.delete_all(user_id="ana")
        assert texts(memory.get_all(user_id="ana")) == []


def test_a_version_between_two_that_was_erased(store_path: Path, cheap: Config) -> None:
    with Memory(store_path, config=cheap) as memory:
        name = memory.add("Tea.", user_id="ana")["results"][0]["id"]
        memory.update(name, "Rain is coming.")
        memory.update(name, "I own a cat.")
    with Store.open(store_path, config=cheap) as raw:
        raw.memory("mem0:user_id=ana").delete(1)
    with Memory(store_path, config=cheap) as memory:
        assert texts(memory.get_all(user_id="ana")) == ["I own a cat."]
        assert [version["new_memory"] for version in memory.history(name)] == [
            "Tea.",
            "I own a cat.",
        ]


def test_erasing_is_all_or_nothing(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    name = memory.add("I drink tea.", user_id="ana")["results"][0]["id"]
    memory.update(name, "I drink coffee.")
    one_by_one: list[object] = []
    monkeypatch.setattr("ebbtide.memory.Memory.delete", lambda _, turn: one_by_one.append(turn))
    memory.delete_all(user_id="ana")
    assert memory.get(name) is None
    other = memory.add("I drink milk.", user_id="ana")["results"][0]["id"]
    memory.update(other, "I drink water.")
    memory.delete(other)
    assert memory.get(other) is None
    assert one_by_one == []


def test_a_turn_of_the_engines_own(store_path: Path, cheap: Config) -> None:
    with Memory(store_path, config=cheap) as memory:
        memory.add("I drink tea.", user_id="ana")
    with Store.open(store_path, config=cheap) as raw:
        raw.memory("mem0:user_id=ana").add("I live in Porto.")
        raw.memory("mem0:user_id=ana").add("I own a cat.", metadata={"user_id": "ana", "mem0": 1})
    with Memory(store_path, config=cheap) as memory:
        # Of nobody's scope, unless its metadata says so.
        assert texts(memory.get_all(user_id="ana")) == ["I drink tea.", "I own a cat."]
        assert sorted(texts(memory.search("tea?", user_id="ana"))) == [
            "I drink tea.",
            "I own a cat.",
        ]
        memory.update("2@user_id=ana", "I own two cats.")
        assert texts(memory.get_all(user_id="ana")) == ["I drink tea.", "I own two cats."]


@pytest.mark.parametrize("name", ["", "7", "7@user_id=ana", "1@user_id=ana", "x@user_id=ana", "0@"])
def test_an_unknown_id(memory: Memory, name: str) -> None:
    first = memory.add("I drink tea.", user_id="ana")["results"][0]["id"]
    memory.update(first, "I drink coffee.")  # becomes turn 1, which is no id of its own
    assert memory.get(name) is None
    for call in (memory.delete, memory.history, lambda i: memory.update(i, "x")):
        with pytest.raises(NotFoundError):
            call(name)


def test_what_is_refused(memory: Memory) -> None:
    with pytest.raises(InputError, match="user_id"):
        memory.add("Tea.")
    with pytest.raises(InputError, match="user_id"):
        memory.search("tea?", filters={"topic": "tea"})
    with pytest.raises(InputError, match="blank"):
        memory.delete_all(user_id=" ")
    for operator in ({"n": {"gt": 1}}, {"OR": [{"n": 1}]}, {"$or": [{"n": 1}]}, {"n": "*"}):
        with pytest.raises(InputError, match="equality"):
            memory.search("tea?", user_id="ana", filters=operator)
    with pytest.raises(InputError, match="top_k"):
        memory.get_all(user_id="ana", top_k=0)
    for wrong in ("0.5", True):
        with pytest.raises(InputError, match="threshold"):
            memory.search("tea?", user_id="ana", threshold=wrong)  # type: ignore[arg-type]
    assert memory.search("tea?", user_id="nobody") == {"results": []}
