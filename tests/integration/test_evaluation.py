"""The evaluation harness: runs that resume, digests that agree, and a floor under quality."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ebbtide import Config, ConfigError, InputError
from ebbtide.cli import main
from ebbtide.cli.evaluating import settings
from ebbtide.evals.datasets import Conversation, iter_conversations
from ebbtide.evals.report import results_page
from ebbtide.evals.results import read_table
from ebbtide.evals.run import Plan, evaluate, measure
from ebbtide.evals.systems import Options

# A little under what was measured when they were set.
FLOORS = {
    "locomo": {"recall_all@10": 0.74, "budget_1024_contains": 0.57},
    "longmemeval": {"recall_all@10": 0.99, "budget_1024_contains": 0.49},
}


def sample(number: int) -> dict[str, Any]:
    """A made-up conversation in LoCoMo's form."""
    said = [
        ("Ada", "I adopted a grey cat called Moss."),
        ("Ben", "Lovely! My brother bakes bread in Lyon."),
        ("Ada", f"I start at the museum on {number + 3} May."),
        ("Ben", "Then let's celebrate at the lake."),
        ("Ada", "The lake it is, I'll bring the kayak."),
    ]
    turns = [
        {"speaker": speaker, "dia_id": f"D1:{n}", "text": text}
        for n, (speaker, text) in enumerate(said, start=1)
    ]
    return {
        "sample_id": f"made-{number}",
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Ben",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": turns,
        },
        "qa": [
            {
                "question": "What is Ada's cat called?",
                "answer": "Moss",
                "evidence": ["D1:1"],
                "category": 4,
            },
            {
                "question": "Where does Ben's brother bake?",
                "answer": "Lyon",
                "evidence": ["D1:2"],
                "category": 4,
            },
            {
                "question": "What will Ben bring?",
                "adversarial_answer": "kayak",
                "evidence": ["D1:5"],
                "category": 5,
            },
        ],
    }


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "made.json"
    path.write_text(json.dumps([sample(0), sample(1), sample(2)]), encoding="utf-8")
    return path


def test_a_run_resumes_and_does_not_depend_on_workers(
    stub: Config, data: Path, tmp_path: Path
) -> None:
    whole = Plan("locomo", data, ("full", "last_n", "bm25", "default"))
    first = evaluate(whole, tmp_path / "a")
    part = Plan("locomo", data, ("bm25",))
    evaluate(part, tmp_path / "b")
    stamps = {p: p.stat().st_mtime_ns for p in (tmp_path / "b" / "parts").rglob("*.parquet")}
    again = evaluate(whole, tmp_path / "b")
    assert again["digest"] == first["digest"]
    assert {p: p.stat().st_mtime_ns for p in stamps} == stamps
    assert first["questions"] == 9
    assert first["left_out"] == 3


def test_rows_say_what_was_found(stub: Config, data: Path, tmp_path: Path) -> None:
    evaluate(Plan("locomo", data, ("full", "bm25")), tmp_path / "run")
    rows = read_table(tmp_path / "run" / "rows.parquet")
    bm25 = [row for row in rows if row["system"] == "bm25"]
    assert [row["recall@1"] for row in bm25] == [1.0, 1.0, None] * 3
    assert bm25[0]["budget_512_contains"] == 1.0
    full = [row for row in rows if row["system"] == "full"]
    assert [row["ranked"] for row in full] == [[]] * 9
    assert full[0]["budget_512_all"] == full[0]["budget_4096_all"] == 1.0
    assert "## " in results_page([tmp_path / "run"])


def test_another_run_in_the_same_directory_is_refused(
    stub: Config, data: Path, tmp_path: Path
) -> None:
    evaluate(Plan("locomo", data, ("bm25",)), tmp_path / "run")
    with pytest.raises(InputError, match="holds another run"):
        evaluate(Plan("locomo", data, ("bm25",), limit=1), tmp_path / "run")


