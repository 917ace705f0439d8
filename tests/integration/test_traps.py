"""What users of memory systems report (design notes on pitfalls), as tests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from reference.stand_ins import HashEmbedder, scripted

from ebbtide import Config, FingerprintError, InputError, Memory, Turn
from ebbtide.opened import open_handle


@pytest.fixture
def real() -> Iterator[Memory]:
    """A memory with the real models."""
    with Memory.in_memory() as memory:
        yield memory


# The same fact twice


def test_a_known_external_id_is_one_turn(stub: Config, store_path: Path) -> None:
    with Memory.open(store_path, config=stub) as memory:
        assert memory.add("I have a cat.", external_id="m1").duplicates == 0
        digest = memory.digest()
        again = memory.add("I have a cat.", external_id="m1")
        assert (again.accepted, again.duplicates) == (0, 1)
        other = memory.add("other words, same id", external_id="m1", wait="journalled")
        assert (other.accepted, other.duplicates) == (0, 1)
        batch = memory.add_many([{"text": "x", "id": "m2"}, {"text": "y", "id": "m2"}])
        assert (batch.accepted, batch.duplicates) == (1, 1)
        assert len(memory) == 2
    with Memory.open(store_path, config=stub) as memory:
        assert memory.add("I have a cat.", external_id="m1").duplicates == 1
        assert memory.get(external_id="m2").text == "x"
        memory.delete(external_id="m2")
        assert memory.digest() == digest


def test_identical_turns_are_two_turns_and_one_answer(real: Memory) -> None:
    real.add("The gate code is 4417.", speaker="Ana")
    real.add("The gate code is 4417.", speaker="Ana")
    real.add("The bins go out on Thursday.", speaker="Ana")
    assert len(real) == 3
    found = [item.turn.text for item in real.retrieve("What is the gate code?", limit=5)]
    assert found == ["The gate code is 4417.", "The bins go out on Thursday."]


def test_many_identical_turns_do_not_crowd_out_the_rest(stub: Config) -> None:
    with Memory.in_memory(config=stub) as memory:
        memory.add_many({"text": "tea please"} for _ in range(150))
        memory.add_many({"text": f"tea number {n}"} for n in range(10))
        found = [item.turn.text for item in memory.retrieve("tea please", limit=5)]
    assert len(found) == len(set(found)) == 5


def test_a_limit_is_met_exactly_while_there_are_turns(stub: Config) -> None:
    with Memory.in_memory(config=stub) as memory:
        memory.add_many({"text": f"note {n} on topic {n % 7}"} for n in range(230))
        for limit in (1, 5, 50, 120, 229, 230, 400):
            assert len(memory.retrieve("note on topic", limit=limit)) == min(limit, 230)
            assert len(memory.retrieve("what else", limit=limit)) == min(limit, 230)


def test_replaying_a_transcript_again_doubles_nothing(
    cheap: Config, example_turns: list[dict[str, Any]]
) -> None:
    with Memory.in_memory(config=cheap) as memory:
        memory.add_many(example_turns[:60])
        digest = memory.digest()
        report = memory.add_many(example_turns[:90])
        assert (report.accepted, report.duplicates) == (30, 60)
        memory.add_many(example_turns[:90])
        assert len(memory) == 90
    with Memory.in_memory(config=cheap) as memory:
        memory.add_many(example_turns[:60])
        assert memory.digest() == digest


# A change of mind


def test_love_then_hate_keeps_both_and_the_newest_stands(real: Memory) -> None:
    real.add("I love coriander.", speaker="Ana")
    real.add("What a day.", speaker="Ana")
    real.add("I hate coriander now.", speaker="Ana")
    assert len(real) == 3
    assert real.get(0).validity == "superseded"
    assert real.get(2).validity == "current"
    assert [turn.interaction_id for turn in real.history(0)] == [0, 2]
    best = real.retrieve("Does Ana like coriander?", limit=2)
    assert [item.turn.interaction_id for item in best] == [2, 0]
    assert "superseded" in real.render_context(
        "What did Ana think of coriander before?", include_active=False
    )


# Dates


def test_last_week_is_relative_to_its_own_turn(real: Memory) -> None:
    real.add("I ran a marathon last week.", speaker="Ana", timestamp="2023-05-08T13:56:00Z")
    real.add("Nice weather today.", speaker="Ana", timestamp="2024-11-20T10:00:00Z")
    question = "When did Ana run a marathon?"
    context = real.render_context(question, query_time="2026-01-01")
    line = next(line for line in context.splitlines() if "marathon" in line)
    assert line.startswith("[8 May 2023, 1:56 pm] Ana")
    assert "last week [" in line
    assert "2023" in line.split("last week", 1)[1]
    assert "May 2023" in line.split("last week", 1)[1]
    assert "2024" not in line
    assert "2026" not in line
    assert real.get(0).text == "I ran a marathon last week."
    assert "last week [" not in real.render_context(question, preset="paper")


def test_the_clock_is_never_asked(real: Memory) -> None:
    real.add("I saw the play yesterday.", speaker="Ana")
    assert "yesterday [" not in real.render_context("When did Ana see the play?")
    assert real.get(0).timestamp is None


@pytest.mark.parametrize(
    ("given", "stored", "utc", "naive"),
    [
        (datetime(2024, 3, 1, 9, 30), "2024-03-01T09:30:00", (2024, 3, 1, 9, 30), True),
        (
            datetime(2024, 3, 1, 9, 30, tzinfo=timezone(timedelta(hours=9))),
            "2024-03-01T09:30:00+09:00",
            (2024, 3, 1, 0, 30),
            False,
        ),
        (datetime(2024, 3, 1, tzinfo=UTC), "2024-03-01T00:00:00+00:00", (2024, 3, 1), False),
        (date(2024, 3, 1), "2024-03-01", (2024, 3, 1), True),
        ("2024-03-01T09:30:00-05:00", "2024-03-01T09:30:00-05:00", (2024, 3, 1, 14, 30), False),
        ("2024-03-01 09:30", "2024-03-01 09:30", (2024, 3, 1, 9, 30), True),
        (1709285400, "1709285400", (2024, 3, 1, 9, 30), False),
        (-86400.5, "-86400.5", (1969, 12, 30, 23, 59, 59, 500000), False),
    ],
)
def test_naive_and_aware_times(
    stub: Config,
    store_path: Path,
    given: Any,
    stored: str,
    utc: tuple[int, ...],
    naive: bool,
) -> None:
    with Memory.open(store_path, config=stub) as memory:
        memory.add("x", timestamp=given)
    with Memory.open(store_path, config=stub) as memory:
        turn = memory.get(0)
        assert turn.timestamp == stored
        assert turn.utc == datetime(*utc, tzinfo=UTC)  # type: ignore[arg-type]
        assert memory.explain(0)["turn"]["naive_timestamp"] is naive
        assert memory.retrieve("x", limit=1, filters={"since": given, "until": given})


def test_until_a_date_includes_that_day(stub: Config) -> None:
    with Memory.in_memory(config=stub) as memory:
        for hour in (0, 12, 23):
            memory.add(f"at {hour}", timestamp=datetime(2024, 3, 1, hour, 59))
        memory.add("next day", timestamp="2024-03-02")
        memory.add("undated")
        for until in ("2024-03-01", date(2024, 3, 1), "20240301", "1 March 2024"):
            found = memory.retrieve("at", limit=9, filters={"until": until})
            assert len(found) == 3
        noon = datetime(2024, 3, 1, 12, tzinfo=UTC)
        for moment in (noon, int(noon.timestamp()), noon.timestamp(), noon.isoformat()):
            assert len(memory.retrieve("at", limit=9, filters={"until": moment})) == 1
        assert len(memory.retrieve("at", limit=9, filters={"since": "2024-03-02"})) == 1


# Models that do not mix


def test_another_embedder_is_refused_until_reindexed(cheap: Config, store_path: Path) -> None:
    with Memory.open(store_path, config=cheap) as memory:
        memory.add_many(scripted(n) for n in range(12))
        memory.relate(9, "corrects", 2)
        before = [turn.text for turn in memory.turns()]
        old = memory.stats()["analyser"]
    other = Config().with_embedder(HashEmbedder(48, "another"))
    for read_only in (False, True):
        with pytest.raises(FingerprintError) as caught:
            Memory.open(store_path, config=other, read_only=read_only)
        words = str(caught.value)
        assert caught.value.code == "fingerprint.analyser"
        assert "hash-32" in words
        assert "another" in words
        assert "ebbtide reindex" in words
    handle = open_handle(store_path, other, read_only=False)
    with Memory(handle, "default", other, owns_store=True, reindexing=True) as memory:
        seen: list[int] = []
        assert memory.reindex(progress=seen.append) == 12
        assert seen[-1] == 12
    with Memory.open(store_path, config=other) as memory:
        assert memory.stats()["analyser"] != old
        assert [turn.text for turn in memory.turns()] == before
        assert memory.get(2).validity == "corrected"
        assert memory.retrieve("port tea", limit=3)
        assert memory.add("goes on").accepted == 1
        reindexed = memory.digest()
    with pytest.raises(FingerprintError):
        Memory.open(store_path, config=cheap)
    with Memory.in_memory(config=other) as memory:
        memory.add_many(scripted(n) for n in range(12))
        memory.relate(9, "corrects", 2)
        memory.add("goes on")
        assert memory.digest() == reindexed


def test_another_dimension_is_refused_whatever_the_fingerprint_says(
    stub: Config, store_path: Path
) -> None:
    with Memory.open(store_path, config=stub) as memory:
        memory.add("x")
    careless = Config().with_embedder(HashEmbedder(48, "hash-32"))
    with pytest.raises(FingerprintError) as caught:
        Memory.open(store_path, config=careless)
    assert caught.value.code == "fingerprint.analyser"


def test_reindexing_is_resumable_and_keeps_the_digest(stub: Config, store_path: Path) -> None:
    with Memory.open(store_path, config=stub.replace(capacity={"token_budget": 200})) as memory:
        memory.add_many(scripted(n) for n in range(150))
        digest = memory.digest()

        def stop(done: int) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            memory.reindex(progress=stop)
    with Memory.open(store_path, config=stub.replace(capacity={"token_budget": 200})) as memory:
        assert memory.stats()["pending"] > 0
        assert memory.digest() == digest
        assert memory.stats()["pending"] == 0


def test_reindexing_survives_a_relation_that_a_new_analyser_contradicts(
    stub: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller said that turn 0 corrects turn 1; better rules now find 1 superseding 0."""
    from reference import stand_ins

    rules = stand_ins.stub_facts
    with Memory.in_memory(config=stub) as memory:
        monkeypatch.setattr(stand_ins, "stub_facts", lambda turn: replace(rules(turn), claims=()))
        memory.add_many([{"text": "The port is v1."}, {"text": "The port is v2."}])
        memory.relate(0, "corrects", 1)
        monkeypatch.setattr(stand_ins, "stub_facts", rules)
        memory.reindex()
        assert memory.stats()["pending"] == 0
        assert [turn.validity for turn in memory.turns()] == ["current", "corrected"]
        assert memory.add("goes on").accepted == 1


