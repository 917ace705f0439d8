"""Systems that rank a conversation's turns for a question, under one interface.

All of them see the same text, "Speaker: text", and the dense ones the same
embedding model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ebbtide.config import Config
from ebbtide.evals.datasets import Conversation, Question
from ebbtide.memory import Memory

__all__ = ["SYSTEMS", "Ranker", "open_system"]

Ranker = Callable[[Question, int], list[str]]
"""The external ids of the best turns for a question, best first, at most so many."""

SYSTEMS = ("bm25", "dense", "paper", "default")
"""Names that :func:`open_system` knows."""


@contextmanager
def open_system(name: str, conversation: Conversation) -> Iterator[Ranker]:
    """A system that has taken in a conversation.

    Args:
        name: One of :data:`SYSTEMS`: ``bm25`` (stemmed, bm25s), ``dense`` (cosine
            of the default embedding model), ``paper`` and ``default`` (ebbtide
            with that preset, its store made with that preset too).
        conversation: What it takes in.
    """
    if name == "bm25":
        yield _bm25(conversation)
    elif name == "dense":
        yield _dense(conversation)
    else:
        with Memory.in_memory(config=Config(name)) as memory:
            memory.add_many((turn.as_turn() for turn in conversation.turns), batch_size=256)

            def rank(question: Question, limit: int) -> list[str]:
                found = memory.retrieve(question.text, limit=limit, query_time=question.query_time)
                return [str(item.turn.external_id) for item in found]

            yield rank


def _spoken(conversation: Conversation) -> list[str]:
    return [f"{t.speaker}: {t.text}" if t.speaker else t.text for t in conversation.turns]


def _bm25(conversation: Conversation) -> Ranker:
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")

    def tokens(texts: list[str]) -> Any:
        return bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)

    index = bm25s.BM25()
    index.index(tokens(_spoken(conversation)), show_progress=False)
    ids = [turn.external_id for turn in conversation.turns]

    def rank(question: Question, limit: int) -> list[str]:
        found, _ = index.retrieve(
            tokens([question.text]), k=min(limit, len(ids)), show_progress=False
        )
        return [ids[int(at)] for at in found[0]]

    return rank


def _dense(conversation: Conversation) -> Ranker:
    import numpy as np

    from ebbtide.analysis.embedding import OnnxEmbedder

    model = OnnxEmbedder()
    turns = model.embed(_spoken(conversation)).astype(np.float64)
    turns /= np.maximum(np.linalg.norm(turns, axis=1, keepdims=True), 1e-12)
    ids = [turn.external_id for turn in conversation.turns]

    def rank(question: Question, limit: int) -> list[str]:
        scores = turns @ model.embed_query(question.text).astype(np.float64)
        return [ids[int(at)] for at in np.argsort(-scores, kind="stable")[:limit]]

    return rank
