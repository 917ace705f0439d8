"""A configuration stays what it was made of, and is given in the same ways everywhere."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ebbtide import Config, ConfigError, Memory, Store


def setting(mapping: Any, key: str, value: Any) -> None:
    mapping[key] = value


@pytest.mark.parametrize(
    "change",
    [
        lambda c: setting(c["capacity"], "token_budget", 9),
        lambda c: setting(c["policy"]["rpe"], "utility", "llm"),
        lambda c: setting(c["retrieval"]["symbolic_weights"], 0, 9.0),
        lambda c: setting(c, "capacity", {}),
        lambda c: c["capacity"].update(token_budget=9),
        lambda c: c["policy"]["rpe"].clear(),
        lambda c: c["capacity"].pop("token_budget"),
        lambda c: c["capacity"].__ior__({"token_budget": 9}),
    ],
)
def test_nobody_can_change_a_configuration(change: Callable[[Config], None]) -> None:
    config = Config()
    with pytest.raises(TypeError):
        change(config)
    assert config == Config()
    assert config in {Config(): 1}


def test_what_it_was_made_from_is_no_longer_part_of_it() -> None:
    weights = [1.0, 0.5, 1.0, 1.0, 0.2]
    config = Config().replace(retrieval={"symbolic_weights": weights})
    again = Config.preset("default").replace(retrieval={"symbolic_weights": list(weights)})
    weights.append(7.0)
    config.to_dict()["retrieval"]["symbolic_weights"].append(7.0)
    assert config == again
    for twin in (copy.deepcopy(config), pickle.loads(pickle.dumps(config)), config.replace()):
        assert twin == config
        assert hash(twin) == hash(config)


def test_a_section_is_copied_and_written_as_any_dictionary() -> None:
    section = Config()["policy"]
    for twin in (
        copy.deepcopy(section),
        pickle.loads(pickle.dumps(section)),
        dict(section),
        json.loads(json.dumps(section)),
    ):
        assert type(twin) is dict
        assert json.dumps(twin) == json.dumps(section)
        twin["gate"] = "rpe"
    assert Config()["policy"]["gate"] != "rpe"


@pytest.mark.parametrize("opened", [Memory.open, Store.open])
def test_a_store_and_a_memory_take_a_file_of_settings(tmp_path: Path, opened: Any) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("[capacity]\ntoken_budget = 99\n", encoding="utf-8")
    for given in (file, str(file)):
        with opened(tmp_path / "store.db", config=given) as found:
            assert found.config["capacity"]["token_budget"] == 99


@pytest.mark.parametrize("opened", [Memory.open, Store.open])
@pytest.mark.parametrize("given", [{"capacity": {"token_budget": 99}}, 7, b"settings.toml"])
def test_anything_else_is_refused_by_name(tmp_path: Path, opened: Any, given: Any) -> None:
    with pytest.raises(ConfigError, match=f"not {type(given).__name__}") as caught:
        opened(tmp_path / "store.db", config=given)
    assert caught.value.code == "config.type"
    assert not (tmp_path / "store.db").exists()


@pytest.mark.parametrize("changes", [{1: {}}, {"capacity": {1: 2}}, [1], "capacity", 7])
def test_changes_are_sections_with_keys(changes: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        Config("default", changes)
    assert caught.value.code in ("config.type", "config.unknown_key")


def nested(depth: int) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    for _ in range(depth):
        keys = {"a": keys}
    return keys


def in_itself() -> list[Any]:
    keys: list[Any] = []
    keys.append(keys)
    return keys


@pytest.mark.parametrize("keys", [nested(100_000), {"token_budget": in_itself()}])
def test_what_is_nested_without_end_is_refused(keys: Any) -> None:
    for make in (lambda **changes: Config("default", changes), Config().replace):
        with pytest.raises(ConfigError, match="nested too deeply") as caught:
            make(capacity=keys)
        assert caught.value.code == "config.type"


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000, "\ud800", "/no/such/file.toml", None])
def test_a_file_that_cannot_be_read_is_named(path: Any) -> None:
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        Config.load(path)
    assert caught.value.code == "config.syntax"


class Embedding:
    """No more than what a configuration reads of an embedder."""

    def __init__(self, dimension: Any, fingerprint: Any = "e") -> None:
        self.dimension = dimension
        self.fingerprint = fingerprint


@pytest.mark.parametrize(
    ("embedder", "says"),
    [
        (Embedding(2.5), "dimension must be a whole number"),
        (Embedding(True), "dimension must be a whole number"),
        (Embedding("8"), "dimension must be a whole number"),
        (Embedding(None), "dimension must be a whole number"),
        (object(), "dimension must be a whole number"),
        (Embedding(8, "\ud800"), "fingerprint is not valid Unicode"),
    ],
)
def test_an_embedder_says_what_it_is(embedder: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        Config().with_embedder(embedder)
    assert caught.value.code == "config.type"


def test_the_dimension_of_an_embedder_may_be_of_any_integer_type() -> None:
    assert Config().with_embedder(Embedding(np.int64(8)))["nlp"]["vector_dim"] == 8
    with pytest.raises(ConfigError) as caught:
        Config().with_embedder(Embedding(0))
    assert caught.value.code == "config.range"


@pytest.mark.parametrize(
    ("section", "changes", "says"),
    [
        ("scoring_weights", {"alpha_density": 1e308}, "alpha_density must lie in"),
        ("ranking", {"bm25": -1.1e6}, "bm25 must lie in"),
        ("retrieval", {"answerability_penalties": [0.0, 2e6, 0.0]}, "penalties must lie in"),
        ("policy", {"rpe": {"thread_margin": 1e7}}, "thread_margin must lie in"),
        ("retrieval", {"symbolic_weights": [1e6, -1e6, 1e-300, 0.0, 0.0]}, "must sum to"),
    ],
)
def test_no_weight_makes_a_score_that_is_not_finite(section: str, changes: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        Config().replace(**{section: changes})
    assert caught.value.code == "config.range"
    assert Config().replace(scoring_weights={"alpha_density": 1e6, "eta_correction": -1e6})