def test_the_token_counter_is_part_of_the_store(stub: Config, store_path: Path) -> None:
    with Memory.open(store_path, config=stub) as memory:
        memory.add("Hello, world! 東京")
    other = stub.replace(capacity={"token_counter": "o200k_base"})
    with pytest.raises(FingerprintError) as caught:
        Memory.open(store_path, config=other)
    assert caught.value.code == "fingerprint.tokens"
    for word in ("cl100k_base", "o200k_base", "ebbtide reindex"):
        assert word in str(caught.value)
    handle = open_handle(store_path, other, read_only=False)
    with Memory(handle, "default", other, owns_store=True, reindexing=True) as memory:
        memory.reindex()
    with Memory.open(store_path, config=other) as memory:
        assert memory.get(0).tokens == memory.count_tokens("Hello, world! 東京")


# Long, odd and foreign text


def test_the_needle_at_the_end_of_a_long_paste_is_found(real: Memory) -> None:
    lines = [
        f"2024-03-{1 + n % 28:02d} 10:{n % 60:02d} INFO worker {n} finished batch {n * 7} in {n} ms"
        for n in range(900)
    ]
    needle = "The spare key is under the blue flowerpot by the greenhouse door."
    paste = "\n".join([*lines, needle])
    assert len(paste) > 50_000
    report = real.add_many(
        [{"text": "Look at this log:"}, {"text": paste}, {"text": "That is all for today."}]
    )
    assert report.accepted == 3
    assert real.get(1).text == paste
    found = real.retrieve("Where is the spare key?", limit=3)
    assert found[0].turn.interaction_id == 1
    context = real.render_context("Where is the spare key?", max_tokens=300)
    assert "blue flowerpot" in context
    assert "[…]" in context
    assert real.count_tokens(context) <= 300


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("我下个月要搬到杭州去工作。", "杭州"),
        ("明日は渋谷で山田さんと会います。", "渋谷"),
        ("지난주에 부산에서 새 아파트를 샀어요.", "부산"),
        ("カタカナのコーヒーメーカーを買った。", "コーヒー"),
    ],
)
def test_languages_without_spaces_are_found_by_words(
    real: Memory, text: str, question: str
) -> None:
    real.add_many({"text": f"filler number {n} about nothing"} for n in range(40))
    real.add(text)
    real.add("我们昨天吃了面条。 今日は晴れです。 오늘은 맑아요.")
    for preset in ("default", "paper"):
        found = real.retrieve(question, limit=1, preset=preset)[0]
        assert found.turn.text == text
        assert found.channels.keys() & {"raw_lexical", "bm25"}


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text",
    ["QUJD" * 15_000, "'" * 60_000, "well-" * 12_000, "it is so " * 7_000, "will be " * 3_000],
    ids=["base64", "quotes", "hyphens", "clauses", "one verb"],
)
def test_a_long_run_of_anything_does_not_hang(cheap: Config, text: str) -> None:
    """The time to read a turn grows with its length, not with its square."""
    with Memory.in_memory(config=cheap) as memory:
        memory.add(text)
        assert memory.get(0).text == text


