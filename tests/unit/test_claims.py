"""Claims: whom they are about, what they say, and the evidence of each signal."""

from __future__ import annotations

import pytest

from ebbtide.analysis.facts import REST, SIGNALS, Claim, TurnText
from ebbtide.analysis.language import LanguageAdapter
from ebbtide.analysis.signals import EnglishAdapter
from ebbtide.analysis.spacy_analyser import SpacyAnalyser

from .conftest import Read, only_claim

# Who says it, and about whom


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("My sister lives in Oslo.", "ana's sister"),
        ("My wife Rita lives in Oslo.", "ana's wife"),
        ("My friend Tom lives in Oslo.", "tom"),
        ("Tom Silva lives in Oslo.", "tom silva"),
        ("Tom lives in Oslo.", "tom"),
        ("I live in Oslo.", "ana"),
        ("We live in Oslo.", "ana"),
    ],
)
def test_a_claim_is_about_the_person_of_its_sentence(read: Read, text: str, subject: str) -> None:
    claim = only_claim(read(text), "current_state")
    assert (claim.subject, claim.identity, claim.value) == (subject, "residence", "oslo")


@pytest.mark.parametrize(
    "text",
    [
        "He lives in Oslo.",
        "They live in Oslo.",
        "You live in Oslo.",
        "Tom, you live in Oslo.",
        "My friend lives in Oslo.",
        "Rita wrote: I live in Oslo.",
        "Summarise this: I live in Oslo.",
        "His address is 5 Elm Street.",
        "He said he lives in Oslo.",
        "My boss said I live in Oslo.",
        "The doctor thinks I am allergic to nuts.",
        'She said "I live in Oslo and I never eat meat".',
        "If I lived in Oslo I would be happy.",
        "I want to live in Oslo.",
        "I will move to Oslo next year.",
        "```\nI live in Oslo\n```",
        '{"text": "I live in Oslo"}',
        "2024-05-01 10:00 INFO the port is 3000",
    ],
)
def test_pronouns_reports_wishes_and_pasted_text_claim_nothing(read: Read, text: str) -> None:
    assert read(text).claims == ()


def test_roles(read: Read) -> None:
    text = "I live in Oslo. Never deploy on Fridays."
    speakers = {claim.subject for claim in read(text, speaker=None).claims}
    assert speakers == {"user"}
    assert {c.subject for c in read(text, "assistant", None).claims} == {"assistant"}
    assert {c.subject for c in read(text, "assistant", "Bo").claims} == {"bo"}
    for role in ("system", "tool", "function", "developer"):
        facts = read(text, role, None)
        assert facts.claims == ()
        assert {"constraint", "current_state"} <= facts.signals
    assert read("You live in Oslo.", "assistant", None).claims == ()


def test_speakers_are_compared_in_lower_case_and_composed(read: Read) -> None:
    for speaker in ("ZOË", "Zoe\u0308", " zoë "):
        assert read("I live in Oslo.", speaker=speaker).claims[0].subject == "zoë"


# Claims, one table

