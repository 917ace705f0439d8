"""A mix of adds and recalls; as a script, one process of the load test.

``python load.py SOCKET FIRST COUNT`` adds and asks through the daemon and prints how much
of each it did.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from reference.stand_ins import scripted

NAMES = ("ana", "luis", "100%/'_", "shared")
QUESTIONS = ("what is the port?", "which tea", "the deploy plan on friday", "the cat in the garden")


def mixed(memory: Callable[[str], Any], first: int, count: int) -> dict[str, int]:
    """So many calls: every other one adds a turn, the rest read.

    Args:
        memory: Gives a memory by its name.
        first: Number of the first call; turns are scripted by the number of their call.
        count: How many calls.

    Returns:
        How many of each kind; a call that fails raises.
    """
    done = {"adds": 0, "recalls": 0}
    for number in range(first, first + count):
        name = NAMES[number // 2 % len(NAMES)]
        if number % 2 == 0:
            wait = "journalled" if number % 14 == 0 else "complete"
            assert memory(name).add(**scripted(number), wait=wait).accepted == 1
            done["adds"] += 1
        else:
            question = QUESTIONS[number // 8 % len(QUESTIONS)]
            if number % 10 == 1:
                memory(name).render_context(question, max_tokens=200)
            else:
                found = memory(name).retrieve(question, limit=3)
                assert [one.rank for one in found] == list(range(1, len(found) + 1))
            done["recalls"] += 1
    return done


def main(address: str, first: str, count: str) -> None:
    from ebbtide import connect

    memories = {name: connect(address, namespace=name) for name in NAMES}
    sys.stdout.write(json.dumps(mixed(memories.__getitem__, int(first), int(count))))


if __name__ == "__main__":
    main(*sys.argv[1:])
