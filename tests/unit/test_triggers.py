"""A guarded pattern finds what the pattern itself finds, in any text."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ebbtide.analysis.query
import ebbtide.analysis.spacy_analyser
from ebbtide.analysis.patterns import (
    READ_OFF,
    AnyOf,
    GuardedPattern,
    PatternList,
    guarded,
    key_of,
    lazy,
)
from ebbtide.analysis.signals import (
    claims_holdings,
    claims_life,
    claims_renewed,
    claims_taste,
    claims_work,
)
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
        (
            r"\breplac(?:e|ed|ing)\b.{1,60}\bwith\b",
            [{"replace", "replaced", "replacing"}, {"with"}],
        ),
        (r"\b(?:kayak|zebra)\b", [{"kayak", "zebra"}]),
        (r"\b(?:kayak|\w+ zebra)\b", [{"kayak", "zebra"}]),
        (r"\bany ?more\b", [{"anymore", "any"}]),
        (r"(?i:\b[Mm]y name)", [{"nam-"}]),
        (r"\bcolou?r", [{"col-"}]),
        (r"\bcan['’]t\b", [{"'", "’"}]),
        (r"\w+kayak\b", [{"-ayak"}]),
        (r"\bkayak\s+(?:by )*quiz\b", [{"kayak"}, {"quiz"}]),
        (r"\bkayak(?=\s+quiz\b)", [{"quiz"}, {"kay-"}]),
        (r"^kayak$", [{"kayak"}]),
        (r"\d{4}", [{"0-9"}]),
        (r"\bquiz\b|[1-9]", [{"quiz", "0-9"}]),
        (r"今は|;", [{"は", ";"}]),
        (r"(?!quiz)\bkayak\b", [{"kayak"}]),
        (r"\b(?:quiz)+\b", [{"qui-"}]),
        (r"\b(?:yes|\w+)\b", [{""}]),
        (r"no|yes", [{""}]),
        (r"\b(?:quiz)?", [{""}]),
        (r"kayak", [{""}]),
        (r"\bжук\b", [{""}]),
    ],
)
def test_what_a_match_must_hold(pattern: str, needs: list[set[str]]) -> None:
    assert list(triggers(pattern, re.IGNORECASE)) == needs


def test_no_guard_where_words_end_elsewhere() -> None:
    assert triggers(r"\bkayak\b", re.ASCII) == ({""},)


def test_no_letter_but_one_changes_its_length_or_its_kind_in_lower_case() -> None:
    for letter in map(chr, range(sys.maxunicode + 1)):
        lower = letter.lower()
        if letter != "İ":
            assert len(lower) == 1
            assert (letter.isalnum(), letter.isspace()) == (lower.isalnum(), lower.isspace())


def test_a_pattern_is_compiled_when_it_is_first_tried() -> None:
    pattern = lazy("(")
    with pytest.raises(re.error):
        pattern.search("")
    with pytest.raises(re.error):
        guarded("(")


def test_what_is_read_off_the_patterns_is_kept_beside_them() -> None:
    kept = json.loads(READ_OFF.read_text(encoding="utf-8"))
    told = {key_of(rule.lazy.source, rule.lazy.flags): rule.lazy for rule in RULES}
    assert told.keys() <= kept["patterns"].keys(), "run: python scripts/pattern_triggers.py"
    if kept["python"] == ".".join(map(str, sys.version_info[:2])):
        anew = {key: triggers(lazy.source, lazy.flags) for key, lazy in told.items()}
        here = {key: tuple(map(frozenset, kept["patterns"][key])) for key in told}
        assert here == anew, "run: python scripts/pattern_triggers.py"


def test_a_pattern_that_is_not_kept_is_read() -> None:
    assert guarded(r"\bsextants?\b").needs == (frozenset({"sextant", "sextants"}),)


def test_nearly_every_rule_is_guarded() -> None:
    assert len(RULES) > 140
    assert len(LISTS) > 5
    assert sum(rule.needs == ({""},) for rule in RULES) < 5


@pytest.mark.parametrize("text", ["KAYAK", "\u212aayak", "kaya\u212a", "a Kayak", "kayak\u0131ng"])
def test_letters_that_equal_an_ascii_one_count_as_it(text: str) -> None:
    rule = guarded(r"\bkayak(?:ing)?\b", re.IGNORECASE)
    assert rule.pattern.search(text)
    assert rule.search(text)


def test_any_of_several_may_match_where_one_does() -> None:
    several = AnyOf(guarded(r"\bkayak\b.*\bquiz\b"), guarded(r"\bzebra\b"))
    assert several.may_match("a kayak and a quiz")
    assert several.may_match("zebra")
    assert not several.may_match("zebras")
    assert AnyOf(guarded(r"\w+"), guarded(r"\bzebra\b")).may_match("anything")


@pytest.mark.parametrize(
    ("module", "beside"),
    [
        (claims_holdings, "LONG_PAST _FOR_NOW"),
        (claims_life, "LONG_PAST _NOW_SO"),
        (claims_renewed, ""),
        (claims_taste, "PREFERENCE_NOT _NOW _ANYMORE _OVER _FOR"),
        (claims_work, "LONG_PAST _LOOKS_BACK"),
    ],
)
def test_no_pattern_that_states_something_is_left_out(module: Any, beside: str) -> None:
    values = {name: value for name, value in vars(module).items() if name not in beside.split()}
    assert {*rules_of(tuple(values.values()))} == {*module._STATED.patterns}


def same(text: str) -> None:
    for rule in RULES:
        found, plain = rule.search(text), rule.pattern.search(text)
        assert (found and found.span()) == (plain and plain.span()), rule.lazy.source
        spans = [match.span() for match in rule.finditer(text)]
        assert spans == [match.span() for match in rule.pattern.finditer(text)]
        begun, plain = rule.match(text), rule.pattern.match(text)
        assert (begun and begun.span()) == (plain and plain.span()), rule.lazy.source
        assert rule.sub(" ", text) == rule.pattern.sub(" ", text)
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
    if you know what: can you tell me; jetzt 现在 5 Im vegan, left Acme—so wish he'd
    ſtopped ıs \u212aeep — …"""
PHRASES = st.sampled_from(WORDS.split())


@given(st.lists(PHRASES, max_size=25).map(" ".join))
def test_on_sentences_of_trigger_words(text: str) -> None:
    same(text)
