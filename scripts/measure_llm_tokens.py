"""Count what the papers' LLM procedures cost on one conversation, without a model.

    python scripts/measure_llm_tokens.py --data locomo10.json --conversation conv-26

A stand-in replies: it notes every turn, writes episodes of a given number of words and
a given number of facts. Prompts are as they would be sent, so their tokens are real but
for what earlier replies put into them; both are counted with ``cl100k_base``, the
schemas left out.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ebbtide import Config, Memory, _core
from ebbtide.evals.datasets import iter_conversations

POLICY: dict[str, Any] = {
    "gate": "rpe",
    "rpe": {"utility": "llm"},
    "consolidation": "recurrence",
    "recurrence": {"writer": "llm"},
}
_NUMBERED = re.compile(r"^(\d+)\. (.*)$", re.MULTILINE)


class StandIn:
    """A model that says as much as a real one would, and counts by purpose."""

    def __init__(self, words: int, facts: int) -> None:
        """Set how much it writes: words of an episode, facts of a refinement."""
        self._words, self._facts = words, facts
        self.spent: dict[str, list[int]] = {}

    def complete_json(self, system: str, user: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """A reply of the usual length."""
        fields = schema["properties"]
        said = _NUMBERED.findall(user)
        if "lifecycle" in fields:
            purpose, reply = "utility", {"lifecycle": "persistent", "utility": 0.8}
        elif "episode" in fields:
            purpose = "merge" if user.startswith("Episode so far") else "episode"
            reply = {"episode": " ".join(user.split()[-self._words :])}
        else:
            purpose = "refine"
            rows = [{"message": int(n), "fact": text[:120]} for n, text in said[: self._facts]]
            reply = {"facts": rows}
        counted = [1, *(_core.count_tokens(t, "cl100k_base") for t in (system + user, str(reply)))]
        before = self.spent.get(purpose, [0, 0, 0])
        self.spent[purpose] = [a + b for a, b in zip(before, counted, strict=True)]
        return reply


def main() -> None:
    """Print requests, prompt tokens and reply tokens by purpose."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a LoCoMo file")
    parser.add_argument("--conversation", default=None, help="its sample_id; else the first")
    parser.add_argument("--words", type=int, default=100, help="words of an episode")
    parser.add_argument("--facts", type=int, default=5, help="facts of a refinement")
    given = parser.parse_args()
    every = iter_conversations(given.data)
    found = next(c for c in every if given.conversation in (None, c.id))
    model = StandIn(given.words, given.facts)
    with Memory.in_memory(config=Config().replace(policy=POLICY), llm=model) as memory:
        memory.add_many(turn.as_turn() for turn in found.turns)
        stats = memory.stats()
    spent = model.spent
    both = {
        "D-MEM: utility": [spent["utility"]],
        "RecMem: episodes, merges, facts": [v for k, v in spent.items() if k != "utility"],
    }
    rows = spent | {name: [sum(c) for c in zip(*v, strict=True)] for name, v in both.items()}
    print(f"{found.id}: {len(found.turns)} turns, {stats['recurrence']}")
    for name, (calls, prompt, reply) in rows.items():
        print(f"{name}: {calls} requests, {prompt:,} prompt and {reply:,} reply tokens")


if __name__ == "__main__":
    main()
