"""Both readers of a text, side by side: spaCy for facts, the embedder for vectors."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from ebbtide import _core
from ebbtide.analysis.beside import Beside
from ebbtide.analysis.canonical import CanonicalPassage, canonical_passages
from ebbtide.analysis.facts import TurnFacts, TurnText
from ebbtide.analysis.returned import (
    Returned,
    passages_of,
    query_vector_of,
    question_of,
    vectors_of,
)
from ebbtide.errors import ConfigError
from ebbtide.forking import RenewedLock

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ebbtide.analysis.cache import AnalysisCache
    from ebbtide.analysis.embedding import Submit
    from ebbtide.analysis.query import QueryFrame
    from ebbtide.analysis.spacy_analyser import SpacyAnalyser

__all__ = ["Analyser", "Analysis", "Question"]

_P = ParamSpec("_P")
_R = TypeVar("_R")

_MONTHS = "january february march april may june july august september october november december"
_DAYS = "monday tuesday wednesday thursday friday saturday sunday week month year weekend day"
_TIME_WORDS = frozenset(f"{_MONTHS} {_DAYS}".split())

_WARM_UP = "On Monday Ana moved to Porto, not to Lisbon: is that so?"
"""Has something for most of those who read a text."""

_PAUSE = 0.001
"""Seconds between two rules that are compiled beside others: of a millisecond each, they would
take half of the time of a turn that runs meanwhile."""

_WORD = re.compile(r"\w")

_DEFAULT_MODELS = ("bge-small-en-v1.5", "BAAI/bge-small-en-v1.5")


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """What was read from one turn: facts, passages, one vector a card (or none)."""

    facts: TurnFacts
    passages: Sequence[CanonicalPassage]
    card_vectors: Sequence[NDArray[np.int16]]


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """What was read from a question.

    Attributes:
        frame: Its frame.
        vector: float32 [d], not normalised.
        tokens: float32 [t, d] for late interaction, or None.
        token_terms: For each token the lemma of its word; None for stop words
            and punctuation.
    """

    frame: QueryFrame
    vector: NDArray[np.float32]
    tokens: NDArray[np.float32] | None
    token_terms: list[str | None]


class Analyser:
    """Reads turns and questions. Models are loaded at first use, not before.

    Safe to share between threads; equal texts give equal results whatever the
    batch they come in.
    """

    def __init__(
        self, nlp: Mapping[str, Any], *, embedder: Any = None, cards: bool = False
    ) -> None:
        """Name the models and check that they are installed; nothing is loaded.

        Args:
            nlp: The ``[nlp]`` section of the configuration.
            embedder: Replaces the configured embedding model.
            cards: Whether cards get vectors of their own.

        Raises:
            ConfigError: If a model is not installed.
        """
        self._nlp = nlp
        self._cards = cards
        self._embedder = embedder
        self._directory = None if embedder is not None else _model_directory(nlp)
        labels = nlp["entity_labels"]
        self._spacy = _shared_spacy(
            nlp["spacy_model"], labels if isinstance(labels, str) else tuple(labels)
        )
        self._lock = RenewedLock()
        self._beside = Beside(self._help)

    @functools.cached_property
    def fingerprint(self) -> str:
        """Changes whenever the derived data of equal turns would change."""
        prefix = "speaker" if self._nlp["speaker_prefix"] else "bare"
        return f"{self._spacy.fingerprint};embedder={self._embedding_fingerprint()};text={prefix}"

    def _embedding_fingerprint(self) -> str:
        if self._embedder is not None:
            return str(self._embedder.fingerprint)
        from ebbtide.analysis.embedding_model import fingerprint_of

        assert self._directory is not None
        return fingerprint_of(self._directory)

    def warm_up(self, *, beside_others: bool = False) -> None:
        """Load both models and compile all rules now rather than at the first turns.

        Args:
            beside_others: Whether other threads may be at turns already: rules are then
                compiled in between.
        """
        from ebbtide.analysis.patterns import compile_all

        # Past the cache, which may know the text already.
        passages = self._beside.submit(self._encode, [_WARM_UP])
        self._spacy.analyse([TurnText(_WARM_UP)])
        passages.result()
        self.question(_WARM_UP, query_time=None, speakers=(), bare=False)
        compile_all(pause=_PAUSE if beside_others else 0.0)

    def analyse(self, turns: Sequence[TurnText]) -> list[Analysis]:
        """Read turns, in order; spaCy and the embedder work side by side."""
        if not turns:
            return []
        passages = self._beside.submit(self.passages, self._embedded_texts(turns))
        return self.joined(turns, self.facts(turns), passages.result())

    def analyse_here(self, turns: Sequence[TurnText]) -> list[Analysis]:
        """The same on the caller's thread alone, for a process that has one core."""
        return self.joined(turns, self.facts(turns), self.passages(self._embedded_texts(turns)))

    def joined(
        self,
        turns: Sequence[TurnText],
        facts: Sequence[TurnFacts],
        passages: Sequence[Sequence[CanonicalPassage]],
    ) -> list[Analysis]:
        """Analyses out of what the two readers found, one a turn."""
        vectors: list[Sequence[Any]] = [()] * len(turns)
        if self._cards:
            vectors = self._card_vectors(facts)
        return [
            Analysis(fact, _without_prefix(some, text, turn), cards)
            for fact, some, text, turn, cards in zip(
                facts, passages, self._embedded_texts(turns), turns, vectors, strict=True
            )
        ]

    def facts(self, turns: Sequence[TurnText]) -> list[TurnFacts]:
        """Read facts, in order; they depend on nothing but the turn, so equal ones once."""
        distinct = list(dict.fromkeys(turns))
        cache = self._cache()
        read = (
            self._spacy.analyse(distinct)
            if cache is None
            else cache.facts(distinct, self._spacy.analyse)
        )
        by_turn = dict(zip(distinct, read, strict=True))
        return [by_turn[turn] for turn in turns]

    def passages(self, texts: Sequence[str]) -> list[tuple[CanonicalPassage, ...]]:
        """Embed texts as they are, in order; equal ones once."""
        distinct = list(dict.fromkeys(texts))
        cache = self._cache()
        read = self._encode(distinct) if cache is None else cache.passages(distinct, self._encode)
        by_text = dict(zip(distinct, read, strict=True))
        return [by_text[text] for text in texts]

    def begin_passages(
        self, turns: Sequence[TurnText], submit: Submit
    ) -> Callable[[], Sequence[Sequence[CanonicalPassage]]]:
        """Hand out the embedding of turns in parts; the result comes when called for.

        Args:
            turns: The turns.
            submit: As that of an executor.
        """
        texts = self._embedded_texts(turns)
        model = self._model()
        if self._nlp["analysis_cache"] or not hasattr(model, "begin"):
            return submit(self.passages, texts).result
        finish: Callable[[], Sequence[Sequence[CanonicalPassage]]] = model.begin(texts, submit)
        return finish

    def close(self) -> None:
        """End the thread beside the caller's, unless another analyser uses it."""
        self._beside.close()

    def _cache(self) -> AnalysisCache | None:
        path = self._nlp["analysis_cache"]
        if not path:
            return None
        return _shared_cache(path, self._spacy.fingerprint, self._embedding_fingerprint())

    def query_vector(self, text: str) -> NDArray[np.float32]:
        """Embed a question as it is: float32 [d], not normalised."""
        vector: NDArray[np.float32] = self._encode_question(text, bare=True)[0]
        return vector

    def question(
        self,
        text: str,
        *,
        query_time: datetime | None,
        speakers: Sequence[str],
        bare: bool,
    ) -> Question:
        """Read a question.

        Args:
            text: The question.
            query_time: When it is asked; anchors its relative dates.
            speakers: Names known to the memory.
            bare: Embed the question as it is (the paper's way), rather than
                without the speakers' names and with token vectors.
        """
        from ebbtide.analysis.query import build_frame, with_apostrophes

        text = with_apostrophes(unicodedata.normalize("NFC", text))
        # The speakers' names say who, which the ranking handles; left in, they
        # pull the vector towards every turn of that speaker.
        embedded = text if bare else without_names(text, speakers)
        begun = self._begin_question(embedded, bare)
        docs = self._spacy.parse_all([text] if embedded == text else [text, embedded])
        frame = build_frame(docs[0], query_time=query_time, known_speakers=speakers)
        vector, tokens, spans = begun()
        terms: list[str | None] = []
        if tokens is not None:
            parsed = docs[-1]
            dated = frame.first is not None or frame.last is not None
            terms = _token_terms(self._spacy, parsed, spans, undated=dated)
        return Question(frame, vector, tokens, terms)

    def _model(self) -> Any:
        with self._lock:
            if self._embedder is None:
                assert self._directory is not None
                model = _shared_embedder(self._directory, self._nlp["threads"])
                if model.dimension != self._nlp["vector_dim"]:
                    message = (
                        f"the embedding model has {model.dimension} dimensions, [nlp] vector_dim "
                        f"says {self._nlp['vector_dim']}; set vector_dim = {model.dimension}"
                    )
                    raise ConfigError(message, "config.range")
                self._embedder = model
            return self._embedder

    def _embedded_texts(self, turns: Sequence[TurnText]) -> list[str]:
        if not self._nlp["speaker_prefix"]:
            return [turn.text for turn in turns]
        return [f"{turn.speaker}: {turn.text}" if turn.speaker else turn.text for turn in turns]

    def _encode(self, texts: Sequence[str]) -> list[tuple[CanonicalPassage, ...]]:
        model = self._model()
        if hasattr(model, "begin"):
            from ebbtide.analysis.embedding import at_once

            stored: list[tuple[CanonicalPassage, ...]] = model.begin(texts, at_once)()
            return stored
        if hasattr(model, "encode"):
            return [canonical_passages(passages) for passages in passages_of(model, texts)]
        return [
            canonical_passages([Returned(0, len(text), vector)])
            for text, vector in zip(texts, vectors_of(model, texts), strict=True)
        ]

    def _begin_question(self, text: str, bare: bool) -> Callable[[], tuple[Any, Any, Any]]:
        """Hand out the embedding of a question.

        Two forward passes are shared with the thread beside. The first question of all
        may have to load the model, which is for that thread alone.
        """
        if bare or not hasattr(self._embedder, "begin_query"):
            return self._beside.submit(self._encode_question, text, bare).result
        finish = self._embedder.begin_query(text, self._beside.submit)
        return lambda: question_of(self._embedder, finish())

    def _help(self) -> bool:
        """Help the thread beside, where it embeds a text."""
        assist = getattr(self._embedder, "assist", None)
        return assist is not None and bool(assist())

    def _encode_question(self, text: str, bare: bool) -> tuple[Any, Any, Any]:
        model = self._model()
        if not bare and hasattr(model, "encode_query"):
            return question_of(model, model.encode_query(text))
        if hasattr(model, "embed_query"):
            return query_vector_of(model, text), None, None
        return vectors_of(model, [text])[0], None, None

    def _card_vectors(self, facts: Sequence[TurnFacts]) -> list[Sequence[Any]]:
        from ebbtide.analysis.cards import card_text

        texts = [card_text(card) for fact in facts for card in fact.cards]
        rows = iter(_core.unit_vectors(vectors_of(self._model(), texts)) if texts else ())
        return [[next(rows) for _ in fact.cards] for fact in facts]


