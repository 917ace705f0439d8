"""What spaCy's layers say of a text is a function of the text, bit for bit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ebbtide.evals.datasets import load_conversations

from .processors import without_avx512

HASHES = """
import json, sys
from hashlib import sha256
from ebbtide.analysis.pipeline import SpacyAnalyser
docs = SpacyAnalyser().parse_all(json.load(sys.stdin))
print(json.dumps([sha256(doc.tensor.tobytes()).hexdigest() for doc in docs]))
"""


def hashes(texts: list[str], *processor: str) -> list[str]:
    done = subprocess.run(
        [*processor, sys.executable, "-c", HASHES],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    return found


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_processor_without_avx512(data_folder: Path) -> None:
    conversations = load_conversations(data_folder / "locomo" / "locomo_dev5.json.gz")
    texts = sorted((turn.text for found in conversations for turn in found.turns), key=len)
    some = texts[:: len(texts) // 100][:100]
    here = hashes(some)
    assert len(set(here)) > 90
    assert hashes(some, *without_avx512()) == here
