"""Index terms: what counts as a word, and what two wordings share."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

import pytest
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ebbtide.analysis.spacy_analyser import SpacyAnalyser
from ebbtide.analysis.terms import STOP_WORDS, terms, token_terms

Terms = Callable[[str], tuple[str, ...]]


@pytest.fixture(scope="module")
def analyser() -> SpacyAnalyser:
    return SpacyAnalyser()


@pytest.fixture(scope="module")
def made(analyser: SpacyAnalyser) -> Terms:
    return lambda text: analyser.terms(analyser.parse(text))


@pytest.mark.parametrize("text", ["", "   ", " \n\t ", "!!! ... —", "🎉", "of the and to"])
def test_texts_without_content_have_no_terms(made: Terms, text: str) -> None:
    assert made(text) == ()


def test_lemmas_in_text_order_with_repetitions(made: Terms) -> None:
    assert made("She was running; they run, and the cats ran.") == ("run", "run", "cat", "run")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("She didn't run.", ("not", "run")),
        ("Don’t stop.", ("not", "stop")),
        ("They never run.", ("never", "run")),
        ("There is no port.", ("no", "port")),
    ],
)
def test_negations_are_terms(made: Terms, text: str, expected: tuple[str, ...]) -> None:
    assert made(text) == expected
    assert not {"not", "no", "never"} & STOP_WORDS


def test_numbers_and_names_count_even_where_a_stop_word_looks_like_them(made: Terms) -> None:
    assert made("I have 3 cats and two dogs.") == ("3", "cat", "two", "dog")
    assert "may" in made("We met in May.")
    assert "may" not in made("We may go.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("state-of-the-art", ("state-of-the-art", "state", "art")),
        ("foo/bar", ("foo/bar", "foo", "bar")),
        ("snake_case", ("snake_case", "snake", "case")),
        ("2024-05-01", ("2024-05-01", "2024", "05", "01")),
        ("10:30", ("10:30", "10", "30")),
        ("node.js", ("node.js", "node", "js")),
        ("HTTPServer", ("httpserver", "http", "server")),
        ("parseJSON", ("parsejson", "parse", "json")),
        ("ana@mail.example", ("ana@mail.example", "ana", "mail", "example")),
        (
            "https://wiki.example/page?y=1",
            ("https://wiki.example/page?y=1", "https", "wiki", "example", "page", "y", "1"),
        ),
    ],
)
def test_a_compound_stays_whole_and_gives_its_parts(
    made: Terms, text: str, expected: tuple[str, ...]
) -> None:
    assert made(f"See {text}.") == ("see", *expected)
    assert made(f"See {text}, please.") == ("see", *expected)


def test_a_long_word_beside_a_compound_takes_no_more_than_its_length() -> None:
    # With the square of the length, this ran into the time limit of a test.
    long = "a" * 400_000
    (word,) = Doc(Vocab(), words=[f"{long}_b-c"])
    assert token_terms(word) == (f"{long}_b-c", long, "b", "c")


def test_terms_are_lower_case_and_composed(made: Terms) -> None:
    composed = "The CAFÉ in Zürich"
    for text in (composed, unicodedata.normalize("NFC", composed)):
        assert made(text) == ("café", "zürich")
    decomposed = made(unicodedata.normalize("NFD", composed))
    assert all(unicodedata.is_normalized("NFC", term) for term in decomposed)


def test_case_and_number_of_common_nouns_do_not_matter(made: Terms) -> None:
    assert made("the red bicycles") == made("a red bicycle") == ("red", "bicycle")


@pytest.mark.parametrize(
    "text",
    [
        "The state-of-the-art parser reads foo/bar and snake_case names.",
        "She didn't run to the U.S. in 2024-05-01, never!",
        "Don’t call HTTPServer at 10:30; see https://a.example/x?y=1 …",
        "  two  spaces \n and 日本 👍🏽 lines\t",
        "I'd prefer C++ and node.js to parseJSON, e.g. v2.3.",
        "mail ana@mail.example (or bo_b-c@x.example).",
    ],
)
def test_a_tokens_terms_are_those_of_a_document_of_that_token(
    analyser: SpacyAnalyser, text: str
) -> None:
    doc = analyser.parse(text)
    for token in doc:
        alone = terms(doc[token.i : token.i + 1].as_doc())
        assert token_terms(token) == analyser.token_terms(token) == alone


def test_token_terms_keep_the_reading_of_the_sentence(analyser: SpacyAnalyser) -> None:
    doc = analyser.parse("They were running, and 10:30 it was.")
    found = {token.text: token_terms(token) for token in doc}
    assert found["running"] == ("run",)
    assert found["10:30"] == ("10:30", "10", "30")
    assert found["They"] == found[","] == ()