@pytest.mark.timeout(20)
def test_a_long_question_does_not_hang(cheap: Config) -> None:
    with Memory.in_memory(config=cheap) as memory:
        memory.add("The port is 8080.")
        assert memory.retrieve("what port? " + "QUJD" * 4_900, limit=1)


ROUND_TRIPS = [
    "nul \x00 inside\x00",
    "\x00",
    "\x01\x02\x1b[31m",
    "\ufeffbom",
    "\u202ertl\u202c",
    "a\r\nb\rc\n",
    "   leading and trailing   ",
    "e\u0301 and é",
    "👩‍👩‍👧‍👦🇵🇹",
    "\U0010ffff\ufffe\uffff",
    "'; DROP TABLE turn; --",
    "===  END OF MEMORY ===",
    " \n\t ",
    "?",
    "a" * 2_000,
]


def test_odd_text_comes_back_byte_for_byte(cheap: Config, store_path: Path) -> None:
    with Memory.open(store_path, config=cheap) as memory:
        for text in ROUND_TRIPS:
            memory.add(text, speaker=text[:50], session_id=text[:50], external_id=text[:50])
        assert memory.retrieve("nul inside", limit=3)
        for nothing in ("\x00 \x01", "\u200b", "\u0301", "!!!"):
            assert len(memory.retrieve(nothing, limit=3)) == 3
        memory.render_context("DROP TABLE", max_tokens=500)
    with Memory.open(store_path, config=cheap) as memory:
        turns = list(memory.turns())
        assert [turn.text for turn in turns] == ROUND_TRIPS
        assert [turn.speaker for turn in turns] == [text[:50] for text in ROUND_TRIPS]
        for n, text in enumerate(ROUND_TRIPS):
            assert memory.get(external_id=text[:50]).interaction_id == n


