"""The child of the kill tests: writes scripted turns as it is told, and says so.

Usage: ``python writer.py STORE BUDGET``. It first prints ``have N``, the turns
it found, and fails if they are not exactly the first N. Then, for each line
``MODE COUNT`` on standard input, it writes so many turns and prints ``ack N``
after every call that returned (N: turns acknowledged so far). ``digest`` prints
the digest.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from reference.stand_ins import HashEmbedder, StubAnalyser, scripted

from ebbtide import Config, Memory
from ebbtide.analysis import analyser


def say(words: str) -> None:
    os.write(1, f"{words}\n".encode())


def write(memory: Memory, mode: str, first: int, count: int) -> Iterator[int]:
    if mode == "batch":
        for at in range(first, first + count, 5):
            last = min(at + 5, first + count)
            memory.add_many([scripted(n) for n in range(at, last)])
            yield last
        return
    for number in range(first, first + count):
        memory.add(**scripted(number), wait="complete" if mode == "add" else "journalled")
        yield number + 1


def config(budget: int) -> Config:
    if "--real" in sys.argv:
        return Config().replace(capacity={"token_budget": budget})
    analyser.Analyser = StubAnalyser  # type: ignore[misc,assignment]
    return Config().with_embedder(HashEmbedder(32)).replace(capacity={"token_budget": budget})


def main() -> None:
    memory = Memory.open(sys.argv[1], config=config(int(sys.argv[2])))
    found = [turn.external_id for turn in memory.turns()]
    assert found == [f"t{n}" for n in range(len(found))], found
    written = len(found)
    say(f"have {written}")
    for line in sys.stdin:
        if line.strip() == "digest":
            say(f"digest {memory.digest()}")
            continue
        mode, count = line.split()
        for done in write(memory, mode, written, int(count)):
            say(f"ack {done}")
        written += int(count)
    memory.close()


if __name__ == "__main__":
    main()
