"""Memories of any size for the benches, made from real turns that were read once.

A large memory needs vectors that lie as those of real turns do: Gaussian noise has no
neighbours and makes every search look the same. So each record is a real turn of LoCoMo
(the example conversation where ``$EBBTIDE_DATA`` names no data), analysed by the default
models, with its vector turned a little in a random direction. Its rare words get a number
of their own in each copy, so that the vocabulary grows with the memory as that of people
does; frequent words and names stay.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebbtide import Config, Turn, _core
from ebbtide.analysis.analyser import Analyser, Analysis, Question
from ebbtide.analysis.canonical import CanonicalPassage
from ebbtide.analysis.facts import TurnText
from ebbtide.inputs import Prepared, prepare
from ebbtide.mappings import turn_from

__all__ = ["JITTER", "Source", "as_query", "batches", "jittered", "open_handle", "read_source"]

JITTER = 0.35
"""Length of the random part that is added to a unit vector: cosine 0.94 to the original."""

RARE = 3
"""A word in at most so many real turns is one of a copy's own."""

_EXAMPLE = Path(__file__).parents[1] / "examples" / "conversation.jsonl"


@dataclasses.dataclass(frozen=True)
class Source:
    """Real turns with their analyses, and questions about them."""

    turns: list[Prepared]
    analyses: list[Analysis]
    questions: list[Question]
    fingerprint: str


def read_source(config: Config, *, turns: int = 3000, questions: int = 100) -> Source:
    """Analyse up to so many real turns and questions, spread over what there is."""
    found, asked = _locomo() or _example()
    found = [t for t in found if t is not None][:turns]
    asked = asked[:: max(1, len(asked) // questions)][:questions]
    analyser = Analyser(config["nlp"])
    analyses: list[Analysis] = []
    for at in range(0, len(found), 256):
        part = found[at : at + 256]
        analyses += analyser.analyse([TurnText(t.text, t.role, t.speaker, t.moment) for t in part])
    speakers = sorted({t.speaker.lower() for t in found if t.speaker})
    newest = max(t.moment for t in found if t.moment)
    read = [
        analyser.question(text, query_time=newest, speakers=speakers, bare=False) for text in asked
    ]
    return Source(found, analyses, read, analyser.fingerprint)


def _locomo() -> tuple[list[Prepared | None], list[str]] | None:
    from ebbtide.evals.datasets import load_conversations

    path = Path(os.environ.get("EBBTIDE_DATA", "")) / "locomo" / "locomo_dev5.json.gz"
    if not path.is_file():
        return None
    conversations = load_conversations(path)
    turns = [
        prepare(
            dataclasses.replace(turn.as_turn(), session_id=f"{c.id}/{turn.session_id}"),
            max_chars=10**6,
        )
        for c in conversations
        for turn in c.turns
    ]
    return turns, [q.text for c in conversations for q in c.questions if not q.abstention]


def _example() -> tuple[list[Prepared | None], list[str]]:
    rows = [json.loads(line) for line in _EXAMPLE.read_text(encoding="utf-8").splitlines()]
    turns: list[Turn] = [turn_from(row) for row in rows]
    asked = [t.text for t in turns if t.text.rstrip().endswith("?")]
    return [prepare(t, max_chars=10**6) for t in turns], asked


def jittered(
    vectors: NDArray[np.int16], random: np.random.Generator, amount: float = JITTER
) -> NDArray[np.int16]:
    """int16 [n, d], each turned in a random direction by ``amount``."""
    rows = vectors.astype(np.float32) / 32767.0
    noise = random.standard_normal(rows.shape, dtype=np.float32)
    noise *= amount / np.linalg.norm(noise, axis=1, keepdims=True)
    return _core.unit_vectors(rows + noise)


def batches(
    source: Source, size: int, *, tokens: bool = True, batch: int = 512
) -> Iterator[list[tuple[Any, ...]]]:
    """``size`` records for ``MemoryHandle.add``, the first copy of each turn unchanged."""
    random = np.random.default_rng(7)
    documents = collections.Counter(t for a in source.analyses for t in set(a.facts.terms))
    count = len(source.turns)
    for first in range(0, size, batch):
        places = range(first, min(first + batch, size))
        analyses = [source.analyses[i % count] for i in places]
        vectors = jittered(np.stack([a.passages[0].vector for a in analyses]), random)
        yield [
            _record(source, i, vectors[i - first] if i >= count else None, documents, tokens)
            for i in places
        ]


def _record(
    source: Source,
    place: int,
    vector: NDArray[np.int16] | None,
    documents: collections.Counter[str],
    tokens: bool,
) -> tuple[Any, ...]:
    copy, index = divmod(place, len(source.turns))
    turn, analysis = source.turns[index], source.analyses[index]
    passage = analysis.passages[0]
    kept = passage.tokens if tokens else None
    if vector is None:
        passage = CanonicalPassage(passage.start, passage.end, passage.vector, kept)
        return turn, analysis.facts, [passage], [], None
    own = [f"{t}{copy}" if documents[t] <= RARE else t for t in analysis.facts.terms]
    # Without claims: thousands of people who each say where they live are no lineage.
    facts = dataclasses.replace(analysis.facts, terms=tuple(own), claims=())
    moment = None if turn.moment is None else turn.moment + timedelta(days=copy)
    stamp = None
    if turn.stamp is not None and moment is not None:
        micros = turn.stamp.utc_micros + copy * 86_400_000_000
        stamp = dataclasses.replace(turn.stamp, given=moment.isoformat(), utc_micros=micros)
    said = dataclasses.replace(
        turn,
        text=f"{turn.text} ({copy})",
        stamp=stamp,
        moment=moment,
        session_id=f"{turn.session_id}/{copy}",
        external_id=None,
    )
    return said, facts, [CanonicalPassage(0, len(said.text), vector, kept)], [], None


def open_handle(
    path: Path | None, config: Config, fingerprint: str
) -> tuple[_core.StoreHandle, _core.MemoryHandle]:
    """A store and its memory without models: facts and vectors are given."""
    store = _core.StoreHandle(
        None if path is None else str(path),
        read_only=False,
        holder="bench",
        synchronous_full=False,
    )
    handle = _core.MemoryHandle(
        store,
        "default",
        config=config.to_json(),
        presets={},
        analyser=fingerprint,
        reindexing=False,
    )
    return store, handle


def as_query(question: Question) -> tuple[Any, ...]:
    """The question as ``MemoryHandle.recall`` takes it."""
    return question.frame.to_dict(), question.vector, question.tokens, question.token_terms
