"""The LangGraph store: its own contract, against LangGraph itself."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore, GetOp, InvalidNamespaceError, PutOp, SearchOp

from ebbtide import Config, ConfigError, InputError, Memory, Store, StoreError
from ebbtide.adapters.langgraph import EbbtideStore

ANA, LUIS = ("users", "ana"), ("users", "luis")


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2024, 6, 1, 9, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, minutes: float) -> None:
        self.now += timedelta(minutes=minutes)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(store_path: Path, cheap: Config, clock: Clock) -> Iterator[EbbtideStore]:
    with EbbtideStore.open(store_path, config=cheap, clock=clock) as opened:
        yield opened


def keys(found: list[Any]) -> list[str]:
    return [item.key for item in found]


def test_put_get_replace_delete(store: EbbtideStore, clock: Clock) -> None:
    store.put(ANA, "home", {"text": "I live in Lisbon.", "n": 1})
    clock.forward(5)
    store.put(ANA, "home", {"text": "I live in Porto now.", "n": 2})
    item = store.get(ANA, "home")
    assert item is not None
    assert item.value == {"text": "I live in Porto now.", "n": 2}
    assert item.namespace == ANA
    assert item.updated_at - item.created_at == timedelta(minutes=5)
    assert store.get(ANA, "other") is None
    assert store.get(LUIS, "home") is None
    store.delete(ANA, "home")
    store.delete(ANA, "home")
    assert store.get(ANA, "home") is None
    assert store.list_namespaces() == []


def test_a_query_ranks_and_namespaces_stay_apart(store_path: Path) -> None:
    with EbbtideStore.open(store_path) as store:  # with the real models
        store.put(ANA, "drink", {"text": "I drink green tea every morning."})
        store.put(ANA, "home", {"text": "I live in Porto."})
        store.put(LUIS, "drink", {"text": "I drink black coffee."})
        found = store.search(ANA, query="Which tea do I drink?")
        assert keys(found) == ["drink", "home"]
        assert all(item.score is not None and 0 <= item.score <= 1 for item in found)
        both = store.search(("users",), query="What do I drink?", limit=2)
        assert {(item.namespace, item.key) for item in both} == {(ANA, "drink"), (LUIS, "drink")}
        assert store.search(("nobody",), query="drink") == []
        # The same beginning in letters is another label.
        assert store.search(("user",)) == []


def test_what_one_user_says_does_not_supersede_another(store: EbbtideStore) -> None:
    store.put(ANA, "home", {"text": "I live in Lisbon."})
    store.put(LUIS, "home", {"text": "I live in Porto now."})
    assert len(store.search(("users",), query="Where do I live?")) == 2
    stats = store._store.memory("langgraph:users.ana").stats()
    assert stats["validity"] == {"current": 1}


def test_filters_limit_and_offset(store: EbbtideStore) -> None:
    for n in range(12):
        kind = {"kind": "even" if n % 2 == 0 else "odd", "n": n, "deep": {"n": n % 3}}
        store.put(ANA, f"k{n}", {"text": f"Note {n} about tea.", **kind})
    assert keys(store.search(ANA, limit=3)) == ["k0", "k1", "k2"]
    assert keys(store.search(ANA, limit=3, offset=10)) == ["k10", "k11"]
    assert keys(store.search(ANA, filter={"kind": "odd"})) == ["k1", "k3", "k5", "k7", "k9", "k11"]
    assert keys(store.search(ANA, filter={"n": {"$gte": 3, "$lt": 5}})) == ["k3", "k4"]
    assert keys(store.search(ANA, filter={"n": {"$ne": 0, "$lte": 1}})) == ["k1"]
    assert keys(store.search(ANA, filter={"missing": {"$gt": 1}})) == []
    assert keys(store.search(ANA, filter={"deep": {"n": 2}}, limit=2)) == ["k2", "k5"]
    ranked = store.search(ANA, query="Which note is about tea?", filter={"n": {"$gt": 9}})
    assert sorted(keys(ranked)) == ["k10", "k11"]
    pages = [store.search(ANA, query="tea", limit=5, offset=o) for o in (0, 5, 10)]
    assert sorted(k for page in pages for k in keys(page)) == sorted(f"k{n}" for n in range(12))
    with pytest.raises(ValueError, match=r"\$eq"):
        store.search(ANA, filter={"n": {"$in": [1]}})


def test_filters_compare_lists_as_they_come_back(store: EbbtideStore) -> None:
    store.put(ANA, "k", {"tags": ("a", "b"), "parts": [{"n": 1, "text": "Tea."}, {"n": 5}]})
    same: list[dict[str, Any]] = [
        {"tags": ("a", "b")},
        {"tags": ["a", "b"]},
        {"tags": {"$eq": ("a", "b")}},
        {"parts": [{"n": 1}, {"n": {"$gt": 4}}]},
    ]
    others: list[dict[str, Any]] = [
        {"tags": ("a",)},
        {"tags": ["b", "a"]},
        {"tags": {"$ne": ("a", "b")}},
        {"parts": [{"n": 1}]},
        {"parts": [{"n": 1}, {"n": {"$gt": 5}}]},
        {"missing": []},
    ]
    for wanted in same:
        assert keys(store.search(ANA, filter=wanted)) == ["k"], wanted
    for wanted in others:
        assert keys(store.search(ANA, filter=wanted)) == [], wanted


def test_a_large_namespace_is_found_whole_and_once(stub: Config, store_path: Path) -> None:
    names = [f"k{n}" for n in range(300)]
    with EbbtideStore.open(store_path, config=stub) as store:
        day = "I went to the market on day {} and bought apples."
        for n, name in enumerate(names):
            store.put(ANA, name, {"text": day.format(n), "part": n % 7})
        ask = "apples from the market"
        pages = [store.search(ANA, query=ask, limit=20, offset=o) for o in range(0, 300, 20)]
        order = [key for page in pages for key in keys(page)]
        assert sorted(order) == sorted(names)
        for limit in (1, 7, 64, 65, 200, 299, 1000):
            assert keys(store.search(ANA, query=ask, limit=limit)) == order[:limit]
        part = [key for key in order if int(key[1:]) % 7 == 0]
        for limit, offset in ((10, 0), (10, 10), (10, 40), (100, 3)):
            found = store.search(ANA, query=ask, filter={"part": 0}, limit=limit, offset=offset)
            assert keys(found) == part[offset : offset + limit]


def test_items_with_the_same_words_are_found_each(store: EbbtideStore) -> None:
    for n in range(3):
        store.put(ANA, f"same{n}", {"text": "I drink green tea.", "n": n})
    store.put(ANA, "other", {"text": "I live in Porto."})
    store.put(ANA, "hidden", {"text": "Tea."}, index=False)
    found = store.search(ANA, query="Which tea do I drink?")
    assert sorted(keys(found)) == ["hidden", "other", "same0", "same1", "same2"]
    assert len({item.score for item in found if item.key.startswith("same")}) == 1
    assert found[-1].key == "hidden"


def test_what_is_read_of_a_value(store: EbbtideStore) -> None:
    store.put(ANA, "secret", {"text": "The code is 4711."}, index=False)
    store.put(ANA, "tea", {"title": "Tea", "notes": [{"say": "Oolong"}, {"say": "Sencha"}]})
    store.put(ANA, "part", {"text": "Coffee", "hidden": "Oolong"}, index=["text"])
    found = store.search(ANA, query="Oolong?")
    assert found[0].key == "tea"
    assert keys(found)[-1] == "secret"
    assert found[-1].score is None
    with pytest.raises(InputError):
        store.put(LUIS, "bad", {"when": object()})
    assert store.list_namespaces() == [ANA]


def test_an_item_of_which_nothing_is_read_has_no_rank(store: EbbtideStore) -> None:
    store.put(ANA, "tea", {"text": "I drink green tea."})
    store.put(ANA, "none", {"text": "Is it not indexed?"}, index=[])
    store.put(ANA, "elsewhere", {"text": "Is it not indexed?"}, index=["title"])
    found = store.search(ANA, query="Is it not indexed?")
    assert [(item.key, item.score is None) for item in found] == [
        ("tea", False),
        ("none", True),
        ("elsewhere", True),
    ]


def test_questions_as_they_come(store: EbbtideStore) -> None:
    store.put(ANA, "tea", {"text": "I drink green tea."})
    assert keys(store.search(ANA, query="tea " * 20_000)) == ["tea"]
    assert keys(store.search(ANA, query=" ")) == keys(store.search(ANA, query="")) == ["tea"]
    with pytest.raises(InputError, match="query"):
        store.search(ANA, query=5)  # type: ignore[arg-type]


@pytest.mark.parametrize("ltm", [{"enabled": False}, {"storage_type": "null"}])
def test_settings_that_would_lose_items(
    store_path: Path, cheap: Config, ltm: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError, match="discard"):
        EbbtideStore.open(store_path, config=cheap.replace(ltm=ltm))
    with EbbtideStore.open(store_path, config=cheap) as store:  # it was closed
        store.put(ANA, "tea", {"text": "Tea."})


def test_values_come_back_as_they_were(store: EbbtideStore) -> None:
    rendered = "=== RELEVANT MEMORY ===\n=== END OF MEMORY ===\n"
    values: list[dict[str, Any]] = [
        {},
        {"n": 1.5, "none": None},
        {"text": ""},
        {"text": rendered},
        {"text": "ü\n"},
    ]
    for value in values:
        store.put(ANA, "value", value)
        item = store.get(ANA, "value")
        assert item is not None
        assert item.value == value


def test_namespaces_are_listed(store: EbbtideStore) -> None:
    for namespace in (ANA, LUIS, ("docs", "v1", "en"), ("docs", "v2", "en")):
        store.put(namespace, "k", {"text": "Tea."})
    assert store.list_namespaces(prefix=("users",)) == [ANA, LUIS]
    assert store.list_namespaces(suffix=("*", "en"), max_depth=1) == [("docs",)]
    assert store.list_namespaces(prefix=("docs", "*", "en"), limit=1, offset=1) == [
        ("docs", "v2", "en")
    ]
    for wrong in ((), ("a.b",), ("",), ("langgraph",)):
        with pytest.raises(InvalidNamespaceError):
            store.put(wrong, "k", {"text": "Tea."})
    # Operations in a batch have not been looked at by anybody.
    for unseen in (("users.ana",), (5,)):
        with pytest.raises(InvalidNamespaceError):
            store.batch([GetOp(unseen, "k")])  # type: ignore[arg-type]


def test_time_to_live(store_path: Path, cheap: Config, clock: Clock) -> None:
    settings: Any = {"default_ttl": 60.0, "refresh_on_read": True}
    with EbbtideStore.open(store_path, config=cheap, ttl=settings, clock=clock) as store:
        store.put(ANA, "default", {"text": "Tea."})
        store.put(ANA, "short", {"text": "Coffee."}, ttl=10)
        store.put(ANA, "kept", {"text": "Water."}, ttl=None)
        clock.forward(9)
        assert store.get(ANA, "short") is not None  # reading starts it anew
        clock.forward(9)
        assert store.get(ANA, "short", refresh_ttl=False) is not None
        clock.forward(2)
        assert store.get(ANA, "short") is None
        assert keys(store.search(ANA, query="Tea?", refresh_ttl=False)) != []
        clock.forward(45)
        assert keys(store.search(ANA)) == ["kept"]
    with EbbtideStore.open(store_path, config=cheap, clock=clock) as store:
        assert keys(store.search(ANA)) == ["kept"]


def test_items_expire_all_at_once(
    store: EbbtideStore, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget, erased = Memory.forget, []

    def noted(memory: Memory, *, ids: list[int]) -> None:
        erased.append(ids)
        forget(memory, ids=ids)

    monkeypatch.setattr(Memory, "forget", noted)
    for n in range(3):
        store.put(ANA, f"note {n}", {"text": f"Note {n}."}, ttl=5)
    store.put(ANA, "home", {"text": "I live in Porto."})
    clock.forward(6)
    assert keys(store.search(ANA)) == ["home"]
    assert erased == [[0, 1, 2]]


def test_a_time_to_live_beyond_the_calendar_is_for_ever(
    store_path: Path, cheap: Config, clock: Clock
) -> None:
    with EbbtideStore.open(store_path, config=cheap, clock=clock) as store:
        for n, ttl in enumerate((10**9, 10**10, sys.maxsize, 10**30, 1e300, float("inf"))):
            store.put(ANA, f"k{n}", {"text": "Tea."}, ttl=ttl)
        clock.forward(60 * 24 * 365 * 1000)
        assert len(store.search(ANA, refresh_ttl=True)) == 6
        store.put(LUIS, "k", {"text": "Tea."}, ttl=-(10**10))
        assert store.search(LUIS) == []
    with EbbtideStore.open(store_path, config=cheap, clock=clock) as store:
        assert len(store.search(ANA)) == 6


@pytest.mark.parametrize("ttl", ["x", "5", True, [1], float("nan")])
def test_a_time_to_live_that_is_no_number(store: EbbtideStore, ttl: Any) -> None:
    store.put(ANA, "k", {"text": "Tea."})
    with pytest.raises(InputError, match="ttl"):
        store.put(ANA, "k", {"text": "Coffee."}, ttl=ttl)
    assert [item.value for item in store.search(ANA)] == [{"text": "Tea."}]
    with pytest.raises(InputError, match="ttl"):
        store.put(LUIS, "k", {"text": "Coffee."}, ttl=ttl)
    assert store.list_namespaces() == [ANA]


@pytest.mark.parametrize("ttl", ["x", 10**10])
def test_an_unusable_time_to_live_that_was_stored_is_for_ever(
    store_path: Path, cheap: Config, ttl: Any
) -> None:
    with EbbtideStore.open(store_path, config=cheap) as store:
        store.put(ANA, "k", {"text": "Tea."}, ttl=5)
    with Store.open(store_path, config=cheap) as raw:
        memory = raw.memory("langgraph:users.ana")
        metadata = memory.get(0).metadata
        assert metadata is not None
        memory.add("Tea.", metadata={**metadata, "ttl": ttl})
    with EbbtideStore.open(store_path, config=cheap) as store:
        assert keys(store.search(ANA)) == ["k"]
        store.delete(ANA, "k")


def test_it_is_there_after_reopening(store_path: Path, cheap: Config) -> None:
    with EbbtideStore.open(store_path, config=cheap) as store:
        store.put(ANA, "drink", {"text": "I drink tea."})
    # As if the process had ended between the new turn and the erasing of the old one.
    with Store.open(store_path, config=cheap) as raw:
        memory = raw.memory("langgraph:users.ana")
        old = memory.get(0).metadata
        assert old is not None
        memory.add("I drink coffee.", metadata={**old, "value": {"text": "I drink coffee."}})
    with EbbtideStore.open(store_path, config=cheap) as store:
        (item,) = store.search(ANA)
        assert item.value == {"text": "I drink coffee."}


def test_turns_that_are_no_items_are_left_alone(store_path: Path, cheap: Config) -> None:
    with Store.open(store_path, config=cheap) as raw:
        memory = raw.memory("langgraph:users.ana")
        memory.add("I drink water.")
        memory.add("I drink milk.", metadata={"indexed": True, "key": "milk"})
        memory.add("I drink juice.", metadata={"indexed": False})
    with EbbtideStore.open(store_path, config=cheap) as store:
        assert store.search(("users",)) == store.search(("users",), query="drink") == []
        store.put(ANA, "tea", {"text": "I drink tea."})
        store.put(ANA, "secret", {"text": "I drink gin."}, index=False)
        assert (
            keys(store.search(ANA)) == keys(store.search(ANA, query="drink")) == ["tea", "secret"]
        )
        store.delete(ANA, "secret")
        store.delete(ANA, "tea")
        assert store.get(ANA, "tea") is None
    with Store.open(store_path, config=cheap) as raw:
        assert len(raw.memory("langgraph:users.ana")) == 3


def test_items_that_were_erased_beside_the_store(
    store_path: Path, cheap: Config, clock: Clock
) -> None:
    raw = Store.open(store_path, config=cheap)
    with EbbtideStore(raw, clock=clock) as store:
        for key in ("got", "put", "deleted", "expired", "expired too"):
            store.put(ANA, key, {"text": "Tea."}, ttl=5 if "expired" in key else None)
        raw.memory("langgraph:users.ana").forget(ids=[0, 1, 2, 3])  # as a rule of its own does
        assert store.get(ANA, "got") is None
        store.put(ANA, "put", {"text": "Coffee."})
        store.delete(ANA, "deleted")
        assert keys(store.search(ANA)) == ["expired too", "put"]
        clock.forward(6)
        assert keys(store.search(ANA, query="coffee")) == ["put"]
        raw.memory("langgraph:users.ana").delete_all()
        store.delete(ANA, "put")
        assert store.search(ANA) == []
        assert store.list_namespaces() == []


def test_a_batch_runs_in_order(store: EbbtideStore) -> None:
    results = store.batch(
        [
            GetOp(ANA, "k"),
            PutOp(ANA, "k", {"text": "Tea."}),
            GetOp(ANA, "k"),
            SearchOp(("users",), None, 10, 0, None),
            PutOp(ANA, "k", None),
            GetOp(ANA, "k"),
        ]
    )
    assert results[0] is None
    assert results[2] is not None
    assert keys(results[3]) == ["k"]  # type: ignore[arg-type]
    assert results[5] is None


def test_async(store: EbbtideStore) -> None:
    async def main() -> list[str]:
        await asyncio.gather(
            *(store.aput(ANA, f"k{n}", {"text": f"Tea number {n}."}) for n in range(8))
        )
        await store.adelete(ANA, "k7")
        assert (await store.aget(ANA, "k3")) is not None
        assert await store.alist_namespaces() == [ANA]
        return keys(await store.asearch(ANA, query="tea", limit=20))

    assert sorted(asyncio.run(main())) == [f"k{n}" for n in range(7)]


def test_async_calls_run_in_order_and_in_no_thread_of_the_event_loop(store: EbbtideStore) -> None:
    free = threading.Event()

    async def main() -> Any:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        busy = loop.run_in_executor(None, free.wait, 60)
        try:
            async with asyncio.timeout(30):
                await asyncio.gather(*(store.aput(ANA, "k", {"n": n}) for n in range(20)))
                return await store.aget(ANA, "k")
        finally:
            free.set()
            await busy

    assert asyncio.run(main()).value == {"n": 19}


def test_two_over_one_store_see_each_other(store_path: Path, cheap: Config, clock: Clock) -> None:
    with Store.open(store_path, config=cheap) as opened:
        one, two = (EbbtideStore(opened, clock=clock) for _ in range(2))
        assert one.get(ANA, "home") is None
        one.put(ANA, "home", {"text": "I live in Lisbon."})
        two.put(ANA, "home", {"text": "I live in Porto."}, ttl=10)
        two.put(ANA, "drink", {"text": "I drink tea."})
        for each in (one, two):
            assert sorted(keys(each.search(ANA))) == ["drink", "home"]
            assert each.get(ANA, "home").value == {"text": "I live in Porto."}
        assert len(opened.memory("langgraph:users.ana")) == 2
        # Reading through one starts the time to live anew for both.
        clock.forward(8)
        assert one.get(ANA, "home") is not None
        clock.forward(8)
        assert sorted(keys(two.search(ANA))) == ["drink", "home"]
        one.delete(ANA, "home")
        one.delete(ANA, "drink")
        assert two.get(ANA, "home") is None
        assert opened.namespaces() == two.list_namespaces() == []
        two.put(ANA, "home", {"text": "I live in Faro."})
        assert one.get(ANA, "home").value == {"text": "I live in Faro."}


def test_threads_over_one_store_put_a_key_once(store_path: Path, cheap: Config) -> None:
    with Store.open(store_path, config=cheap) as opened:
        stores = [EbbtideStore(opened) for _ in range(4)]
        with ThreadPoolExecutor(4) as pool:
            for n in range(20):
                list(pool.map(lambda s: s.put(ANA, "k", {"n": n}), stores))  # noqa: B023
        assert len(opened.memory("langgraph:users.ana")) == 1


def test_async_calls_after_closing(store: EbbtideStore) -> None:
    async def main() -> None:
        await store.aput(ANA, "k", {"text": "Tea."})
        store.close()
        with pytest.raises(StoreError, match="closed"):
            await store.aget(ANA, "k")

    asyncio.run(main())
    for thread in threading.enumerate():
        if thread.name.startswith("ebbtide-langgraph"):
            thread.join(60)
            assert not thread.is_alive()


FORKED = """
import asyncio, os, sys
from ebbtide import StoreError
from ebbtide.adapters.langgraph import EbbtideStore

store = EbbtideStore.open(sys.argv[1])
asyncio.run(store.alist_namespaces())
child = os.fork()
if not child:
    try:
        asyncio.run(store.alist_namespaces())
    except StoreError as error:
        os._exit(7 if error.code == "store.closed" else 8)
    os._exit(9)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
def test_async_calls_in_a_fork_are_refused(store_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "python")}
    done = subprocess.run(
        [sys.executable, "-c", FORKED, str(store_path)], env=environment, timeout=120, check=False
    )
    assert done.returncode == 7


class State(TypedDict):
    question: str
    answer: str


def test_in_a_graph(store: EbbtideStore) -> None:
    def answer(state: State, *, store: BaseStore) -> dict[str, str]:
        (best,) = store.search(ANA, query=state["question"], limit=1)
        return {"answer": best.value["text"]}

    store.put(ANA, "home", {"text": "I live in Porto."})
    store.put(ANA, "drink", {"text": "I drink tea."})
    graph = StateGraph(State)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    app = graph.compile(store=store)
    assert app.invoke({"question": "What do I drink?", "answer": ""})["answer"] == "I drink tea."
