"""A guarded pattern finds what the pattern itself finds, in any text."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ebbtide.analysis.spacy_analyser
from ebbtide.analysis.patterns import GuardedPattern, PatternList, guarded, lazy, pieces_of
from ebbtide.analysis.triggers import triggers


def rules_of(value: Any) -> Iterator[GuardedPattern]:
    if isinstance(value, GuardedPattern):
        yield value
    elif isinstance(value, PatternList):
        yield from (rule for _, rule in value.rules)
    elif isinstance(value, tuple):
        for item in value:
            yield from rules_of(item)


RULES = list(
    dict.fromkeys(
        rule
        for name, module in sorted(sys.modules.items())
        if name.startswith(ebbtide.analysis.spacy_analyser.__name__.rpartition(".")[0])
        for value in vars(module).values()
        for rule in rules_of(value)
    )
)
LISTS = [
    value
    for name, module in sorted(sys.modules.items())
    if name.startswith("ebbtide.analysis.signals.cues")
    for value in vars(module).values()
    if isinstance(value, PatternList)
]


@pytest.mark.parametrize(
    ("pattern", "needs"),
    [
        (r"\breplac(?:e|ed|ing)\b.{1,60}\bwith\b", {"pla"}),
        (r"\b(?:kayak|zebra)\b", {"kay", "zeb"}),
        (r"any ?more", {"mor", "nym"}),
        (r"(?i:\b[Mm]y name)", {"my "}),
        (r"colou?r", {"col"}),
        (r"(?:yes|\w+)", {""}),
        (r"no|yes", {""}),
        (r"(?:quiz)?", {""}),
        (r"(?:quiz)+", {"uiz"}),
        (r"(?!quiz)kayak", {"kay"}),
        (r"\d{4}", {""}),
        (r"quiz|\d+", {""}),
    ],
)
def test_what_a_match_must_hold(pattern: str, needs: set[str]) -> None:
    assert triggers(pattern, re.IGNORECASE) == needs


def test_a_pattern_is_compiled_when_it_is_first_tried() -> None:
    pattern = lazy("(")
    with pytest.raises(re.error):
        pattern.search("")
    with pytest.raises(re.error):
        guarded("(")


def test_nearly_every_rule_is_guarded() -> None:
    assert len(RULES) > 140
    assert len(LISTS) > 5
    assert sum(rule.needs == {""} for rule in RULES) < 10


@pytest.mark.parametrize("text", ["KAYAK", "\u212aayak", "kaya\u212a", "a Kayak", "kayak\u0131ng"])
def test_letters_that_equal_an_ascii_one_count_as_it(text: str) -> None:
    rule = guarded(r"kayak(?:ing)?", re.IGNORECASE)
    assert rule.pattern.search(text)
    assert rule.search(text)


def same(text: str) -> None:
    for rule in RULES:
        found, plain = rule.search(text), rule.pattern.search(text)
        assert (found and found.span()) == (plain and plain.span()), rule.lazy.source
        spans = [match.span() for match in rule.finditer(text)]
        assert spans == [match.span() for match in rule.pattern.finditer(text)]
    for rules in LISTS:
        every = [(name, rule.pattern.search(text)) for name, rule in rules.rules]
        wanted = [(name, match.span()) for name, match in every if match]
        assert [(name, match.span()) for name, match in rules.matches(text)] == wanted


def test_on_the_example_conversation(example_turns: list[dict[str, Any]]) -> None:
    hits = 0
    for turn in example_turns:
        same(turn["text"])
        hits += sum(rule.search(turn["text"]) is not None for rule in RULES)
    assert hits > 200


WORDS = """I we my moved to from live in lives work at worked used to no longer not but never only
    actually instead of rather than replaced with favourite prefer love hate allergic must don't
    always name is called Friday Porto port 8080 is, years old since now anymore vegan I'm he's
    ſtopped ıs \u212aeep — …"""
PHRASES = st.sampled_from(WORDS.split())


@given(st.lists(PHRASES, max_size=25).map(" ".join))
def test_on_sentences_of_trigger_words(text: str) -> None:
    same(text)
    assert "" in pieces_of(text)
