"""Variants beside a base: measured once each, resumed, and as a memory of their own would be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ebbtide import Config, InputError, Memory
from ebbtide.evals import compare as module
from ebbtide.evals.compare import compare
from ebbtide.evals.datasets import load_conversations
from ebbtide.evals.metrics import rank_metrics
from ebbtide.evals.sampling import sampled
from ebbtide.evals.variants import FEATURES, Variant, ablations, sweep

WORDS = [
    "harbour",
    "kayak",
    "museum",
    "lemon",
    "piano",
    "storm",
    "bread",
    "clock",
    "tulip",
    "choir",
    "ferry",
    "fence",
]


def sample(number: int) -> dict[str, Any]:
    """A conversation of 48 turns and four questions, in LoCoMo's form."""
    turns = [
        {
            "speaker": ("Ada", "Ben")[n % 2],
            "dia_id": f"D1:{n}",
            "text": f"The {WORDS[n * (number + 1) % 12]} and the {WORDS[n % 7]} came up, day {n}.",
        }
        for n in range(1, 49)
    ]
    asked = [
        {
            "question": f"What did Ada say of the {WORDS[n]}?",
            "answer": WORDS[n],
            "evidence": [f"D1:{n + 12}", f"D1:{n + 24}"],
            "category": 4,
        }
        for n in range(4)
    ]
    return {
        "sample_id": f"made-{number}",
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Ben",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": turns,
        },
        "qa": asked,
    }


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "made.json"
    path.write_text(json.dumps([sample(n) for n in range(3)]), encoding="utf-8")
    return path


VARIANTS = [
    Variant("no bm25", {"retrieval": {"enable_bm25": False}, "ranking": {"bm25": 0.0}}),
    Variant("paper's ranking", {"retrieval": {"late_interaction": False, "enable_bm25": False}}),
    Variant("few", {"retrieval": {"raw_prefetch_k": 2, "late_interaction_k": 3}}),
    Variant("small", {"capacity": {"token_budget": 64}}),
]


