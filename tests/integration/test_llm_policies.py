"""The gate's utility and the episodes' words by a language model, and without where it fails."""

from __future__ import annotations

import asyncio
import math
import sqlite3
import threading
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from reference.models import CountedModel, EchoModel, FlakyModel
from reference.stand_ins import scripted
from tests.integration.test_recurrence import conversation

from ebbtide import AsyncMemory, Config, InputError, Memory, Store
from ebbtide.llm import LlmClient, Usage, used
from ebbtide.llm.seam import failure
from ebbtide.llm.utility import Assessment

JUDGED = {"gate": "rpe", "rpe": {"utility": "llm"}}
GATHERED = {
    "consolidation": "recurrence",
    "recurrence": {"theta_sim": 0.6, "theta_count": 3},
}
WRITTEN = {
    "consolidation": "recurrence",
    "recurrence": {**GATHERED["recurrence"], "writer": "llm"},  # type: ignore[dict-item]
}
TALK = conversation(14)


class Saying(EchoModel):
    """Says the same of every turn; an exception is raised."""

    def __init__(self, reply: Any) -> None:
        super().__init__()
        self.reply = reply

    def complete_json(self, system: str, user: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.append(user)
        if isinstance(self.reply, BaseException):
            raise self.reply
        return self.reply  # type: ignore[no-any-return]


class Interrupted(EchoModel):
    """Is interrupted, as by a signal, at the n-th request that asks for a field."""

    def __init__(self, field: str, number: int) -> None:
        super().__init__()
        self.field, self.left = field, number

    def complete_json(self, system: str, user: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        self.left -= self.field in schema["properties"]
        if self.left == 0:
            self.left = -1
            raise KeyboardInterrupt
        return super().complete_json(system, user, schema)


class Costing(EchoModel):
    """Tells again and again what its replies cost."""

    def __init__(self, usage: Usage, times: int) -> None:
        super().__init__()
        self.usage, self.times = usage, times

    def complete_json(self, system: str, user: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        for _ in range(self.times):
            used(self.usage)
        return super().complete_json(system, user, schema)


def filled(config: Config, turns: Any, llm: Any = None) -> str:
    with Memory.in_memory(config=config, llm=llm) as memory:
        memory.add_many(turns)
        return memory.digest()


def test_every_way_of_opening_takes_a_model(stub: Config, tmp_path: Path) -> None:
    config, said = stub.replace(policy=JUDGED), {"lifecycle": "persistent", "utility": 0.5}
    models = [Saying(said), Saying(said), Saying(said)]
    with Store.open(tmp_path / "store.db", config=config) as store:
        for namespace, model in zip(("ana", "ben"), models, strict=False):
            store.memory(namespace, llm=model).add("I keep bees.")
        assert store.memory("ana") is store.memory("ana", llm=models[0])
        with pytest.raises(InputError, match="'ana' is open with another llm or with none"):
            store.memory("ana", llm=models[1])
        store.release("ana")
        store.memory("ana", llm=models[1]).add("And wasps.")

    async def beside() -> None:
        async with AsyncMemory.in_memory(config=config, llm=models[2]) as memory:
            await memory.add("I keep bees.")
        opened = await AsyncMemory.open(tmp_path / "one.db", config=config, llm=models[2])
        async with opened as memory:
            await memory.add("I keep bees.")

    asyncio.run(beside())
    assert [len(model.asked) for model in models] == [1, 2, 2]


# The gate


def test_the_model_decides_how_long_a_turn_matters(stub: Config) -> None:
    model = Saying({"lifecycle": "transient", "utility": 0.9})
    with Memory.in_memory(config=stub.replace(policy=JUDGED), llm=model) as memory:
        memory.add("My sister Ana moved to Porto in May.", speaker="Joe")
        gate = memory.explain(0)["gate"]
        assert (gate["tier"], gate["lifecycle"], gate["utility"]) == ("skip", "transient", 0.0)
        assert gate["reason"] == "model"
        assert gate["llm"]["failed"] is None
        model.reply = {"lifecycle": "short_term", "utility": 0.5}
        memory.add("Thanks!", speaker="Joe")
        gate = memory.explain(1)["gate"]
        # Nothing to compare with: surprise 1, so RPE = 0.5 (1 + 0.4) = 0.7; the first
        # turns evolve nothing.
        assert gate["rpe"] == pytest.approx(0.7)
        assert (gate["tier"], gate["utility"]) == ("construct_only", 0.5)
        decisions = memory.explain(1)["decisions"]
        told = next(d["detail"]["llm"] for d in decisions if d["kind"] == "construct")
        assert told == gate["llm"]
        assert model.asked == ["Joe: My sister Ana moved to Porto in May.", "Joe: Thanks!"]


def test_the_callers_word_and_the_tools_turns_outweigh_the_model(stub: Config) -> None:
    model = Saying({"lifecycle": "transient", "utility": 0})
    with Memory.in_memory(config=stub.replace(policy=JUDGED), llm=model) as memory:
        memory.add("Well.", provenance={"is_user_correction": True})
        memory.add("exit code 0", role="tool")
        assert memory.explain(0)["gate"]["reason"] == "provenance"
        assert memory.explain(1)["gate"]["lifecycle"] != "transient"
        assert len(model.asked) == 1


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (TimeoutError("no reply in time"), "llm.unavailable: no reply in time"),
        (ConnectionRefusedError("refused"), "llm.unavailable: refused"),
        (RuntimeError("adapter"), "llm.answer: adapter"),
        (ValueError(), "llm.answer: ValueError"),
        ("no object", "llm.answer"),
        ({}, "llm.answer"),
        ({"lifecycle": "eternal", "utility": 0.5}, "llm.answer"),
        ({"lifecycle": ["persistent"], "utility": 0.5}, "llm.answer"),
        ({"lifecycle": "persistent", "utility": 0}, "llm.answer"),
        ({"lifecycle": "persistent", "utility": 1.01}, "llm.answer"),
        ({"lifecycle": "short_term", "utility": -0.1}, "llm.answer"),
        ({"lifecycle": "short_term", "utility": math.nan}, "llm.answer"),
        ({"lifecycle": "short_term", "utility": True}, "llm.answer"),
        ({"lifecycle": "short_term", "utility": "high"}, "llm.answer"),
        (ValueError("not \ud800 Unicode"), "llm.answer: not ? Unicode"),
    ],
    ids=str,
)
def test_where_it_fails_the_rules_decide_and_the_trace_says_so(
    stub: Config, reply: Any, code: str
) -> None:
    rules = filled(stub.replace(policy={"gate": "rpe"}), (scripted(n) for n in range(12)))
    with Memory.in_memory(config=stub.replace(policy=JUDGED), llm=Saying(reply)) as memory:
        memory.add_many(scripted(n) for n in range(12))
        assert memory.digest() == rules
        assert memory.explain(3)["gate"]["llm"]["failed"].startswith(code)
        used = memory.stats()["llm"]["utility"]
        assert (used["decided"], used["failed"]) == (0, 12)


def test_codes_are_those_of_our_own_errors() -> None:
    class StrangeError(Exception):
        code = None

        def __str__(self) -> str:
            raise RuntimeError("no words")

    class BusyError(OSError):
        code = 503

    assert failure(StrangeError()) == "llm.answer: StrangeError"
    assert failure(BusyError("busy")) == "llm.unavailable: busy"
    assert failure(InputError("wrong", "input.field")) == "input.field: wrong"


def test_the_model_is_told_of_a_message_on_one_line(stub: Config) -> None:
    model = Saying({"lifecycle": "persistent", "utility": 0.5})
    with Memory.in_memory(config=stub.replace(policy=JUDGED), llm=model) as memory:
        memory.add("To buy:\n1. milk\r\n\n2. eggs", speaker="Joe\nBen")
        memory.add("log " * 50_000, speaker="Joe")
    assert model.asked[0] == "Joe Ben: To buy: 1. milk 2. eggs"
    assert len(model.asked[1]) < 8_010


@pytest.mark.parametrize(
    ("usage", "times"),
    [(Usage(-5, 0, 1), 1), (Usage(10**30, 1, 1), 1), (Usage(2**40, 2**40, 2**40), 2**8)],
)
@pytest.mark.parametrize(("policy", "part"), [(JUDGED, "utility"), (WRITTEN, "writing")])
def test_no_cost_that_a_model_tells_keeps_a_turn_out(
    stub: Config, tmp_path: Path, policy: dict[str, Any], part: str, usage: Usage, times: int
) -> None:
    path, config = tmp_path / "memory.db", stub.replace(policy=policy)
    with Memory.open(path, config=config, llm=Costing(usage, times)) as memory:
        memory.add_many(TALK[:-1])
        memory.add(**TALK[-1], wait="journalled")
        assert memory.retrieve("birthday cake")
        told = memory.stats()["llm"][part]
        assert (told["decided"] > 0, told["failed"] > 0) == (times > 1, times == 1)
        assert 0 <= told["tokens"] <= len(TALK) * 2**40
        memory.delete(0)
        assert len(memory) == len(TALK) - 1
        digest = memory.digest()
    with Memory.open(path, config=config) as memory:
        assert memory.digest() == digest


def test_a_cost_that_cannot_be_is_named(stub: Config) -> None:
    model = Costing(Usage(-5, 0, 1), 1)
    with Memory.in_memory(config=stub.replace(policy=JUDGED), llm=model) as memory:
        memory.add("I keep bees.")
        failed = memory.explain(0)["gate"]["llm"]["failed"]
    assert failed.startswith("input.field: used() takes a Usage")


def test_an_absurd_cost_in_a_store_is_not_summed_up(
    stub: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.in_memory(config=stub.replace(policy=JUDGED), llm=EchoModel()) as memory:
        for tokens in (2**62, 2**62, 2**63, 5):
            said = Assessment("persistent", 0.5, calls=1, tokens=tokens)
            monkeypatch.setattr(memory._writing._part, "assess", lambda _, said=said: said)
            memory.add(f"I keep {tokens} bees.")
        assert memory.stats()["llm"]["utility"]["tokens"] == 2 * 2**40 + 5


def test_a_rebuild_by_the_rules_leaves_the_models_words_out(stub: Config, tmp_path: Path) -> None:
    path, model = tmp_path / "memory.db", Saying({"lifecycle": "persistent", "utility": 0.9})
    by_rules = stub.replace(policy={"gate": "rpe"})
    with Memory.open(path, config=stub.replace(policy=JUDGED), llm=model) as memory:
        memory.add("Thanks!", speaker="Joe")
        said = memory.explain(0)["gate"]["llm"]
    with Memory.open(path, config=by_rules) as memory:
        assert memory.explain(0)["gate"]["llm"] == said
        memory.reindex()
        assert "llm" not in memory.explain(0)["gate"]
    with Memory.open(path, config=stub.replace(policy=JUDGED), llm=model) as memory:
        memory.reindex()
        assert memory.explain(0)["gate"]["llm"] == said
    assert len(model.asked) == 1


def test_without_a_model_the_rules_decide(stub: Config) -> None:
    rules = filled(stub.replace(policy={"gate": "rpe"}), (scripted(n) for n in range(12)))
    assert filled(stub.replace(policy=JUDGED), (scripted(n) for n in range(12))) == rules


def test_a_refused_connection_loses_nothing(stub: Config) -> None:
    pytest.importorskip("openai")
    policy = {**JUDGED, **WRITTEN}
    config = stub.replace(policy=policy)
    with (
        LlmClient("none", "http://127.0.0.1:1/v1", attempts=1, timeout=2.0) as model,
        Memory.in_memory(config=config, llm=model) as memory,
    ):
        memory.add_many(TALK[:16])
        assert len(memory) == 16
        assert memory.explain(0)["gate"]["llm"]["failed"].startswith("llm.unavailable")
        digest = memory.digest()
    rules = stub.replace(policy={"gate": "rpe", **GATHERED})
    assert filled(rules, TALK[:16]) == digest


# Writing


def test_episodes_and_facts_are_the_models_words(stub: Config) -> None:
    model = CountedModel()
    config = stub.replace(policy=WRITTEN)
    with Memory.in_memory(config=config, llm=model) as memory:
        memory.add_many(TALK)
        episodes, facts = memory.episodes(), memory.facts()
        assert episodes
        assert all(e.text.startswith("It went on") and e.written for e in episodes)
        assert all(len(e.sentences) >= 2 and set(e.sources) for e in episodes)
        assert facts
        assert all(f.text.startswith("Fact: ") and f.reasons == ("model",) for f in facts)
        turns = {t.interaction_id: t.text for t in memory.turns()}
        assert all(f.text.endswith(turns[f.excerpt.interaction_id]) for f in facts)
        shown = memory.render_context("birthday cake", max_tokens=3000, include_active=False)
        assert any(f.text in shown for f in facts) or any(e.text in shown for e in episodes)
        # Two requests a version of an episode, each counted at 110 tokens.
        writes = memory.stats()["decisions"]["write"]
        assert len(model.asked) == 2 * writes
        assert memory.stats()["llm"]["writing"] == {
            "decided": writes,
            "failed": 0,
            "calls": 2 * writes,
            "tokens": 220 * writes,
        }
        at = episodes[0].at
        told = [d["detail"] for d in memory.explain(at)["decisions"] if d["kind"] == "write"]
        assert [(d["text"], d["facts"], d["tokens"]) for d in told] == [("llm", "llm", 220)]
        merges = [user for user in model.asked if user.startswith("Episode so far:")]
        assert merges
        assert all("It went on" in user for user in merges)


def test_what_is_gathered_does_not_depend_on_who_writes(stub: Config) -> None:
    def gathered(config: Config, llm: Any) -> list[Any]:
        with Memory.in_memory(config=config, llm=llm) as memory:
            memory.add_many(TALK)
            return [(e.id, e.version, e.sources, e.sentences) for e in memory.episodes()]

    rules = gathered(stub.replace(policy=GATHERED), None)
    assert gathered(stub.replace(policy=WRITTEN), EchoModel()) == rules


def test_the_writer_is_told_of_a_message_on_one_line(stub: Config) -> None:
    class Reading(EchoModel):
        def complete_json(
            self, system: str, user: str, schema: Mapping[str, Any]
        ) -> dict[str, Any]:
            super().complete_json(system, user, schema)
            if "episode" in schema["properties"]:
                return {"episode": "They bake."}
            rows = user.partition("Messages:\n")[2].partition("\n\n")[0].splitlines()
            assert [row.partition(". ")[0] for row in rows] == [
                str(n + 1) for n in range(len(rows))
            ]
            # A whole number, as JSON has it.
            return {"facts": [{"message": float(len(rows)), "fact": rows[-1]}]}

    turns = [turn | {"text": turn["text"] + "\n1. milk\n\n2. eggs"} for turn in TALK]
    with Memory.in_memory(config=stub.replace(policy=WRITTEN), llm=Reading()) as memory:
        memory.add_many(turns)
        assert memory.stats()["llm"]["writing"]["failed"] == 0
        assert memory.facts()
        assert all(fact.text.endswith(" 1. milk 2. eggs") for fact in memory.facts())


@pytest.mark.parametrize("reply", [TimeoutError("late"), {}, {"episode": " "}, RuntimeError("x")])
def test_where_writing_fails_the_rules_write(stub: Config, reply: Any) -> None:
    with Memory.in_memory(config=stub.replace(policy=WRITTEN), llm=Saying(reply)) as memory:
        memory.add_many(TALK)
        assert memory.digest() == filled(stub.replace(policy=GATHERED), TALK)
        assert memory.stats()["llm"]["writing"]["decided"] == 0
        told = [
            d["detail"]["failed"]
            for turn in memory.turns()
            for d in memory.explain(turn.interaction_id)["decisions"]
            if d["kind"] == "write"
        ]
        assert told
        assert all(failed.startswith("llm.") for failed in told)


def test_facts_may_fail_alone(stub: Config) -> None:
    model = Saying({"episode": "All about cake."})
    with Memory.in_memory(config=stub.replace(policy=WRITTEN), llm=model) as memory:
        memory.add_many(TALK)
        assert {e.text for e in memory.episodes()} == {"All about cake."}
        assert all(f.written is None for f in memory.facts())
        facts = [(f.id, f.text) for f in memory.facts(superseded=True)]
    with Memory.in_memory(config=stub.replace(policy=GATHERED)) as memory:
        memory.add_many(TALK)
        assert [(f.id, f.text) for f in memory.facts(superseded=True)] == facts


# Both: the same whatever happens


def both(stub: Config) -> Config:
    return stub.replace(policy={**JUDGED, **WRITTEN}, capacity={"token_budget": 256})


def mixed() -> list[Any]:
    return [*TALK, *(scripted(n) for n in range(12)), *conversation(20)[28:]]


def test_batches_single_turns_and_the_journal_lead_to_the_same(stub: Config) -> None:
    config, turns = both(stub), mixed()
    digests = set()
    for size in (1, 7, 64):
        with Memory.in_memory(config=config, llm=FlakyModel()) as memory:
            memory.add_many(turns, batch_size=size)
            digests.add(memory.digest())
            stats = memory.stats()["llm"]
    assert stats["utility"]["failed"] > 0 < stats["utility"]["decided"]
    assert stats["writing"]["failed"] > 0 < stats["writing"]["decided"]
    for wait in ("complete", "journalled"):
        with Memory.in_memory(config=config, llm=FlakyModel()) as memory:
            for turn in turns:
                memory.add(**turn, wait=wait)
            digests.add(memory.digest())
    assert len(digests) == 1


def test_nothing_is_asked_twice(stub: Config, tmp_path: Path) -> None:
    config, path = both(stub), tmp_path / "memory.db"
    with Memory.open(path, config=config, llm=EchoModel()) as memory:
        memory.add_many(mixed())
        digest, stats = memory.digest(), memory.stats()["llm"]
        episodes = memory.episodes()
    with Memory.open(path, config=config) as memory:
        assert (memory.digest(), memory.stats()["llm"]) == (digest, stats)
        assert memory.episodes() == episodes
        memory.reindex()
        assert (memory.digest(), memory.stats()["llm"]) == (digest, stats)
    silent = Saying(AssertionError("nothing is to be asked"))
    with Memory.open(path, config=config, llm=silent) as memory:
        memory.reindex()
        assert memory.digest() == digest
        assert silent.asked == []


def test_a_rebuild_asks_again_for_what_had_failed(stub: Config) -> None:
    whole = filled(both(stub), mixed(), EchoModel())
    model = Saying(TimeoutError("late"))
    with Memory.in_memory(config=both(stub), llm=model) as memory:
        memory.add_many(mixed())
        assert memory.digest() != whole
        writing = memory._writing
        writing._part = type(writing._part)(memory.config["policy"], EchoModel())
        memory.reindex()
        assert memory.digest() == whole


@pytest.mark.parametrize(
    ("field", "number"), [("lifecycle", 6), ("episode", 1), ("facts", 1), ("episode", 2)]
)
def test_an_interrupted_model_leaves_what_was_taken_in(
    stub: Config, tmp_path: Path, field: str, number: int
) -> None:
    config, turns = both(stub), mixed()
    path = tmp_path / "memory.db"
    with Memory.open(path, config=config, llm=Interrupted(field, number)) as memory:
        with pytest.raises(KeyboardInterrupt):
            memory.add_many(turns, batch_size=4)
        kept = len(memory)
        assert [t.text for t in memory.turns()] == [t["text"] for t in turns[:kept]]
    with Memory.open(path, config=config, llm=EchoModel()) as memory:
        memory.add_many(turns[kept:])
        assert memory.digest() == filled(config, turns, EchoModel())


def test_an_interrupted_memory_goes_on_where_it_was(stub: Config) -> None:
    config, model = both(stub), Interrupted("facts", 1)
    with Memory.in_memory(config=config, llm=model) as memory:
        with pytest.raises(KeyboardInterrupt):
            memory.add_many(mixed())
        # The next call, though it only reads, has it written.
        before = len(model.asked)
        memory.episodes()
        assert len(model.asked) == before + 2
        memory.add_many(mixed()[len(memory) :])
        assert memory.digest() == filled(config, mixed(), EchoModel())


def test_a_model_may_ask_the_memory_itself(stub: Config) -> None:
    class Asking(EchoModel):
        memory: Memory

        def complete_json(
            self, system: str, user: str, schema: Mapping[str, Any]
        ) -> dict[str, Any]:
            self.memory.retrieve("birthday cake", limit=2)
            return super().complete_json(system, user, schema)

    model = Asking()
    with Memory.in_memory(config=both(stub), llm=model) as model.memory:
        model.memory.add_many(mixed())
        assert model.memory.digest() == filled(both(stub), mixed(), EchoModel())


def test_an_iterable_that_breaks_keeps_what_came_before(stub: Config) -> None:
    def breaking() -> Any:
        yield from mixed()[:25]
        raise RuntimeError("the file is gone")

    with Memory.in_memory(config=both(stub), llm=FlakyModel()) as memory:
        with pytest.raises(RuntimeError, match="the file is gone"):
            memory.add_many(breaking(), batch_size=4)
        assert len(memory) == 25
        memory.add_many(mixed()[25:])
        assert memory.digest() == filled(both(stub), mixed(), FlakyModel())


def test_an_erased_turn_takes_all_that_was_written_of_it_along(
    stub: Config, tmp_path: Path
) -> None:
    path = tmp_path / "memory.db"
    with Memory.open(path, config=stub.replace(policy=WRITTEN), llm=EchoModel()) as memory:
        memory.add_many(TALK)
        episode = memory.episodes()[0]
        turn = episode.sources[1]
        mark = next(w for w in memory.get(turn).text.split() if w.startswith("own")).rstrip("?.")
        assert mark in episode.text or any(mark in f.text for f in memory.facts())
        with Memory.open(path, config=stub.replace(policy=WRITTEN), read_only=True) as reader:
            assert reader.episodes()[0] == episode
            memory.delete(turn)
            # A reader has what was written in its memory: it is not to tell of it either.
            assert not any(mark in e.text for e in reader.episodes())
            assert not any(mark in f.text for f in reader.facts(superseded=True))
            assert mark not in reader.render_context("What is new?")
        after = (memory.digest(), memory.episodes(), memory.facts(superseded=True))
        assert not any(mark in e.text for e in after[1])
        assert not any(mark in f.text for f in after[2])
    assert mark.encode() not in path.read_bytes()
    with Memory.open(path, config=stub.replace(policy=WRITTEN), llm=EchoModel()) as memory:
        assert (memory.digest(), memory.episodes(), memory.facts(superseded=True)) == after
        memory.reindex()
        assert memory.digest() == filled_without(stub, turn)


class Gossip(EchoModel):
    """Tells a stored fact again in each new one, or quotes it where it fails."""

    def __init__(self, *, fails: bool) -> None:
        super().__init__()
        self.fails = fails

    def complete_json(self, system: str, user: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        reply = super().complete_json(system, user, schema)
        if "facts" in reply:
            before = user.partition("Facts stored already:\n")[2].replace("\n", " ")
            if self.fails and before != "(none)":
                raise ValueError(f"no sense in {before[:200]}")
            for row in reply["facts"]:
                row["fact"] = f"{row['fact'][:200]} and {before[:300]}"
        return reply


@pytest.mark.parametrize("fails", [False, True])
def test_what_only_heard_of_an_erased_turn_goes_too(
    stub: Config, tmp_path: Path, fails: bool
) -> None:
    path, config = tmp_path / "memory.db", stub.replace(policy=WRITTEN)
    with Memory.open(path, config=config, llm=Gossip(fails=fails)) as memory:
        memory.add_many(TALK)
        first = memory.facts(superseded=True)[0]
        turn = first.excerpt.interaction_id
        mark = next(w for w in memory.get(turn).text.split() if w.startswith("own")).rstrip("?.")
        told = [fact for fact in memory.facts(superseded=True) if mark in fact.text]
        assert len({fact.episode for fact in told}) > 1 or fails
        memory.delete(turn)
        after = memory.digest(), memory.stats()
    assert mark.encode() not in path.read_bytes()
    with Memory.open(path, config=config) as memory:
        assert (memory.digest(), memory.stats()) == after
        memory.reindex()
        assert not any(mark in fact.text for fact in memory.facts(superseded=True))


def test_what_leaves_the_memory_leaves_what_was_written(stub: Config, tmp_path: Path) -> None:
    config = stub.replace(
        policy=WRITTEN, capacity={"token_budget": 200}, ltm={"storage_type": "null"}
    )
    digests = set()
    for size in (1, 64):
        path = tmp_path / f"{size}.db"
        with Memory.open(path, config=config, llm=FlakyModel()) as memory:
            memory.add_many(conversation(20), batch_size=size)
            digests.add(memory.digest())
            kept = {turn.text.split("own")[1][:2] for turn in memory.turns()}
            gone = {turn["text"].split("own")[1][:2] for turn in conversation(20)} - kept
            shown = str([*memory.episodes(), *memory.facts(superseded=True)])
        assert not any(f"own{own}".encode() in path.read_bytes() for own in gone)
        assert not any(f"own{own}" in shown for own in gone)
        with Memory.open(path, config=config) as memory:
            digests.add(memory.digest())
    assert len(digests) == 1


def filled_without(stub: Config, turn: int) -> str:
    """The digest of a memory from which a turn was erased before anything was gathered."""
    with Memory.in_memory(config=stub.replace(policy=WRITTEN), llm=EchoModel()) as memory:
        memory.add_many(TALK)
        memory.delete(turn)
        memory.reindex()
        return memory.digest()


def test_a_filter_hides_what_may_tell_of_a_hidden_turn(stub: Config) -> None:
    with Memory.in_memory(config=stub.replace(policy=WRITTEN), llm=EchoModel()) as memory:
        memory.add_many(TALK)
        shown = memory.render_context(
            "birthday cake", max_tokens=3000, include_active=False, filters={"role": "assistant"}
        )
        assert "It went on" not in shown
        assert "Fact:" not in shown


class Slow(EchoModel):
    """Waits at its first episode until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.go = threading.Event(), threading.Event()

    def complete_json(self, system: str, user: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        if "episode" in schema["properties"]:
            self.entered.set()
            assert self.go.wait(30)
        return super().complete_json(system, user, schema)


class Watched:
    """A lock that tells when somebody queues for it."""

    def __init__(self, lock: Any) -> None:
        self.lock, self.queued = lock, threading.Event()
        self.acquire, self.release = lock.acquire, lock.release

    def __enter__(self) -> None:
        if not self.lock.acquire(blocking=False):
            self.queued.set()
            self.lock.acquire()

    def __exit__(self, *_: object) -> None:
        self.lock.release()


@pytest.mark.parametrize("writers", [1, 2])
@pytest.mark.parametrize("stream", [False, True])
def test_readers_do_not_wait_for_a_slow_model(stub: Config, writers: int, stream: bool) -> None:
    model = Slow()
    with Memory.in_memory(config=stub.replace(policy=WRITTEN), llm=model) as memory:
        door = Watched(memory._writing._queue_lock)
        memory._writing._queue_lock = door  # type: ignore[assignment]

        def write(turns: list[Any]) -> None:
            if stream:
                memory.add_many(turns, batch_size=4)
            else:
                for turn in turns:
                    memory.add(**turn)

        threads = [threading.Thread(target=write, args=(TALK,))]
        threads[0].start()
        try:
            assert model.entered.wait(30)
            if writers == 2:
                threads.append(threading.Thread(target=write, args=(TALK[:1],)))
                threads[1].start()
                assert door.queued.wait(30)
            assert memory.retrieve("birthday cake")
            assert memory.episodes()
            assert memory.stats()["turns"] < len(TALK)
        finally:
            model.go.set()
            for thread in threads:
                thread.join()
        # What came second was known already.
        assert memory.digest() == filled(stub.replace(policy=WRITTEN), TALK, EchoModel())


def test_threads_lose_nothing(stub: Config) -> None:
    with Memory.in_memory(config=both(stub), llm=FlakyModel()) as memory:
        turns = mixed()

        def write(share: list[Any]) -> None:
            for turn in share:
                memory.add(**turn)
                memory.retrieve("birthday cake", limit=3)

        threads = [threading.Thread(target=write, args=(turns[n::3],)) for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        said = [
            {"text": t.text, "role": t.role, "speaker": t.speaker, "timestamp": t.timestamp}
            | {"external_id": t.external_id, "session_id": t.session_id}
            | {"provenance": t.provenance, "metadata": t.metadata}
            for t in memory.turns()
        ]
        assert len(said) == len(turns)
        digest = memory.digest()
    # In the order in which they were taken in, one thread makes the same memory.
    assert filled(both(stub), said, FlakyModel()) == digest


def test_a_store_from_before_is_read_and_then_migrated(stub: Config, tmp_path: Path) -> None:
    path, rules = tmp_path / "memory.db", stub.replace(policy={"gate": "rpe", **GATHERED})
    with Memory.open(path, config=rules) as memory:
        memory.add_many(mixed())
        digest, episodes = memory.digest(), memory.episodes()
    with closing(sqlite3.connect(path)) as raw:
        for table in ("assessment", "writing", "wording"):
            raw.execute(f"DROP TABLE {table}")
        tables = raw.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        for (table,) in tables:
            if table not in ("namespace", "external"):
                raw.execute(f"ALTER TABLE {table} DROP COLUMN checksum")
        raw.execute("ALTER TABLE token_vector DROP COLUMN bits")
        raw.execute("PRAGMA user_version = 3")
        raw.commit()
    with Memory.open(path, config=both(stub), read_only=True) as memory:
        assert memory.digest() == digest
        assert memory.episodes() == episodes
        assert "llm" not in memory.stats()
        assert "llm" not in memory.explain(0)["gate"]
        assert memory.render_context("birthday cake")
    with Memory.open(path, config=rules) as memory:
        assert memory.digest() == digest
        memory.delete(3)
    with Memory.open(path, config=both(stub), llm=EchoModel()) as memory:
        memory.reindex()
        assert any(episode.written for episode in memory.episodes())
