"""With the real models: same turns, same memory; same question, same answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ebbtide import Config, Memory

ROOT = Path(__file__).parents[2]
QUESTIONS = (
    "What does Ana drink in the morning now?",
    "Where did Ana live before she moved to Porto?",
    "Which port does the invoice service use?",
    "What happened last week?",
    "Who is Pipoca?",
    "When is the deadline?",
    "What did you recommend for dinner?",
    "Is deploying on Fridays allowed?",
    "how many kilos of rabanadas",
    "東京",
)

ASK = """
import hashlib, json, sys
import ebbtide
questions, repeats = json.loads(sys.argv[2]), int(sys.argv[3])
config = ebbtide.Config().replace(nlp={"threads": int(sys.argv[4])})
with ebbtide.Memory.open(sys.argv[1], config=config, read_only=True) as memory:
    seen = set()
    for _ in range(repeats):
        hashed = hashlib.sha256()
        for question in questions:
            items = [e.to_dict() for e in memory.retrieve(question)]
            hashed.update(json.dumps(items, sort_keys=True).encode())
        seen.add(hashed.hexdigest())
    once = hashlib.sha256()
    for question in questions:
        items = [e.to_dict() for e in memory.retrieve(question, preset="paper")]
        once.update(json.dumps([items, memory.trace(question)], sort_keys=True).encode())
        once.update(memory.render_context(question, max_tokens=700).encode())
print(json.dumps([*sorted(seen), once.hexdigest()]))
"""


def ask(store: Path, repeats: int, questions: tuple[str, ...], threads: int, seed: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", ASK, str(store), json.dumps(questions), str(repeats), str(threads)],
        env={**os.environ, "PYTHONHASHSEED": seed, "OMP_NUM_THREADS": seed, "TZ": f"UTC-{seed}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, example_turns: list[dict[str, Any]]) -> Path:
    path = tmp_path_factory.mktemp("example") / "memory.db"
    config = Config().replace(capacity={"token_budget": 1024})
    with Memory.open(path, config=config) as memory:
        memory.add_many(example_turns)
    return path


@pytest.mark.parametrize(
    "budget",
    [256, pytest.param(1024, marks=pytest.mark.long), pytest.param(4096, marks=pytest.mark.long)],
)
def test_splits_and_restarts_with_the_real_models(
    tmp_path: Path, example_turns: list[dict[str, Any]], budget: int
) -> None:
    turns = example_turns[:120]
    config = Config().replace(capacity={"token_budget": budget})
    digests = []
    for size in (1, 7, 64):
        with Memory.in_memory(config=config) as memory:
            memory.add_many(turns, batch_size=size)
            digests.append(memory.digest())
    path = tmp_path / "memory.db"
    for at in range(0, len(turns), 17):
        with Memory.open(path, config=config) as memory:
            for turn in turns[at : at + 17]:
                given = {"external_id" if k == "id" else k: v for k, v in turn.items()}
                memory.add(**given, wait="journalled" if at % 2 else "complete")
    with Memory.open(path, config=config) as memory:
        digests.append(memory.digest())
        assert len(memory) == 120
    assert len(set(digests)) == 1


def test_twenty_repeats_of_ten_questions_in_two_processes(store: Path) -> None:
    first = ask(store, 10, QUESTIONS, threads=1, seed="1")
    second = ask(store, 10, QUESTIONS, threads=2, seed="7")
    assert len(first) == 2
    assert second == first


@pytest.mark.long
def test_a_thousand_repeats_of_fifty_questions(
    store: Path, example_turns: list[dict[str, Any]]
) -> None:
    said = [turn["text"][:150] for turn in example_turns if "?" in turn["text"]]
    questions = tuple([*QUESTIONS, *said][:50])
    assert len(questions) == 50
    runs = [ask(store, 250, questions, threads=1 + n % 2, seed=str(n + 1)) for n in range(4)]
    assert all(run == runs[0] and len(run) == 2 for run in runs)


def test_the_receipt_time_is_not_in_the_digest(stub: Config) -> None:
    digests = set()
    for _ in range(2):
        with Memory.in_memory(config=stub) as memory:
            memory.add("without a timestamp")
            assert memory.get(0).timestamp is None
            assert memory.get(0).utc is None
            digests.add((memory.digest(), memory.get(0).record_id))
    assert len(digests) == 1


def test_the_digest_sees_every_given_field(stub: Config) -> None:
    base: dict[str, Any] = {
        "text": "The port is v1.",
        "role": "user",
        "speaker": "Ana",
        "timestamp": "2024-01-01",
        "session_id": "s",
        "external_id": "e",
        "provenance": {"source_turn": "x"},
        "metadata": {"a": 1},
    }
    changes: list[dict[str, Any]] = [
        {},
        {"text": "The port is v1. "},
        {"role": "tool"},
        {"speaker": "ana"},
        {"timestamp": "2024-01-01T00:00:00Z"},
        {"session_id": None},
        {"external_id": None},
        {"provenance": None},
        {"provenance": {"is_constraint": True}},
        {"metadata": {"a": 2}},
        {"metadata": None},
    ]
    digests = set()
    for change in changes:
        with Memory.in_memory(config=stub) as memory:
            memory.add(**{**base, **change})
            digests.add(memory.digest())
    with Memory.in_memory(config=stub) as memory:
        memory.add("filler")
        memory.add("filler")
        digests.add(memory.digest())
        memory.relate(1, "conflicts_with", 0)
        digests.add(memory.digest())
    assert len(digests) == len(changes) + 2
