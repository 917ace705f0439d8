"""The analyser: counts by hand, batches, long texts, threads, and what it loads when."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ebbtide._core as core
from ebbtide.analysis import sentiment, spacy_analyser
from ebbtide.analysis.facts import TurnFacts, TurnText
from ebbtide.analysis.normalise import for_matching
from ebbtide.analysis.sentiment import SentimentMeter, split_at_whitespace
from ebbtide.analysis.spacy_analyser import SpacyAnalyser
from ebbtide.errors import ConfigError

WHEN = datetime(2024, 5, 10, 12, tzinfo=UTC)
TURNS = [
    TurnText("Ana bought two red apples in Porto.", speaker="Ana", timestamp=WHEN),
    TurnText(""),
    TurnText(" \n\t "),
    TurnText("Don’t deploy on Fridays. How are you?", role="assistant"),
    TurnText("I moved to Berlin last week and I love it!", speaker="Luis", timestamp=WHEN),
    TurnText("Thanks!"),
    TurnText("Actually, the port is 8080, not 3000.", speaker="Ana"),
    TurnText("cafe\u0301 👍🏽 東京", speaker="Ana"),
    TurnText('{"level": "ERROR"}', role="tool"),
]


@pytest.fixture(scope="module")
def analyser() -> SpacyAnalyser:
    return SpacyAnalyser()


def spans_are_valid(facts: TurnFacts, text: str) -> None:
    for item in (*facts.cues, *facts.entities, *facts.times):
        assert text[item.start : item.end] == item.text
    for card in facts.cards:
        assert 0 <= card.start < card.end <= len(text)


# Batches


def test_a_batch_is_its_turns_one_by_one(analyser: SpacyAnalyser) -> None:
    alone = [analyser.analyse([turn])[0] for turn in TURNS]
    assert analyser.analyse(TURNS) == alone
    assert analyser.analyse(TURNS[::-1]) == alone[::-1]
    assert analyser.analyse(TURNS * 3) == alone * 3
    assert SpacyAnalyser().analyse(TURNS) == alone
    assert analyser.analyse([]) == []
    for turn, facts in zip(TURNS, alone, strict=True):
        spans_are_valid(facts, turn.text)


def test_threads_share_one_analyser() -> None:
    shared = SpacyAnalyser()
    expected = SpacyAnalyser().analyse(TURNS)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(shared.analyse, [TURNS] * 12))
    assert results == [expected] * 12


def test_a_vocabulary_does_not_grow_for_ever(
    analyser: SpacyAnalyser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is begun anew between two parses, and nothing is read in another way."""
    analyser.analyse([TurnText("Loaded already.")])
    # The one pipeline of the other tests stays theirs.
    load: Any = spacy_analyser._load
    monkeypatch.setattr(spacy_analyser, "_load", load.__wrapped__)
    monkeypatch.setattr(spacy_analyser, "_MOST_WORDS", 60)
    turns = [
        TurnText(f"Zorblat{n} moved to Quuxville{n} on Monday; frobbing{n} is fun.", "Ana")
        for n in range(60)
    ]
    expected = analyser.analyse(turns)
    bounded = SpacyAnalyser()
    sizes, found = [], []
    for turn in turns:
        question = bounded.parse(turn.text)
        found += bounded.analyse([turn])
        assert question.text == turn.text  # by the vocabulary that it was parsed with
        sizes.append(len(bounded._loaded().vocab))
    assert found == expected
    assert max(sizes) < min(sizes) + 80
    assert sizes != sorted(sizes), "it was never begun anew"


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\t \u00a0 \u3000"])
def test_texts_without_a_word(analyser: SpacyAnalyser, text: str) -> None:
    assert analyser.analyse([TurnText(text)]) == [TurnFacts(0.0, 0.0, 0)]


