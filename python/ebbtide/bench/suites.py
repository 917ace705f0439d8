"""The measurements, one function a section."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from ebbtide.analysis.analyser import Analyser
from ebbtide.analysis.facts import TurnText
from ebbtide.analysis.reading_ahead import HereReaders, read_ahead
from ebbtide.bench.figures import Figure, milliseconds, sample, timed
from ebbtide.bench.workload import QUESTIONS, conversation
from ebbtide.config import Config
from ebbtide.memory import Memory

__all__ = ["SECTIONS", "run"]

_STARTS = """
import json, sys, time
start = time.perf_counter()
import ebbtide
imported = time.perf_counter()
with ebbtide.Memory.in_memory() as memory:
    memory.add("I moved to Porto in May.", speaker="Ana")
    first = time.perf_counter()
    memory.add_many({"text": f"Turn {n}: we met {n} people in Porto."} for n in range(64))
try:
    import resource
    unit = 1024 * 1024 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
except ImportError:
    peak = None
print(json.dumps([imported - start, first - imported, peak]))
"""

_RESIDENT = """
import json, sys
from itertools import cycle, islice
import ebbtide
from ebbtide.bench.workload import conversation
turns = [{"text": turn["text"], "speaker": turn["speaker"]} for turn in conversation(500)]
config = ebbtide.Config().replace(nlp={"analysis_cache": "analyses.db"})
with ebbtide.Memory.open("resident.db", config=config) as memory:
    memory.add_many(islice(cycle(turns), int(sys.argv[1])))
    memory.retrieve("Who moved to Porto?")
    with open("/proc/self/statm", encoding="ascii") as file:
        print(json.dumps(int(file.read().split()[1]) * 4096 / 2**20))
