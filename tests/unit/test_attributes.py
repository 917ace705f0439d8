"""Attributes that are looked up are those that spaCy's own components set."""

from __future__ import annotations

from typing import Any

import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.lang.en.lemmatizer import EnglishLemmatizer
from spacy.language import Language
from spacy.pipeline import AttributeRuler
from spacy.tokens import Doc
from tests.unit.spacy_texts import TEXTS, WORDS, assert_the_same

from ebbtide.analysis import attributes
from ebbtide.analysis.attributes import LookedUp, with_looked_up_attributes


def component(nlp: Language) -> LookedUp:
    found = nlp.get_pipe("ebbtide_attributes")
    assert isinstance(found, LookedUp)
    return found


def test_they_stand_in_place_of_two_components(ours: Language) -> None:
    names = ours.pipe_names
    assert names.index("ebbtide_parser") < names.index("ebbtide_attributes")
    assert names.index("ebbtide_attributes") < names.index("ebbtide_ner")
    assert {"attribute_ruler", "lemmatizer"} <= set(ours.disabled)


def test_they_are_the_same_as_stock(ours: Language, stock: Language) -> None:
    for _ in range(2):
        assert_the_same(ours, stock, TEXTS)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join), max_size=4))
def test_any_words_in_any_order_are_the_same(
    ours: Language, stock: Language, texts: list[str]
) -> None:
    assert_the_same(ours, stock, texts)


def test_they_are_the_same_where_little_is_remembered(
    ours: Language, stock: Language, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attributes, "_MOST", 3)
    known = component(ours)
    remembered = [known._words, known._kinds, known._runs, known._lemmas]
    for some in remembered:
        some.clear()
    assert_the_same(ours, stock, TEXTS)
    assert all(len(some) <= 3 for some in remembered)


def test_the_ruler_is_asked_once_for_each_kind(
    ours: Language, monkeypatch: pytest.MonkeyPatch
) -> None:
    list(ours.pipe(TEXTS))
    known = component(ours)
    asked: list[str] = []
    ruler = known._ruler

    def counted(doc: Doc) -> Doc:
        asked.append(doc.text)
        return ruler(doc)

    monkeypatch.setattr(known, "_ruler", counted)
    list(ours.pipe(TEXTS))
    assert asked == []
    known._kinds.clear()
    known._runs.clear()
    list(ours.pipe(TEXTS))
    assert len(asked) == len(known._kinds) + len(known._runs)
    # "There is", "let us all", "gon na": what stands beside each other is asked together.
    assert {"There is ", "gon na "} <= set(asked)


@pytest.mark.parametrize(
    ("patterns", "attrs", "known"),
    [
        ([[{"LOWER": "x"}]], {"POS": "X"}, True),
        (
            [[{"TAG": "NN", "DEP": {"NOT_IN": ["dobj"]}}, {"LOWER": {"REGEX": "^y"}}]],
            {"POS": "X"},
            True,
        ),
        ([[{"LOWER": "x"}, {"LOWER": "y"}, {"LOWER": "z"}]], {"POS": "X"}, False),
        ([[{"SHAPE": "Xx"}]], {"POS": "X"}, False),
        ([[{"LOWER": {"FUZZY": "x"}}]], {"POS": "X"}, False),
        ([[{"LOWER": "x", "OP": "+"}]], {"POS": "X"}, False),
        ([[{"TAG": {"REGEX": "^V"}}]], {"POS": "X"}, False),
        ([[{"LOWER": "x"}]], {"TAG": "NN"}, False),
        ([[{"IS_SPACE": True}]], {"TAG": "_SP"}, True),
    ],
)
def test_a_pipeline_with_patterns_of_another_kind_stays_as_it_is(
    patterns: list[list[dict[int | str, Any]]], attrs: dict[str, str], known: bool
) -> None:
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("attribute_ruler")
    assert isinstance(ruler, AttributeRuler)
    ruler.add(patterns, attrs)
    nlp.add_pipe("lemmatizer", config={"mode": "rule"})
    assert ("ebbtide_attributes" in with_looked_up_attributes(nlp).pipe_names) == known


def test_a_pipeline_with_other_components_stays_as_it_is() -> None:
    for names in [["attribute_ruler"], ["lemmatizer", "attribute_ruler"], []]:
        nlp = spacy.blank("en")
        for name in names:
            nlp.add_pipe(name)
        assert with_looked_up_attributes(nlp).pipe_names == names
    nlp = spacy.blank("en")
    nlp.add_pipe("attribute_ruler")
    lemmatizer = nlp.add_pipe("lemmatizer", config={"mode": "lookup"})
    assert isinstance(lemmatizer, EnglishLemmatizer)
    assert "ebbtide_attributes" not in with_looked_up_attributes(nlp).pipe_names