def test_lone_surrogates_are_refused_by_name(stub: Config) -> None:
    with Memory.in_memory(config=stub) as memory:
        for field in ("text", "role", "speaker", "session_id", "external_id"):
            with pytest.raises(InputError) as caught:
                memory.add(**{"text": "x", field: "bad \ud83d end"})
            assert caught.value.code == "input.unicode"
            assert field in str(caught.value)
            assert 'errors="replace"' in str(caught.value)
        with pytest.raises(InputError):
            memory.add("x", metadata={"a": "\ud800"})
        with pytest.raises(InputError):
            memory.add("x", provenance={"source_turn": "\ud800"})
        assert len(memory) == 0


def test_ten_megabytes(stub: Config, store_path: Path) -> None:
    text = "one long line without an end " * 350_000
    assert len(text) > 10_000_000
    with Memory.open(store_path, config=stub) as memory:
        with pytest.raises(InputError) as caught:
            memory.add(text)
        assert caught.value.code == "input.too_long"
        assert "max_turn_chars" in str(caught.value)
        assert len(memory) == 0
    with Memory.open(
        store_path, config=stub.replace(limits={"max_turn_chars": 20_000_000})
    ) as memory:
        memory.add(text)
        assert memory.get(0).text == text
        memory.delete(0)
    assert store_path.stat().st_size > 0
    assert b"without an end" not in store_path.read_bytes()


