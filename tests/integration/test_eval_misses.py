"""Where evidence is lost: one made-up conversation that loses some in every way there is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ebbtide import Config
from ebbtide.evals.misses import CLASSES, Miss, find_misses, tally

LONG = (
    "My grandmother's recipe wants walnuts, and then honey, cinnamon, orange peel, raisins, "
    "cloves, butter, flour, yeast, eggs, milk, sugar, vanilla, nutmeg, ginger, almonds and salt."
)
FIRST = [
    ("Ada", "I adopted a grey cat called Moss."),
    ("Ben", "My favourite colour is blue."),
    ("Ada", "My brother bakes bread in Lyon."),
    ("Ben", "The ovens there burn oak."),
    ("Ada", "Shall we take the kayak to the lake?"),
    ("Ben", "The harbour was quiet this morning."),
    ("Ada", "Paperwork drags on for ages."),
    ("Ben", "See you at the station."),
    ("Ada", LONG),
    ("Ben", "I planted tulips behind the shed."),
    ("Ada", "The choir sang until midnight."),
    ("Ben", "Our neighbour repairs clocks."),
]
SECOND = [
    ("Ada", "The museum opens at nine."),
    ("Ben", "My favourite colour is green now."),
    ("Ada", "I repotted the lemon tree."),
    ("Ben", "See you at the station."),
    ("Ada", "The ferry was late again."),
    ("Ben", "I sold the old piano."),
    ("Ada", "Tulips need sand and sun."),
    ("Ben", "The library got a new roof."),
    ("Ada", "A storm took down the fence."),
    ("Ben", "I read about lighthouses."),
    ("Ada", "The bakery closed for August."),
    ("Ben", "We painted the hallway white."),
]
ASKED = {
    "cat": ("What is Ada's cat called?", ["D1:1"]),
    "colour": ("What is Ben's favourite colour?", ["D1:2"]),
    "entity": ("Which wood is burnt in Lyon?", ["D1:4"]),
    "question": ("How will they get to the lake?", ["D1:5"]),
    "unlike": ("Which fruit tree did somebody repot?", ["D1:7"]),
    "twice": ("Where will they see each other?", ["D2:4"]),
    "long": ("Which recipe wants walnuts?", ["D1:9"]),
    "split": ("What was said about tulips?", ["D1:10", "D2:7"]),
}
DROP = {"stale_policy": "drop"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def session(number: int, said: list[tuple[str, str]]) -> list[dict[str, str]]:
        return [
            {"speaker": speaker, "dia_id": f"D{number}:{place}", "text": text}
            for place, (speaker, text) in enumerate(said, start=1)
        ]

    sample = {
        "sample_id": "made",
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Ben",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": session(1, FIRST),
            "session_2_date_time": "1:56 pm on 9 June, 2023",
            "session_2": session(2, SECOND),
        },
        "qa": [
            {"question": text, "answer": name, "evidence": evidence, "category": 4}
            for name, (text, evidence) in ASKED.items()
        ],
    }
    path = tmp_path_factory.mktemp("misses") / "made.json"
    path.write_text(json.dumps([sample]), encoding="utf-8")
    return path


def missed(data: Path, name: str, settings: dict[str, Any], **options: int) -> list[Miss]:
    config = Config().replace(
        retrieval=settings, nlp={"analysis_cache": str(data.with_name("analyses.db"))}
    )
    found = find_misses(data, config, **options)
    assert {miss.fate for miss in found} <= set(CLASSES)
    return [miss for miss in found if miss.question == ASKED[name][0]]


@pytest.mark.parametrize(
    ("name", "settings", "options", "fate"),
    [
        ("unlike", {"raw_prefetch_k": 3}, {"k": 1}, "pool"),
        ("unlike", {"late_interaction_k": 3}, {"k": 1}, "first_stage"),
        ("colour", DROP, {}, "superseded"),
        ("entity", DROP, {}, "entity_mismatch"),
        ("question", DROP, {}, "evidence_type"),
        ("twice", {}, {}, "duplicate"),
        ("unlike", {}, {"k": 1}, "rank_to_20"),
        ("long", {}, {"max_tokens": 40}, "budget"),
    ],
)
def test_every_way_to_lose_evidence(
    data: Path, name: str, settings: dict[str, Any], options: dict[str, int], fate: str
) -> None:
    (miss,) = missed(data, name, settings, **options)
    assert miss.fate == fate
    ranked = fate.startswith("rank") or fate == "budget"
    assert (miss.place is not None) == ranked
    session, _, number = miss.evidence.removeprefix("D").partition(":")
    assert miss.text == (FIRST if session == "1" else SECOND)[int(number) - 1][1]


def test_what_is_found_and_shown_is_no_miss(data: Path) -> None:
    assert missed(data, "cat", {}, k=1) == []
    assert missed(data, "cat", DROP) == []


def test_evidence_of_several_sessions_is_counted_beside_its_fate(data: Path) -> None:
    found = missed(data, "split", {}, k=1)
    assert [miss.sessions for miss in found] == [2] * len(found)
    counts = tally(found)
    assert list(counts) == ["all", "single-hop"]
    assert counts["all"]["split"] == len(found) > 0
    assert sum(counts["all"][fate] for fate in CLASSES) == len(found)
