"""The child that is killed while its language model writes: ``python writing.py STORE``."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from reference.models import EchoModel
from reference.stand_ins import HashEmbedder, StubAnalyser, scripted

from ebbtide import Config, Memory
from ebbtide.analysis import analyser

POLICY = {
    "gate": "rpe",
    "rpe": {"utility": "llm"},
    "consolidation": "recurrence",
    "recurrence": {"writer": "llm", "theta_sim": 0.5, "theta_count": 2},
}
TURNS = 60


class Deadly(EchoModel):
    """Kills its process at the second request for facts."""

    facts = 0

    def complete_json(self, system: str, user: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        self.facts += "facts" in schema["properties"]
        if self.facts == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().complete_json(system, user, schema)


def config() -> Config:
    return Config().with_embedder(HashEmbedder(32)).replace(policy=POLICY)


def main() -> None:
    analyser.Analyser = StubAnalyser  # type: ignore[misc,assignment]
    with Memory.open(sys.argv[1], config=config(), llm=Deadly()) as memory:
        memory.add_many(scripted(n) for n in range(TURNS))


if __name__ == "__main__":
    main()
