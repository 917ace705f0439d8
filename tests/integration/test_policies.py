"""The policies together: every combination runs, decides the same each time, and loses nothing."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from reference.models import EchoModel, FlakyModel
from reference.stand_ins import scripted

from ebbtide import Config, Memory, Store

# A preset is about reading alone: with one of them it makes no difference who judged and wrote.
COMBINATIONS = [
    combination
    for combination in product(
        ("off", "rpe", "rpe+llm"),
        ("off", "recurrence", "recurrence+llm"),
        ("off", "quality", "majority", "consensus"),
        ("default", "paper"),
    )
    if combination[3] == "default" or "llm" not in "".join(combination)
]
QUESTIONS = ("Which port does the proxy use?", "What did Ana say?", "Who was it then?")
TURNS = 80


@pytest.mark.parametrize(("gate", "consolidation", "deliberation", "preset"), COMBINATIONS, ids=str)
def test_every_combination(
    stub: Config, tmp_path: Path, gate: str, consolidation: str, deliberation: str, preset: str
) -> None:
    gate, _, judge = gate.partition("+")
    consolidation, _, writer = consolidation.partition("+")
    policy = {
        "gate": gate,
        "rpe": {"utility": judge or "rules"},
        "consolidation": consolidation,
        "recurrence": {"writer": writer or "extractive"},
        "deliberation": deliberation,
    }
    # A model that fails at times, the same way each time; one or the other may take part.
    llm = FlakyModel() if judge or writer else None
    config = (
        Config(preset)
        .with_embedder(stub.embedder)
        .replace(
            policy=policy,
            capacity={"token_budget": 256},
        )
    )
    path = tmp_path / "memory.db"
    with Memory.open(path, config=config, llm=llm) as memory:
        memory.add_many((scripted(n) for n in range(TURNS // 2)), batch_size=7)
    # Closed in the middle, in other batches, and turn by turn at the end.
    with Memory.open(path, config=config, llm=llm) as memory:
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
    with Memory.in_memory(config=config, llm=llm) as once:
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
    policy = {
        "gate": "rpe",
        "rpe": {"utility": "llm"},
        "consolidation": "recurrence",
        "recurrence": {"writer": "llm", "theta_sim": 0.5, "theta_count": 2},
    }
    config = stub.replace(policy=policy)
    with Memory.open(tmp_path / "a.db", namespace="x", config=config, llm=EchoModel()) as memory:
        memory.add_many(scripted(n) for n in range(TURNS))
        memory.delete(11)
        assert {"utility", "writing"} == set(memory.stats()["llm"])
        assert any(episode.written for episode in memory.episodes())
        memory.export(tmp_path / "x.jsonl")
        digest, stats = memory.digest(), memory.stats()
    with Store.open(tmp_path / "b.db", config=config) as store:
        store.memory("other").add("Another one.")
        copy = store.load(tmp_path / "x.jsonl")
        assert (copy.digest(), copy.stats()) == (digest, stats)
        copy.export(tmp_path / "y.jsonl")
    assert (tmp_path / "x.jsonl").read_bytes() == (tmp_path / "y.jsonl").read_bytes()
