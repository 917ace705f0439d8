"""Forgetting by question, ids or time, and retention when asked: exact, and shown before."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from reference.stand_ins import scripted

from ebbtide import Config, InputError, Memory, NotFoundError, Store, StoreError
from ebbtide.cli import main

SECRET = "zebrafish"
NOW = "2024-01-02T00:30:00Z"


@pytest.fixture
def memory(stub: Config, store_path: Path) -> Any:
    """Sixty turns of 2024-01-01, a minute apart, one of them secret and one without a time."""
    with Memory.open(store_path, config=stub) as opened:
        opened.add_many({**scripted(n), "external_id": f"t{n}"} for n in range(58))
        opened.add(f"The {SECRET} is v1.", timestamp="2024-01-01T10:58:00Z", external_id="x")
        opened.add(f"The {SECRET} has no date.", external_id="undated")
        yield opened


def on_disk(path: Path) -> bool:
    files = [entry for entry in path.parent.rglob("*") if entry.is_file()]
    return any(SECRET.encode() in entry.read_bytes() for entry in files)


def ids(turns: Any) -> list[int]:
    return [turn.interaction_id for turn in turns]


def test_a_question_shows_first_and_then_erases(memory: Memory, store_path: Path) -> None:
    digest = memory.digest()
    shown = memory.forget(SECRET, limit=2, dry_run=True)
    assert ids(shown) == [58, 59]
    assert memory.digest() == digest
    assert memory.forget(SECRET, limit=2) == shown
    assert not on_disk(store_path)
    assert ids(memory.turns()) == list(range(58))
    for one in (58, "x", "undated"):
        with pytest.raises(NotFoundError):
            memory.get(one)


def test_a_question_alone_means_the_best_turn(memory: Memory) -> None:
    assert len(memory.forget(SECRET, dry_run=True)) == 1


def test_forgetting_is_deleting(stub: Config, memory: Memory) -> None:
    with Memory.in_memory(config=stub) as other:
        other.add_many(memory.turns())
        for one in (3, 7, 58):
            other.delete(one)
        assert ids(memory.forget(ids=[58, 3, "t7", 3])) == [3, 7, 58]
        assert memory.digest() == other.digest()


def test_an_unknown_id_erases_nothing(memory: Memory) -> None:
    digest = memory.digest()
    with pytest.raises(NotFoundError):
        memory.forget(ids=[1, 2, "nobody"])
    assert memory.digest() == digest
    assert memory.forget(ids=[]) == []
    assert ids(memory.forget(ids="x")) == [58]
    assert ids(memory.forget(ids=5)) == [5]


def test_a_time_means_what_is_strictly_earlier(memory: Memory) -> None:
    third = memory.get(2).utc
    assert ids(memory.forget(before=third, dry_run=True)) == [0, 1]
    assert ids(memory.forget(ids=[1, 2, 3, "undated"], before=third, dry_run=True)) == [1]
    assert memory.forget(before="2024-01-01", dry_run=True) == []
    assert ids(memory.forget(before=date(2024, 1, 2))) == list(range(59))
    assert ids(memory.turns()) == [59]  # no time, so it is not earlier


def test_a_question_and_a_time_are_both_met(memory: Memory) -> None:
    found = memory.forget("tea port garden", limit=5, before="2024-01-01T10:20:00Z", dry_run=True)
    assert len(found) == 5
    assert max(ids(found)) < 20
    assert memory.forget(SECRET, before="2024-01-01T10:58:00Z", dry_run=True)[0].text != SECRET
    assert memory.forget("tea", before=datetime.min.replace(tzinfo=UTC)) == []


def test_retention_by_age_number_and_both(memory: Memory) -> None:
    day = timedelta(hours=14)  # reckoned from NOW, it began at 10:30
    assert ids(memory.retain(max_age=day, now=NOW, dry_run=True)) == list(range(30))
    assert memory.retain(max_age=day.total_seconds(), now=NOW, dry_run=True)[-1].utc is not None
    assert ids(memory.retain(max_records=50, dry_run=True)) == list(range(10))
    # Too old first; of the rest, the last five stay.
    assert ids(memory.retain(max_age=day, max_records=5, now=NOW, dry_run=True)) == [
        *range(55),
    ]
    assert len(memory) == 60
    assert ids(memory.retain(max_age=day, max_records=40, now=NOW)) == list(range(30))
    assert memory.retain(max_age=day, max_records=40, now=NOW) == []
    assert memory.add("ids go on").accepted == 1
    assert ids(memory.turns())[-1] == 60


def test_age_goes_by_the_turn_s_own_time_and_not_by_its_place(stub: Config) -> None:
    with Memory.in_memory(config=stub) as memory:
        for stamp in ("2024-05-01", "2020-01-01", None, "2024-04-30T23:00:00Z", "1999-12-31"):
            memory.add(f"said at {stamp}", timestamp=stamp)
        gone = memory.retain(max_age=timedelta(days=365), now="2024-05-02", dry_run=True)
        assert ids(gone) == [1, 4]
        assert ids(memory.retain(max_age=timedelta(days=365), max_records=2, now="2024-05-02")) == [
            0,
            1,
            4,
        ]


def test_active_turns_go_as_archived_ones_do(stub: Config) -> None:
    config = stub.replace(capacity={"token_budget": 64})
    with Memory.in_memory(config=config) as memory:
        memory.add_many(scripted(n) for n in range(40))
        states = {turn.state for turn in memory.retain(max_records=1, dry_run=True)}
        assert states == {"active", "archived"}
        memory.retain(max_records=1)
        assert memory.stats()["active"] + memory.stats()["archived"] == 1
        assert memory.get(39).text == scripted(39)["text"]


REFUSED: dict[str, Callable[[Memory], Any]] = {
    "nothing said": lambda m: m.forget(),
    "a question and ids": lambda m: m.forget("x", ids=[1]),
    "no ids": lambda m: m.forget(ids=3.5),
    "a bad id": lambda m: m.forget(ids=[None]),
    "no time": lambda m: m.forget(before="soon"),
    "no question": lambda m: m.forget("  "),
    "a limit of none": lambda m: m.forget("x", limit=0),
    "no rule": lambda m: m.retain(),
    "an age without now": lambda m: m.retain(max_age=5),
    "a negative age": lambda m: m.retain(max_age=-1, now=NOW),
    "an age that is no number": lambda m: m.retain(max_age=float("nan"), now=NOW),
    "an age of words": lambda m: m.retain(max_age="1 day", now=NOW),
    "an unusable now": lambda m: m.retain(max_age=1, now="today"),
    "no records": lambda m: m.retain(max_records=0),
    "records of words": lambda m: m.retain(max_records="5"),
}


@pytest.mark.parametrize("how", REFUSED)
def test_what_is_not_understood_erases_nothing(memory: Memory, how: str) -> None:
    digest = memory.digest()
    with pytest.raises(InputError):
        REFUSED[how](memory)
    assert memory.digest() == digest


def test_an_age_beyond_every_calendar_keeps_everything(memory: Memory) -> None:
    assert memory.retain(max_age=timedelta.max, now=NOW, dry_run=True) == []
    with pytest.raises(InputError):
        memory.retain(max_age=1e300, now=NOW)


def test_a_reader_may_look_and_not_erase(stub: Config, memory: Memory, store_path: Path) -> None:
    with Memory.open(store_path, config=stub, read_only=True) as reader:
        assert ids(reader.forget(SECRET, limit=2, dry_run=True)) == [58, 59]
        assert len(reader.retain(max_records=1, dry_run=True)) == 59
        for call in (lambda: reader.forget(SECRET), lambda: reader.retain(max_records=1)):
            with pytest.raises(StoreError) as caught:
                call()
            assert caught.value.code == "store.read_only"


def test_other_memories_are_untouched(stub: Config, store_path: Path) -> None:
    with Store.open(store_path, config=stub) as store:
        for name in ("ana", "anabel"):
            store.memory(name).add_many(scripted(n) for n in range(30))
        before = store.memory("anabel").digest()
        store.memory("ana").forget("tea", limit=10)
        store.memory("ana").retain(max_records=3)
        assert store.memory("anabel").digest() == before
        assert len(store.memory("ana")) == 3
        assert store.check() == []


def test_who_wrote_what_is_kept_and_read_beside_the_writer(stub: Config, store_path: Path) -> None:
    """Another agent's memory, opened read-only while its writer has it open."""
    origin = {"source_turn": "planner/17", "derived_from_model": True}
    with Store.open(store_path, config=stub) as store:
        planner = store.memory("planner")
        planner.add("The port is v1.", role="assistant", speaker="planner", provenance=origin)
        with Memory.open(store_path, namespace="planner", config=stub, read_only=True) as other:
            turn = other.get(0)
            assert (turn.role, turn.speaker) == ("assistant", "planner")
            assert turn.provenance is not None
            assert {**turn.provenance, **origin} == dict(turn.provenance)
            assert other.retrieve("port")[0].turn.provenance == turn.provenance
            planner.add("The port is v2.", role="assistant", speaker="planner")
            with pytest.raises(StoreError):
                other.add("mine")
            assert planner.digest() != ""
        assert [t.speaker for t in planner.turns()] == ["planner", "planner"]


