"""What spaCy's layers say of a text is a function of the text, bit for bit."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbtide.evals.datasets import load_conversations

from .processors import output, without_avx512

HASHES = """
import json, sys
from hashlib import sha256
from ebbtide.analysis.spacy_analyser import SpacyAnalyser
docs = SpacyAnalyser().parse_all(json.load(sys.stdin))
print(json.dumps([sha256(doc.tensor.tobytes()).hexdigest() for doc in docs]))
"""


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_processor_without_avx512(data_folder: Path) -> None:
    conversations = load_conversations(data_folder / "locomo" / "locomo_dev5.json.gz")
    texts = sorted((turn.text for found in conversations for turn in found.turns), key=len)
    some = texts[:: len(texts) // 100][:100]
    here = output(HASHES, some)
    assert len(set(here)) > 90
    assert output(HASHES, some, processor=without_avx512()) == here
