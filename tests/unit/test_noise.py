"""The noise generator: counts, mix, places, what the templates may say."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ebbtide.errors import InputError
from ebbtide.evals.datasets import Conversation, DatasetTurn, load_conversations
from ebbtide.evals.noise import (
    CATEGORIES,
    RatioOf,
    add_noise,
    category_of,
    describe,
    noise_count,
)
from ebbtide.evals.noise.generate import _Draws
from ebbtide.evals.noise.templates import templates
from unit.noise_samples import conversation, texts

# Counts and mix


@pytest.mark.parametrize(
    ("original", "ratio", "ratio_of", "expected"),
    [
        (419, 0.75, "timeline", 1257),
        (419, 0.75, "original", 314),
        (419, 0, "timeline", 0),
        (419, 0.0, "original", 0),
        (0, 0.9, "timeline", 0),
        (10, 0.25, "original", 3),
        (30, 0.15, "original", 5),
        (5, 2, "original", 10),
        (7, 0.5, "timeline", 7),
        (1, 0.1, "timeline", 0),
        (5, 1e-9, "original", 0),
    ],
)
def test_the_count_is_exact_with_halves_up(
    original: int, ratio: float, ratio_of: RatioOf, expected: int
) -> None:
    assert noise_count(original, ratio, ratio_of) == expected


@pytest.mark.parametrize("ratio_of", ["timeline", "original"])
@pytest.mark.parametrize("ratio", [0.1, 0.42, 0.735, 0.9])
def test_the_noisy_conversation_has_the_asked_ratio(ratio: float, ratio_of: RatioOf) -> None:
    report = describe(add_noise(conversation(40, 61, 19), ratio=ratio, ratio_of=ratio_of, seed=3))
    assert report.noise == noise_count(120, ratio, ratio_of)
    found = report.ratio_of_timeline if ratio_of == "timeline" else report.ratio_of_original
    assert found == pytest.approx(ratio, abs=0.5 / 120)


@pytest.mark.parametrize("count", [*range(1, 21), 99, 1257])
def test_the_mix_is_exact_by_largest_remainder(count: int) -> None:
    report = describe(add_noise(conversation(count), ratio=1, ratio_of="original", seed=0))
    wanted = {"filler": count * 0.4, "status": count * 0.3, "tangent": count * 0.3}
    assert sum(report.by_category.values()) == report.noise == count
    assert report.by_category["other"] == 0
    assert all(abs(report.by_category[name] - share) < 1 for name, share in wanted.items())
    # Of equal remainders the earlier category wins.
    assert report.by_category["status"] >= report.by_category["tangent"]
    if count % 10 == 0:
        assert [report.by_category[name] * 10 for name in CATEGORIES] == [
            count * 4,
            count * 3,
            count * 3,
        ]


@pytest.mark.parametrize(
    ("ratio", "ratio_of", "seed"),
    [
        (1.0, "timeline", 0),
        (1, "timeline", 0),
        (-0.01, "timeline", 0),
        (-1, "original", 0),
        (float("nan"), "original", 0),
        (float("inf"), "original", 0),
        (True, "original", 0),
        ("0.5", "original", 0),
        (None, "timeline", 0),
        (0.5, "both", 0),
        (0.5, ["timeline"], 0),
        (0.5, "timeline", -1),
        (0.5, "timeline", 1.5),
        (0.5, "timeline", True),
        (1e300, "original", 0),
        (0.99999999, "timeline", 0),
    ],
)
def test_bad_arguments_are_refused(ratio: Any, ratio_of: Any, seed: Any) -> None:
    with pytest.raises(InputError) as refused:
        add_noise(conversation(8), ratio=ratio, ratio_of=ratio_of, seed=seed)
    assert refused.value.code == "input.field"


def test_noise_on_noise_is_refused() -> None:
    noisy = add_noise(conversation(8), ratio=0.5, ratio_of="original", seed=1)
    with pytest.raises(InputError, match="conv-x: has noise turns already"):
        add_noise(noisy, ratio=0.5, ratio_of="original", seed=1)


# Places and turns


@pytest.mark.parametrize("seed", range(5))
def test_originals_stay_and_noise_fits_in(seed: int) -> None:
    plain = conversation(12, 1, 2, 30)
    before = list(plain.turns)
    noisy = add_noise(plain, ratio=0.6, ratio_of="timeline", seed=seed)
    assert plain.turns == before
    assert [turn for turn in noisy.turns if not turn.noise] == before
    inserted = [turn for turn in noisy.turns if turn.noise]
    assert [turn.external_id for turn in inserted] == [f"NOISE:{n}" for n in range(1, 69)]
    assert [turn.speaker for turn in inserted] == ["Ana", "Luis"] * 34
    for session, turns in itertools.groupby(noisy.turns, key=lambda turn: turn.session_id):
        members = list(turns)
        assert len({turn.timestamp for turn in members}) == 1
        assert not members[0].noise
        if session != "session_2":
            assert not members[-1].noise
    assert noisy.id == plain.id
    assert noisy.speakers == plain.speakers


def test_noise_spreads_over_the_timeline() -> None:
    noisy = add_noise(conversation(*[21] * 10), ratio=0.75, ratio_of="timeline", seed=9)
    by_session = Counter(turn.session_id for turn in noisy.turns if turn.noise)
    assert len(by_session) == 10
    assert all(40 <= count <= 90 for count in by_session.values())


def test_roles_take_turns_where_nobody_is_named() -> None:
    noisy = add_noise(conversation(6, roles=True), ratio=1, ratio_of="original", seed=2)
    inserted = [turn for turn in noisy.turns if turn.noise]
    assert [turn.role for turn in inserted] == ["user", "assistant"] * 3
    assert {turn.speaker for turn in inserted} == {None}


def test_an_empty_conversation_stays_empty() -> None:
    empty = Conversation("nobody", (), [], [], [])
    assert add_noise(empty, ratio=0.9, ratio_of="timeline", seed=0) == empty
    assert describe(empty).ratio_of_timeline == 0.0


def test_a_ratio_of_zero_changes_nothing() -> None:
    plain = conversation(5, 6)
    assert add_noise(plain, ratio=0, ratio_of="timeline", seed=7) == plain


# Determinism


def test_id_and_seed_decide_the_noise() -> None:
    def noise(name: str, seed: int) -> list[DatasetTurn]:
        return add_noise(
            conversation(20, 20, name=name), ratio=0.5, ratio_of="timeline", seed=seed
        ).turns

    assert noise("a", 1) == noise("a", 1)
    assert noise("a", 1) != noise("a", 2)
    assert [turn.text for turn in noise("a", 1)] != [turn.text for turn in noise("b", 1)]
    # "1:1a" and "11:a" style mix-ups of id and seed.
    assert noise("1:a", 1) != noise("a", 11)


def test_the_stream_is_the_same_on_every_platform() -> None:
    draws = _Draws("conv-x", 20240108)
    assert [draws.below(1000) for _ in range(8)] == [602, 42, 490, 485, 991, 117, 371, 589]
    draws = _Draws("Zoë", 0)
    assert [draws.below(1000) for _ in range(4)] == [89, 583, 460, 909]


# What the templates say

_AT_HAND = {
    *("arm", "coffee", "cocoa", "elbow", "foot", "hand", "leg", "shoulder", "tea", "water"),
    *("charger", "headset", "keyboard", "laptop", "microphone", "mouse", "phone", "screen"),
    *("speaker", "tablet", "trackpad", "webcam", "mind", "juice", "lemonade", "milk"),
    *("sparkling", "iced", "hot", "ginger"),
}
_FACTS = re.compile(
    r"\b(?:"
    # Preferences and opinions of the speaker.
    r"I(?:'d| would| really| just| also)? (?:love|like|hate|prefer|enjoy|adore|want|miss|need)\w*"
    r"|favou?rites?|can't stand|big fan|overrated|underrated|allergic"
    # Past events and plans of the speaker.
    r"|I(?:'ve| have)? (?:went|bought|got|had|was|used|lived?|works?|worked|grew|met|moved)"
    r"|I (?:started|finished|joined|visited|made|painted|signed|saw|ate|read|watched)"
    r"|I(?:'ve| have) been|I plan|I'm planning|we (?:went|bought|got|had|were|are)|our|me too"
    # Dates and times.
    r"|yesterday|tomorrow|tonight|today|last|next (?:day|week|month|year)|weekends?|ago"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|weeks?|months?|years?|birthdays?"
    r"|january|february|april|june|july|august|september|october|november|december"
    # People.
    r"|mom|mum|dad|mother|father|sisters?|brothers?|wife|husband|kids?|sons?|daughters?"
    r"|friends?|boss|colleagues?|partner|family|he|she|him|his|her|hers"
    # Retractions, which would speak about the original turns.
    r"|never mind|scratch that|ignore|correction|I meant|take that back"
    r")\b",
    re.IGNORECASE,
)
_OWNED = re.compile(r"\bmy (\w+)", re.IGNORECASE)
_NAME = re.compile(r"(?<=[a-z,;:] )(?!I\b|I'm\b|I'll\b)[A-Z]\w*")


def everything() -> list[str]:
    """Every template with every value of every slot it names."""
    longest = max(len(values) for values in _first().slots.values())
    return [
        template.fill(lambda bound, place=place: place % bound)
        for members in templates().by_category.values()
        for template in members
        for place in range(longest)
    ]


def _first() -> Any:
    return templates().by_category["filler"][0]


def test_there_are_several_hundred_templates() -> None:
    by_category = templates().by_category
    patterns = [template.pattern for members in by_category.values() for template in members]
    assert len(patterns) == len(set(patterns)) >= 400
    assert all(len(members) >= 100 for members in by_category.values())
    assert all(t.capacity >= 150 for members in by_category.values() for t in members)
    assert templates().mix == {"filler": 40, "status": 30, "tangent": 30}
    named = {name.lower() for pattern in patterns for name in re.findall(r"\{(\w+)\}", pattern)}
    assert named == set(_first().slots)
    for values in _first().slots.values():
        assert len(values) == len(set(values))


def test_no_template_states_a_fact() -> None:
    for text in everything():
        assert not re.search(r"\d|[{}\n]|\s\s|^\s|\s$", text), text
        assert (found := _FACTS.search(text)) is None, (found, text)
        assert _NAME.search(text) is None, text
        assert set(_OWNED.findall(text.lower())) <= _AT_HAND, text
        assert text[0].isupper(), text
        assert not re.search(r"\ba [aeiou]|\ban [^aeiou]", text), text
        assert len(text.split()) <= 30, text


def test_a_text_names_its_category() -> None:
    for category, members in templates().by_category.items():
        for template in members:
            for place in range(5):
                text = template.fill(lambda bound, place=place: place % bound)
                assert category_of(text) == category
                assert category_of(text.upper()) == category
    assert category_of("I moved to Lisbon.") is None
    assert category_of("") is None


def test_a_slot_named_twice_takes_two_values() -> None:
    twice = [
        template
        for members in templates().by_category.values()
        for template in members
        if template.pattern.lower().count("{things}") == 0
        and template.pattern.lower().count("{critters}") == 2
    ]
    assert twice
    for template in twice:
        found = re.findall("|".join(_first().slots["critters"]), template.fill(lambda _: 0).lower())
        assert len(found) == len(set(found)) == 2


def test_five_thousand_noise_turns_hardly_repeat() -> None:
    single = describe(add_noise(conversation(5000), ratio=1, ratio_of="original", seed=5))
    assert single.noise == 5000
    assert single.distinct == 5000
    pooled = [
        text
        for name in range(10)
        for text in texts(
            add_noise(conversation(500, name=f"conv-{name}"), ratio=1, ratio_of="original", seed=5)
        )
    ]
    assert len(pooled) == 5000
    assert 1 - len(set(pooled)) / 5000 < 0.03


def test_more_noise_than_sentences_repeats_rather_than_hangs() -> None:
    report = describe(add_noise(conversation(40), ratio=500, ratio_of="original", seed=0))
    assert report.noise == 20_000
    assert report.distinct > 19_000


# The published files


def test_longmemeval_takes_noise_too(data_folder: Path) -> None:
    (plain, *_) = load_conversations(data_folder / "longmemeval" / "lme_s_dev18.jsonl.gz")
    noisy = add_noise(plain, ratio=0.5, ratio_of="timeline", seed=1)
    assert [turn for turn in noisy.turns if not turn.noise] == plain.turns
    assert describe(noisy).ratio_of_timeline == 0.5


def test_the_published_noise_is_described_and_shares_no_sentence(data_folder: Path) -> None:
    def sentences(said: list[str]) -> set[str]:
        """Whole turns, and their sentences of four words or more, punctuation aside."""
        parts = [part for text in said for part in [text, *re.split(r"(?<=[.!?])\s", text)]]
        words = [re.findall(r"[a-z']+", part.lower()) for part in parts]
        whole = {" ".join(re.findall(r"[a-z']+", text.lower())) for text in said}
        return whole | {" ".join(part) for part in words if len(part) >= 4}

    (published,) = load_conversations(data_folder / "locomo" / "locomo_noise_conv26.json.gz")
    report = describe(published)
    assert (report.original, report.noise, report.distinct) == (419, 308, 248)
    assert report.ratio_of_original == pytest.approx(0.735, abs=0.001)
    assert report.ratio_of_timeline == pytest.approx(0.424, abs=0.001)
    assert report.by_category == {"filler": 0, "status": 0, "tangent": 0, "other": 308}
    ours = texts(add_noise(conversation(20_000), ratio=1, ratio_of="original", seed=8))
    assert sentences(ours + everything()).isdisjoint(sentences(texts(published)))
