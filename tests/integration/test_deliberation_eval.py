"""`ebbtide eval deliberation` and the systems with a policy, on a made-up conversation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ebbtide.cli.app import main
from ebbtide.evals.datasets import load_conversations
from ebbtide.evals.deliberation import Row, outcomes
from ebbtide.evals.systems import POLICIES, Options, open_system

SAMPLE = {
    "sample_id": "one",
    "conversation": {
        "speaker_a": "Ana",
        "speaker_b": "Bo",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"dia_id": "D1:1", "speaker": "Ana", "text": "I adopted two cats, Miso and Tofu."},
            {"dia_id": "D1:2", "speaker": "Bo", "text": "My bees have a new hive."},
        ],
    },
    "qa": [
        {
            "question": "How many cats did Ana adopt?",
            "answer": "two",
            "evidence": ["D1:1"],
            "category": 4,
        },
        {
            "question": "Which opera did Bo's uncle conduct in Vienna?",
            "answer": "hive",
            "evidence": ["D1:2"],
            "category": 1,
        },
    ],
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "made_up.json"
    path.write_text(json.dumps([SAMPLE]))
    return path


def row(escalated: bool, before: float, after: float, category: str = "a") -> Row:
    pair = (before, after)
    return Row("c", "q", category, "quality", escalated, (), pair, pair, (1.0, 5.0))


def test_outcomes_by_hand() -> None:
    rows = [row(True, 0, 1), row(True, 1, 1), row(False, 1, 0), row(False, 0, 0, "b")]
    found = outcomes(rows)["quality"]
    assert list(found) == ["all", "a", "b"]
    every = found["all"]
    assert (every.questions, every.rate) == (4, 0.5)
    assert every.recall_all == every.contains == (0.5, 1.0)
    assert every.recall_gain is not None
    assert every.recall_gain.mean == 0.5
    assert every.milliseconds == (1.0, 5.0)
    assert (found["b"].rate, found["b"].recall_all, found["b"].recall_gain) == (0.0, None, None)


def test_the_command_measures_and_draws(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    plot = tmp_path / "rates.png"
    command = ["eval", "deliberation", "--data", str(data), "--workers", "1", "--plot", str(plot)]
    with pytest.raises(SystemExit) as ended:
        main([*command, "--json"])
    assert not ended.value.code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert set(found["policies"]) == {"quality", "majority", "consensus"}
    escalated = {
        r["question_id"]: r["escalated"] for r in found["rows"] if r["policy"] == "quality"
    }
    assert list(escalated.values()) == [False, True]
    assert found["policies"]["quality"]["all"]["rate"] == 0.5
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_the_systems_rank_and_render(data: Path) -> None:
    conversation = load_conversations(data)[0]
    for name in POLICIES:
        with open_system(name, conversation, Options()) as system:
            ranking = system.rank(conversation.questions[0], 2)
            assert ranking is not None
            assert ranking.ids[0] == "D1:1"
            assert "Miso" in system.context(conversation.questions[0], 200).text
