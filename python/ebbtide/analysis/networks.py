"""What runs an encoder: ONNX Runtime a graph, the core a file of weights."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ebbtide import _core
from ebbtide.analysis.batching import rows_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["NETWORK_FILES", "CoreNetwork", "Network", "OnnxNetwork", "open_network"]

KNOWN_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
INTEGER_TYPES: dict[str, type[np.integer[Any]]] = {
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
}


class Network(Protocol):
    """Word pieces to vectors.

    Attributes:
        width: Numbers of a word piece's vector; None where the file does not tell.
        longest: Word pieces of the longest text; None where the file does not tell.
        of_one_length: Whether the texts of one call must have one length.
    """

    width: int | None
    longest: int | None
    of_one_length: bool

    def rows(self, texts: Sequence[tuple[int, ...]]) -> list[NDArray[np.float32]]:
        """The vectors of each text's word pieces: float32 [pieces, width]."""
        ...

    def help(self) -> bool:
        """Help another thread with its call of :meth:`rows`, for a millisecond or so.

        False where there is nothing to help with.
        """
        ...


class OnnxNetwork:
    """An ONNX graph of a BERT-like encoder, run by ONNX Runtime on the processor."""

    width: int | None
    longest: int | None = None
    of_one_length: bool = True

    def __init__(self, path: Path, threads: int) -> None:
        """Open the graph.

        Args:
            path: ``model.onnx``.
            threads: ONNX Runtime's own threads within one call.

        Raises:
            ValueError: It cannot be opened, or is no encoder; the message says why.
        """
        self._session = _open_session(path, threads)
        self._inputs = _graph_inputs(self._session)
        self._output, self.width = _graph_output(self._session)

    def rows(self, texts: Sequence[tuple[int, ...]]) -> list[NDArray[np.float32]]:
        """See :class:`Network`; views of one array."""
        ids = np.array(texts, np.int64)
        feeds = {
            name: (
                ids.astype(kind)
                if name == "input_ids"
                else np.full(ids.shape, name == "attention_mask", kind)
            )
            for name, kind in self._inputs
        }
        (hidden,) = self._session.run([self._output], feeds)
        return list(hidden.astype(np.float32, copy=False))

    def help(self) -> bool:
        """ONNX Runtime has its own threads."""
        return False


class CoreNetwork:
    """A BERT encoder in bytes, run by the core; the same bits on every processor."""

    width: int | None
    longest: int | None
    of_one_length: bool = False

    def __init__(self, path: Path) -> None:
        """Read the weights.

        Args:
            path: ``model.safetensors``, as ``models/bge-small-en-v1.5/build.py`` writes it.

        Raises:
            ValueError: It cannot be read, or is no encoder; the message says why.
        """
        try:
            self._encoder = _core.Encoder(path.read_bytes())
        except OSError as error:
            raise ValueError(str(error)) from error
        self.width = self._encoder.width
        self.longest = self._encoder.longest

    def rows(self, texts: Sequence[tuple[int, ...]]) -> list[NDArray[np.float32]]:
        """See :class:`Network`; views of one array."""
        pieces = np.fromiter((piece for text in texts for piece in text), np.uint32)
        return rows_of(texts, self._encoder.encode(pieces, list(map(len, texts))))

    def help(self) -> bool:
        """See :class:`Network`; a text changes no bit by it."""
        return self._encoder.help()


NETWORK_FILES = ("model.safetensors", "model.onnx")
"""Where a directory may have its network; the first that is there counts."""


def open_network(path: Path, threads: int) -> Network:
    """Open one of :data:`NETWORK_FILES`.

    Raises:
        ValueError: It cannot be opened, or is no encoder; the message says why.
    """
    return CoreNetwork(path) if path.suffix == ".safetensors" else OnnxNetwork(path, threads)


def _open_session(path: Path, threads: int) -> Any:
    # Recent releases write a device id and an event log to the user's cache as soon
    # as they are imported, unless this is set.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(
            str(path),
            options,
            providers=["CPUExecutionProvider"],
            # The fused node is slower than the two it replaces.
            disabled_optimizers=["SkipLayerNormFusion"],
        )
    # Its exception classes derive from Exception and are not public.
    except Exception as error:
        raise ValueError(str(error)) from error


def _graph_inputs(session: Any) -> tuple[tuple[str, type[np.integer[Any]]], ...]:
    inputs = []
    for node in session.get_inputs():
        if node.name not in KNOWN_INPUTS:
            raise ValueError(f"input {node.name!r} is not one of {', '.join(KNOWN_INPUTS)}")
        if node.type not in INTEGER_TYPES:
            raise ValueError(f"input {node.name!r} is {node.type}, not int32 or int64")
        inputs.append((node.name, INTEGER_TYPES[node.type]))
    if "input_ids" not in dict(inputs):
        raise ValueError("it has no input 'input_ids'")
    return tuple(inputs)


def _graph_output(session: Any) -> tuple[str, int | None]:
    """Name and width of the token vectors: ``last_hidden_state``, else the first of rank 3."""
    candidates = [node for node in session.get_outputs() if len(node.shape) == 3]
    candidates.sort(key=lambda node: node.name != "last_hidden_state")
    if not candidates:
        raise ValueError("it has no output [batch, tokens, dimension]")
    width = candidates[0].shape[2]
    return candidates[0].name, width if isinstance(width, int) else None