@pytest.mark.parametrize("wrong", ["[]", '[{"a": 1}]', "no JSON", '{"turns": []}'])
def test_wrong_data_leave_no_directory_behind(
    stub: Config, data: Path, tmp_path: Path, wrong: str
) -> None:
    other = tmp_path / "wrong.json"
    other.write_text(wrong, encoding="utf-8")
    with pytest.raises(InputError):
        evaluate(Plan("locomo", other, ("bm25",)), tmp_path / "run")
    for system in ("none", "dmf-memory"):
        with pytest.raises(InputError, match=r"there is no system|--peer"):
            evaluate(Plan("locomo", data, (system,)), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    assert evaluate(Plan("locomo", data, ("bm25",)), tmp_path / "run")["questions"] == 9


@pytest.mark.parametrize("value", ["[" * 5000, "9" * 5000, "{", "'"])
def test_a_setting_of_any_words_is_refused_by_name(value: str) -> None:
    with pytest.raises(ConfigError, match="token_budget must be a whole number"):
        Config().replace(**settings([f"capacity.token_budget={value}"]))


def test_data_that_can_be_read_once_are_refused(stub: Config, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(InputError, match="no file that can be read twice"):
        evaluate(Plan("locomo", tmp_path / "pipe.json", ("bm25",)), tmp_path / "run")


@pytest.mark.parametrize("command", ["locomo", "misses", "ablate"])
@pytest.mark.parametrize("name", ["none.json", "."])
def test_data_that_are_not_there_are_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, name: str
) -> None:
    words = ["--data", str(tmp_path / name), "--out", str(tmp_path / "run")]
    with pytest.raises(SystemExit) as caught:
        main(["eval", command, *words])
    assert caught.value.code == 1
    assert "cannot be read" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_other_code_or_another_analyser_is_another_run(
    stub: Config, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Plan("locomo", data, ("bm25",))
    identity = plan.identity()
    assert {"ebbtide", "core_sha256", "sources_sha256", "analyser", "versions"} <= set(identity)
    evaluate(plan, tmp_path / "run")
    for name, other, told in (
        ("core_sha256", "x" * 64, "the compiled core differs"),
        ("analyser", {"default": "x", "paper": "x"}, "analyser default"),
    ):
        newer = identity | {name: other}
        monkeypatch.setattr(Plan, "identity", lambda self, newer=newer: newer)
        with pytest.raises(InputError, match=f"holds another run .*{told}.*--out.*--fresh"):
            evaluate(plan, tmp_path / "run")
    assert evaluate(plan, tmp_path / "run", fresh=True)["questions"] == 9


def test_a_system_joins_a_finished_run(stub: Config, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    together = evaluate(Plan("locomo", data, ("bm25", "default")), tmp_path / "whole")
    evaluate(Plan("locomo", data, ("default",), command="ebbtide eval first"), out)
    stamps = {p: p.stat().st_mtime_ns for p in (out / "parts").rglob("*.parquet")}
    manifest = evaluate(Plan("locomo", data, ("bm25",), command="ebbtide eval then"), out)
    assert list(manifest["systems"]) == ["bm25", "default"]
    assert manifest["digest"] == together["digest"]
    assert manifest["options"]["command"] == "ebbtide eval then\nebbtide eval first"
    assert {p: p.stat().st_mtime_ns for p in stamps} == stamps
    assert "```sh\nebbtide eval then\nebbtide eval first\n```" in results_page([out])
    # One that was cut off is in no table until it is whole.
    (out / "parts" / "bm25" / "00002.parquet").unlink()
    again = evaluate(Plan("locomo", data, ("default",)), out)
    assert list(again["systems"]) == ["default"]


def test_a_part_without_its_facts_is_made_anew(stub: Config, data: Path, tmp_path: Path) -> None:
    out, plan = tmp_path / "run", Plan("locomo", data, ("bm25",))
    digest = evaluate(plan, out)["digest"]
    facts = out / "parts" / "bm25" / "00002.json"
    facts.write_text("{")
    with pytest.raises(InputError, match=r"00002\.json cannot be read: .*delete it") as caught:
        evaluate(plan, out)
    assert caught.value.code == "input.transcript"
    facts.unlink()
    assert evaluate(plan, out)["digest"] == digest


def test_a_place_that_cannot_be_written_is_named(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*words: object) -> str:
        with pytest.raises(SystemExit) as done:
            main(["eval", *map(str, words)])
        assert done.value.code == 1
        return capsys.readouterr().err

    run = ("locomo", "--data", data, "--system", "bm25", "-j", "1", "--out")
    assert "[store.open]" in fails(*run, data)
    with pytest.raises(SystemExit):
        main(["eval", *map(str, run), str(tmp_path / "run")])
    for report in (
        ("--out", data),
        ("--out", tmp_path / "report", "--results", tmp_path / "none" / "results.md"),
    ):
        err = fails("report", tmp_path / "run", *report)
        assert "cannot be written" in err
        assert "[store.open]" in err
    kept = ("--data", data, "-j", "1", "--out", data)
    assert "[store.open]" in fails("misses", *kept)
    assert "[store.open]" in fails("gate", "--data", data, "-j", "1", "--plot", data)


def test_a_peer_joins_with_what_its_environment_is(
    stub: Config, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ebbtide.evals import peers, systems

    details: dict[str, Any] = {"peer": "dmf-memory==0.3.0", "packages": ["a==1"]}

    def environment(folder: Path) -> peers.PeerEnvironment:
        return peers.PeerEnvironment(folder, folder, folder, dict(details))

    @contextmanager
    def opened(name: str, conversation: Conversation, folder: Path) -> Iterator[systems.System]:
        yield systems._Full(conversation)

    monkeypatch.setattr(peers, "open_environment", environment)
    monkeypatch.setattr(peers, "open_dmf", opened)
    out = tmp_path / "run"
    evaluate(Plan("locomo", data, ("bm25",)), out)
    options = Options(peer=tmp_path / "peer")
    joined = Plan("locomo", data, ("dmf-memory",), options=options)
    manifest = evaluate(joined, out)
    assert list(manifest["systems"]) == ["bm25", "dmf-memory"]
    assert manifest["systems"]["dmf-memory"]["peer"] == details
    part = out / "parts" / "dmf-memory" / "00001.json"
    assert json.loads(part.read_text())["peer"] == details
    assert str(tmp_path) not in (out / "manifest.json").read_text()
    # Without the peer's directory its parts stay; another environment is refused.
    assert len(evaluate(Plan("locomo", data, ("bm25",)), out)["systems"]) == 2
    details["packages"] = ["a==2"]
    with pytest.raises(InputError, match="parts of dmf-memory from another environment"):
        evaluate(joined, out)


def test_ingestion_is_timed_where_no_cache_answers(
    stub: Config, data: Path, tmp_path: Path
) -> None:
    cached = Options(cache=tmp_path / "analyses.db")
    plan = Plan("locomo", data, ("bm25", "default"), options=cached)
    evaluate(plan, tmp_path / "cached")
    evaluate(replace(plan, options=Options()), tmp_path / "plain")

    def timed(folder: str) -> dict[str, bool]:
        rows = read_table(tmp_path / folder / "conversations.parquet")
        return {row["system"]: row["ingest_s"] is not None for row in rows}

    assert timed("cached") == {"bm25": True, "default": False}
    assert timed("plain") == {"bm25": True, "default": True}


def test_a_system_that_is_not_known_is_named(data: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no system 'best'; choose from full"):
        evaluate(Plan("locomo", data, ("best",)), tmp_path / "run")


def test_noise_leaves_the_questions_alone(stub: Config, data: Path, tmp_path: Path) -> None:
    plan = Plan("noise", data, ("bm25",), noise=0.5, seed=3)
    evaluate(plan, tmp_path / "run")
    facts = read_table(tmp_path / "run" / "conversations.parquet")
    assert [row["noise_turns"] for row in facts] == [5, 5, 5]
    assert [row["turns"] for row in facts] == [10, 10, 10]


def test_the_clean_conversation_stands_beside_the_noisy_one(
    stub: Config, data: Path, tmp_path: Path
) -> None:
    plan = Plan("noise", data, ("bm25", "default"), noise=0.75, with_clean=True)
    manifest = evaluate(plan, tmp_path / "run")
    plain = evaluate(Plan("locomo", data, ("bm25", "default")), tmp_path / "plain")
    clean = read_table(tmp_path / "run" / "clean.parquet")
    for one, other in zip(clean, read_table(tmp_path / "plain" / "rows.parquet"), strict=True):
        assert (one["system"], one["question_id"]) == (other["system"], other["question_id"])
        assert one["ranked"] == other["ranked"]
    assert manifest["clean_digest"] is not None
    assert plain["clean_digest"] is None
    page = results_page([tmp_path / "run"])
    assert "### What noise costs" in page
    for row in (
        "| bm25 | none | 6 |",
        "| bm25 | 75 % of the timeline | 6 |",
        "| bm25 | points | 6 |",
    ):
        assert row in page
    assert "What noise costs" not in results_page([tmp_path / "plain"])
    # The noisy rows are those of a run without the clean ones, which can join.
    alone = evaluate(replace(plan, with_clean=False), tmp_path / "alone")
    assert (alone["digest"], alone["clean_digest"]) == (manifest["digest"], None)
    assert evaluate(plan, tmp_path / "alone")["clean_digest"] == manifest["clean_digest"]


def test_the_command_line_measures_and_reports(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*words: str) -> str:
        with pytest.raises(SystemExit) as done:
            main(["eval", *words])
        assert done.value.code in (0, None)
        return capsys.readouterr().out

    out = str(tmp_path / "run")
    page = run("locomo", "--data", str(data), "--system", "bm25", "--out", out, "-j", "1")
    assert "recall@10" in page
    manifest = json.loads(
        run("locomo", "--data", str(data), "--system", "bm25", "--out", out, "-j", "1", "--json")
    )
    assert manifest["dataset"] == "locomo"
    assert str(tmp_path) not in manifest["options"]["command"]
    written = run("report", out, "--out", str(tmp_path / "report"))
    assert "report.html" in written
    table = run("sweep", "--data", str(data), "--try", "ranking.bm25=0.1,0.5", "-j", "1")
    assert "ranking.bm25=0.5" in table
    assert "entity_mismatch" in run("misses", "--data", str(data), "-j", "1")
    kept = ("--data", str(data), "-j", "1", "--sample", "2", "--out", str(tmp_path / "ablated"))
    assert "term late_own" in run("ablate", *kept)
    assert len(json.loads(run("ablate", *kept, "--json"))["variants"]) > 30
    noisy = ("noise", "--data", str(data), "--ratio", "0.5", "--system", "bm25", "-j", "1")
    assert "What noise costs" in run(*noisy, "--out", str(tmp_path / "noisy"))


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("name", "file", "count"),
    [
        ("locomo", "locomo/locomo_dev5.json.gz", 2),
        ("longmemeval", "longmemeval/lme_s_dev18.jsonl.gz", 2),
    ],
)
def test_quality_stays_above_its_floor(
    data_folder: Path, name: str, file: str, count: int, measured: Callable[[str], None]
) -> None:
    path = data_folder / file
    plan = Plan(name, path, ("default",), budgets=(1024,))
    rows: list[dict[str, Any]] = []
    for number, conversation in enumerate(iter_conversations(path)):
        if number == count:
            break
        rows += measure(plan, "default", conversation)[0]
    for metric, floor in FLOORS[name].items():
        values = [row[metric] for row in rows if row.get(metric) is not None]
        mean = sum(values) / len(values)
        measured(f"{name}, {count} conversations: {metric} {mean:.3f} of {len(values)}")
        assert mean >= floor
