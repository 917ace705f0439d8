"""After a warm-up no turn or question waits for what could have been made ready before."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ebbtide import Config, Memory
from ebbtide.analysis.analyser import Analyser
from ebbtide.analysis.spacy_analyser import SpacyAnalyser
from ebbtide.errors import ConfigError
from ebbtide.store import Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

READ = """
import json, sys, threading
from ebbtide import Memory
from ebbtide.analysis.patterns import _made

def ready():
    return [sorted(sys.modules), sum(p()._compiled is None for p in _made), len(_made)]

with Memory.in_memory() as memory:
    memory.warm_up(wait=WAIT)
    for thread in threading.enumerate():
        if thread.name == "ebbtide-in-passing":
            thread.join()
    before = ready()
    for text in (
        "My port is 8080.",
        "We moved the launch from 3 May to 10 May, not to June.",
        "Did you see my dentist on Monday?",
        "Thanks, I never liked tea!",
    ):
        memory.add(text, speaker="Ana", timestamp="2026-01-01T00:00:00Z")
    memory.retrieve("When is the launch?")
    memory.render_context("What is my port now?")
    print(json.dumps([before, ready()]))
"""


@pytest.mark.parametrize("wait", [True, False])
def test_nothing_is_imported_or_compiled_after_it(wait: bool) -> None:
    words = [sys.executable, "-c", READ.replace("WAIT", str(wait))]
    out = subprocess.run(words, capture_output=True, text=True, check=True)
    before, after = json.loads(out.stdout)
    assert before[1] == 0
    assert before[2] > 200
    assert after == before


def test_what_goes_wrong_beside_is_told_by_who_needs_it(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").touch()  # there, and none
    (tmp_path / "tokenizer.json").touch()
    config = Config().replace(nlp={"model_name": str(tmp_path)})
    with Store.open(tmp_path / "m.db", config=config) as store:
        store.warm_up(wait=False)
        with pytest.raises(ConfigError):
            store.warm_up()


class Counting:
    """An embedder that knows how often it was asked."""

    dimension = 384
    fingerprint = "counting"
    calls = 0

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.calls += 1
        return np.ones((len(texts), self.dimension), np.float32)


def test_an_embedder_of_ones_own_is_asked_too() -> None:
    embedder = Counting()
    with Memory.in_memory(config=Config().with_embedder(embedder)) as memory:
        memory.warm_up(wait=False)
        for thread in threading.enumerate():
            if thread.name == "ebbtide-in-passing":
                thread.join()
    assert embedder.calls > 0


def test_memories_that_are_opened_at_once_share_their_models(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Slow(SpacyAnalyser):
        def __init__(self, *given: Any) -> None:
            time.sleep(0.2)
            super().__init__(*given)

    monkeypatch.setattr("ebbtide.analysis.spacy_analyser.SpacyAnalyser", Slow)
    nlp = {**Config()["nlp"], "entity_labels": ["PERSON", "GPE"]}
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(Analyser, [nlp] * 4))
    assert len({id(analyser._spacy) for analyser in made}) == 1
