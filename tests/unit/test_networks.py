"""Token vectors, arcs and entities of the core are those of spaCy's own components."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.language import Language
from spacy.pipeline import EntityRuler
from spacy.tokens import Doc
from tests.unit.spacy_texts import TEXTS, WORDS, assert_the_same, seen

from ebbtide import InputError, _core
from ebbtide.analysis import tok2vec, transitions
from ebbtide.analysis.products import with_ordered_products
from ebbtide.analysis.tok2vec import with_own_encoders
from ebbtide.analysis.transitions import Arcs, Entities, with_own_moves

NAMED = [
    "Caroline met Dr. Ana Lima of Acme Corp. in New York City on 8 May 2023 at 10:30 a.m.",
    "The $1,200 flight to Göteborg costs 15% more than twelve tickets to the Louvre did in 1999.",
    "What book did the man that you said you saw yesterday give her? The one I told you about.",
    "Of whom was it that she, having left, thought most fondly? Run! Stop. Who's there, Bob?",
]


def test_they_stand_in_place_of_two_components(ours: Language) -> None:
    assert isinstance(ours.get_pipe("ebbtide_parser"), Arcs)
    assert isinstance(ours.get_pipe("ebbtide_ner"), Entities)
    assert {"parser", "ner"} <= set(ours.disabled)
    names = [layer.name for layer in ours.get_pipe("tok2vec").model.walk()]
    assert not any(name in ("hashembed", "expand_window") for name in names)


@pytest.mark.parametrize("batch_size", [1, 2, 256])
def test_they_are_the_same_as_stock(ours: Language, stock: Language, batch_size: int) -> None:
    assert_the_same(ours, stock, TEXTS + NAMED, batch_size)
    for text in TEXTS + NAMED:
        assert seen(ours(text)) == seen(stock(text))


def test_they_are_the_same_however_many_are_read_at_once(
    ours: Language, stock: Language, monkeypatch: pytest.MonkeyPatch
) -> None:
    for tokens in (1, 20):
        monkeypatch.setattr(transitions, "_AT_ONCE", tokens)
        assert_the_same(ours, stock, [*NAMED, *TEXTS, " ".join(NAMED * 40)])


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from([*WORDS, *" ".join(NAMED).split()]), max_size=25).map(" ".join),
        max_size=4,
    )
)
def test_any_words_in_any_order_are_the_same(
    ours: Language, stock: Language, texts: list[str]
) -> None:
    assert_the_same(ours, stock, texts)


def test_they_are_the_same_where_little_is_remembered(
    ours: Language, stock: Language, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tok2vec, "_MOST", 30)
    for text in TEXTS + NAMED:
        assert_the_same(ours, stock, [text])
    assert_the_same(ours, stock, TEXTS + NAMED)


def own(nlp: Language) -> Language:
    return with_own_moves(with_own_encoders(with_ordered_products(nlp)))


def loaded(ours: Language) -> Language:
    return spacy.load(str(ours.path))


def with_ruler(nlp: Language) -> Language:
    ruler = nlp.add_pipe("entity_ruler", before="ner")
    assert isinstance(ruler, EntityRuler)
    ruler.add_patterns(
        [
            {"label": "PERSON", "pattern": "New York"},
            {"label": "ORG", "pattern": [{"LOWER": "may"}], "id": "month"},
        ]
    )
    return nlp


@Language.component("ebbtide_test_starts")
def starts(doc: Doc) -> Doc:
    """Sentences start after every "that" and not after a full stop."""
    for token in list(doc)[1:]:
        before = doc[token.i - 1].lower_
        token.is_sent_start = True if before == "that" else False if before == "." else None
    return doc


def test_entities_that_are_there_stay_as_with_stock(ours: Language) -> None:
    both = own(with_ruler(loaded(ours))), with_ordered_products(with_ruler(loaded(ours)))
    assert "ebbtide_ner" in both[0].pipe_names
    assert_the_same(*both, TEXTS + NAMED)
    assert {e.label_ for e in both[0](NAMED[0]).ents if e.text in ("New York", "May")} == {
        "PERSON",
        "ORG",
    }


def test_sentences_that_are_there_are_heeded_as_by_stock(ours: Language) -> None:
    both = own(loaded(ours)), with_ordered_products(loaded(ours))
    for nlp in both:
        nlp.add_pipe("ebbtide_test_starts", first=True)
    assert_the_same(*both, TEXTS + NAMED)
    first = next(both[0]("I saw that. It was so that we left.").sents)
    assert first.text == "I saw that"


@pytest.mark.parametrize("name", ["parser", "ner"])
def test_a_component_with_a_beam_stays_as_it_is(ours: Language, name: str) -> None:
    nlp = loaded(ours)
    nlp.get_pipe(name).cfg["beam_width"] = 4
    own(nlp)
    assert f"ebbtide_{name}" not in nlp.pipe_names
    assert name in nlp.pipe_names


def test_a_pipeline_without_these_stays_as_it_is() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    assert own(nlp).pipe_names == ["sentencizer"]


def numbers(*shape: int) -> Any:
    return np.ones(shape, dtype=np.float32)


def test_networks_that_do_not_fit_are_refused() -> None:
    layers = (numbers(4, 2), numbers(2, 4), numbers(2))
    moves = [("O", 0), ("U", 7)]
    with pytest.raises(InputError, match="2 moves by 3 tokens, where there are 1"):
        _core.EntityMoves(moves[:1], layers)
    with pytest.raises(InputError, match="no move is called 'X'"):
        _core.ArcMoves([("S", 0), ("X", 0)], layers, 1)
    with pytest.raises(InputError, match="weights do not fit"):
        _core.ArcMoves([("S", 0), ("D", 0)], (numbers(4, 2), numbers(2, 3), numbers(2)), 1)
    with pytest.raises(InputError, match="windows of 3 tokens"):
        _core.Windows([(numbers(4, 2, 11), numbers(4, 2), numbers(4), numbers(4))])


def test_texts_that_do_not_fit_are_refused() -> None:
    entities = _core.EntityMoves(
        [("O", 0), ("U", 7)], (numbers(4, 2), numbers(2, 4), np.arange(2, dtype=np.float32))
    )
    tokens = np.zeros((2, 2), dtype=np.uint64)
    assert entities.find(numbers(3, 3, 4, 2), tokens, [1, 1]).tolist() == [[3, 7], [3, 7]]
    assert entities.find(numbers(1, 3, 4, 2), tokens[:0], []).shape == (0, 2)
    for vectors, lengths in ((numbers(2, 3, 4, 2), [2]), (numbers(3, 3, 4, 2), [1])):
        with pytest.raises(InputError, match="lengths that add up"):
            entities.find(vectors, tokens, lengths)
    with pytest.raises(InputError, match="2 columns"):
        entities.find(numbers(3, 3, 4, 2), np.zeros((2, 3), dtype=np.uint64), [2])
    windows = _core.Windows([(numbers(4, 2, 12), numbers(4, 2), numbers(4), numbers(4))])
    with pytest.raises(InputError, match="3 tokens of 4 numbers"):
        windows.encode(numbers(2, 4), [3])