def test_variants_are_measured_as_memories_of_their_own_are(data: Path) -> None:
    found = compare(data, VARIANTS, Config())
    assert [one.name for one in found] == ["base", *(variant.name for variant in VARIANTS)]
    for outcome, variant in zip(found, [Variant("base", {}), *VARIANTS], strict=True):
        values = []
        for conversation in load_conversations(data):
            with Memory.in_memory(config=Config().replace(**variant.changes)) as memory:
                memory.add_many(turn.as_turn() for turn in conversation.turns)
                for question in conversation.questions:
                    ids = [
                        str(e.turn.external_id) for e in memory.retrieve(question.text, limit=30)
                    ]
                    values.append(rank_metrics(ids, question.evidence))
        for metric in ("recall@5", "mrr"):
            expected = sum(value[metric] for value in values) / len(values)
            assert outcome.means[metric] == pytest.approx(expected, abs=1e-12), outcome.name
    assert len({outcome.means["mrr"] for outcome in found}) >= 3
    assert found[4].means["active"] < found[0].means["active"]


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many configurations each part of the work measured."""
    counts: list[int] = []
    real = module._measure

    def counted(conversation: Any, configs: Any, *rest: Any) -> None:
        counts.append(len(configs))
        real(conversation, configs, *rest)

    monkeypatch.setattr(module, "_measure", counted)
    return counts


def test_equal_settings_are_measured_once(stub: Config, data: Path, measured: list[int]) -> None:
    weight = stub["ranking"]["speaker"]
    tried = sweep({("ranking", "speaker"): [0.0, weight, weight, 0.0]})
    found = compare(data, tried, stub)
    assert measured == [2, 2, 2]
    assert [one.name for one in found] == ["base", *(variant.name for variant in tried[:2])]
    assert found[2].means == found[0].means
    assert found[2].differences["mrr"].high == 0.0


def test_a_comparison_goes_on_where_it_stopped(
    stub: Config, data: Path, tmp_path: Path, measured: list[int]
) -> None:
    out = tmp_path / "kept"
    told: list[tuple[int, int]] = []
    whole = compare(data, VARIANTS, stub)
    measured.clear()
    compare(data, VARIANTS[:2], stub, out=out, progress=lambda *at: told.append(at))
    assert measured == [3, 3, 3]
    assert told == [(1, 3), (2, 3), (3, 3)]
    cut_off = min((out / "parts").rglob("00002.json"))
    cut_off.unlink()
    measured.clear()
    found = compare(data, VARIANTS, stub, out=out)
    # One more way to read and one to write, for each conversation, and what was cut off.
    assert sorted(measured) == [1, 1, 1, 1, 1, 2]
    assert found == whole
    with pytest.raises(InputError, match="sample was None, is 5"):
        compare(data, VARIANTS, stub, out=out, sample=5)
    assert len(compare(data, [], stub, out=out, sample=5, fresh=True)) == 1


def test_stores_and_folders_are_gone_afterwards(
    stub: Config, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    compare(data, VARIANTS, stub)
    assert [path.name for path in tmp_path.iterdir()] == ["made.json"]


def test_a_sample_is_drawn_by_its_seed(data: Path) -> None:
    conversations = load_conversations(data)

    def names(count: int | None, seed: int = 0) -> list[tuple[str, str]]:
        held = sampled(conversations, count, seed=seed)
        return [(one.id, q.id) for one in held for q in one.questions]

    everything = names(None)
    assert len(everything) == len(names(99)) == 12
    assert len(names(5)) == 5
    assert names(5) == [name for name in everything if name in names(5)]
    assert set(names(3)) < set(names(5))
    assert names(5) != names(5, seed=1)


def test_every_setting_with_a_weight_is_switched_off() -> None:
    base = Config()
    found = {variant.name: variant.changes for variant in ablations(base)}
    for key, weight in base["ranking"].items():
        assert (f"term {key}" in found) == bool(weight), key
    lists = {key: value for key, value in base["retrieval"].items() if isinstance(value, tuple)}
    assert lists.keys() == FEATURES.keys()
    for key, value in lists.items():
        assert len(FEATURES[key]) == len(value), f"a name is missing for {key}"
        off = [c for n, c in found.items() if n.startswith("feature") and key in c["retrieval"]]
        assert len(off) == sum(map(bool, value))
    assert all(base.replace(**changes) != base for changes in found.values())


class _More(Config):
    """Settings of a later release: another term, another feature."""

    def __getitem__(self, section: str) -> Any:
        values = dict(super().__getitem__(section))
        if section == "ranking":
            values["tone"] = 0.5
        if section == "retrieval":
            values["answerability_penalties"] = [*values["answerability_penalties"], 0.3]
        return values


def test_a_new_setting_is_among_them_by_itself() -> None:
    found = {variant.name: variant.changes for variant in ablations(_More())}
    assert found["term tone"] == {"ranking": {"tone": 0.0}}
    last = found["feature answerability_penalties 4"]["retrieval"]["answerability_penalties"]
    assert last == [1.1, 0.9, 1.2, 0.0]


def test_the_names_of_features_are_the_engines() -> None:
    """One weight alone makes the paper's score that feature, which the trace names."""
    names, penalties = FEATURES["answerability_weights"], FEATURES["answerability_penalties"]
    with Memory.in_memory(config=Config("paper")) as memory:
        memory.add("Ana lives in Porto.", speaker="Ana", timestamp="2024-05-01")
        (row, *_) = memory.trace("Where does Ana live?")["candidates"]
    assert set(row["features"]) == set(names)
    assert set(row["penalties"]) == set(penalties)
    for place, name in enumerate(names):
        weights = [float(at == place) for at in range(len(names))]
        changes = {"answerability_weights": weights, "answerability_penalties": [0.0] * 3}
        with Memory.in_memory(config=Config("paper", {"retrieval": changes})) as memory:
            memory.add("Ana lives in Porto.", speaker="Ana", timestamp="2024-05-01")
            (row, *_) = memory.trace("Where does Ana live?")["candidates"]
        assert row["score"] == pytest.approx(row["features"][name]), name
