"""What storing a turn costs once its analysis is there: ``python -m benches.write_path``.

The example conversation is analysed once with the real models and stored over
and over, each lap as another conversation (its claims are about other people),
with everything that is persisted: journal, text, facts, one vector, decisions,
and postings. Token vectors are measured apart. Times are the CPU time of the
process and the elapsed time, of the best of the rounds.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ebbtide import Config, _core
from ebbtide.analysis.analyser import Analyser
from ebbtide.analysis.facts import TurnText
from ebbtide.inputs import prepare
from ebbtide.mappings import turn_from
from ebbtide.pipeline import for_core

EXAMPLE = Path(__file__).parent.parent / "examples" / "conversation.jsonl"
Analysed = tuple[Any, ...]


def analysed(config: Config) -> list[Analysed]:
    """The example conversation, with its facts and vectors."""
    lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
    prepared = [prepare(turn_from(json.loads(line)), max_chars=1_000_000) for line in lines]
    turns = [turn for turn in prepared if turn is not None]
    texts = [TurnText(t.text, t.role, t.speaker, t.moment) for t in turns]
    found = Analyser(config["nlp"], embedder=None, cards=False).analyse(texts)
    return [for_core(turn, a) for turn, a in zip(turns, found, strict=True)]


def laps(once: Sequence[Analysed], turns: int) -> Iterator[Analysed]:
    """``turns`` turns: lap after lap of the same words, about other people."""
    for number in range(turns):
        lap, at = divmod(number, len(once))
        turn, facts, *rest = once[at]
        claims = tuple(replace(c, subject=f"{c.subject} {lap}") for c in facts.claims)
        yield (
            replace(turn, external_id=f"{lap}:{at}"),
            replace(facts, claims=claims),
            *rest,
        )


def opened(config: Config, path: Path | None) -> tuple[_core.StoreHandle, _core.MemoryHandle]:
    store = _core.StoreHandle(path, read_only=False, holder="bench", synchronous_full=False)
    handle = _core.MemoryHandle(
        store, "bench", config=config.to_json(), presets={}, analyser="bench", reindexing=False
    )
    return store, handle


def measure(
    config: Config, batches: Sequence[Sequence[Analysed]], path: Path | None
) -> dict[str, Any]:
    """CPU and elapsed seconds of storing the batches, and what they left on disk."""
    store, handle = opened(config, path)
    cpu, wall = time.process_time(), time.perf_counter()
    for batch in batches:
        handle.add(batch)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    stats = handle.stats()
    turns = sum(map(len, batches))
    result = {
        "turns": turns,
        "cpu_us_a_turn": round(cpu / turns * 1e6, 2),
        "turns_a_cpu_second": round(turns / cpu),
        "turns_a_second": round(turns / wall),
        "active": stats["active"],
        "digest": handle.digest()[:16],
    }
    handle.close()
    store.close()
    if path is not None:
        result["bytes_a_turn"] = round(path.stat().st_size / turns)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=int, default=1900, help="token budget; 60 turns or so")
    parser.add_argument("--json", type=Path, help="write the results there too")
    options = parser.parse_args()
    base = Config().replace(capacity={"token_budget": options.budget})
    turns = list(laps(analysed(base), options.turns))
    batches = [turns[i : i + options.batch] for i in range(0, len(turns), options.batch)]
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, tokens, on_disk in (
            ("file", False, True),
            ("file, token vectors", True, True),
            ("SQLite in memory", False, False),
        ):
            config = base.replace(store={"token_vectors": tokens})
            rounds = [
                measure(config, batches, Path(folder, f"{name} {r}.db") if on_disk else None)
                for r in range(options.rounds)
            ]
            results[name] = min(rounds, key=lambda r: r["cpu_us_a_turn"])
            print(name, json.dumps(results[name]))
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
