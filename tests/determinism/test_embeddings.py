"""The embedding of a text is a function of the text, bit for bit, on any processor."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

import pytest
from reference.helping import helped

from ebbtide.analysis.canonical import canonical_passages
from ebbtide.analysis.embedding import ModelEmbedder, Passage
from ebbtide.evals.datasets import load_conversations

from .processors import output, without_avx, without_avx512

HASHES = """
import json, sys
from hashlib import sha256
from ebbtide.analysis.embedding import ModelEmbedder
embedder = ModelEmbedder()
found = []
for text in json.load(sys.stdin):
    parts = [p.vector.tobytes() + p.tokens.tobytes() for p in embedder.encode([text])[0]]
    found.append(sha256(b"".join(parts)).hexdigest())
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def texts(data_folder: Path) -> list[str]:
    conversations = load_conversations(data_folder / "locomo" / "locomo_dev5.json.gz")
    return [f"{turn.speaker}: {turn.text}" for found in conversations for turn in found.turns]


@pytest.fixture(scope="module")
def one_thread() -> ModelEmbedder:
    return ModelEmbedder(threads=1)


@pytest.fixture(scope="module")
def two_threads() -> ModelEmbedder:
    return ModelEmbedder(threads=2)


def raw(passages: Sequence[Passage]) -> str:
    """A hash of the numbers as the model made them."""
    return sha256(b"".join(p.vector.tobytes() + p.tokens.tobytes() for p in passages)).hexdigest()


def stored(passages: Sequence[Passage]) -> str:
    """A hash of the integers that the store keeps."""
    parts = [
        p.vector.tobytes() + (p.tokens.tobytes() if p.tokens is not None else b"")
        for p in canonical_passages(passages)
    ]
    return sha256(b"".join(parts)).hexdigest()


def check(texts: list[str], one: ModelEmbedder, two: ModelEmbedder) -> None:
    alone = [one.encode([text])[0] for text in texts]
    expected = [(raw(passages), stored(passages)) for passages in alone]
    shuffled = list(range(len(texts)))
    random.Random(5).shuffle(shuffled)
    with helped(two):
        for embedder, size, order in (
            (one, 16, range(len(texts))),
            (one, 256, shuffled),
            (two, 1, range(len(texts))),
            (two, 7, shuffled),
            (two, 1000, range(len(texts))),
        ):
            places = list(order)
            for first in range(0, len(places), size):
                some = places[first : first + size]
                for place, passages in zip(
                    some, embedder.encode([texts[n] for n in some]), strict=True
                ):
                    assert (raw(passages), stored(passages)) == expected[place], texts[place]


def test_two_hundred_turns(
    texts: list[str], one_thread: ModelEmbedder, two_threads: ModelEmbedder
) -> None:
    check(texts[::13][:200], one_thread, two_threads)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_every_turn(
    texts: list[str], one_thread: ModelEmbedder, two_threads: ModelEmbedder
) -> None:
    check(texts, one_thread, two_threads)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("count", "processor"), [(50, without_avx512), (12, without_avx)])
def test_an_older_processor(
    texts: list[str],
    one_thread: ModelEmbedder,
    count: int,
    processor: Callable[[], list[str]],
) -> None:
    some = sorted(texts, key=len)[:: len(texts) // count][:count]
    found = output(HASHES, some, processor=processor())
    assert found == [raw(one_thread.encode([text])[0]) for text in some]