# Density (eq. 1)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Ana bought two red apples in Porto.", "PROPN VERB NUM ADJ NOUN ADP PROPN PUNCT"),
        ("Ana  runs.", "PROPN SPACE VERB PUNCT"),
        ("Hello there !\n", "INTJ ADV PUNCT SPACE"),
        ("She is here.", "PRON AUX ADV PUNCT"),
    ],
)
def test_density_by_hand(analyser: SpacyAnalyser, text: str, parts: str) -> None:
    tags = parts.split()
    assert [token.pos_ for token in analyser.parse(text)] == tags
    semantic = sum(tag in ("NOUN", "VERB", "ADJ", "PROPN") for tag in tags)
    assert analyser.analyse([TurnText(text)])[0].density == semantic / len(tags)


def test_punctuation_and_space_count_below_the_line(analyser: SpacyAnalyser) -> None:
    densities = [
        analyser.analyse([TurnText(text)])[0].density for text in ("Ana runs", "Ana  runs.")
    ]
    assert densities == [1.0, 0.5]


# Sentiment (eq. 2)


def test_sentiment_is_vaders_magnitude_of_the_raw_text(analyser: SpacyAnalyser) -> None:
    for text in ("I HATE this!!!", "I love this :)", "This isn't good.", "The bus is here."):
        expected = abs(vader().polarity_scores(text)["compound"])
        assert SentimentMeter().magnitude(text) == expected
        assert analyser.analyse([TurnText(text)])[0].sentiment == expected
    assert SentimentMeter().magnitude("I HATE this!!!") > SentimentMeter().magnitude("I hate this")
    assert SentimentMeter().magnitude("The bus is here.") == 0.0
    assert SentimentMeter().magnitude(" \n ") == 0.0


LADEN = """no No NO not n't isn't never so this without doubt least at very kind of sort just enough
    but BUT or nor good GREAT bad awful ass the bomb shit yeah right bus stop kiss death to die for
    beating heart really INCREDIBLY slightly kind-of :) :( lol hate LOVE ok ! ?? ſo 😀 ❤️ 東京"""


@functools.cache
def meter() -> SentimentMeter:
    return SentimentMeter()


@functools.cache
def vader() -> Any:
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    return SentimentIntensityAnalyzer()


@given(st.lists(st.sampled_from(LADEN.split()), max_size=12).map(" ".join))
def test_whatever_stands_around_a_word_counts_as_vader_has_it(text: str) -> None:
    assert meter()._compound(text) == vader().polarity_scores(text)["compound"]


@given(st.text(st.sampled_from("😀😢😡♥☹🏽\ufe0f \n!.aB"), max_size=40))
def test_emoji_count_as_vader_has_them(text: str) -> None:
    assert meter()._compound(text) == vader().polarity_scores(text)["compound"]


def test_an_emoji_is_weighed_once_however_often_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = SentimentMeter()._loaded()
    weigh, asked = reader._vader.sentiment_valence, []
    monkeypatch.setattr(
        reader._vader, "sentiment_valence", lambda *words: asked.append(words) or weigh(*words)
    )
    reader.compound("😀" * 2000)
    assert 0 < len(asked) < 20


def test_a_run_of_emoji_is_read_to_the_length_of_a_word(analyser: SpacyAnalyser) -> None:
    for run in ("😀" * 5000, "😀!♥" * 2000, "é" + "…" * 5000):
        assert len(analyser.parse(f"I like it {run} a lot")) < 500
    assert analyser.parse(f"I like it {'😀' * 399}").text == f"I like it {'😀' * 399}"
    chinese = "我住在波尔图，" * 200
    assert for_matching(chinese) == chinese


def test_another_version_of_vader_is_asked_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentiment, "_READ_VERSION", "0")
    other = SentimentMeter()
    reader = other._loaded()
    monkeypatch.setattr(reader._vader, "polarity_scores", lambda text: {"compound": len(text)})
    assert other._compound("four") == 4.0


