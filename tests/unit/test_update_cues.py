"""Cues that something changed: they fire on what changed and not on talk of the present."""

from __future__ import annotations

import pytest

from ebbtide.analysis.facts import SIGNALS, TurnText
from ebbtide.analysis.spacy_analyser import SpacyAnalyser


@pytest.fixture(scope="module")
def analyser() -> SpacyAnalyser:
    return SpacyAnalyser()


def rules_of(analyser: SpacyAnalyser, text: str) -> set[str]:
    facts = analyser.analyse([TurnText(text)])[0]
    assert facts.signals <= set(SIGNALS)
    return {cue.rule for cue in facts.cues if cue.signal == "update"}


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("I live in Porto now.", "now"),
        ("From this week I go rowing on Fridays.", "from-then-on"),
        ("As of 3 May Samir is our lead.", "from-then-on"),
        ("Since the 10th we row at six.", "from-then-on"),
        ("As of today Samir is our lead.", "from-then-on"),
        ("From now on he gets wet food.", "from-then-on"),
        ("Let's meet on Friday instead.", "instead"),
        ("We use Linear instead of Jira.", "instead-of"),
        ("I don't smoke any more.", "no-longer"),
        ("He no longer works here.", "no-longer"),
        ("We've dropped Jira.", "changed"),
        ("Bettina has moved to sales.", "changed"),
        ("The dose goes up to 75 micrograms.", "goes-up"),
        ("I got a new number.", "new"),
        ("I found another flat.", "another"),
        ("In the end we took the train.", "in-the-end"),
        ("Agora é na sexta-feira.", "now-in-other-languages"),
        ("Ab sofort ist der Termin am Montag.", "now-in-other-languages"),
        ("会议改到星期五了。", "now-in-other-languages"),
    ],
)
def test_a_change_is_seen(analyser: SpacyAnalyser, text: str, rule: str) -> None:
    assert rule in rules_of(analyser, text)


@pytest.mark.parametrize(
    "text",
    [
        "I live in Porto.",
        "Until now it was fine.",
        "Now and then I row.",
        "Do you live in Porto now?",
        "Happy new year!",
        "What's new?",
        "The meeting is on Friday.",
        "I go there since the 10-year anniversary is coming up.",
        "It takes from 5 to 8 hours.",
    ],
)
def test_nothing_changed(analyser: SpacyAnalyser, text: str) -> None:
    assert rules_of(analyser, text) == set()
