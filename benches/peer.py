"""ebbtide and ``dmf-memory`` on the same turns and questions, in one run, alternating.

    python benches/peer.py --data locomo.json --peer DIR [--peer-model DIR] [--out FILE]

Replay: each round stores one conversation with ebbtide, then with the peer; figures are
medians of the rounds, and the ratio that of the medians. Recall: both are filled up to
each size in turn and asked the same questions, alternating.

``--peer`` is the environment that ``ebbtide eval locomo --peer DIR`` prepares. The peer
computes with the published 8-bit graph of ebbtide's model unless ``--peer-model`` names
another directory, such as the float32 one that
``models/bge-small-en-v1.5/build.py --float32 DIR`` writes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import ebbtide
from ebbtide.evals.datasets import Conversation, DatasetTurn, load_conversations
from ebbtide.evals.peers import open_dmf

SIZES = (300, 4000, 5000)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="a LoCoMo file")
    parser.add_argument("--peer", type=Path, required=True, help="the peer's environment")
    parser.add_argument("--peer-model", type=Path, help="embedding model of the peer")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of the replay")
    parser.add_argument("--turns", type=int, default=400, help="turns of a round")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="records at recall")
    parser.add_argument("--questions", type=int, default=5, help="questions at each size")
    parser.add_argument("--out", type=Path, help="JSON file of the figures")
    chosen = parser.parse_args()
    conversations = load_conversations(chosen.data)
    result: dict[str, Any] = {
        "machine": f"{platform.machine()}, {os.cpu_count()} processors",
        "python": platform.python_version(),
        "ebbtide": ebbtide.__version__,
        "peer_model": chosen.peer_model.name if chosen.peer_model else "8-bit, the published graph",
        "replay": replays(conversations, chosen),
        "recall": recalls(conversations, chosen),
    }
    show(result)
    if chosen.out:
        chosen.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def timed(work: Callable[[], object]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def replays(conversations: list[Conversation], chosen: argparse.Namespace) -> dict[str, Any]:
    """Turns a second of both, over the first turns of one conversation after another."""
    ours, theirs = [], []
    for conversation in itertools.islice(itertools.cycle(conversations), chosen.rounds):
        part = replace(conversation, turns=conversation.turns[: chosen.turns], questions=())
        ours.append(len(part.turns) / our_replay(part.turns))
        empty = replace(part, turns=())
        with open_dmf("dmf-memory", empty, chosen.peer, model=chosen.peer_model) as peer:
            # Its models load at the first turn: that one is not timed.
            peer.ingest([replace(part.turns[0], external_id="warm-up")])
            theirs.append(len(part.turns) / timed(lambda p=peer, part=part: p.ingest(part.turns)))
        print(f"replay: {ours[-1]:.1f} and {theirs[-1]:.1f} turns/s", flush=True)
    return compared(ours, theirs, higher=True)


def our_replay(turns: Sequence[DatasetTurn]) -> float:
    """Seconds from open models to everything stored, in a file as the peer's."""
    with (
        tempfile.TemporaryDirectory() as folder,
        ebbtide.Memory.open(Path(folder) / "memory.db") as memory,
    ):
        memory.warm_up()
        return timed(lambda: memory.add_many(turn.as_turn() for turn in turns))


def recalls(conversations: list[Conversation], chosen: argparse.Namespace) -> list[dict[str, Any]]:
    """Milliseconds of whole recalls of both, at each number of records."""
    rows = []
    questions = list(conversations[0].questions[: chosen.questions])
    turns = endless(conversations)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        memory = stack.enter_context(ebbtide.Memory.open(Path(folder) / "memory.db"))
        empty = replace(conversations[0], turns=(), questions=())
        peer = stack.enter_context(
            open_dmf("dmf-memory", empty, chosen.peer, model=chosen.peer_model)
        )
        held = 0
        for size in sorted(chosen.sizes):
            more = list(itertools.islice(turns, size - held))
            held = size
            memory.add_many(turn.as_turn() for turn in more)
            peer.ingest(more)
            ours, theirs = [], []
            for question in questions:
                ours.append(1e3 * timed(lambda q=question: memory.retrieve(q.text, limit=10)))
                theirs.append(1e3 * timed(lambda q=question: peer.rank(q, 10)))
            rows.append({"records": size, **compared(ours, theirs, higher=False)})
            print(f"recall at {size:,}: {rows[-1]}", flush=True)
    return rows


def endless(conversations: list[Conversation]) -> Iterator[DatasetTurn]:
    """The conversations' turns, over and over, under ids and words of their own."""
    for lap in itertools.count():
        for number, conversation in enumerate(conversations):
            for turn in conversation.turns:
                text = f"{turn.text} ({lap})" if lap else turn.text
                yield replace(turn, text=text, external_id=f"{lap}.{number}.{turn.external_id}")


def compared(ours: list[float], theirs: list[float], *, higher: bool) -> dict[str, Any]:
    """Medians, and how many times better the first is."""
    one, other = statistics.median(ours), statistics.median(theirs)
    return {
        "ebbtide": round(one, 2),
        "dmf_memory": round(other, 2),
        "ratio": round(one / other if higher else other / one, 1),
        "rounds": len(ours),
    }


def show(result: dict[str, Any]) -> None:
    """The table."""
    print(f"\nebbtide {result['ebbtide']}, Python {result['python']}, {result['machine']};")
    print(f"model of the peer: {result['peer_model']}\n")
    print("| | ebbtide | dmf-memory | times |\n|---|---|---|---|")
    rows = [("replay, turns/s", result["replay"])]
    rows += [(f"recall at {row['records']:,} records, ms", row) for row in result["recall"]]
    for name, row in rows:
        print(f"| {name} | {row['ebbtide']} | {row['dmf_memory']} | {row['ratio']} |")


if __name__ == "__main__":
    main()