def test_long_texts_take_the_mean_of_their_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentiment, "_WHOLE_CHARACTERS", 20)
    monkeypatch.setattr(sentiment, "_PIECE_CHARACTERS", 12)
    meter = SentimentMeter()
    scores = {"good ": 0.0, "awful thing": 0.0}
    for piece in scores:
        scores[piece] = meter._compound(piece)
    assert scores["good "] > 0 > scores["awful thing"]
    # 5 + 11 characters fit into no piece of 12, 22 into no whole of 20.
    text = "good good good awful thing"
    pieces = split_at_whitespace(text, 12)
    assert [text[start:end] for start, end in pieces] == ["good good ", "good awful ", "thing"]
    weighed = sum(meter._compound(text[s:e]) * (e - s) for s, e in pieces) / len(text)
    assert meter.magnitude(text) == pytest.approx(abs(weighed), abs=1e-15)


# Entities (eq. 3)


def test_every_label_counts_unless_a_list_restricts_them(analyser: SpacyAnalyser) -> None:
    turn = TurnText("Maria Silva met Tom in Lisbon on Friday.")
    every = analyser.analyse([turn])[0]
    assert [(entity.text, entity.label) for entity in every.entities] == [
        ("Maria Silva", "PERSON"),
        ("Tom", "PERSON"),
        ("Lisbon", "GPE"),
        ("Friday", "DATE"),
    ]
    assert every.entity_count == 4
    for labels, count in (
        (["PERSON"], 2),
        (["PERSON", "GPE"], 3),
        (("GPE",), 1),
        (["ORG"], 0),
        ([], 0),
    ):
        facts = SpacyAnalyser(entity_labels=labels).analyse([turn])[0]
        assert facts.entity_count == len(facts.entities) == count
        assert {entity.label for entity in facts.entities} <= set(labels)
        assert facts.density == every.density


def test_a_single_label_as_a_string_is_refused() -> None:
    with pytest.raises(ConfigError, match="not 'PERSON'") as caught:
        SpacyAnalyser(entity_labels="PERSON")  # type: ignore[arg-type]
    assert caught.value.code == "config.range"
    assert caught.value.code in core.error_codes()


# Long and decomposed texts


