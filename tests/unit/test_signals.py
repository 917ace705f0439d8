"""The English signal layer: the traps that a naive cue list falls into."""

from __future__ import annotations

import unicodedata

import pytest

from ebbtide.analysis.facts import REST, Claim
from ebbtide.analysis.normalise import for_matching, nfc_lower
from ebbtide.analysis.signals import EnglishAdapter

from .conftest import Read, only_claim

# Constraints


@pytest.mark.parametrize(
    "text",
    [
        "I can't wait for the weekend!",
        "I can’t wait to see you!",
        "can't wait",
        "We cannot wait.",
        "I cannot believe she won.",
        "Can't believe it!",
        "Don't worry, it will be fine.",
        "Don’t worry about the deadline.",
        "Please do not worry.",
        "No problem at all!",
        "no problem",
        "No worries.",
        "Never mind.",
        "Don't give up!",
        "It must be hard.",
        "You must be exhausted.",
        "It's a must-see film.",
        "I have to say, that was nice.",
        "I can't thank you enough.",
        "I can't stand loud bars.",
        "Is production deploy allowed?",
    ],
)
def test_these_are_no_constraints(read: Read, text: str) -> None:
    facts = read(text)
    assert "constraint" not in facts.signals
    assert not any(claim.kind == "constraint" for claim in facts.claims)


@pytest.mark.parametrize(
    "text",
    [
        "Don't call me after nine.",
        "Please don't call me after nine.",
        "I can't eat gluten.",
        "Production deploy isn't allowed.",
        "We mustn't deploy on Fridays.",
        "Don't worry, it will be fine.",
        "I can't wait for the weekend!",
    ],
)
@pytest.mark.parametrize("apostrophe", ["’", "‘", "ʼ", "′", "＇"])
def test_every_apostrophe_reads_alike(read: Read, text: str, apostrophe: str) -> None:
    plain, typographic = read(text), read(text.replace("'", apostrophe))
    assert typographic.signals == plain.signals
    assert typographic.claims == plain.claims
    assert typographic.terms == plain.terms
    assert [(c.signal, c.start, c.end, c.rule) for c in typographic.cues] == [
        (c.signal, c.start, c.end, c.rule) for c in plain.cues
    ]


def test_a_curly_apostrophe_forbids_and_the_evidence_keeps_it(read: Read) -> None:
    facts = read("Don’t call me after nine.")
    assert facts.signals == {"constraint"}
    assert [cue.text for cue in facts.cues] == ["Don’t call"]


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_composed_and_decomposed_letters_are_one(read: Read, form: str) -> None:
    text = unicodedata.normalize(form, "I love crème brûlée. My sister is called Zoë.")  # type: ignore[arg-type]
    facts = read(text)
    assert [(claim.identity, claim.value) for claim in facts.claims] == [
        ("preference:crème brûlée", "like"),
        ("name of sister", "zoë"),
    ]
    assert {"crème", "zoë"} <= set(facts.terms)
    assert all(text[cue.start : cue.end] == cue.text for cue in facts.cues)


def test_matching_text_keeps_every_position() -> None:
    text = "“Don’t” – it’s\u00a0“café” — cafe\u0301 𝒜"
    matching = for_matching(text)
    assert len(matching) == len(text)
    assert matching == '"Don\'t" - it\'s "café" — cafe\u0301 𝒜'
    assert for_matching("plain 'text'") == "plain 'text'"
    assert nfc_lower("CAFE\u0301") == nfc_lower("CAFÉ") == "café"


# Negation


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Production deploy is not allowed.", "forbidden"),
        ("Production deploy isn’t allowed.", "forbidden"),
        ("Production deploy is no longer allowed.", "forbidden"),
        ("Production deploys are forbidden.", "forbidden"),
        ("Production deploy is allowed.", "allowed"),
        ("Production deploy is now allowed.", "allowed"),
        ("Production deploy is not forbidden.", "allowed"),
    ],
)
def test_negation_changes_the_value_and_not_the_topic(read: Read, text: str, value: str) -> None:
    claim = only_claim(read(text), "constraint")
    assert (claim.identity, claim.value) == ("constraint:production deploy", value)


def test_negation_stays_in_its_clause(read: Read) -> None:
    def values(text: str) -> dict[str, str]:
        return {c.identity: c.value for c in read(text).claims if c.kind != REST}

    assert values("Deploy is not allowed, but rollback is allowed.") == {
        "constraint:deploy": "forbidden",
        "constraint:rollback": "allowed",
    }
    assert values("Smoking is allowed but vaping is not allowed.") == {
        "constraint:smoking": "allowed",
        "constraint:vaping": "forbidden",
    }
    assert values("I do not like tea; I like coffee.") == {
        "preference:tea": "dislike",
        "preference:coffee": "like",
    }
    assert values("I have never lived in Oslo, I live in Rome.") == {"residence": "rome"}