def test_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cheap: Config
) -> None:
    path = tmp_path / "memory.db"
    with Memory.open(path) as memory:
        memory.add(f"My {SECRET} is called Bo.", external_id="x", timestamp="2024-01-01")
        memory.add("The meeting is on Friday.", timestamp="2025-01-01")

    def run(*words: object) -> str:
        with pytest.raises(SystemExit) as end:
            main([*(str(w) for w in words), "--store", str(path)])
        out = capsys.readouterr()
        assert not end.value.code, out.err
        return out.out

    assert "1 turn of 'default' would be erased: say so with --yes" in run("forget", SECRET)
    shown = json.loads(run("retain", "--max-age-days", "200", "--now", "2025-01-02", "--json"))
    assert [turn["external_id"] for turn in shown["turns"]] == ["x"]
    assert (shown["erased"], shown["left"]) == (False, 2)
    assert "erased 1 turn of 'default'; 1 left" in run("forget", "--id", "x", "--yes")
    assert not on_disk(path)
    assert "no turn of 'default' would be erased" in run("forget", "--before", "1999-01-01")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["forget"], "a question, --id or --before; or --all"),
        (["forget", "tea", "--all", "--yes"], "--all goes with neither"),
        (["forget", "tea", "--limit", "0"], "--limit"),
        (["retain", "--yes"], "--max-age-days, --max-records or both"),
        (["retain", "--max-age-days", "3", "--yes"], "needs --now"),
        (["retain", "--max-records", "0", "--yes"], "--max-records"),
    ],
)
def test_on_the_command_line_options_are_named_and_nothing_goes(
    memory: Memory, store_path: Path, capsys: pytest.CaptureFixture[str], words: Any, said: str
) -> None:
    memory.close()
    before = store_path.read_bytes()
    with pytest.raises(SystemExit) as end:
        main([*words, "--store", str(store_path)])
    assert end.value.code == 2
    assert said in capsys.readouterr().err
    assert store_path.read_bytes() == before


def test_a_whole_memory_goes_and_the_others_stay(
    stub: Config, memory: Memory, store_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    memory.close()
    with Store.open(store_path, config=stub) as store:
        store.memory("ben").add("The garden is v1.")
        ben = store.memory("ben").digest()

    def run(*words: str) -> str:
        with pytest.raises(SystemExit) as end:
            main(["forget", "--store", str(store_path), "--all", *words])
        assert not end.value.code
        return capsys.readouterr().out

    assert "the memory 'default' would be erased" in run("--namespace", "default")
    assert on_disk(store_path)
    # Filled with other models than those of the command: erasing asks for none.
    done = json.loads(run("--namespace", "default", "--yes", "--json"))
    assert done == {"namespace": "default", "erased": True}
    assert not on_disk(store_path)
    with Store.open(store_path, config=stub, read_only=True) as store:
        assert store.namespaces() == ["ben"]
        assert store.memory("ben").digest() == ben
