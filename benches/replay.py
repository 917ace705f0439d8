"""How fast conversations are replayed, what each stage costs, and what the cores allow.

    python benches/replay.py --data ../shared/data/locomo/locomo_dev5.json.gz --out replay.json

The bound is cores ÷ the stages' summed CPU seconds a turn. Each round measures the stages
and then the replays, and a share is that of one round's replay of its own bound, so that a
slow minute of the machine is in both. Medians of the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from ebbtide import Config, Memory, Turn
from ebbtide.analysis.analyser import Analyser
from ebbtide.analysis.canonical import canonical_passages
from ebbtide.analysis.normalise import for_matching
from ebbtide.analysis.reading_ahead import CHUNK_TURNS
from ebbtide.inputs import Prepared, prepare
from ebbtide.pipeline import for_core, text_of
from ebbtide.replay import replay
from ebbtide.transcripts import read_transcripts

Result = TypeVar("Result")


def in_chunks(items: list[Any], function: Callable[[list[Any]], list[Any]]) -> list[Any]:
    bounds = [*range(0, len(items), CHUNK_TURNS), len(items)]
    return [found for a, b in pairwise(bounds) for found in function(items[a:b])]


def stages(turns: list[Prepared], config: Config) -> dict[str, float]:
    """CPU milliseconds a turn, by stage, each stage alone on one thread."""
    analyser = Analyser(config["nlp"])
    analyser.warm_up()
    spacy, model = analyser._spacy, analyser._model()
    texts = [text_of(turn) for turn in turns]
    embedded = analyser._embedded_texts(texts)
    cost: dict[str, float] = {}

    def timed(name: str, work: Callable[[], Result]) -> Result:
        start = time.thread_time()
        result = work()
        cost[name] = 1000 * (time.thread_time() - start) / len(turns)
        return result

    matched = [for_matching(text.text) for text in texts]
    parsed = partial(in_chunks, matched, lambda some: list(spacy._loaded().pipe(some)))
    parsed()  # words seen before are looked up, as in every replay but the first
    docs = timed("spaCy", parsed)
    spans = [[((0, len(t.text)), doc)] for t, doc in zip(texts, docs, strict=True)]
    facts = timed(
        "rules and VADER",
        lambda: [spacy._facts(t, t.text, some) for t, some in zip(texts, spans, strict=True)],
    )
    timed("tokenise", lambda: [model._windows(text) for text in embedded])
    encoded = timed("embed, tokenising too", lambda: in_chunks(embedded, model.encode))
    passages = timed("pool, make integers", lambda: [canonical_passages(p) for p in encoded])
    analyses = analyser.joined(texts, facts, passages)
    with Memory.in_memory(config=config) as memory:
        batch = [for_core(turn, found) for turn, found in zip(turns, analyses, strict=True)]
        timed(
            "score, decay, index, store",
            lambda: in_chunks(batch, lambda b: [memory._handle.add(b)]),
        )
    cost["sum"] = sum(ms for name, ms in cost.items() if name != "tokenise")
    return cost


def replayed(turns: list[Turn], workers: int, config: Config) -> dict[str, float]:
    """One replay into a store in memory, models loaded before."""
    with Memory.in_memory(config=config) as memory:
        memory.warm_up()
        cpu = time.process_time()
        summary = replay(memory, turns, workers=workers)
        cpu = time.process_time() - cpu
    return {
        "turns_per_second": summary.turns_per_second,
        # Of this process alone: with workers, theirs is not in it.
        "cpu_ms_a_turn": 1000 * cpu / len(turns),
    }


def one_round(
    turns: list[Turn], prepared: list[Prepared], workers: list[int], config: Config
) -> dict[str, Any]:
    """What the stages cost, and how fast the turns are replayed, by number of workers."""
    cost = stages(prepared, config)
    return {"stages": cost, "replay": {n: replayed(turns, n, config) for n in workers}}


def summed_up(rounds: list[dict[str, Any]], cores: int) -> dict[str, Any]:
    """Medians of the rounds; each replay by the bound of its own round."""
    bounds = [1000 * cores / found["stages"]["sum"] for found in rounds]

    def replays(workers: int) -> dict[str, Any]:
        runs = [found["replay"][workers] for found in rounds]
        speeds = [run["turns_per_second"] for run in runs]
        shares = [speed / bound for speed, bound in zip(speeds, bounds, strict=True)]
        return {
            "runs": runs,
            "median_turns_per_second": statistics.median(speeds),
            "share_of_bound": statistics.median(shares),
        }

    return {
        "cpu_ms_a_turn": {
            stage: statistics.median(found["stages"][stage] for found in rounds)
            for stage in rounds[0]["stages"]
        },
        "bound_turns_per_second": statistics.median(bounds),
        "replay": {str(workers): replays(workers) for workers in rounds[0]["replay"]},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a transcript file")
    parser.add_argument("--turns", type=int, default=None, help="the first so many only")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--model", help="[nlp] model_name; the default model otherwise")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    turns = [
        turn
        for transcript in read_transcripts(options.data, qualified=True)
        for turn in transcript.turns
    ][: options.turns]
    prepared = [p for p in (prepare(turn, max_chars=10**6) for turn in turns) if p is not None]
    cores = len(os.sched_getaffinity(0))
    config = Config()
    if options.model is not None:
        config = config.replace(nlp={"model_name": options.model})
    rounds = [one_round(turns, prepared, options.workers, config) for _ in range(options.runs)]
    report = {"turns": len(turns), "cores": cores, "load": os.getloadavg()[0]}
    report |= summed_up(rounds, cores)
    text = json.dumps(report, indent=1)
    print(text)
    if options.out is not None:
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
