"""bge-small-en-v1.5 as the core's encoder reads it: the graph's numbers, without the graph.

The file is of the safetensors format, whose header is JSON; its names are those that
``rust/encoder/src/file.rs`` reads. Integer weights and ranges are those of ``graph.py``.
"""

from __future__ import annotations

import json

import numpy as np
from graph import LAYERS, Source, step_and_zero
from numpy.typing import NDArray

__all__ = ["serialised", "tensors"]

Tensors = dict[str, NDArray[np.generic]]
_KINDS = {"float32": "F32", "int8": "I8", "uint8": "U8"}
_LOOKING = [f"attention.self.{part}" for part in ("query", "key", "value")]


def tensors(source: Source, ranges: dict[str, list[float]]) -> Tensors:
    """Every tensor of the file.

    Args:
        source: The weights.
        ranges: Activation name to [lowest, highest] value, as in ``ranges.json``.
    """
    found: Tensors = {
        "words": source.words,
        "words.scale": np.array(source.words_scale, np.float32).reshape(1),
        "words.zero": np.array(source.words_zero, np.uint8).reshape(1),
        "positions": source.positions,
        **_norm(source, "input", "embeddings"),
    }
    incoming = "input"
    for number in range(LAYERS):
        prefix, name = f"encoder.layer.{number}.", f"layer.{number}."
        for to, parts, activation in (
            ("looking", _LOOKING, incoming),
            ("attended", ["attention.output.dense"], name + "context"),
            ("widening", ["intermediate.dense"], name + "middle"),
            ("narrowing", ["output.dense"], name + "gelu"),
        ):
            weights = [prefix + part for part in parts]
            found.update(_product(source, name + to, weights, ranges[activation]))
        found.update(_norm(source, name + "middle", prefix + "attention.output"))
        found.update(_norm(source, name + "output", prefix + "output"))
        incoming = name + "output"
    return found


def _norm(source: Source, name: str, prefix: str) -> Tensors:
    return {
        f"{name}.gain": source.vectors[f"{prefix}.LayerNorm.weight"],
        f"{name}.shift": source.vectors[f"{prefix}.LayerNorm.bias"],
    }


def _product(source: Source, name: str, weights: list[str], span: list[float]) -> Tensors:
    """Weights beside each other, and the fixed range of what they are multiplied with."""
    step, zero = step_and_zero(span)
    matrices = [source.matrices[weight] for weight in weights]
    return {
        f"{name}.weight": np.concatenate([integers for integers, _ in matrices], axis=1),
        f"{name}.scale": np.concatenate([scales for _, scales in matrices]),
        f"{name}.bias": np.concatenate([source.vectors[f"{weight}.bias"] for weight in weights]),
        f"{name}.step": step.reshape(1),
        f"{name}.zero": zero.reshape(1),
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