def without_names(text: str, speakers: Sequence[str]) -> str:
    """The question without the speakers' names; as it was if nothing else is left."""
    if not speakers:
        return text
    names = "|".join(re.escape(name) for name in sorted(speakers, key=lambda n: (-len(n), n)))
    bare = re.sub(rf"\b(?:{names})(?:['’]s)?(?!\w)\s*", "", text, flags=re.IGNORECASE).strip()
    return bare if _WORD.search(bare) else text


def _token_terms(spacy: SpacyAnalyser, doc: Any, spans: Any, *, undated: bool) -> list[str | None]:
    """For each word piece, the term of the spaCy token that it lies in.

    Args:
        spacy: The analyser that made the parse.
        doc: The parse.
        spans: Characters of each word piece.
        undated: Leave the words of dates out: where the question's days are known,
            turns are compared by day, and "May" would only draw in other talk of it.
    """
    by_character: dict[int, str | None] = {}
    for token in doc:
        terms = () if undated and _tells_time(token) else spacy.token_terms(token)
        for at in range(token.idx, token.idx + len(token)):
            by_character[at] = terms[0] if terms else None
    return [by_character.get(int(start)) for start, _ in spans]


def _tells_time(token: Any) -> bool:
    return (
        token.ent_type_ in {"DATE", "TIME"}
        or token.pos_ == "NUM"
        or token.lemma_.lower() in _TIME_WORDS
    )


