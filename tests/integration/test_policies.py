"""The policies together: every combination runs, decides the same each time, and loses nothing."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from reference.stand_ins import scripted

from ebbtide import Config, Memory, Store

COMBINATIONS = list(
    product(
        ("off", "rpe"),
        ("off", "recurrence"),
        ("off", "quality", "majority", "consensus"),
        ("default", "paper"),
    )
)
QUESTIONS = ("Which port does the proxy use?", "What did Ana say?", "Who was it then?")
TURNS = 80


@pytest.mark.parametrize(
    ("gate", "consolidation", "deliberation", "preset"), COMBINATIONS, ids="-".join
)
def test_every_combination(
    stub: Config, tmp_path: Path, gate: str, consolidation: str, deliberation: str, preset: str
) -> None:
    policy = {"gate": gate, "consolidation": consolidation, "deliberation": deliberation}
    config = (
        Config(preset)
        .with_embedder(stub.embedder)
        .replace(
            policy=policy,
            capacity={"token_budget": 256},
        )
    )
    path = tmp_path / "memory.db"
    with Memory.open(path, config=config) as memory:
        memory.add_many((scripted(n) for n in range(TURNS // 2)), batch_size=7)
    # Closed in the middle, in other batches, and turn by turn at the end.
    with Memory.open(path, config=config) as memory:
        memory.add_many((scripted(n) for n in range(TURNS // 2, TURNS - 5)), batch_size=64)
        for n in range(TURNS - 5, TURNS):
            memory.add(**scripted(n))
        texts = [turn.text for turn in memory.turns()]
        digest = memory.digest()
        answers = [
            (
                [e.to_dict() for e in memory.retrieve(question, limit=5)],
                memory.context(question, max_tokens=400),
            )
            for question in QUESTIONS
        ]
        assert all(context.tokens <= 400 for _, context in answers)
        for question in QUESTIONS:
            assert len(memory.trace(question)["evidence"]) <= 10
    with Memory.in_memory(config=config) as once:
        once.add_many(scripted(n) for n in range(TURNS))
        assert [turn.text for turn in once.turns()] == texts
        assert len(texts) == TURNS
        assert once.digest() == digest
        for question, (evidence, context) in zip(QUESTIONS, answers, strict=True):
            assert [e.to_dict() for e in once.retrieve(question, limit=5)] == evidence
            assert once.context(question, max_tokens=400) == context
        for turn in once.turns():
            assert once.explain(turn.interaction_id)["turn"]["text"] == turn.text
        # Rebuilt from the turns alone it is the same.
        once.reindex()
        assert once.digest() == digest


def test_an_export_takes_every_policy_along(stub: Config, tmp_path: Path) -> None:
    config = stub.replace(policy={"gate": "rpe", "consolidation": "recurrence"})
    with Store.open(tmp_path / "a.db", config=config) as store:
        memory = store.memory("x")
        memory.add_many(scripted(n) for n in range(TURNS))
        memory.delete(11)
        memory.export(tmp_path / "x.jsonl")
        digest, stats = memory.digest(), memory.stats()
    with Store.open(tmp_path / "b.db", config=config) as store:
        store.memory("other").add("Another one.")
        copy = store.load(tmp_path / "x.jsonl")
        assert (copy.digest(), copy.stats()) == (digest, stats)
        copy.export(tmp_path / "y.jsonl")
    assert (tmp_path / "x.jsonl").read_bytes() == (tmp_path / "y.jsonl").read_bytes()
