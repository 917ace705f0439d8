"""The encoder in the core, which runs the default model."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ebbtide import Config, InputError, Memory, _core
from ebbtide.analysis.canonical import canonical_passages
from ebbtide.analysis.embedding import ModelEmbedder, Passage, at_once
from ebbtide.analysis.embedding_model import default_directory
from ebbtide.analysis.networks import CoreNetwork
from ebbtide.errors import ConfigError, FingerprintError

BUILD = Path(__file__).resolve().parents[2] / "models" / "bge-small-en-v1.5" / "build.py"
TEXTS = [
    "Rosa: I adopted a grey cat in March, her name is Pebble.",
    "Ok.",
    "Which day suits you better, Tuesday or Thursday?",
    "Zoë ate naïve crêpes 😂 in Łódź.",
    "",
    "Nikolai: my shift ends at nine, so I can pick you up at the station around half past.",
    "We left the tent at home because the forecast promised three dry days in a row.",
    "word " * 150,
    "The quarterly figures are in the shared folder, revenue is up 8 %. " * 60,
]

BITS = "3962ab9f2bd37e2c71d24fb6d1846ee547810e925d37a0467eacea8bc430752f"
"""SHA-256 of what is stored of these texts, on every processor."""


@pytest.fixture(scope="module")
def directory() -> Path:
    return default_directory()


@pytest.fixture(scope="module")
def embedder() -> ModelEmbedder:
    return ModelEmbedder()


@pytest.fixture(scope="module")
def float32(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same weights as a graph for ONNX Runtime that rounds no activation."""
    folder = tmp_path_factory.mktemp("float32")
    subprocess.run([sys.executable, BUILD, "--float32", folder], check=True, capture_output=True)
    return folder


def raw(passages: Sequence[Passage]) -> list[tuple[bytes, bytes, bytes]]:
    return [(p.vector.tobytes(), p.tokens.tobytes(), p.token_spans.tobytes()) for p in passages]


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def test_it_is_the_float32_network_within_what_bytes_round_away(
    embedder: ModelEmbedder, float32: Path
) -> None:
    exact = ModelEmbedder(float32)
    texts = [text for text in TEXTS if text]
    ours, theirs = unit(embedder.embed(texts)), unit(exact.embed(texts))
    assert (ours * theirs).sum(axis=1).min() > 0.999
    # Far nearer than any two texts are to each other.
    between = ours @ theirs.T - 2 * np.eye(len(texts), dtype=np.float32)
    assert between.max() < 0.95
    assert embedder.dimension == exact.dimension == 384
    assert embedder.query_prefix == exact.query_prefix
    assert embedder.fingerprint != exact.fingerprint


def test_every_word_piece_is_near_the_float32_network(
    embedder: ModelEmbedder, float32: Path
) -> None:
    exact = ModelEmbedder(float32).encode(TEXTS)
    for ours, theirs in zip(embedder.encode(TEXTS), exact, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            near = (unit(one.tokens) * unit(other.tokens)).sum(axis=1)
            assert near.min(initial=1) > 0.97


def test_the_bits_are_those_of_every_machine(embedder: ModelEmbedder) -> None:
    """Stores hold these vectors: whoever changes them has to change the fingerprint, too."""
    stored = [canonical_passages(passages) for passages in embedder.encode(TEXTS)]
    parts = [
        p.vector.tobytes() + (b"" if p.tokens is None else p.tokens.tobytes())
        for passages in stored
        for p in passages
    ]
    assert sha256(b"".join(parts)).hexdigest() == BITS


def test_alone_in_company_and_in_any_order_are_the_same_bits(embedder: ModelEmbedder) -> None:
    alone = {text: raw(embedder.encode([text])[0]) for text in TEXTS}
    for seed in range(3):
        texts = TEXTS * 3
        random.Random(seed).shuffle(texts)
        for text, passages in zip(texts, embedder.encode(texts), strict=True):
            assert raw(passages) == alone[text]
        stored = embedder.begin(texts, at_once)()
        assert [len(passages) for passages in stored] == [len(alone[text]) for text in texts]


def test_concurrent_callers_get_their_own_results(embedder: ModelEmbedder) -> None:
    alone = [raw(embedder.encode([text])[0]) for text in TEXTS]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            found = list(pool.map(lambda text: raw(embedder.encode([text])[0]), TEXTS))
            assert found == alone


def test_a_store_of_another_network_asks_to_be_reindexed(float32: Path, tmp_path: Path) -> None:
    config = Config().replace(nlp={"model_name": str(float32)})
    with Memory.open(tmp_path / "m.db", config=config) as memory:
        memory.add(TEXTS[0], role="user", speaker="Rosa")
        memory.add("The tent is at home.", role="user", speaker="Nikolai")
    with pytest.raises(FingerprintError, match="reindex"):
        Memory.open(tmp_path / "m.db")
    with Memory.open(tmp_path / "m.db", reindexing=True) as memory:
        memory.reindex()
        found = memory.retrieve("What is the name of Rosa's cat?")
    assert found[0].turn.text == TEXTS[0]


def test_what_does_not_fit_is_refused(directory: Path, tmp_path: Path) -> None:
    network = CoreNetwork(directory / "model.safetensors")
    assert (network.width, network.longest) == (384, 512)
    with pytest.raises(InputError, match="513 word pieces: 512 are the most"):
        network.rows([(1,) * 513])
    with pytest.raises(InputError, match="word piece 40000 of 30522"):
        network.rows([(40_000,)])
    with pytest.raises(InputError, match="add up to 2 word pieces, there are 1"):
        _core.Encoder((directory / "model.safetensors").read_bytes()).encode(
            np.ones(1, dtype=np.uint32), [2]
        )
    assert network.rows([()])[0].shape == (0, 384)


def copied(directory: Path, to: Path, **manifest: object) -> Path:
    shutil.copytree(directory, to)
    told = json.loads((to / "manifest.json").read_text(encoding="utf-8"))
    del told["sha256"]
    (to / "manifest.json").write_text(json.dumps({**told, **manifest}), encoding="utf-8")
    return to


def test_a_damaged_file_and_a_wrong_manifest_are_named(directory: Path, tmp_path: Path) -> None:
    long = copied(directory, tmp_path / "long", max_tokens=600)
    with pytest.raises(ConfigError, match="its longest text has 512 word pieces, not 600"):
        ModelEmbedder(long)
    wide = copied(directory, tmp_path / "wide", dimension=100)
    with pytest.raises(ConfigError, match=r"width is 384, manifest\.json says 100"):
        ModelEmbedder(wide)
    damaged = copied(directory, tmp_path / "damaged")
    whole = (damaged / "model.safetensors").read_bytes()
    for content in (b"", b"\x00\x01 not this", whole[: len(whole) // 2]):
        (damaged / "model.safetensors").write_bytes(content)
        with pytest.raises(ConfigError, match=r"model\.safetensors' cannot be used"):
            ModelEmbedder(damaged)