def _without_prefix(
    passages: Sequence[CanonicalPassage], text: str, turn: TurnText
) -> Sequence[CanonicalPassage]:
    """Spans as characters of the turn, not of the text with the speaker in front."""
    prefix = len(text) - len(turn.text)
    return [p.moved(prefix, len(turn.text)) for p in passages] if prefix else passages


def _model_directory(nlp: Mapping[str, Any]) -> Path:
    from ebbtide.analysis.embedding_model import default_directory

    name = nlp["model_name"]
    if name in _DEFAULT_MODELS:
        return default_directory()
    directory = Path(name)
    if not directory.is_dir():
        message = (
            f"the embedding model {name!r} is not installed, and models are never downloaded. "
            'To use the one that comes with ebbtide, set in [nlp] model_name = "bge-small-en-v1.5" '
            "and vector_dim = 384; to use another, name a directory with model.onnx or "
            "model.safetensors, and tokenizer.json"
        )
        raise ConfigError(message, "config.model_missing")
    return directory


_sharing = RenewedLock()


def _shared(most: int) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Remember what was made of the last so many arguments.

    Who asks for it while another thread makes it waits, rather than make one more.
    """

    def keep(make: Callable[_P, _R]) -> Callable[_P, _R]:
        kept = cast("Callable[_P, _R]", functools.lru_cache(maxsize=most)(make))

        @functools.wraps(make)
        def shared(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            with _sharing:
                return kept(*args, **kwargs)

        return shared

    return keep


# Models take a quarter of a second and a hundred megabytes: the memories of a
# process share them.
@_shared(4)
def _shared_spacy(model: str, labels: str | tuple[str, ...]) -> SpacyAnalyser:
    from ebbtide.analysis.spacy_analyser import SpacyAnalyser

    return SpacyAnalyser(model, labels)


@_shared(2)
def _shared_embedder(directory: Path, threads: int) -> Any:
    from ebbtide.analysis.embedding import ModelEmbedder

    return ModelEmbedder(directory, threads=threads)


@_shared(8)
def _shared_cache(path: str, facts: str, passages: str) -> AnalysisCache:
    from ebbtide.analysis.cache import AnalysisCache

    return AnalysisCache(path, facts=facts, passages=passages)