def test_different_actions_do_not_contradict(read: Read) -> None:
    used = only_claim(read("Use the async runtime."), "constraint")
    configured = only_claim(read("Do not forget to configure the async runtime."), "constraint")
    forbidden = only_claim(read("Do not use the async runtime."), "constraint")
    assert used.value == configured.value == "required"
    assert used.identity != configured.identity
    assert forbidden.identity == used.identity
    assert forbidden.value == "forbidden"


@pytest.mark.parametrize("text", ["It is not true that I like tea.", "It isn't true that I smoke."])
def test_what_is_said_to_be_untrue_is_not_claimed(read: Read, text: str) -> None:
    assert read(text).claims == ()


def test_a_second_verb_is_not_the_thing_liked(read: Read) -> None:
    liked = [c.identity for c in read("I like tea and prefer coffee.").claims if c.kind != REST]
    assert liked == ["preference:tea"]
    assert len(read("I like tea and coffee.").claims) == 2


# Corrections


@pytest.mark.parametrize(
    "text",
    [
        "Sorry to hear that.",
        "I'm so sorry to hear that your cat died.",
        "Sorry for the late reply.",
        "I actually enjoyed the lecture.",
        "We were actually there last summer.",
        "She actually lives in Rome.",
        "Actually, I went to the market yesterday.",
        "No problem, it is done.",
        "Not only did it rain but it also hailed.",
        "Wait until you see the garden.",
        "Is the port 8080, not 3000?",
    ],
)
def test_these_correct_nothing(read: Read, text: str) -> None:
    facts = read(text)
    assert not facts.signals & {"correction", "replacement"}
    assert not any(claim.old_value or claim.kind == "correction" for claim in facts.claims)


@pytest.mark.parametrize(
    "text",
    [
        "actually, the port is 8080, not 3000",
        "Actually, the port is 8080, not 3000.",
        "Actually the port is 8080, not 3000.",
        "actually, the port is 8080 not 3000",
    ],
)
def test_a_correction_names_the_old_value_and_the_new(read: Read, text: str) -> None:
    facts = read(text)
    assert {"correction", "replacement"} <= facts.signals
    assert facts.claims == (
        Claim("current_state", "ana", "port", "8080", "3000"),
        Claim("correction", "ana", "port", "8080", "3000"),
    )


# Questions


@pytest.mark.parametrize(
    ("text", "signals"),
    [
        ("I moved to Berlin last week. How are you?", {"current_state", "query_like"}),
        ("How are you? I moved to Berlin last week.", {"current_state", "query_like"}),
        ("I live in Rome, but where do you live?", {"current_state", "query_like"}),
        ("When I was a kid I lived in Rome.", {"past_state"}),
        ("When I was a kid, where did I live?", {"past_state", "query_like"}),
        ("Where do you live?", {"query_like"}),
        ("where do you live", {"query_like"}),
        ("where does tom live", {"query_like"}),
        ("how old is jonas", {"query_like"}),
        ("whats my phone number", {"query_like"}),
        ("wheres the car", {"query_like"}),
        ("when tom was young he sang", set()),
        ("Tell me about your trip.", {"query_like"}),
        ("I live in Rome, right?", {"current_state"}),
        ("What a day I had!", set()),
        ("Can you believe it? I got married!", {"current_state"}),
    ],
)
def test_each_sentence_asks_for_itself(read: Read, text: str, signals: set[str]) -> None:
    assert read(text).signals == signals


def test_a_question_claims_nothing_and_its_neighbour_does(read: Read) -> None:
    assert read("Do you live in Oslo? Is the port 3000?").claims == ()
    facts = read("I moved to Berlin last week. How are you?")
    assert [claim.value for claim in facts.claims] == ["berlin"]
    asked = [cue.text for cue in facts.cues if cue.signal == "query_like"]
    assert asked == ["How are you?"]


# The social test (eq. 28)


@pytest.mark.parametrize(
    "text",
    [
        "Thanks!",
        "thank you so much",
        "Hi there",
        "ok",
        "OK, got it.",
        "“Yes!”",
        "Great job, Tom!",
        "sorry",
        "You're welcome.",
        "No problem",
        "one two three four five thanks",
        "See ya!",
    ],
)
def test_social(text: str) -> None:
    assert EnglishAdapter().is_social(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "!!!",
        "I live in Rome.",
        "one two three four five six thanks",
        "Thankless work",
        "the greatest show",
        "port 8080",
    ],
)
def test_not_social(text: str) -> None:
    assert not EnglishAdapter().is_social(text)


# Acknowledgements


@pytest.mark.parametrize(
    ("text", "reacts"),
    [
        ("Thanks! You've always been so kind to me.", True),
        ("Of course, John. You're a great friend to me. I'll always be there for you.", True),
        # Of the speaker's own, though it opens with thanks
        ("Thanks! They've become like family to me.", False),
        ("Thanks! Sleep matters to me, too.", False),
    ],
)
def test_who_is_thanked_is_praised_and_the_rest_is_news(
    read: Read, text: str, reacts: bool
) -> None:
    assert ("ack_like" in read(text).signals) is reacts
