"""Coverage-guided fuzzing of one target with Atheris, where that is installed.

    pip install atheris
    PYTHONPATH=python:tests python tests/faults/atheris_run.py TARGET [libFuzzer options]

Not part of any suite: it runs until it is stopped, or ``-atheris_runs=N`` inputs. Targets
are those of targets.py; their corpus is the start.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path


def main() -> None:
    import atheris

    with atheris.instrument_imports(include=["ebbtide"]):
        from reference.stand_ins import StubAnalyser

        from ebbtide.analysis import analyser
        from faults.targets import Parsers

    analyser.Analyser = StubAnalyser  # type: ignore[misc,assignment]
    target = sys.argv.pop(1)
    folder = Path(tempfile.mkdtemp(prefix="ebbtide-fuzz-"))
    parsers = Parsers(folder)
    seeds = folder / "corpus"
    seeds.mkdir()
    for number, seed in enumerate(parsers.corpus[target]):
        (seeds / str(number)).write_bytes(seed)
    tried = 0

    def one(data: bytes) -> None:
        nonlocal tried
        parsers.attempt(target, data)
        tried += 1
        if tried % 500 == 0:
            parsers.unharmed()

    atheris.Setup([*sys.argv, str(seeds)], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