"""
_RECORDS = 10_000


@contextmanager
def _memory(folder: Path, name: str, config: Config | None = None) -> Iterator[Memory]:
    with Memory.open(folder / f"{name}.db", config=config) as memory:
        memory.warm_up()
        yield memory


def start_up(folder: Path, rounds: int, turns: int) -> Iterator[Figure]:
    """A fresh process: the import, the first turn, its memory."""
    runs = []
    for _ in range(rounds):
        done = subprocess.run(
            [sys.executable, "-c", _STARTS], capture_output=True, text=True, check=True, cwd=folder
        )
        runs.append(json.loads(done.stdout))
    imports, firsts, peaks = zip(*runs, strict=True)
    yield milliseconds("start-up", "import ebbtide", imports)
    yield milliseconds("start-up", "first turn after the import, models loaded for it", firsts)
    if None not in peaks:
        peak = statistics.median(peaks)
        yield Figure("start-up", "peak memory with 65 turns", "MB", peak, rounds=rounds)
    if Path("/proc/self/statm").exists():
        done = subprocess.run(
            [sys.executable, "-c", _RESIDENT, str(_RECORDS)],
            capture_output=True,
            text=True,
            check=True,
            cwd=folder,
        )
        resident = float(done.stdout)
        yield Figure("start-up", "resident memory after a recall", "MB", resident, size=_RECORDS)


def kernels(folder: Path, rounds: int, turns: int) -> Iterator[Figure]:
    """The array kernels over a million entries, and over a hundred thousand vectors."""
    import numpy as np

    from ebbtide.kernels import cosine_top_k, decay, prune

    draw = np.random.default_rng(1)
    size = 1_000_000
    omega, age = draw.random(size), draw.integers(0, 500, size)
    yield milliseconds(
        "kernels", "decay and tiers", sample(lambda: decay(omega, age), rounds), size=size
    )
    tokens = draw.integers(5, 60, size)
    budget = int(tokens.sum()) * 9 // 10
    adjustment = np.zeros(size)
    yield milliseconds(
        "kernels",
        "budget pruning, a tenth evicted",
        sample(lambda: prune(omega, adjustment, tokens, budget=budget), rounds),
        size=size,
    )
    raw = draw.standard_normal((100_000, 384))
    raw *= 32767 / np.linalg.norm(raw, axis=1, keepdims=True)
    vectors = raw.round().astype(np.int16)
    yield milliseconds(
        "kernels",
        "exact cosine search, 16-bit vectors of 384, best 16",
        sample(lambda: cosine_top_k(vectors, vectors[0], k=16), rounds),
        size=len(vectors),
    )


def replay(folder: Path, rounds: int, turns: int) -> Iterator[Figure]:
    """A transcript from the first turn to the last, in a store file."""
    whole, rest = [], []
    for number in range(rounds):
        # Each round its own words: nothing is analysed twice.
        given = list(conversation(turns, seed=number))
        _analysis_cpu(given)  # what is known of words is known from here on
        analysis = _analysis_cpu(given)
        with _memory(folder, f"replay-{number}") as memory:
            cpu = time.process_time()
            whole.append(timed(partial(memory.add_many, given)))
            spent = time.process_time() - cpu
        # Before and after, so that a slow minute of the machine is in both.
        analysis = (analysis + _analysis_cpu(given)) / 2
        rest.append(max(0.0, 1 - analysis / spent))
    yield Figure(
        "replay",
        "turns stored a second, default settings",
        "turns/s",
        turns / statistics.median(whole),
        size=turns,
        rounds=rounds,
    )
    yield Figure(
        "replay",
        "share of its processor time that is not analysis",
        "%",
        100 * statistics.median(rest),
        size=turns,
        rounds=rounds,
        note="score, decay, prune, archive, index, commit; by difference",
    )


def _analysis_cpu(given: Sequence[dict[str, Any]]) -> float:
    """Processor seconds of analysing these turns as a replay does, and nothing else."""
    with closing(Analyser(Config()["nlp"])) as analyser:
        analyser.warm_up()
        start = time.process_time()
        deque(read_ahead(given, _text, HereReaders(analyser)), maxlen=0)
        return time.process_time() - start


def _text(turn: dict[str, Any]) -> TurnText:
    return TurnText(turn["text"], turn["role"], turn["speaker"], turn["timestamp"])


def add(folder: Path, rounds: int, turns: int) -> Iterator[Figure]:
    """One turn at a time."""
    calls = min(turns, 200)
    given = list(conversation(2 * calls, seed=100))
    with _memory(folder, "add") as memory, closing(Analyser(Config()["nlp"])) as analyser:
        times, alone = [], []
        # Side by side, so that both see the same machine.
        for turn, other in zip(given[:calls], given[calls:], strict=True):
            times.append(timed(partial(memory.add, **turn)))
            alone.append(timed(partial(analyser.analyse, [_text(other)])))
    yield milliseconds("add", "add, until all is stored", times)
    yield milliseconds("add", "the analysis of a turn alone", alone)
    ratio = statistics.median(times) / statistics.median(alone)
    yield Figure("add", "add by its analysis alone", "×", ratio, rounds=calls)
    for synchronous in ("normal", "full"):
        config = Config().replace(store={"synchronous": synchronous})
        with _memory(folder, f"journal-{synchronous}", config) as memory:
            times = []
            for turn in given:
                times.append(timed(partial(memory.add, **turn, wait="journalled")))
                memory.flush()
        name = f'add with wait="journalled", synchronous = "{synchronous}"'
        yield milliseconds("add", name, times)


def recall(folder: Path, rounds: int, turns: int) -> Iterator[Figure]:
    """Questions to a memory of so many turns."""
    with _memory(folder, "recall") as memory, closing(Analyser(Config()["nlp"])) as analyser:
        read = partial(analyser.question, query_time=None, speakers=["ana", "ben"], bare=False)
        memory.add_many(conversation(turns, seed=200))
        whole, context, question = [], [], []
        for _ in range(max(rounds, 100 // len(QUESTIONS) + 1)):
            for text in QUESTIONS:
                whole.append(timed(partial(memory.retrieve, text, limit=10)))
                context.append(timed(partial(memory.context, text, max_tokens=2048)))
                question.append(timed(partial(read, text)))
    yield milliseconds("recall", "retrieve, whole", whole, size=turns)
    yield milliseconds("recall", "context of 2,048 tokens, whole", context, size=turns)
    yield milliseconds("recall", "the analysis of the question alone", question, size=turns)
    ratio = statistics.median(whole) / statistics.median(question)
    yield Figure("recall", "retrieve by its analysis alone", "×", ratio, size=turns)


SECTIONS: dict[str, Callable[[Path, int, int], Iterator[Figure]]] = {
    "start-up": start_up,
    "replay": replay,
    "add": add,
    "recall": recall,
    "kernels": kernels,
}
"""Sections by name, in the order of reports."""


def run(
    sections: Sequence[str] = (),
    *,
    rounds: int = 5,
    turns: int = 600,
    progress: Callable[[Figure], None] | None = None,
) -> list[Figure]:
    """Measure.

    Args:
        sections: Which of :data:`SECTIONS`; all by default.
        rounds: Values a median is of, where a value takes seconds.
        turns: Turns of a replay, and records at recall.
        progress: Called with each figure as it comes.
    """
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        for name in sections or SECTIONS:
            for figure in SECTIONS[name](Path(folder), rounds, turns):
                figures.append(figure)
                if progress is not None:
                    progress(figure)
    return figures
