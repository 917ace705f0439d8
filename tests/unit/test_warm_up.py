"""After a warm-up no turn or question waits for what could have been made ready before."""

from __future__ import annotations

import json
import subprocess
import sys

READ = """
import json, sys
from ebbtide import Memory
from ebbtide.analysis.patterns import _made

def ready():
    return [sorted(sys.modules), sum(p._compiled is None for p in _made), len(_made)]

with Memory.in_memory() as memory:
    memory.warm_up()
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


def test_nothing_is_imported_or_compiled_after_it() -> None:
    out = subprocess.run([sys.executable, "-c", READ], capture_output=True, text=True, check=True)
    before, after = json.loads(out.stdout)
    assert before[1] == 0
    assert before[2] > 200
    assert after == before