def test_a_long_text_is_read_in_pieces(
    analyser: SpacyAnalyser, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces = [
        "Ana bought many red apples. ",
        "I live in Lisbon with Tom. ",
        "Actually, I prefer tea.",
    ]
    text = "".join(pieces)
    turn = TurnText(text, speaker="Ana", timestamp=WHEN)
    apart = analyser.analyse([TurnText(piece, speaker="Ana") for piece in pieces])
    counts = [[token.pos_ for token in analyser.parse(piece)] for piece in pieces]
    monkeypatch.setattr(spacy_analyser, "_PIECE_CHARACTERS", 28)
    assert [text[start:end] for start, end in spacy_analyser._pieces(text)] == pieces
    facts = analyser.analyse([turn, TurnText("Thanks!")])[0]
    tags = [tag for piece in counts for tag in piece]
    semantic = sum(tag in ("NOUN", "VERB", "ADJ", "PROPN") for tag in tags)
    assert facts.density == semantic / len(tags)
    assert facts.entity_count == sum(part.entity_count for part in apart) > 0
    assert facts.terms == tuple(term for part in apart for term in part.terms)
    assert facts.signals == frozenset().union(*(part.signals for part in apart))
    assert facts.claims == tuple(claim for part in apart for claim in part.claims)
    assert [cue.text for cue in facts.cues] == [cue.text for part in apart for cue in part.cues]
    assert len(facts.cards) == sum(len(part.cards) for part in apart) > 0
    spans_are_valid(facts, text)


@pytest.mark.parametrize("text", ["", "a", "one two three four", "x" * 25, "ab \n cd " * 9])
@pytest.mark.parametrize("limit", [1, 7, 10])
def test_pieces_cover_the_text(text: str, limit: int) -> None:
    spans = split_at_whitespace(text, limit)
    assert "".join(text[start:end] for start, end in spans) == text
    assert all(end - start <= limit for start, end in spans)
    assert all(start < end for start, end in spans) or spans == [(0, 0)]


def test_decomposed_text_reads_as_composed_text(analyser: SpacyAnalyser) -> None:
    composed = "Zoë moved to Zürich last week. I love crème brûlée."
    decomposed = unicodedata.normalize("NFD", composed)
    turns = [TurnText(text, speaker="Ana", timestamp=WHEN) for text in (composed, decomposed)]
    one, other = analyser.analyse(turns)
    assert (one.density, one.entity_count, one.signals) == (
        other.density,
        other.entity_count,
        other.signals,
    )
    assert one.claims == other.claims
    assert one.terms == other.terms
    assert len(one.claims) == 2
    assert [card.object for card in one.cards] == [card.object for card in other.cards]
    assert [entity.text for entity in one.entities] == [
        unicodedata.normalize("NFC", entity.text) for entity in other.entities
    ]
    spans_are_valid(one, composed)
    spans_are_valid(other, decomposed)


def test_a_parse_has_the_offsets_of_the_question(analyser: SpacyAnalyser) -> None:
    text = "Where’s Ana’s café?"
    doc = analyser.parse(text)
    assert doc.text == for_matching(text)
    assert len(doc.text) == len(text)


# The model


def test_a_missing_model_is_named_with_its_remedy() -> None:
    for use in (
        lambda missing: missing.analyse([TurnText("x")]),
        lambda missing: missing.parse("x"),
        lambda missing: missing.fingerprint,
    ):
        with pytest.raises(
            ConfigError, match=r"no_such_model.*pip install no-such-model"
        ) as caught:
            use(SpacyAnalyser("no_such_model"))
        assert caught.value.code in core.error_codes()
        assert caught.value.code == "config.model"


def test_the_fingerprint_is_that_of_the_loaded_model(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import version

    loaded = spacy_analyser._load("en_core_web_sm")
    installed = "_".join([loaded.meta["lang"], loaded.meta["name"]])
    for name in ("en_core_web_sm", installed, str(loaded.path)):
        analyser = SpacyAnalyser(name, entity_labels=["ORG", "GPE"])
        with monkeypatch.context() as patch:
            patch.setattr(spacy_analyser, "_load", lambda name: pytest.fail(f"{name} was loaded"))
            fingerprint = analyser.fingerprint
        assert fingerprint == (
            f"spacy={version('spacy')};products=fused;model={installed}@{loaded.meta['version']}"
            f";adapter=en@{analyser._adapter.version};vader={version('vaderSentiment')}"
            ";entities=GPE,ORG"
        )
        monkeypatch.setattr(spacy_analyser, "_installed_meta", lambda name: None)
        assert analyser.fingerprint == fingerprint
        monkeypatch.undo()


def test_the_fingerprint_of_a_model_directory(tmp_path: Path) -> None:
    meta = {"lang": "xx", "name": "mine", "version": "9.1"}
    (tmp_path / "meta.json").write_text(json.dumps(meta), encoding="utf-8")
    assert ";model=xx_mine@9.1;" in SpacyAnalyser(str(tmp_path)).fingerprint


def test_what_the_facts_depend_on_is_in_the_fingerprint() -> None:
    every = SpacyAnalyser().fingerprint
    assert every.endswith(";entities=all")
    assert SpacyAnalyser(entity_labels=["GPE"]).fingerprint != every
    one, other = (
        SpacyAnalyser(entity_labels=labels).fingerprint
        for labels in (["GPE", "ORG"], ["ORG", "GPE"])
    )
    assert one == other


def test_opening_a_memory_loads_no_model() -> None:
    code = """
import json, sys
import ebbtide
with ebbtide.Memory.in_memory() as memory:
    known = memory._analyser.fingerprint
    print(json.dumps([known, sorted(set(sys.argv[1:]) & sys.modules.keys())]))
"""
    heavy = ["spacy", "thinc", "onnxruntime", "tokenizers", "vaderSentiment"]
    done = subprocess.run(
        [sys.executable, "-c", code, *heavy], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    fingerprint, loaded = json.loads(done.stdout)
    assert "spacy=" in fingerprint
    assert loaded == []
