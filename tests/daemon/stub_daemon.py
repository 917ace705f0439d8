"""A daemon without models, in a process of its own: ``python stub_daemon.py STORE [ADDRESS]``.

ADDRESS is a socket's path or a port. It prints where it listens. In each text ``wait N``
takes N seconds to analyse, and one that says ``the end`` ends the process.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from reference.stand_ins import HashEmbedder, StubAnalyser

from ebbtide import Config
from ebbtide.analysis import analyser
from ebbtide.daemon.server import Daemon, Settings


def say(words: str) -> None:
    os.write(1, f"{words}\n".encode())


class SlowAnalyser(StubAnalyser):
    def analyse(self, turns: Sequence[Any]) -> Any:
        for turn in turns:
            for seconds in re.findall(r"^wait ([\d.]+)", turn.text):
                say("analysing")
                time.sleep(float(seconds))
        if any("the end" in turn.text for turn in turns):
            os._exit(1)
        return super().analyse(turns)


def main(store: str, address: str = "") -> None:
    analyser.Analyser = SlowAnalyser  # type: ignore[assignment,misc]
    where: dict[str, Any] = {"port": int(address)} if address.isdigit() else {}
    if address and not where:
        where = {"socket": Path(address)}
    config = Config().with_embedder(HashEmbedder(32))
    Daemon(Settings(store=Path(store), config=config, **where)).run(say)
    say("ended")


if __name__ == "__main__":
    main(*sys.argv[1:])