# Our own block, pasted back


@pytest.mark.parametrize("include_active", [True, False])
def test_a_rendered_block_is_not_stored_again(real: Memory, include_active: bool) -> None:
    real.add("The gate code is 4417.", speaker="Ana", timestamp="2024-01-01")
    real.add("Thanks!", role="assistant", timestamp="2024-01-01")
    block = real.render_context("What is the gate code?", include_active=include_active)
    assert "4417" in block
    digest = real.digest()
    for pasted in (block, f"\n{block}\n", f"{block}\n\n{block}"):
        report = real.add(pasted)
        assert report.accepted == 0
        assert real.add_many([{"text": pasted}, {"content": pasted}]).accepted == 0
    assert real.digest() == digest
    real.add(f"Context:\n{block}\nPlease book the gate repair.", speaker="Ana")
    stored = real.get(2).text
    assert "4417" not in stored
    assert "MEMORY" not in stored
    assert "Please book the gate repair." in stored
    assert "Context:" in stored


def test_a_block_cut_by_its_budget_is_recognised_too(stub: Config) -> None:
    with Memory.in_memory(config=stub) as memory:
        memory.add_many(scripted(n) for n in range(40))
        count = len(memory)
        for max_tokens in range(10, 300, 13):
            block = memory.render_context("tea port", max_tokens=max_tokens)
            if block:
                assert memory.add(f"{block}").accepted == 0
        assert len(memory) == count


def test_a_quoted_end_marker_does_not_break_the_block(stub: Config) -> None:
    with Memory.in_memory(config=stub) as memory:
        memory.add("tea port. what does === END OF MEMORY === mean?")
        memory.add("tea port garden")
        block = memory.render_context("tea port")
        count = len(memory)
        memory.add(block)
        assert len(memory) == count


# Roles


TOOL_JSON = json.dumps(
    {"status": "ok", "user": {"name": "Ana", "city": "Faro", "favourite_drink": "coffee"}}
)


def test_system_prompts_and_tool_json_are_turns_not_facts(real: Memory) -> None:
    real.add("You are a helper. Ana lives in Faro and prefers coffee.", role="system")
    real.add(TOOL_JSON, role="tool")
    real.add("I live in Porto and I prefer green tea.", role="user", speaker="Ana")
    for _ in range(3):
        real.add("What shall we do next?", role="assistant")
    assert len(real) == 6
    for interaction_id in (0, 1):
        assert real.explain(interaction_id)["cards"] == []
        assert real.get(interaction_id).validity == "current"
    assert real.explain(2)["cards"]
    for question in ("Where does Ana live?", "What does Ana prefer to drink?"):
        found = real.retrieve(question, limit=6)
        assert found[0].turn.role == "user"
        asked = real.retrieve(question, limit=6, filters={"role": "tool"})
        assert [item.turn.role for item in asked] == ["tool"]
        asked = real.retrieve(question, limit=6, filters={"role": "system"})
        assert [item.turn.role for item in asked] == ["system"]


def test_an_example_by_the_assistant_is_not_what_the_user_did(real: Memory) -> None:
    real.add(
        "For example: `def main(): connect(host='db.example', port=5432)`. I use port 5432 here.",
        role="assistant",
    )
    real.add("My service listens on port 8081.", role="user", speaker="Ana")
    real.add("I would use port 9000 instead.", role="assistant")
    assert real.get(1).validity == "current"
    found = real.retrieve("Which port does Ana's service listen on?", limit=3)
    assert found[0].turn.interaction_id == 1
    assert all(item.turn.role in ("user", "assistant") for item in found)
    by_role = {item.turn.interaction_id: item.turn.role for item in found}
    assert by_role[0] == "assistant"
    context = real.render_context("Which port does Ana's service listen on?")
    assert "assistant: For example" in context
    subjects = {card["card"]["subject"] for card in real.explain(0)["cards"]}
    assert "ana" not in subjects
    assert "user" not in subjects


