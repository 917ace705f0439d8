"""bge-small-en-v1.5 as the core's encoder reads it: the published graph's integer weights.

The published file is a dynamically quantised graph: its activation scales span the whole
batch, so that an embedding changes with its neighbours. Its integer weights are good, though:
signed, symmetric, per output channel and within -64..64, which is what a product with
unsigned bytes needs to stay clear of 16-bit saturation on processors without VNNI. They are
taken over unchanged; the encoder makes bytes of activations word piece by word piece.

The file is of the safetensors format, whose header is JSON; its names are those that
``rust/encoder/src/file.rs`` reads.
"""

from __future__ import annotations

import json

import numpy as np
from graph import LAYERS, Source
from numpy.typing import NDArray

__all__ = ["serialised", "tensors"]

Tensors = dict[str, NDArray[np.generic]]
_KINDS = {"float32": "F32", "int8": "I8", "uint8": "U8"}
_LOOKING = [f"attention.self.{part}" for part in ("query", "key", "value")]


def tensors(source: Source) -> Tensors:
    """Every tensor of the file."""
    found: Tensors = {
        "words": source.words,
        "words.scale": np.array(source.words_scale, np.float32).reshape(1),
        "words.zero": np.array(source.words_zero, np.uint8).reshape(1),
        "positions": source.positions,
        **_norm(source, "input", "embeddings"),
    }
    for number in range(LAYERS):
        prefix, name = f"encoder.layer.{number}.", f"layer.{number}."
        for to, parts in (
            ("looking", _LOOKING),
            ("attended", ["attention.output.dense"]),
            ("widening", ["intermediate.dense"]),
            ("narrowing", ["output.dense"]),
        ):
            found.update(_product(source, name + to, [prefix + part for part in parts]))
        found.update(_norm(source, name + "middle", prefix + "attention.output"))
        found.update(_norm(source, name + "output", prefix + "output"))
    return found


def _norm(source: Source, name: str, prefix: str) -> Tensors:
    return {
        f"{name}.gain": source.vectors[f"{prefix}.LayerNorm.weight"],
        f"{name}.shift": source.vectors[f"{prefix}.LayerNorm.bias"],
    }


def _product(source: Source, name: str, weights: list[str]) -> Tensors:
    """Weights that share what they are multiplied with, beside each other."""
    matrices = [source.matrices[weight] for weight in weights]
    return {
        f"{name}.weight": np.concatenate([integers for integers, _ in matrices], axis=1),
        f"{name}.scale": np.concatenate([scales for _, scales in matrices]),
        f"{name}.bias": np.concatenate([source.vectors[f"{weight}.bias"] for weight in weights]),
    }


def serialised(named: Tensors) -> bytes:
    """The file, with the widest numbers first so that all of them are aligned."""
    ordered = sorted(named.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    header: dict[str, object] = {}
    blocks: list[bytes] = []
    end = 0
    for name, tensor in ordered:
        blocks.append(np.ascontiguousarray(tensor).tobytes())
        start, end = end, end + len(blocks[-1])
        header[name] = {
            "dtype": _KINDS[tensor.dtype.name],
            "shape": list(tensor.shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(blocks)