CLAIMS = [
    ("I live in Rome.", "current_state", "ana", "residence", "rome", None, False),
    ("I'm based in Lyon.", "current_state", "ana", "residence", "lyon", None, False),
    ("Luis moved to Porto.", "current_state", "luis", "residence", "porto", None, False),
    ("I moved from Rome to Oslo.", "current_state", "ana", "residence", "oslo", "rome", False),
    ("I don't live in Oslo anymore.", "current_state", "ana", "residence", "oslo", None, True),
    ("I no longer live in Oslo.", "current_state", "ana", "residence", "oslo", None, True),
    ("I used to live in Oslo.", "past_state", "ana", "residence", "oslo", None, False),
    ("I grew up in Porto.", "past_state", "ana", "hometown", "porto", None, False),
    ("I'm from Spain.", "current_state", "ana", "origin also spain", "spain", None, False),
    ("I work as a nurse.", "current_state", "ana", "job", "nurse", None, False),
    ("I also work as a tutor.", "current_state", "ana", "job also tutor", "tutor", None, False),
    ("I've worked at Meta.", "past_state", "ana", "employer", "meta", None, False),
    ("I worked as a nurse.", "past_state", "ana", "job", "nurse", None, False),
    ("I'm a teacher.", "current_state", "ana", "job", "teacher", None, False),
    ("I work for Acme.", "current_state", "ana", "employer", "acme", None, False),
    ("My dad used to work at Ford.", "past_state", "ana's dad", "employer", "ford", None, False),
    ("I got divorced.", "current_state", "ana", "relationship status", "divorced", None, False),
    ("My name is Ana.", "current_state", "ana", "name", "ana", None, False),
    ("My dog's name is Rex.", "current_state", "ana", "name of dog", "rex", None, False),
    ("I am 34 years old.", "current_state", "ana", "age", "34", None, False),
    ("I have two cats.", "current_state", "ana", "count of cat", "2", None, False),
    ("I'm vegan.", "current_state", "ana", "diet", "vegan", None, False),
    ("I was vegan.", "past_state", "ana", "diet", "vegan", None, False),
    ("I'm allergic to nuts.", "current_state", "ana", "allergy:nut", "allergic", None, False),
    ("I'm allergic to fish.", "current_state", "ana", "allergy:fish", "allergic", None, False),
    (
        "I'm not allergic to nuts.",
        "current_state",
        "ana",
        "allergy:nut",
        "not allergic",
        None,
        False,
    ),
    ("I love coffee.", "preference", "ana", "preference:coffee", "like", None, False),
    ("I don't like coffee.", "preference", "ana", "preference:coffee", "dislike", None, False),
    ("Anna hates mushrooms.", "preference", "anna", "preference:mushroom", "dislike", None, False),
    (
        "I can't stand loud bars.",
        "preference",
        "ana",
        "preference:loud bar",
        "dislike",
        None,
        False,
    ),
    (
        "I hate running in the rain.",
        "preference",
        "ana",
        "preference:running in rain",
        "dislike",
        None,
        False,
    ),
    ("I like fishing.", "preference", "ana", "preference:fishing", "like", None, False),
    ("I like to fish.", "preference", "ana", "preference:fishing", "like", None, False),
    ("I like fish.", "preference", "ana", "preference:fish", "like", None, False),
    ("I love to sing.", "preference", "ana", "preference:singing", "like", None, False),
    ("I love to swim.", "preference", "ana", "preference:swimming", "like", None, False),
    ("I'm into chess.", "preference", "ana", "preference:chess", "like", None, False),
    ("I prefer tea over coffee.", "preference", "ana", "preference:drink", "tea", None, False),
    (
        "I switched from tea to coffee.",
        "preference",
        "ana",
        "preference:drink",
        "coffee",
        "tea",
        False,
    ),
    (
        "My favourite colour is green.",
        "preference",
        "ana",
        "preference:colour",
        "green",
        None,
        False,
    ),
    (
        "My favourite colour is not red.",
        "preference",
        "ana",
        "preference:colour",
        "red",
        None,
        True,
    ),
    ("Vim is my favourite editor.", "preference", "ana", "preference:editor", "vim", None, False),
    ("The port is 3000.", "current_state", "ana", "port", "3000", None, False),
    ("The port is 80 on staging.", "current_state", "ana", "port for staging", "80", None, False),
    ("The meeting is at 3pm.", "current_state", "ana", "meeting time", "3:00 pm", None, False),
    ("The flight is $300.", "current_state", "ana", "price for flight", "300 dollars", None, False),
    ("The exam is in June.", "current_state", "ana", "exam month", "june", None, False),
    ("The port is not 3000.", "current_state", "ana", "port", "3000", None, True),
    ("Our server runs on port 9000.", "current_state", "ana", "port", "9000", None, False),
    ("The port for staging is 81.", "current_state", "ana", "port for staging", "81", None, False),
    ("Our staging port is 81.", "current_state", "ana", "port for staging", "81", None, False),
    ("The timeout was 30 seconds.", "past_state", "ana", "timeout", "30 seconds", None, False),
    ("The deadline is 5 May 2024.", "current_state", "ana", "deadline", "5 may 2024", None, False),
    (
        "The deadline moved from June 3 to June 10.",
        "correction",
        "ana",
        "deadline",
        "10 june",
        "3 june",
        False,
    ),
    (
        "My birthday is on the 3rd, not the 5th.",
        "correction",
        "ana",
        "birthday",
        "3rd",
        "5th",
        False,
    ),
    ("I meant Tuesday, not Monday.", "correction", "ana", "", "tuesday", "monday", False),
    ("Use Postgres instead of MySQL.", "correction", "ana", "", "postgres", "mysql", False),
    (
        "Never deploy on Fridays.",
        "constraint",
        "ana",
        "constraint:deploy on friday",
        "forbidden",
        None,
        False,
    ),
    (
        "Deploying on Fridays is forbidden.",
        "constraint",
        "ana",
        "constraint:deploy on friday",
        "forbidden",
        None,
        False,
    ),
    (
        "You can deploy on Fridays again.",
        "constraint",
        "ana",
        "constraint:deploy on friday",
        "allowed",
        None,
        False,
    ),
    (
        "Code review is mandatory.",
        "constraint",
        "ana",
        "constraint:code review",
        "required",
        None,
        False,
    ),
    ("I can't eat gluten.", "constraint", "ana", "constraint:eat gluten", "forbidden", None, False),
]


