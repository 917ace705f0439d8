"""`ebbtide eval gate`: shares that add up, plots that come out the same, one document."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest

from ebbtide import Config
from ebbtide.cli import main
from ebbtide.evals.gate import Source, measure_gate, sources
from ebbtide.evals.noise import write_locomo
from ebbtide.evals.systems import POLICIES, Options, open_system
from integration.test_evaluation import sample


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "made.json"
    path.write_text(json.dumps([sample(0), sample(1)]), encoding="utf-8")
    return path


def test_shares_are_of_the_turns_of_a_kind(stub: Config, data: Path) -> None:
    found = measure_gate(Source("noisy", data, noise=0.75), stub)
    assert len(found.turns) == 40
    assert {kind: total for kind, (_, total) in found.skipped.items() if ":" not in kind} == {
        "gold": 4,
        "noise": 30,
        "real": 6,
    }
    by_category = [total for kind, (_, total) in found.skipped.items() if ":" in kind]
    assert sum(by_category) == 30
    skipped = sum(turn.tier == "skip" and turn.kind == "noise" for turn in found.turns)
    assert found.share("noise") == skipped / 30
    assert found.share("nothing") is None
    assert sum(found.tiers.values()) == 10
    assert set(found.fallback) == set(found.unsure) == {"answerable", "adversarial"}
    assert 0.0 <= found.recall["recall_all@10"] <= found.recall["recall@10"] <= 1.0
    assert json.loads(json.dumps(found.to_dict(turns=True)))["turns"][0]["place"] == 0


def test_a_noise_file_and_generated_noise_stand_beside_the_data(data: Path) -> None:
    found = sources(data, noise=Path("n.json"), ratio=0.5, seed=3)
    assert [(s.name, s.noise, s.seed) for s in found] == [
        ("as it is", None, 0),
        ("50% generated noise", 0.5, 3),
        ("n.json", None, 0),
    ]


def test_the_command_prints_tables_and_draws(
    stub: Config, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    noisy = tmp_path / "noisy.json"
    write_locomo(data, noisy, ratio=0.5, ratio_of="timeline", seed=1)
    command = ["eval", "gate", "-d", str(data), "--noise", str(noisy), "-j", "1"]

    def run(*more: str) -> str:
        with pytest.raises(SystemExit) as done:
            main([*command, *more])
        assert done.value.code in (0, None)
        return capsys.readouterr().out

    drawn = []
    for folder in ("a", "b"):
        printed = run("--plot", str(tmp_path / folder))
        drawn.append({p.name: p.read_bytes() for p in (tmp_path / folder).iterdir()})
    assert "| skipped of | gold | real | noise" in printed
    assert "53.9%" in printed
    assert drawn[0] == drawn[1]
    assert len(drawn[0]) == 8
    assert "as-it-is-made-0-signals.png" in drawn[0]
    shown = json.loads(run("--json", "--set", "policy.rpe.thread_below=0.5"))
    assert len(shown["sources"]) == 2


@pytest.mark.parametrize("name", list(POLICIES))
def test_a_policy_is_a_system(stub: Config, data: Path, name: str) -> None:
    conversation = next(iter(Source("made", data, noise=0.5).conversations(None)))
    with open_system(name, conversation, Options()) as system:
        ranking = system.rank(conversation.questions[0], 3)
        assert ranking is not None
        assert len(ranking.ids) == 3


def with_remarks(data: Path, noisy: Path) -> None:
    """Each conversation with the remarks of ``unseen_noise.json`` at places of a fixed draw."""
    written = json.loads(Path(__file__).with_name("unseen_noise.json").read_text(encoding="utf-8"))
    remarks = [text for kind in ("filler", "status", "tangent") for text in written[kind]]
    samples = json.loads(gzip.decompress(data.read_bytes()))
    draw, number = random.Random(5), 0
    for sample_ in samples:
        talk = sample_["conversation"]
        sessions = [s for s in talk.values() if isinstance(s, list) and len(s) > 3]
        for text in draw.sample(remarks, len(remarks)):
            session = draw.choice(sessions)
            at, number = draw.randrange(1, len(session)), number + 1
            speaker = session[at - draw.randrange(2)]["speaker"]
            turn = {"speaker": speaker, "dia_id": f"NOISE:{number:06x}", "text": text}
            session.insert(at, turn)
    noisy.write_text(json.dumps(samples), encoding="utf-8")


@pytest.mark.long
def test_remarks_that_no_rule_was_made_from(data_folder: Path, tmp_path: Path) -> None:
    noisy = tmp_path / "noisy.json"
    with_remarks(data_folder / "locomo" / "locomo_dev5.json.gz", noisy)
    found = measure_gate(Source("unseen", noisy), Config("default"))
    assert found.skipped["noise"][1] == 500
    assert (found.share("noise") or 0.0) >= 0.75
    assert (found.share("gold") or 1.0) <= 0.02
