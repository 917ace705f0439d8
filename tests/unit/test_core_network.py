"""The default model run by the core instead of ONNX Runtime."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ebbtide import Config, InputError, Memory, _core
from ebbtide.analysis.embedding import OnnxEmbedder, Passage, at_once
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


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("core")
    subprocess.run([sys.executable, BUILD, "--core", folder], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def embedder(directory: Path) -> OnnxEmbedder:
    return OnnxEmbedder(directory)


def raw(passages: Sequence[Passage]) -> list[tuple[bytes, bytes, bytes]]:
    return [(p.vector.tobytes(), p.tokens.tobytes(), p.token_spans.tobytes()) for p in passages]


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def test_it_is_the_default_model_within_what_bytes_round_away(embedder: OnnxEmbedder) -> None:
    pytest.importorskip("ebbtide_model_bge_small_en", reason="the default model is not installed")
    onnx = OnnxEmbedder()
    texts = [text for text in TEXTS if text]
    ours, theirs = unit(embedder.embed(texts)), unit(onnx.embed(texts))
    assert (ours * theirs).sum(axis=1).min() > 0.985
    # Far nearer than any two texts are to each other.
    between = ours @ theirs.T - 2 * np.eye(len(texts), dtype=np.float32)
    assert between.max() < 0.95
    assert embedder.dimension == onnx.dimension == 384
    assert embedder.query_prefix == onnx.query_prefix
    assert embedder.fingerprint != onnx.fingerprint


def test_few_word_pieces_are_the_same_but_for_the_last_bits(embedder: OnnxEmbedder) -> None:
    pytest.importorskip("ebbtide_model_bge_small_en", reason="the default model is not installed")
    ours, theirs = embedder.embed(["cat", "dog"]), OnnxEmbedder().embed(["cat", "dog"])
    assert (unit(ours) * unit(theirs)).sum(axis=1).min() > 0.99


def test_alone_in_company_and_in_any_order_are_the_same_bits(embedder: OnnxEmbedder) -> None:
    alone = {text: raw(embedder.encode([text])[0]) for text in TEXTS}
    for seed in range(3):
        texts = TEXTS * 3
        random.Random(seed).shuffle(texts)
        for text, passages in zip(texts, embedder.encode(texts), strict=True):
            assert raw(passages) == alone[text]
        stored = embedder.begin(texts, at_once)()
        assert [len(passages) for passages in stored] == [len(alone[text]) for text in texts]


def test_concurrent_callers_get_their_own_results(embedder: OnnxEmbedder) -> None:
    alone = [raw(embedder.encode([text])[0]) for text in TEXTS]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            found = list(pool.map(lambda text: raw(embedder.encode([text])[0]), TEXTS))
            assert found == alone


def test_a_memory_uses_it(directory: Path, tmp_path: Path) -> None:
    config = Config().replace(nlp={"model_name": str(directory)})
    with Memory.open(tmp_path / "m.db", config=config) as memory:
        memory.add(TEXTS[0], role="user", speaker="Rosa")
        memory.add("The tent is at home.", role="user", speaker="Nikolai")
        found = memory.retrieve("What is the name of Rosa's cat?")
    assert found[0].turn.text == TEXTS[0]
    with pytest.raises(FingerprintError, match="reindex"):
        Memory.open(tmp_path / "m.db")


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
        OnnxEmbedder(long)
    wide = copied(directory, tmp_path / "wide", dimension=100)
    with pytest.raises(ConfigError, match=r"width is 384, manifest\.json says 100"):
        OnnxEmbedder(wide)
    damaged = copied(directory, tmp_path / "damaged")
    whole = (damaged / "model.safetensors").read_bytes()
    for content in (b"", b"\x00\x01 not this", whole[: len(whole) // 2]):
        (damaged / "model.safetensors").write_bytes(content)
        with pytest.raises(ConfigError, match=r"model\.safetensors' cannot be used"):
            OnnxEmbedder(damaged)


def test_the_file_is_the_same_every_time(directory: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, BUILD, "--core", tmp_path], check=True, capture_output=True)
    for file in directory.iterdir():
        assert (tmp_path / file.name).read_bytes() == file.read_bytes()
