"""What an archive costs: ``python -m benches.archives --to ADDRESS``.

Puts synthetic records of 384 dimensions into a new namespace, asks for the nearest
ten, and takes them away again. Times are elapsed, of one client on one connection.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from ebbtide import _core
from ebbtide.archives import Identity, Record, open_archive

DIMENSION = 384
BATCH = 256


def records(count: int) -> list[Record]:
    """Turns of about 120 characters, with one random unit vector each."""
    numbers = np.random.default_rng(7).standard_normal((count, DIMENSION)).astype(np.float32)
    vectors = _core.unit_vectors(numbers)
    empty = dict.fromkeys(
        ("timestamp", "utc_micros", "session_id", "external_id", "provenance", "metadata")
    )
    return [
        Record(
            "bench",
            number,
            {
                **empty,
                "text": f"Turn {number}: " + "the proxy moved to another port on friday. " * 3,
                "role": "user",
                "speaker": "Ana",
                "naive_timestamp": False,
                "record_id": f"{number:032x}",
            },
            vectors[number : number + 1],
        )
        for number in range(count)
    ]


def timed(work: Callable[[], object]) -> float:
    """Seconds that a call takes."""
    before = time.perf_counter()
    work()
    return time.perf_counter() - before


def measure(address: str, turns: int, searches: int) -> None:
    """Print one row of the table."""
    archive = open_archive(address, Identity("bench", DIMENSION))
    given = records(turns)
    batches = [given[at : at + BATCH] for at in range(0, turns, BATCH)]
    put = sum(timed(lambda part=part: archive.put("bench", part)) for part in batches)
    again = timed(lambda: archive.put("bench", batches[0]))
    inventory = timed(lambda: archive.inventory("bench"))
    questions = [given[number * 37 % turns].vectors[0] for number in range(searches)]
    times = [timed(lambda q=q: archive.search(q, 10)) for q in questions]
    erased = timed(lambda: archive.delete_namespace("bench"))
    archive.close()
    print(
        f"| {archive.place.partition(':')[0] if '://' in archive.place else 'file'} | {turns:,} "
        f"| {turns / put:,.0f} | {again * 1000:.0f} | {inventory * 1000:.0f} "
        f"| {statistics.median(times) * 1000:.1f} | {erased * 1000:.0f} |"
    )


def main() -> None:
    """Measure each archive that is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", action="append", required=True, help="an archive's address")
    parser.add_argument("--turns", type=int, default=10_000)
    parser.add_argument("--searches", type=int, default=20)
    given = parser.parse_args()
    print("| archive | turns | put /s | batch again ms | inventory ms | search ms | erase ms |")
    print("|---|---|---|---|---|---|---|")
    for address in given.to:
        measure(address, given.turns, given.searches)


if __name__ == "__main__":
    main()
