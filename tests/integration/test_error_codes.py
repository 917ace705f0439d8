"""Every error code is raised by something, as the right class, with words that help."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference.stand_ins import HashEmbedder, StubAnalyser, stub_facts

import ebbtide
from ebbtide import (
    Config,
    ConfigError,
    EbbtideError,
    FingerprintError,
    InputError,
    Memory,
    NotFoundError,
    SchemaVersionError,
    Store,
    StoreError,
)
from ebbtide._core import error_codes

CODE = re.compile(
    r'"((?:config|input|store|schema|fingerprint|not_found|llm|peer|worker|daemon|archive)'
    r'\.[a-z_]+)"'
)
NO_CODES = {"store.db"}


@dataclass(frozen=True)
class Bench:
    """What the cases work with."""

    path: Path
    config: Config
    monkeypatch: pytest.MonkeyPatch

    def memory(self, **changes: Any) -> Memory:
        return Memory.open(self.path, config=self.config.replace(**changes))

    def filled(self) -> Path:
        with self.memory() as memory:
            memory.add("a turn")
        return self.path

    def raw(self, statement: str) -> None:
        connection = sqlite3.connect(self.path)
        connection.execute(statement)
        connection.commit()
        connection.close()


class WrongShape(HashEmbedder):
    def embed(self, texts: Sequence[str]) -> Any:
        return np.zeros((len(texts) + 1, self.dimension), np.float32)


def syntax(bench: Bench) -> None:
    file = bench.path.with_suffix(".toml")
    file.write_text("[capacity\ntoken_budget = 5\n")
    Config.load(file)


def missing_file(bench: Bench) -> None:
    Config.load(bench.path.with_suffix(".none"))


def unusable_model(bench: Bench) -> None:
    bench.monkeypatch.undo()
    with Memory.in_memory(config=Config().with_embedder(WrongShape())) as memory:
        memory.add("x")


def damaged_model(bench: Bench) -> None:
    bench.monkeypatch.undo()
    for name in ("model.onnx", "tokenizer.json"):
        (bench.path.parent / name).write_bytes(b"not a model")
    config = Config().replace(nlp={"model_name": str(bench.path.parent)})
    with Memory.in_memory(config=config) as memory:
        memory.add("x")


def missing_model(bench: Bench) -> None:
    bench.monkeypatch.undo()
    Memory.in_memory(config=Config().replace(nlp={"model_name": "no-such-model"}))


def missing_spacy_model(bench: Bench) -> None:
    bench.monkeypatch.undo()
    with Memory.in_memory(config=bench.config.replace(nlp={"spacy_model": "xx_none"})) as memory:
        memory.add("x")


def bad_facts(bench: Bench) -> None:
    class Broken(StubAnalyser):
        def analyse(self, turns: Any) -> Any:
            from dataclasses import replace

            whole = super().analyse(turns)
            return [replace(a, facts=replace(a.facts, density=float("nan"))) for a in whole]

    bench.monkeypatch.setattr("ebbtide.analysis.analyser.Analyser", Broken)
    with bench.memory() as memory:
        memory.add("x")


def transcript(bench: Bench) -> None:
    from ebbtide.evals.datasets import load_conversations

    file = bench.path.with_suffix(".json")
    file.write_text("[{")
    load_conversations(file)


def cycle(bench: Bench) -> None:
    with bench.memory() as memory:
        memory.add("a")
        memory.add("b")
        memory.relate(1, "corrects", 0)
        memory.relate(0, "supersedes", 1)


def locked(bench: Bench) -> None:
    with bench.memory(), bench.memory():
        pass


def lost_table(bench: Bench) -> None:
    with bench.memory() as memory:
        memory.add("x")
        bench.raw("DROP TABLE derived")
        memory.add("y")


def read_only(bench: Bench) -> None:
    with Memory.open(bench.filled(), config=bench.config, read_only=True) as memory:
        memory.add("x")


def closed(bench: Bench) -> None:
    memory = bench.memory()
    memory.close()
    memory.stats()


def corrupt(bench: Bench) -> None:
    bench.path.write_bytes(b"no database at all " * 500)
    bench.memory()


def damaged_facts(bench: Bench) -> None:
    bench.filled()
    bench.raw("UPDATE derived SET facts = x'ffffffffff'")
    bench.memory()


def newer_schema(bench: Bench) -> None:
    bench.filled()
    bench.raw("PRAGMA user_version = 4711")
    bench.memory()


def other_analyser(bench: Bench) -> None:
    Memory.open(bench.filled(), config=Config().with_embedder(HashEmbedder(48)))


def other_counter(bench: Bench) -> None:
    bench.filled()
    bench.memory(capacity={"token_counter": "o200k_base"})


def no_namespace(bench: Bench) -> None:
    with Store.open(bench.filled(), config=bench.config) as store:
        store.delete("nobody")


def no_store(bench: Bench) -> None:
    Memory.open(bench.path, config=bench.config, read_only=True)


def on_memory(work: Callable[[Memory], Any]) -> Callable[[Bench], None]:
    def run(bench: Bench) -> None:
        with bench.memory(limits={"max_turn_chars": 100, "max_query_chars": 50}) as memory:
            memory.add("kept")
            work(memory)

    return run


def replaced(**sections: Any) -> Callable[[Bench], None]:
    return lambda bench: bench.config.replace(**sections) and None


Case = tuple[str, type[EbbtideError], Callable[[Bench], None]]
CASES: list[Case] = [
    ("config.syntax", ConfigError, syntax),
    ("config.syntax", ConfigError, missing_file),
    ("config.unknown_key", ConfigError, replaced(capacity={"tokn_budget": 5})),
    ("config.unknown_key", ConfigError, replaced(capacitty={"token_budget": 5})),
    ("config.type", ConfigError, replaced(capacity={"token_budget": "many"})),
    ("config.type", ConfigError, replaced(capacity={"token_budget": object()})),
    ("config.type", ConfigError, replaced(capacity=5)),
    ("config.range", ConfigError, replaced(capacity={"token_budget": 0})),
    ("config.range", ConfigError, replaced(temporal_decay={"lambda_base": float("nan")})),
    ("config.range", ConfigError, replaced(memory_tiers={"critical_max": 0.9})),
    ("config.preset", ConfigError, lambda bench: Config.preset("papre") and None),
    ("config.preset", ConfigError, on_memory(lambda m: m.retrieve("x", preset="papre"))),
    ("config.model_missing", ConfigError, missing_model),
    ("config.model", ConfigError, missing_spacy_model),
    ("config.model_unusable", ConfigError, unusable_model),
    ("config.model_unusable", ConfigError, damaged_model),
    ("input.too_long", InputError, on_memory(lambda m: m.add("x" * 101))),
    ("input.too_long", InputError, on_memory(lambda m: m.retrieve("x" * 51))),
    ("input.unicode", InputError, on_memory(lambda m: m.add("\ud800"))),
    ("input.unicode", InputError, on_memory(lambda m: m.add("x", speaker="\udfff"))),
    ("input.unicode", InputError, on_memory(lambda m: m.retrieve("\ud800"))),
    ("input.field", InputError, on_memory(lambda m: m.add(""))),
    ("input.field", InputError, on_memory(lambda m: m.add("x", role=""))),
    ("input.field", InputError, on_memory(lambda m: m.add("x", wait="soon"))),
    ("input.field", InputError, on_memory(lambda m: m.add("x", provenance={"colour": 1}))),
    ("input.field", InputError, on_memory(lambda m: m.add("x", metadata={"a": {1, 2}}))),
    ("input.field", InputError, on_memory(lambda m: m.add_many([{"role": "user"}]))),
    ("input.field", InputError, on_memory(lambda m: m.relate(0, "hates", 0))),
    ("input.field", InputError, on_memory(lambda m: m.retrieve(" "))),
    ("input.field", InputError, on_memory(lambda m: m.retrieve("x", limit=0))),
    ("input.field", InputError, on_memory(lambda m: m.retrieve("x", filters={"colour": 1}))),
    ("input.field", InputError, on_memory(lambda m: list(m.turns(state="gone")))),
    ("input.timestamp", InputError, on_memory(lambda m: m.add("x", timestamp="soon"))),
    ("input.timestamp", InputError, on_memory(lambda m: m.retrieve("x", query_time="soon"))),
    ("input.facts", InputError, bad_facts),
    ("input.cycle", InputError, cycle),
    ("input.cycle", InputError, on_memory(lambda m: m.relate(0, "corrects", 0))),
    ("input.transcript", InputError, transcript),
    ("store.locked", StoreError, locked),
    ("store.open", StoreError, lambda bench: Memory.open(bench.path.parent) and None),
    ("store.sqlite", StoreError, lost_table),
    ("store.read_only", StoreError, read_only),
    ("store.closed", StoreError, closed),
    ("store.open", StoreError, corrupt),
    ("store.corrupt", StoreError, damaged_facts),
    ("schema.version", SchemaVersionError, newer_schema),
    ("fingerprint.analyser", FingerprintError, other_analyser),
    ("fingerprint.tokens", FingerprintError, other_counter),
    ("not_found.turn", NotFoundError, on_memory(lambda m: m.get(1))),
    ("not_found.turn", NotFoundError, on_memory(lambda m: m.delete(external_id="none"))),
    ("not_found.namespace", NotFoundError, no_namespace),
    ("not_found.store", NotFoundError, no_store),
]


@pytest.mark.parametrize(
    ("code", "kind", "cause"), CASES, ids=[f"{n}-{case[0]}" for n, case in enumerate(CASES)]
)
def test_each_code(
    stub: Config,
    store_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    kind: type[EbbtideError],
    cause: Callable[[Bench], None],
) -> None:
    with pytest.raises(EbbtideError) as caught:
        cause(Bench(store_path, stub, monkeypatch))
    assert caught.value.code == code
    assert type(caught.value) is kind
    words = str(caught.value)
    assert len(words) > 15
    assert "\n" not in words.strip()
    assert not any(inside in words for inside in ("Traceback", "0x", "unwrap", "panicked"))


def test_every_code_has_a_case() -> None:
    # What happens outside is tested where it is made to happen.
    tests = Path(__file__).parent.parent
    elsewhere = "".join(
        (tests / name).read_text(encoding="utf-8")
        for name in (
            "daemon/test_guard.py",
            "daemon/test_lifecycle.py",
            "daemon/test_retries.py",
            "unit/test_llm_client.py",
            "integration/test_peer.py",
            "integration/test_reading_ahead.py",
            "archives/test_contract.py",
            "archives/test_damage.py",
        )
    )
    missing = set(error_codes()) - {code for code, _, _ in CASES}
    assert {code for code in missing if f'"{code}"' not in elsewhere} == set()


def test_python_raises_no_code_that_the_core_does_not_list() -> None:
    package = Path(ebbtide.__file__).parent
    raised = {
        code
        for file in sorted(package.rglob("*.py"))
        for code in CODE.findall(file.read_text(encoding="utf-8"))
    }
    assert raised - NO_CODES - set(error_codes()) == set()


def test_an_error_leaves_what_was_there(stub: Config) -> None:
    with Memory.in_memory(config=stub) as memory:
        turns: list[Any] = [{"text": f"turn {n}"} for n in range(100)]
        turns[70] = {"text": "bad", "timestamp": "whenever"}
        with pytest.raises(InputError) as caught:
            memory.add_many(turns)
        assert caught.value.code == "input.timestamp"
        assert "turn 71 of this call" in str(caught.value)
        assert "the 70 before it were kept" in str(caught.value)
        assert [turn.text for turn in memory.turns()] == [f"turn {n}" for n in range(70)]


def test_a_failing_analysis_stores_nothing(
    stub: Config, monkeypatch: pytest.MonkeyPatch, store_path: Path
) -> None:
    with Memory.open(store_path, config=stub) as memory:
        memory.add("before")
        digest = memory.digest()
        good = memory._analyser.analyse

        def broken(turns: Any) -> Any:
            results = good(turns)
            return [*results[:-1], type(results[-1])(stub_facts(turns[-1]), [], [])]

        monkeypatch.setattr(memory._analyser, "analyse", broken)
        for _ in range(2):
            with pytest.raises(InputError) as caught:
                memory.add_many([{"text": "one"}, {"text": "two"}])
            assert caught.value.code == "input.facts"
            assert memory.digest() == digest
        monkeypatch.setattr(memory._analyser, "analyse", good)
        memory.add_many([{"text": "one"}, {"text": "two"}])
        assert [turn.interaction_id for turn in memory.turns()] == [0, 1, 2]