@pytest.mark.parametrize("row", CLAIMS, ids=[row[0] for row in CLAIMS])
def test_claims(read: Read, row: tuple[str, str, str, str, str, str | None, bool]) -> None:
    text, *expected = row
    facts = read(text)
    assert only_claim(facts, row[1]) == Claim(*expected)  # type: ignore[arg-type]
    signal = "replacement" if row[1] == "correction" else row[1]
    assert signal in facts.signals


# Evidence

TEXTS = [row[0] for row in CLAIMS] + [
    "  Don’t call me — “ever”.  Actually,\tthe port is 8080, not 3000!\n\nHow are you? 👍🏽",
    "Thanks!! I used to live in Zürich… I prefer tea. We use Postgres instead of MySQL.",
    "👩‍👩‍👧 I live in Rome. ```never do x``` I’m vegan, and I hate mushrooms?",
]


@pytest.mark.parametrize("text", TEXTS)
def test_each_signal_has_a_cue_with_a_valid_span(read: Read, text: str) -> None:
    facts = read(text)
    # "update" cues say that something changed; they are no signal of the paper.
    assert facts.signals == {cue.signal for cue in facts.cues} - {"update"}
    assert facts.signals <= set(SIGNALS)
    for cue in facts.cues:
        assert 0 <= cue.start < cue.end <= len(text)
        assert text[cue.start : cue.end] == cue.text
        assert cue.text.strip()
        assert cue.rule
    assert [cue.start for cue in facts.cues] == sorted(cue.start for cue in facts.cues)
    assert len(set(facts.claims)) == len(facts.claims)


def test_the_adapter_keeps_no_state(read: Read) -> None:
    adapter = EnglishAdapter()
    assert isinstance(adapter, LanguageAdapter)
    analyser = SpacyAnalyser()
    turn = TurnText("Actually, the port is 8080, not 3000.", speaker="Ana")
    doc = analyser.parse(turn.text)
    first = adapter.signals(doc, turn)
    adapter.signals(analyser.parse("I live in Rome."), TurnText("I live in Rome.", speaker="Bo"))
    assert adapter.signals(doc, turn) == first == EnglishAdapter().signals(doc, turn)


# What a turn says besides


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("I live in Rome.", False),
        ("I live in Rome. It's sunny there.", False),
        ("I live in Rome because the sea and my family are close.", False),
        ("I live in Rome. How do I get from the airport to the old harbour?", False),
        ("I live in Rome. Please write all answers in British English.", True),
        ("I live in Rome and I love it.", False),
        ("I live in Rome, it's a great city.", False),
        ("I live in Rome, Italy.", False),
        ("I live in Rome with my family.", False),
        ("I live in Rome, the commute takes an hour.", False),
        ("I work at Acme and my manager Rita lets us work from home on Fridays.", True),
        # One verb and what it is about are enough
        ("My sister Ola lives in Rome, she's studying law.", True),
        ("I live in Rome and work at Acme.", False),
        ("I live in Rome and drive a Fiat.", True),
        ("I live in Rome with my dog Rex.", True),
        ("I work at Acme, my boss is Rita.", False),
        ("I work at Acme, my coach is Rita.", True),
        ("My flight is on Friday, I bought seat 14A.", True),
        ("Please write all answers in British English.", False),
    ],
)
def test_a_turn_that_says_more_than_its_claims_says_so(read: Read, text: str, more: bool) -> None:
    rest = [claim for claim in read(text).claims if claim.kind == REST]
    assert rest == [Claim(REST, "ana", "", "")] * more