def test_openai_messages_are_accepted_whole(stub: Config) -> None:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "name": "Ana",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "data:..."}},
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "look", "arguments": '{"x": 1}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": '{"label": "cat"}'},
    ]
    with Memory.in_memory(config=stub) as memory:
        assert memory.add_many(messages).accepted == 4
        turns = list(memory.turns())
    assert [turn.role for turn in turns] == ["system", "user", "assistant", "tool"]
    assert turns[1].text == "What is this?\n[image_url]"
    assert turns[1].speaker == "Ana"
    assert turns[2].text == 'look({"x": 1})'
    assert turns[3].metadata == {"tool_call_id": "c1"}


# Facts that look alike


def test_an_instruction_and_a_reminder_do_not_contradict(real: Memory) -> None:
    real.add("Use the async runtime.", speaker="Ana")
    real.add("Do not forget to configure the async runtime.", speaker="Ana")
    assert [turn.validity for turn in real.turns()] == ["current", "current"]
    assert real.stats()["relations"] == 0


def test_two_deadlines_stay_two(real: Memory) -> None:
    real.add("The deadline for the tax report is 15 March.", speaker="Ana")
    real.add("The deadline for the grant report is 16 March.", speaker="Ana")
    assert [turn.validity for turn in real.turns()] == ["current", "current"]
    tax = real.retrieve("When is the deadline for the tax report?", limit=2)
    grant = real.retrieve("When is the deadline for the grant report?", limit=2)
    assert [item.turn.interaction_id for item in tax] == [0, 1]
    assert [item.turn.interaction_id for item in grant] == [1, 0]


def test_a_third_persons_dislike_is_not_the_speakers(real: Memory) -> None:
    real.add("I love olives.", speaker="Ana")
    real.add("My brother hates olives.", speaker="Ana")
    assert real.get(0).validity == "current"
    assert real.get(1).validity == "current"
    subjects = {card["card"]["subject"] for card in real.explain(1)["cards"]}
    assert "ana" not in subjects
    assert real.retrieve("Does Ana like olives?", limit=1)[0].turn.interaction_id == 0


# The life of a turn


def test_two_relations_in_a_row_are_both_explained(stub: Config) -> None:
    with Memory.in_memory(config=stub) as memory:
        memory.add_many({"text": f"turn {n}"} for n in range(4))
        memory.relate(2, "conflicts_with", 0)
        memory.relate(3, "corrects", 0)
        decisions = [d for d in memory.explain(0)["decisions"] if d["kind"] == "relate"]
        assert [d["detail"]["by"] for d in decisions] == [2, 3]


def test_a_stored_turn_has_everything_that_was_given(stub: Config, store_path: Path) -> None:
    given = Turn(
        text="x",
        role="user",
        speaker="Ana",
        timestamp="2024-01-01T00:00:00Z",
        session_id="s",
        external_id="e",
        provenance={"is_user_correction": True, "source_turn": "t0"},
        metadata={"b": [1, 2.5, None, "é"], "a": {"nested": True}},
    )
    with Memory.open(store_path, config=stub) as memory:
        memory.add_many([given])
    with Memory.open(store_path, config=stub) as memory:
        turn = memory.get(0)
        for field in (
            "text",
            "role",
            "speaker",
            "timestamp",
            "session_id",
            "external_id",
            "metadata",
        ):
            assert getattr(turn, field) == getattr(given, field)
        assert turn.provenance is not None
        assert turn.provenance["is_user_correction"] is True
        assert turn.provenance["source_turn"] == "t0"
        assert (turn.state, turn.validity, turn.interaction_id) == ("active", "current", 0)
        found = memory.retrieve("x", filters={"metadata": {"a": {"nested": True}}})
        assert len(found) == 1
        assert memory.retrieve("x", filters={"metadata": {"a": 1}}) == []
