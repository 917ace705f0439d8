"""Part of speech, morphology and lemma of a token, looked up instead of matched.

spaCy's attribute ruler holds each of some two hundred patterns against each token, and its
lemmatizer builds each token's morphology anew: a fifth of a parse, for what follows from a
token's word, tag and dependency, and now and then from those of the one beside it. Here
both are asked once for each kind of token, so that the result is theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from spacy.attrs import DEP, LEMMA, LOWER, MORPH, ORTH, POS, TAG  # type: ignore[import-not-found]
from spacy.lang.en.lemmatizer import EnglishLemmatizer
from spacy.language import Language
from spacy.pipeline import AttributeRuler
from spacy.tokens import Doc

if TYPE_CHECKING:
    from typing import TypeAlias

    # A token's word where patterns name it, its tag, its dependency where patterns name it.
    Kind: TypeAlias = tuple[int, int, int]
    # Word, lower case, tag, dependency.
    Row: TypeAlias = Sequence[int]
    Conditions: TypeAlias = Mapping[str, Any]

__all__ = ["LookedUp", "with_looked_up_attributes"]

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

_NAME = "ebbtide_attributes"
_READ = [ORTH, LOWER, TAG, DEP]
_WRITTEN = [POS, MORPH, LEMMA]
_MOST = 50_000
"""Words, kinds, runs or lemmas that are remembered before all of them are let go."""


class _Found(NamedTuple):
    """What the ruler sets on a token."""

    pos: int
    morph: int
    lemma: int
    tag: int
    """Of white space; 0 for a word, whose tag stays."""
    dep: int
    opens: int
    """Patterns of two tokens that it may be the first of, a bit each."""
    closes: int
    """Those that it may be the second of."""


class LookedUp:
    """Does what an attribute ruler and an English lemmatizer do, one after the other."""

    def __init__(self, ruler: AttributeRuler, lemmatizer: EnglishLemmatizer) -> None:
        """Read the ruler's patterns.

        Args:
            ruler: Of patterns that :func:`with_looked_up_attributes` takes.
            lemmatizer: By rules; it keeps the lemmas that the ruler sets.
        """
        self._ruler, self._lemmatizer = ruler, lemmatizer
        self._vocab = ruler.vocab
        patterns = [pattern for pattern, _ in _rules(ruler)]
        self._pairs = [pattern for pattern in patterns if len(pattern) == 2]
        strings = self._vocab.strings
        self._named = {strings.add(word) for word in _values(patterns, "LOWER")}
        self._deps = {strings.add(dep) for dep in _values(patterns, "DEP")}
        self._regexes = list(_regexes(patterns))
        self._words: dict[int, int] = {}
        self._kinds: dict[Kind, _Found] = {}
        self._runs: dict[tuple[Kind, ...], list[_Found]] = {}
        self._lemmas: dict[tuple[int, int, int], int] = {}

    def __call__(self, doc: Doc) -> Doc:
        """Set the attributes of each token of a text that is tagged and parsed."""
        rows: list[Row] = doc.to_array(_READ).tolist()
        if not rows:
            return doc
        kinds: list[Kind] = []
        found: list[_Found] = []
        linked: list[int] = []
        opened = 0
        for row in rows:
            _, lower, tag, dep = row
            word = self._words.get(lower)
            if word is None:
                word = self._word(lower)
            kind = (word, tag, dep if dep in self._deps else -1)
            one = self._kinds.get(kind)
            if one is None:
                one = _remember(self._kinds, kind, self._ask([row])[0])
            if opened & one.closes:
                linked.append(len(found))
            opened = one.opens
            kinds.append(kind)
            found.append(one)
        for first, last in _runs(linked):
            found[first : last + 1] = self._run(kinds[first : last + 1], rows[first : last + 1])
        self._write(doc, rows, found)
        return doc

    def _write(self, doc: Doc, rows: list[Row], found: list[_Found]) -> None:
        values: list[tuple[int, int, int]] = []
        unknown: list[int] = []
        for place, (row, one) in enumerate(zip(rows, found, strict=True)):
            lemma = one.lemma or self._lemmas.get((row[0], one.pos, one.morph), 0)
            if not lemma:
                unknown.append(place)
            if one.tag:
                doc[place].tag, doc[place].dep = one.tag, one.dep
            values.append((one.pos, one.morph, lemma))
        written: Any = np.array(values, dtype=np.uint64)
        doc.from_array(_WRITTEN, written)
        for place in unknown:
            token, one = doc[place], found[place]
            token.lemma_ = self._lemmatizer.lemmatize(token)[0]
            _remember(self._lemmas, (token.orth, one.pos, one.morph), token.lemma)

    def _word(self, lower: int) -> int:
        """A word as kinds tell it apart: 0 where no pattern looks at it."""
        text = self._vocab.strings[lower]
        matched = any(regex.search(text) for regex in self._regexes)
        word = lower if lower in self._named or matched or text.isspace() else 0
        return _remember(self._words, lower, word)

    def _run(self, kinds: Sequence[Kind], rows: Sequence[Row]) -> list[_Found]:
        """What the ruler sets on tokens of which each may be in a pattern with the next."""
        key = tuple(kinds)
        found = self._runs.get(key)
        return _remember(self._runs, key, self._ask(rows)) if found is None else found

    def _ask(self, rows: Sequence[Row]) -> list[_Found]:
        """What the ruler sets on tokens that stand alone."""
        doc = Doc(self._vocab, words=[self._vocab.strings[row[0]] for row in rows])
        for token, row in zip(doc, rows, strict=True):
            token.tag, token.dep = row[2], row[3]
        dependencies = [token.dep_ for token in doc]
        self._ruler(doc)
        set_: list[list[int]] = doc.to_array([*_WRITTEN, TAG, DEP]).tolist()
        found = []
        for token, dependency, (pos, morph, lemma, tag, dep) in zip(
            doc, dependencies, set_, strict=True
        ):
            opens, closes = (
                sum(
                    _may_be(pair[place], token.lower_, dependency) << bit
                    for bit, pair in enumerate(self._pairs)
                )
                for place in (0, 1)
            )
            moved = (tag, dep) if token.is_space else (0, 0)
            found.append(_Found(pos, morph, lemma, *moved, opens, closes))
        return found


def with_looked_up_attributes(nlp: Language) -> Language:
    """The pipeline, whose ruler and lemmatizer are asked less often from now on.

    One that has them in another order, or others, is returned as it is.
    """
    if ("attribute_ruler", "lemmatizer") not in pairwise(nlp.pipe_names):
        return nlp
    ruler, lemmatizer = _components(nlp)
    plain = type(ruler) is AttributeRuler and type(lemmatizer) is EnglishLemmatizer
    if not plain or lemmatizer.mode != "rule" or lemmatizer.overwrite:
        return nlp
    if not all(_is_known(pattern, attrs) for pattern, attrs in _rules(ruler)):
        return nlp
    nlp.add_pipe(_NAME, after="lemmatizer")
    nlp.disable_pipe("attribute_ruler")
    nlp.disable_pipe("lemmatizer")
    return nlp


@Language.factory(_NAME)
def _looked_up(nlp: Language, name: str) -> LookedUp:
    return LookedUp(*_components(nlp))


def _components(nlp: Language) -> tuple[Any, Any]:
    return nlp.get_pipe("attribute_ruler"), nlp.get_pipe("lemmatizer")


def _rules(ruler: AttributeRuler) -> list[tuple[list[Conditions], Iterable[str]]]:
    """Each pattern with the attributes that it sets."""
    rules: Any = ruler.patterns
    return [(pattern, rule["attrs"]) for rule in rules for pattern in rule["patterns"]]


def _is_known(pattern: list[Conditions], attrs: Iterable[str]) -> bool:
    """One token or two, of words, tags and dependencies that it names.

    Tags and dependencies are set on white space alone.
    """
    known = {"TAG", "LOWER", "DEP", "IS_SPACE"}
    operators = {"IN", "NOT_IN"}
    whitespace = len(pattern) == 1 and pattern[0].get("IS_SPACE") is True
    return (
        len(pattern) <= 2
        and set(attrs) <= {"POS", "MORPH", "LEMMA"} | ({"TAG", "DEP"} if whitespace else set())
        and all(
            key in known
            and (
                not isinstance(value, dict)
                or value.keys() <= (operators | {"REGEX"} if key == "LOWER" else operators)
            )
            for conditions in pattern
            for key, value in conditions.items()
        )
    )


def _runs(linked: Sequence[int]) -> list[tuple[int, int]]:
    """First and last places of tokens that stand in a row, each linked to the one before."""
    runs: list[tuple[int, int]] = []
    for place in linked:
        if runs and runs[-1][1] == place - 1:
            runs[-1] = (runs[-1][0], place)
        else:
            runs.append((place - 1, place))
    return runs


def _remember(memory: dict[_Key, _Value], key: _Key, value: _Value) -> _Value:
    """Keep a value; where there are many, all others are let go before."""
    if len(memory) == _MOST:
        memory.clear()
    memory[key] = value
    return value


def _values(patterns: Iterable[list[Conditions]], key: str) -> set[str]:
    """Every value of an attribute that some pattern names."""
    named: set[str] = set()
    for value in (token[key] for pattern in patterns for token in pattern if key in token):
        if isinstance(value, str):
            named.add(value)
        else:
            named |= {one for operator in ("IN", "NOT_IN") for one in value.get(operator, ())}
    return named


def _regexes(patterns: Iterable[list[Conditions]]) -> Iterable[re.Pattern[str]]:
    for token in (token for pattern in patterns for token in pattern):
        value = token.get("LOWER")
        if isinstance(value, dict) and "REGEX" in value:
            yield re.compile(value["REGEX"])


def _may_be(conditions: Conditions, lower: str, dep: str) -> bool:
    """Whether a token may meet conditions, as far as its word and dependency tell."""
    return _meets(conditions.get("LOWER"), lower) and _meets(conditions.get("DEP"), dep)


def _meets(condition: Any, value: str) -> bool:
    if condition is None:
        return True
    if isinstance(condition, str):
        return condition == value
    found = re.search(condition["REGEX"], value) if "REGEX" in condition else True
    return (
        value in condition.get("IN", (value,))
        and value not in condition.get("NOT_IN", ())
        and bool(found)
    )
