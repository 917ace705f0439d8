"""The weights of bge-small-en-v1.5 out of the published graph, and a float32 graph of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

__all__ = ["LAYERS", "Source", "build_graph", "read_source"]

DIMENSION, HEADS, LAYERS = 384, 12, 12
LAYER_NORM_EPSILON = 1e-12
REDUCED_RANGE = 64
OPSET, IR_VERSION = 20, 9


@dataclass
class Source:
    """The weights of the published graph.

    Attributes:
        words: uint8 [vocabulary, 384], the word embeddings.
        words_scale: float32 scalar; the value is ``(words - zero) * scale``.
        words_zero: uint8 scalar.
        positions: float32 [512, 384], position plus segment-0 embeddings.
        matrices: Name to (int8 [inputs, outputs], float32 [outputs] scales).
        vectors: Name to float32 [n]: biases and layer normalisation.
    """

    words: NDArray[np.uint8]
    words_scale: NDArray[np.float32]
    words_zero: NDArray[np.uint8]
    positions: NDArray[np.float32]
    matrices: dict[str, tuple[NDArray[np.int8], NDArray[np.float32]]] = field(default_factory=dict)
    vectors: dict[str, NDArray[np.float32]] = field(default_factory=dict)


def read_source(data: bytes) -> Source:
    """Read the weights out of the published graph's bytes.

    Raises:
        ValueError: If a weight is not symmetric int8 within -64..64.
    """
    graph = onnx.load_from_string(data).graph
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}

    def dequantised(name: str) -> NDArray[np.float32]:
        integers = stored[name + "_quantized"].astype(np.float32)
        zero = stored[name + "_zero_point"].astype(np.float32)
        scale: NDArray[np.float32] = stored[name + "_scale"]
        return (integers - zero) * scale

    words = "embeddings.word_embeddings.weight"
    source = Source(
        words=stored[words + "_quantized"],
        words_scale=stored[words + "_scale"],
        words_zero=stored[words + "_zero_point"],
        positions=dequantised("embeddings.position_embeddings.weight")
        + dequantised("embeddings.token_type_embeddings.weight")[0],
    )
    for name, value in stored.items():
        if value.dtype == np.float32 and not name.endswith("_scale"):
            source.vectors[name] = value
    for node in graph.node:
        match = re.fullmatch(r"/encoder/layer\.(\d+)/(.+)/MatMul_quant", node.name)
        if node.op_type != "MatMulInteger" or match is None:
            continue
        weight = node.input[1].removesuffix("_quantized")
        integers = stored[weight + "_quantized"]
        if (
            stored[weight + "_zero_point"].any()
            or np.abs(integers.astype(int)).max() > REDUCED_RANGE
        ):
            raise ValueError(f"{node.name}: weights are not symmetric within -64..64")
        name = f"encoder.layer.{match[1]}." + match[2].replace("/", ".")
        source.matrices[name] = (integers, stored[weight + "_scale"])
    if len(source.matrices) != 6 * LAYERS:
        raise ValueError(f"expected {6 * LAYERS} weight matrices, found {len(source.matrices)}")
    return source


class _Writer:
    """Collects nodes and constants; every node is named after its one output."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, name: str, value: NDArray[np.generic]) -> str:
        self.constants.append(numpy_helper.from_array(np.array(value, order="C"), name))
        return name

    def op(self, kind: str, inputs: list[str], name: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def normalise(self, x: str, prefix: str, name: str) -> str:
        scale = self.constant(name + ".gain", self.source.vectors[prefix + ".LayerNorm.weight"])
        bias = self.constant(name + ".bias", self.source.vectors[prefix + ".LayerNorm.bias"])
        return self.op(
            "LayerNormalization", [x, scale, bias], name, axis=-1, epsilon=LAYER_NORM_EPSILON
        )

    def linear(self, x: str, weight: str, name: str) -> str:
        integers, scales = self.source.matrices[weight]
        matrix = self.constant(name + ".w", integers.astype(np.float32) * scales)
        bias = self.constant(name + ".b", self.source.vectors[weight + ".bias"])
        return self.op("Add", [self.op("MatMul", [x, matrix], name + ".product"), bias], name)


def _embed(writer: _Writer) -> str:
    source = writer.source
    table = writer.constant("words", source.words)
    scale = writer.constant("words.scale", source.words_scale)
    zero = writer.constant("words.zero", source.words_zero)
    positions = writer.constant("positions", source.positions)
    first = writer.constant("zero", np.array([0], np.int64))
    axis = writer.constant("one", np.array([1], np.int64))
    rows = writer.op("Gather", [table, "input_ids"], "word.u8")
    word = writer.op("DequantizeLinear", [rows, scale, zero], "word")
    shape = writer.op("Shape", ["input_ids"], "shape")
    length = writer.op("Gather", [shape, axis], "length")
    position = writer.op("Slice", [positions, first, length, first], "position")
    return writer.normalise(writer.op("Add", [word, position], "embedded"), "embeddings", "input")


def _layer(writer: _Writer, x: str, layer: int) -> str:
    prefix, name, op = f"encoder.layer.{layer}", f"layer.{layer}.", writer.op
    heads = {}
    for part, order in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3])):
        y = writer.linear(x, f"{prefix}.attention.self.{part}", name + part)
        y = op("Reshape", [y, "heads.shape"], name + part + ".heads")
        heads[part] = op("Transpose", [y], name + part + ".ordered", perm=order)
    scores = op("MatMul", [heads["query"], heads["key"]], name + "scores")
    scores = op("Mul", [scores, "heads.scale"], name + "scores.scaled")
    shares = op("Softmax", [scores], name + "shares", axis=-1)
    context = op("MatMul", [shares, heads["value"]], name + "context.heads")
    context = op("Transpose", [context], name + "context.ordered", perm=[0, 2, 1, 3])
    context = op("Reshape", [context, "flat.shape"], name + "context")
    attended = writer.linear(context, f"{prefix}.attention.output.dense", name + "attended")
    residual = op("Add", [attended, x], name + "attended.sum")
    x = writer.normalise(residual, f"{prefix}.attention.output", name + "middle")
    hidden = writer.linear(x, f"{prefix}.intermediate.dense", name + "intermediate")
    hidden = op("Gelu", [hidden], name + "gelu")
    down = writer.linear(hidden, f"{prefix}.output.dense", name + "down")
    last = "last_hidden_state" if layer == LAYERS - 1 else name + "output"
    return writer.normalise(op("Add", [down, x], name + "down.sum"), f"{prefix}.output", last)


def build_graph(source: Source) -> onnx.ModelProto:
    """Build the encoder in float32.

    Input ``input_ids``, int32 [batch, tokens], all rows of one length, at most
    512, no padding. Output ``last_hidden_state``, float32 [batch, tokens, 384].
    """
    writer = _Writer(source)
    writer.constant("heads.shape", np.array([0, 0, HEADS, DIMENSION // HEADS], np.int64))
    writer.constant("heads.scale", np.array(1 / np.sqrt(DIMENSION // HEADS), np.float32))
    writer.constant("flat.shape", np.array([0, 0, DIMENSION], np.int64))
    x = _embed(writer)
    for layer in range(LAYERS):
        x = _layer(writer, x, layer)
    outputs = [helper.make_tensor_value_info(x, TensorProto.FLOAT, ["batch", "tokens", DIMENSION])]
    inputs = [helper.make_tensor_value_info("input_ids", TensorProto.INT32, ["batch", "tokens"])]
    graph = helper.make_graph(writer.nodes, "bge-small-en-v1.5", inputs, outputs, writer.constants)
    opset = helper.make_opsetid("", OPSET)
    return helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION)
