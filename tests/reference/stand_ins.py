"""Stand-ins for the models: the same answers everywhere, in no time.

``HashEmbedder`` goes into a configuration; ``StubAnalyser`` takes the place of
the whole analysis (spaCy too), for tests of the engine and the store alone.
"""

from __future__ import annotations

import hashlib
import os
import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebbtide import _core
from ebbtide.analysis.canonical import CanonicalPassage
from ebbtide.analysis.facts import SIGNALS, CardFacts, Claim, TurnFacts, TurnText
from ebbtide.analysis.query import QueryFrame

__all__ = [
    "DyingEmbedder",
    "HashEmbedder",
    "StubAnalyser",
    "StubQuestion",
    "Travelling",
    "scripted",
    "stub_facts",
]

_CLAIM = re.compile(r"\b(\w+) is (?:now )?(\w+)(?:, not (\w+))?")
_WORDS = ("port", "tea", "move", "deploy", "garden", "friday", "log", "cat", "plan", "late")


@lru_cache(maxsize=4096)
def _word_vector(word: str, dimension: int) -> NDArray[np.float64]:
    stream = b""
    while len(stream) < dimension:
        stream += hashlib.sha256(f"{len(stream)}:{word}".encode()).digest()
    return np.frombuffer(stream[:dimension], np.uint8).astype(np.float64) - 127.5


class HashEmbedder:
    """A bag of hashed words: texts that share words are near each other."""

    def __init__(self, dimension: int = 32, fingerprint: str | None = None) -> None:
        self.dimension = dimension
        self.fingerprint = fingerprint or f"hash-{dimension}"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), self.dimension), np.float64)
        for row, text in zip(rows, texts, strict=True):
            for word in re.findall(r"\w+", text.lower())[:2000]:
                row += _word_vector(word, self.dimension)
        return rows.astype(np.float32)


@dataclass(frozen=True, eq=False)
class StubAnalysis:
    facts: TurnFacts
    passages: Sequence[CanonicalPassage]
    card_vectors: Sequence[NDArray[np.int16]]


@dataclass(frozen=True, eq=False)
class StubQuestion:
    frame: QueryFrame
    vector: NDArray[np.float32]
    tokens: None = None
    token_terms: tuple[str, ...] = ()


def stub_facts(turn: TurnText) -> TurnFacts:
    """Facts from a hash of the text; ``x is y`` states y on topic x."""
    raw = hashlib.sha256(turn.text.encode()).digest()
    signals = {name for name, byte in zip(SIGNALS, raw[8:], strict=False) if byte < 50}
    subject = (turn.speaker or turn.role).lower()
    claims = []
    for identity, value, old in _CLAIM.findall(turn.text):
        kind = "correction" if old else "current_state"
        claims.append(Claim(kind, subject, identity, value, old_value=old or None))
        signals |= {"correction", "replacement"} if old else {"current_state"}
    words = tuple(re.findall(r"\w+", turn.text.lower()))
    cards = tuple(
        CardFacts(
            kind="current_state",
            subject=subject,
            predicate="be",
            object=claim.value,
            negated=False,
            temporal="current",
            start=0,
            end=len(turn.text),
            identity=claim.identity,
            terms=(claim.identity, claim.value),
        )
        for claim in claims
    )
    return TurnFacts(
        density=raw[0] / 255,
        sentiment=raw[1] / 255,
        entity_count=raw[2] % 8,
        signals=frozenset(signals),
        claims=tuple(claims),
        social=turn.text.startswith("thanks"),
        terms=words[:500],
        cards=cards,
    )


class StubAnalyser:
    """Same interface as ``ebbtide.analysis.analyser.Analyser``, no models."""

    def __init__(
        self, nlp: Mapping[str, Any], *, embedder: Any = None, cards: bool = False
    ) -> None:
        self._embedder = embedder or HashEmbedder(int(nlp["vector_dim"]))
        self._cards = cards
        self.fingerprint = f"stub;embedder={self._embedder.fingerprint}"

    def warm_up(self) -> None:
        pass

    def close(self) -> None:
        pass

    def facts(self, turns: Sequence[TurnText]) -> list[TurnFacts]:
        return [stub_facts(turn) for turn in turns]

    def begin_passages(self, turns: Sequence[TurnText], submit: Any) -> Any:
        return submit(self.analyse, turns).result

    def joined(self, turns: Any, facts: Any, analyses: list[StubAnalysis]) -> list[StubAnalysis]:
        return analyses

    def analyse(self, turns: Sequence[TurnText]) -> list[StubAnalysis]:
        vectors = _core.unit_vectors(self._embedder.embed([turn.text for turn in turns]))
        results = []
        for turn, vector in zip(turns, vectors, strict=True):
            facts = stub_facts(turn)
            cards = _core.unit_vectors(self._embedder.embed([card.object for card in facts.cards]))
            passage = CanonicalPassage(0, len(turn.text), vector, None)
            results.append(StubAnalysis(facts, [passage], list(cards) if self._cards else []))
        return results

    analyse_here = analyse

    def question(
        self, text: str, *, query_time: datetime | None, speakers: Sequence[str], bare: bool
    ) -> StubQuestion:
        terms = tuple(dict.fromkeys(re.findall(r"\w+", text.lower())))
        frame = QueryFrame(text=text, terms=terms, name_free_terms=terms)
        return StubQuestion(frame, self._embedder.embed([text])[0])


def scripted(number: int) -> dict[str, Any]:
    """Turn ``number`` of an endless, fixed conversation with changes of mind."""
    raw = hashlib.sha256(f"turn {number}".encode()).digest()
    topic, value = _WORDS[raw[0] % 4], f"v{raw[1] % 3}"
    words = " ".join(_WORDS[b % len(_WORDS)] for b in raw[2 : 4 + raw[4] % 24])
    shapes = (
        f"{words} {number}",
        f"The {topic} is {value}. {words}",
        f"The {topic} is {value}, not v{raw[5] % 3}. {words}",
        f"thanks {number}",
        f"{words} {number}",
        f"{words}",
    )
    speaker = ("Ana", "Luis")[raw[6] % 2]
    return {
        "text": shapes[raw[7] % len(shapes)],
        "role": "user" if raw[8] % 5 else "assistant",
        "speaker": speaker if raw[8] % 5 else "Assistant",
        "timestamp": f"2024-01-{1 + number // 60 % 28:02d}T10:{number % 60:02d}:00Z",
        "session_id": f"s{number // 60}",
        "external_id": f"t{number}",
        "metadata": {"number": number} if raw[9] % 3 == 0 else None,
        "provenance": {"is_user_correction": True} if raw[10] % 9 == 0 else None,
    }


class DyingEmbedder(HashEmbedder):
    """Ends its process at a text that says so, as one that is out of memory ends."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if any("the end" in text for text in texts):
            os._exit(1)
        return super().embed(texts)


class Travelling(HashEmbedder):
    """Brings ``StubAnalyser`` along to a worker process: no models there either.

    At a text with "the end" in it the process is killed, as often as ``kills`` says;
    ``folder`` remembers how often that was.
    """

    def __init__(self, folder: Path, kills: int = 0) -> None:
        super().__init__()
        self._folder = folder
        self._kills = kills

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, (self._folder, self._kills)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if any("the end" in text for text in texts):
            before = len(list(self._folder.glob("killed-*")))
            if before < self._kills:
                (self._folder / f"killed-{before}").touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return super().embed(texts)


def _arrived(folder: Path, kills: int) -> Travelling:
    from ebbtide.analysis import analyser

    analyser.Analyser = StubAnalyser  # type: ignore[assignment, misc]
    return Travelling(folder, kills)
