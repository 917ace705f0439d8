"""What is erased was never there: relations after it are those of the turns left alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from reference.stand_ins import StubAnalyser, StubAnalysis

from ebbtide import Config, InputError, Memory
from ebbtide.analysis.facts import TurnText

TOPICS = ("port", "port of billing", "port of billing two", "tea")
VALUES = ("v0", "v1", "v2")
RELATIONS = ("supersedes", "corrects", "invalidates", "conflicts_with")
DECIDED = ("supersede", "overruled", "relate")


class Spaced(StubAnalyser):
    """Topics of several words, which a correction may shorten."""

    def analyse(self, turns: Sequence[TurnText]) -> list[StubAnalysis]:
        found = super().analyse(turns)
        for one in found:
            claims = [replace(c, identity=c.identity.replace("_", " ")) for c in one.facts.claims]
            object.__setattr__(one, "facts", replace(one.facts, claims=tuple(claims)))
        return found


said = st.builds(
    lambda claims, speaker, role: {
        "text": " ".join(
            f"The {topic.replace(' ', '_')} is {value}{f', not {old}' if old else ''}."
            for topic, value, old in claims
        )
        or "Hello.",
        "speaker": speaker,
        "role": role,
    },
    claims=st.lists(
        st.tuples(
            st.sampled_from(TOPICS), st.sampled_from(VALUES), st.sampled_from((None, None, *VALUES))
        ),
        max_size=3,
    ),
    speaker=st.sampled_from(["Ana", "Ana", "Luis"]),
    role=st.sampled_from(["user", "user", "assistant"]),
)
step = st.one_of(
    said,
    said,
    said,
    st.tuples(st.just("relate"), st.integers(0, 9), st.sampled_from(RELATIONS), st.integers(0, 9)),
    st.tuples(st.just("delete"), st.lists(st.integers(0, 9), min_size=1, max_size=3)),
)


def lineage(memory: Memory) -> dict[str, Any]:
    """All that relations come to, by the turn's place in the memory, which ids are not."""
    lives = [memory.explain(turn.interaction_id) for turn in memory.turns()]
    place = {life["turn"]["interaction_id"]: n for n, life in enumerate(lives)}

    def decided(decision: Mapping[str, Any]) -> list[Any]:
        detail = dict(decision["detail"])
        if decision["kind"] == "relate":
            del detail["validity"]  # of the moment when it was said
        return [decision["kind"], place[detail.pop("by")], detail]

    def edges(life: Mapping[str, Any], end: str) -> list[Any]:
        return [(place[e[end]], e["relation"], e["topic"], e["by_caller"]) for e in life[end]]

    return {
        "validity": [life["turn"]["validity"] for life in lives],
        "newer": [edges(life, "newer") for life in lives],
        "older": [edges(life, "older") for life in lives],
        "decided": [
            [decided(d) for d in life["decisions"] if d["kind"] in DECIDED] for life in lives
        ],
    }


def told(memory: Memory, steps: list[Any]) -> tuple[dict[int, Any], list[Any]]:
    """Go through steps; the turns by id, and what was stated, with its place."""
    turns: dict[int, Any] = {}
    stated = []
    for one in steps:
        ids = sorted(turns)
        if isinstance(one, dict):
            memory.add(**one)
            turns[memory.stats()["next_id"] - 1] = one
        elif one[0] == "delete":
            gone = {ids[n] for n in one[1] if n < len(ids)}
            memory.forget(ids=gone)
            turns = {number: turn for number, turn in turns.items() if number not in gone}
        elif one[0] == "relate" and max(one[1], one[3]) < len(ids):
            edge = (ids[one[1]], one[2], ids[one[3]])
            try:
                memory.relate(*edge)
            except InputError:
                continue
            stated.append((memory.stats()["next_id"] - 1, edge))
    return turns, [s for s in stated if s[1][0] in turns and s[1][2] in turns]


def alone(config: Config, turns: dict[int, Any], stated: list[Any]) -> dict[str, Any]:
    """The lineage of these turns, had there never been others."""
    with Memory.in_memory(config=config) as memory:
        ids = {number: n for n, number in enumerate(sorted(turns))}
        waiting = list(stated)
        for number in [*ids, 1 << 30]:
            while waiting and waiting[0][0] < number:
                newer, relation, older = waiting.pop(0)[1]
                try:
                    memory.relate(ids[newer], relation, ids[older])
                except InputError:
                    # What the caller said stands; without what was erased it could not be said.
                    assume(False)
            if number in turns:
                memory.add(**turns[number])
        return lineage(memory)


# Without the first turn the second one speaks of other topics, and its relations stay.
LESS = [
    {"text": "The port is v0, not v1. The port_of_billing is v0, not v1.", "speaker": "Ana"},
    {"text": "The port is v1, not v0. The port_of_billing is v1.", "speaker": "Ana"},
    {"text": "The port_of_billing is v0, not v1.", "speaker": "Ana"},
    ("delete", [0]),
]


@example(steps=LESS)
@given(steps=st.lists(step, min_size=3, max_size=24))
@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_relations_are_those_of_the_turns_left(
    stub: Config,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[Any],
) -> None:
    monkeypatch.setattr("ebbtide.analysis.analyser.Analyser", Spaced)
    config = stub.replace(capacity={"token_budget": 100000})
    path = tmp_path_factory.mktemp("erasing") / "memory.db"
    with Memory.open(path, config=config) as memory:
        turns, stated = told(memory, steps)
        live, digest = lineage(memory), memory.digest()
    with Memory.open(path, config=config) as memory:
        assert (lineage(memory), memory.digest()) == (live, digest)
        memory.reindex()
        assert lineage(memory) == live
        assert live == alone(config, turns, stated)
        # What comes next finds the same turns to relate to, opened anew or not.
        memory.add("The port is v3. The tea is v3.", speaker="Ana")
        after = lineage(memory)
    with Memory.open(path, config=config) as memory:
        assert lineage(memory) == after
