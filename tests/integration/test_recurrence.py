"""Recurrence consolidation: what recurs is gathered, raw turns stay, nothing outlives its turn."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from golden.make_golden import config as golden_config
from golden.make_golden import golden_store
from reference.stand_ins import scripted

from ebbtide import Config, InputError, Memory, Store
from ebbtide.cli import main
from ebbtide.evals.metrics import contains_answer
from ebbtide.evals.recurrence import Consolidation, Event, calibrated, draw_events

SETTINGS = {
    "consolidation": "recurrence",
    "recurrence": {"theta_sim": 0.6, "theta_count": 3},
}
TOPICS = (
    ("cake", "lemon", "sugar", "oven", "birthday"),
    ("bike", "wheel", "chain", "brake", "saddle"),
    ("garden", "roses", "compost", "spade", "seeds"),
)


@pytest.fixture
def on(stub: Config) -> Config:
    """No models, consolidation on, thresholds for the hashed vectors."""
    return stub.replace(policy=SETTINGS)


def exchange(number: int, topic: int) -> list[dict[str, Any]]:
    """A question and its answer on a topic; each has something of its own."""
    words = TOPICS[topic % len(TOPICS)]
    rest = [words[(number + k) % len(words)] for k in range(4)]
    return [
        {
            "text": f"The {words[0]} {' '.join(rest)} again own{number}a. Is it ready?",
            "speaker": "Ana",
            "timestamp": f"2024-03-{1 + number % 28:02d}",
            "external_id": f"u{number}",
        },
        {
            "text": f"We made {words[0]} {' '.join(reversed(rest))} own{number}b.",
            "role": "assistant",
            "timestamp": f"2024-03-{1 + number % 28:02d}",
            "external_id": f"a{number}",
        },
    ]


def conversation(exchanges: int) -> list[dict[str, Any]]:
    return [turn for n in range(exchanges) for turn in exchange(n, n // 2)]


def checked(memory: Memory) -> None:
    """Every episode and fact is made of turns that are there, word for word."""
    turns = {turn.interaction_id: turn for turn in memory.turns()}
    for episode in memory.episodes():
        assert set(episode.sources) <= set(turns)
        assert len(episode.sentences) >= 2
        assert episode.sentences == tuple(
            sorted(episode.sentences, key=lambda s: (s.interaction_id, s.start))
        )
        for sentence in episode.sentences:
            assert sentence.interaction_id in episode.sources
            told = turns[sentence.interaction_id].text[sentence.start : sentence.end]
            assert sentence.text.endswith(f"] {told}")
            assert not told.endswith("?")
    episodes = {episode.id for episode in memory.episodes()}
    for fact in memory.facts(superseded=True):
        assert fact.episode in episodes
        told = turns[fact.excerpt.interaction_id].text[fact.excerpt.start : fact.excerpt.end]
        assert fact.text.endswith(f"] {told}")
        assert fact.reasons


def test_what_recurs_becomes_an_episode_and_grows(on: Config) -> None:
    with Memory.in_memory(config=on) as memory:
        for number in range(3):
            memory.add_many(exchange(number, 0))
        assert memory.episodes() == [], "three units do not have three others"
        memory.add_many(exchange(3, 0))
        (made,) = memory.episodes()
        assert (made.version, made.at) == (1, 7)
        assert made.sources == tuple(range(8))
        assert len(made.sentences) == 6
        checked(memory)

        memory.add_many(exchange(4, 0))
        (grown,) = memory.episodes()
        assert (grown.id, grown.version) == (made.id, 2), "merge first"
        assert grown.sources == tuple(range(10))
        checked(memory)

        memory.add_many(exchange(5, 1))
        assert memory.episodes() == [grown], "another topic leaves it alone"
        life = memory.explain(0)
        assert life["recurrence"]["consolidated_in"] == [made.id]
        assert life["recurrence"]["unit"] == [0, 1]
        (decision,) = [d for d in life["decisions"] if d["kind"] == "consolidate"]
        assert decision["detail"]["needed"] == 3
        assert "merge" in [d["kind"] for d in memory.explain(9)["decisions"]]
        assert memory.stats()["recurrence"] == {
            "units": 6,
            "episodes": 1,
            "facts": len(memory.facts()),
            "superseded_facts": 0,
            "consolidated_turns": 10,
        }


def test_off_is_as_it_was(stub: Config) -> None:
    turns = [scripted(n) for n in range(80)]
    digests = set()
    for config in (stub, stub.replace(policy={"consolidation": "off"})):
        with Memory.in_memory(config=config) as memory:
            memory.add_many(turns)
            digests.add(memory.digest())
            assert memory.episodes() == []
            assert memory.facts() == []
            assert "recurrence" not in memory.stats()
            assert "recurrence" not in memory.explain(0)
    assert len(digests) == 1
    with Memory.in_memory(config=stub.replace(policy=SETTINGS)) as memory:
        memory.add_many(turns)
        assert memory.digest() not in digests


def test_raw_units_are_always_recoverable(stub: Config, on: Config) -> None:
    turns = conversation(24)
    with Memory.in_memory(config=on) as memory, Memory.in_memory(config=stub) as plain:
        memory.add_many(turns)
        plain.add_many(turns)
        assert memory.episodes()
        checked(memory)
        assert [t.text for t in memory.turns()] == [t["text"] for t in turns]
        for number in range(24):
            question = f"What about own{number}b?"
            found = memory.retrieve(question, limit=48)
            assert found == plain.retrieve(question, limit=48), "evidence is what it was"
            assert any(f"own{number}b" in item.turn.text for item in found)


@pytest.mark.parametrize("wait", ["complete", "journalled"])
def test_restarts_between_any_two_turns_change_nothing(
    on: Config, store_path: Path, wait: str
) -> None:
    turns = [turn for pair in pairwise(conversation(20)) for turn in pair[:1]]
    with Memory.in_memory(config=on) as memory:
        memory.add_many(turns)
        once = memory.digest()
        assert len(memory.episodes()) >= 2
        everything = (memory.episodes(), memory.facts(superseded=True))
    for turn in turns:
        with Memory.open(store_path, config=on) as memory:
            memory.add(**turn, wait=wait)
    with Memory.open(store_path, config=on, read_only=True) as memory:
        assert memory.digest() == once
        assert (memory.episodes(), memory.facts(superseded=True)) == everything


def test_reindex_gathers_the_same_again(on: Config, store_path: Path) -> None:
    with Memory.open(store_path, config=on) as memory:
        memory.add_many(conversation(16))
        before = (memory.digest(), memory.episodes(), memory.facts(superseded=True))
        assert memory.reindex() == 32
        assert (memory.digest(), memory.episodes(), memory.facts(superseded=True)) == before


def test_a_deleted_turn_is_in_no_episode(on: Config, store_path: Path) -> None:
    with Memory.open(store_path, config=on) as memory:
        memory.add_many(conversation(24))
        before = memory.episodes()
        quoted = before[0].sentences[0].interaction_id
        own = memory.get(quoted).text.split("own")[1].split(".")[0]
        assert f"own{own}" in before[0].text
        memory.delete(quoted)
        after = {episode.id: episode for episode in memory.episodes()}[before[0].id]
        assert quoted not in after.sources
        assert after.version == before[0].version + 1
        checked(memory)
        said = str(memory.episodes()) + str(memory.facts(superseded=True))
        assert f"own{own}" not in said
        digest = memory.digest()
    for entry in store_path.parent.iterdir():
        assert f"own{own}".encode() not in entry.read_bytes()
    with Memory.open(store_path, config=on) as memory:
        assert memory.digest() == digest
        checked(memory)
        memory.add_many(exchange(99, 0))
        checked(memory)


def test_an_episode_goes_with_its_last_units(on: Config, store_path: Path) -> None:
    with Memory.open(store_path, config=on) as memory:
        memory.add_many(turn for n in range(6) for turn in exchange(n, 0))
        assert memory.episodes()
        for turn in range(10):
            memory.delete(turn)
            checked(memory)
        assert memory.episodes() == []
        assert memory.facts(superseded=True) == []
        digest = memory.digest()
    with Memory.open(store_path, config=on) as memory:
        assert memory.digest() == digest


def test_deleting_while_it_is_off_leaves_no_trace(
    stub: Config, on: Config, store_path: Path
) -> None:
    with Memory.open(store_path, config=on) as memory:
        memory.add_many(conversation(16))
        quoted = memory.episodes()[0].sentences[0].interaction_id
    with Memory.open(store_path, config=stub) as memory:
        memory.delete(quoted)
    with Memory.open(store_path, config=on) as memory:
        checked(memory)
        assert all(quoted not in episode.sources for episode in memory.episodes())


def test_delete_all_takes_everything(on: Config, store_path: Path) -> None:
    with Memory.open(store_path, config=on) as memory:
        memory.add_many(conversation(12))
        memory.delete_all()
        assert memory.episodes() == []
        assert memory.stats()["recurrence"]["units"] == 0
        memory.add_many(exchange(1, 0))
        assert memory.stats()["recurrence"]["units"] == 1


def test_an_older_store_is_read_as_one_without_episodes(stub: Config, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    shutil.copyfile(golden_store(schema=1), path)
    on = golden_config().replace(policy=SETTINGS)
    with Store.open(path, config=on, read_only=True) as store:
        memory = store.memory("ana")
        assert memory.episodes() == []
        assert memory.render_context("umbrella")
    with Store.open(path, config=on) as store:
        memory = store.memory("ana")
        memory.add("The umbrella is v9.", speaker="Ana")
        assert memory.stats()["recurrence"]["units"] >= 0
        memory.reindex()
        assert memory.stats()["recurrence"]["units"] > 0


def test_a_reader_tells_nothing_of_what_was_erased_since(on: Config, store_path: Path) -> None:
    with Memory.open(store_path, config=on) as memory:
        memory.add_many(conversation(16))
        with Memory.open(store_path, config=on, read_only=True) as reader:
            gone = reader.episodes()[0].sentences[0].interaction_id
            memory.delete(gone)
            told = [s.interaction_id for e in reader.episodes() for s in e.sentences]
            assert told
            assert gone not in told
            assert all(fact.text for fact in reader.facts(superseded=True))


@pytest.mark.parametrize("storage", ["null", "file"])
def test_what_leaves_the_memory_leaves_the_episodes(
    on: Config, tmp_path: Path, storage: str
) -> None:
    config = on.replace(
        capacity={"token_budget": 200},
        ltm={"storage_type": storage, "storage_path": str(tmp_path / "out.jsonl")},
    )
    with Memory.open(tmp_path / "m.db", config=config) as memory:
        memory.add_many(conversation(20))
        checked(memory)
        digest = memory.digest()
        active = {turn.external_id for turn in memory.turns(state="active")}
        shown = memory.render_context("cake lemon sugar oven", max_tokens=4000)
        gone = [t["text"].split("own")[1][:2] for t in conversation(20)]
        kept = {turn.text.split("own")[1][:2] for turn in memory.turns(state="active")}
        assert active
        assert not any(f"own{own}" in shown for own in set(gone) - kept)
    with Memory.open(tmp_path / "m.db", config=config) as memory:
        assert memory.digest() == digest


def test_a_new_value_supersedes_the_fact(on: Config) -> None:
    config = on.replace(policy={"recurrence": {"max_sentences": 2, "fact_covered": 1.0}})
    said = ("v1", "v1", "v1", "v1", "v2", "v2")
    with Memory.in_memory(config=config) as memory:
        for number, value in enumerate(said):
            memory.add(
                f"The port is {value}. We set the port up for own{number} servers today.",
                speaker="Ana",
            )
            memory.add(f"The servers today own{number} port set up.", role="assistant")
        every = memory.facts(superseded=True)
        old = [fact for fact in every if any(t.endswith(": v1") for t in fact.topics)]
        new = [fact for fact in every if any(t.endswith(": v2") for t in fact.topics)]
        assert old
        assert new
        assert all(fact.superseded_by in {f.id for f in new} for fact in old)
        assert set(memory.facts()) == {f for f in every if f.superseded_by is None}
        memory.delete(new[0].excerpt.interaction_id)
        checked(memory)


def test_the_context_has_three_tiers_within_its_budget(stub: Config, on: Config) -> None:
    turns = conversation(30)
    with Memory.in_memory(config=on) as memory, Memory.in_memory(config=stub) as plain:
        memory.add_many(turns)
        plain.add_many(turns)
        question = "lemon cake birthday oven"
        for budget in (40, 120, 400, 2000):
            context = memory.context(question, max_tokens=budget, limit=4, include_active=False)
            assert context.tokens <= budget
            assert context.tokens == memory.count_tokens(context.text)
            raw = plain.context(question, max_tokens=budget, limit=4, include_active=False)
            if budget == 2000:
                assert set(raw.shown) <= set(context.shown), "no raw evidence is lost"
                assert raw.tokens < context.tokens
                assert "=== EPISODES ===" in context.text
        full = memory.context(question, max_tokens=4000).text
        assert full.index("=== EPISODES") < full.index("=== ACTIVE")
        with Memory.in_memory(config=on) as other:
            other.add(f"{full}\nIs that so?")
            assert other.get(0).text == "Is that so?"
        only = memory.context(
            question, max_tokens=2000, filters={"role": "assistant"}, include_active=False
        )
        assert "Ana]" not in only.text


def test_a_share_of_nothing_is_raw_recall(stub: Config, on: Config) -> None:
    turns = conversation(30)
    nothing = on.replace(policy={"recurrence": {"share": 0.0}})
    with Memory.in_memory(config=nothing) as memory, Memory.in_memory(config=stub) as plain:
        memory.add_many(turns)
        plain.add_many(turns)
        for budget in (60, 300, 1000):
            question = "bike chain and brake"
            one = memory.context(question, max_tokens=budget, limit=20)
            assert one == plain.context(question, max_tokens=budget, limit=20)


def test_plots_and_calibration(tmp_path: Path) -> None:
    events = (Event(7, "consolidate", 1792), Event(9, "merge", 1792))
    (path,) = draw_events([Consolidation("made-1", 12, 6, 5, 1, 3, events)], tmp_path)
    assert path.read_bytes().startswith(b"\x89PNG")
    few = tmp_path / "few.json"
    turns = [{"speaker": "AB"[n % 2], "dia_id": f"D1:{n}", "text": f"Hello {n}."} for n in range(6)]
    body = {
        "speaker_a": "A",
        "speaker_b": "B",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": turns,
    }
    few.write_text(json.dumps([{"sample_id": "few", "conversation": body, "qa": []}]))
    on = Config().replace(policy={"consolidation": "recurrence"})
    with pytest.raises(InputError) as caught:
        calibrated(few, on)
    assert caught.value.code == "input.transcript"


def test_the_command_line_shows_episodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "on.toml"
    settings.write_text(
        '[policy]\nconsolidation = "recurrence"\n[policy.recurrence]\ntheta_sim = 0.8\n'
        "theta_count = 2\n"
    )
    store = tmp_path / "memory.db"
    with Memory.open(store, config=settings) as memory:
        for day in range(1, 6):
            memory.add(
                f"I baked {day} lemon cakes with sugar for the birthday of my sister Mia.",
                speaker="Ana",
                timestamp=f"2024-03-0{day}",
            )
            memory.add(f"Lemon cakes need {day} spoons of sugar.", speaker="Ben")
        assert memory.episodes()
    with pytest.raises(SystemExit) as ended:
        main(["episodes", "--store", str(store), "--config", str(settings)])
    assert not ended.value.code
    shown = capsys.readouterr().out
    assert shown.startswith("episode ")
    assert "2024 Ana] I baked" in shown
    with pytest.raises(SystemExit):
        main(["episodes", "--store", str(store), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["episodes"][0]["sentences"]


@pytest.mark.long
def test_three_tiers_hold_the_answer_as_often_as_raw_recall(data_folder: Path) -> None:
    """A part of the measurement in docs/policies.md: one conversation, every third question."""
    from ebbtide.evals.datasets import iter_conversations

    conversation = next(iter(iter_conversations(data_folder / "locomo" / "locomo_dev5.json.gz")))
    base = Config()
    held = []
    for config in (base, base.replace(policy={"consolidation": "recurrence"})):
        with Memory.in_memory(config=config) as memory:
            memory.add_many(turn.as_turn() for turn in conversation.turns)
            held.append(
                sum(
                    contains_answer(
                        question.answer,
                        memory.context(
                            question.text, limit=204, max_tokens=2048, include_active=False
                        ).text,
                    )
                    for question in conversation.questions[::3]
                    if question.answer and not question.abstention
                )
            )
    assert held[1] >= held[0] > 0
