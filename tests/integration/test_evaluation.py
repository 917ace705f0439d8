"""The evaluation harness: runs that resume, digests that agree, and a floor under quality."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ebbtide import Config, InputError
from ebbtide.cli import main
from ebbtide.evals.compare import compare
from ebbtide.evals.datasets import iter_conversations
from ebbtide.evals.misses import CLASSES, find_misses, tally
from ebbtide.evals.report import results_page
from ebbtide.evals.results import read_table
from ebbtide.evals.run import Plan, evaluate, measure
from ebbtide.evals.variants import Variant, ablations, sweep

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


def test_a_system_that_is_not_known_is_named(data: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no system 'best'; choose from full"):
        evaluate(Plan("locomo", data, ("best",)), tmp_path / "run")


def test_noise_leaves_the_questions_alone(stub: Config, data: Path, tmp_path: Path) -> None:
    plan = Plan("noise", data, ("bm25",), noise=0.5, seed=3)
    evaluate(plan, tmp_path / "run")
    facts = read_table(tmp_path / "run" / "conversations.parquet")
    assert [row["noise_turns"] for row in facts] == [5, 5, 5]
    assert [row["turns"] for row in facts] == [10, 10, 10]


def test_variants_are_measured_beside_the_base(data: Path) -> None:
    variants = [
        Variant("nothing", {}),
        Variant("no bm25", {"retrieval": {"enable_bm25": False}}),
        Variant("small", {"capacity": {"token_budget": 16}}),
    ]
    base, nothing, _, small = compare(data, variants, Config())
    assert base.differences == {}
    assert nothing.means == base.means
    assert nothing.differences["mrr"].mean == 0.0
    assert small.means["active"] < base.means["active"] == 1.0


def test_ablations_name_every_part_that_is_on() -> None:
    names = [variant.name for variant in ablations(Config())]
    assert len(set(names)) == len(names)
    assert {"channel bm25", "term late_own", "feature stale", "signal eta_constraint"} <= set(names)
    assert "channel card_semantic" not in names  # it is off already
    tried = sweep({("ranking", "bm25"): [0.1, 0.2], ("ranking", "dense"): [0.0]})
    assert [v.name for v in tried] == [
        "ranking.bm25=0.1 ranking.dense=0.0",
        "ranking.bm25=0.2 ranking.dense=0.0",
    ]


def test_misses_are_counted_by_what_became_of_them(data: Path) -> None:
    found = find_misses(data, Config(), k=1, max_tokens=64)
    assert {miss.fate for miss in found} <= set(CLASSES)
    assert tally(found)["all"].total() >= len(found)
    assert find_misses(data, Config(), k=5) == []


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
    written = run("report", out, "--out", str(tmp_path / "report"))
    assert "report.html" in written
    table = run("sweep", "--data", str(data), "--try", "ranking.bm25=0.1,0.5", "-j", "1")
    assert "ranking.bm25=0.5" in table
    assert "pool" in run("misses", "--data", str(data), "-j", "1")


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("name", "file", "count"),
    [
        ("locomo", "locomo/locomo_dev5.json.gz", 2),
        ("longmemeval", "longmemeval/lme_s_dev18.jsonl.gz", 2),
    ],
)
def test_quality_stays_above_its_floor(
    data_folder: Path, name: str, file: str, count: int, capsys: pytest.CaptureFixture[str]
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
        with capsys.disabled():
            print(f"\n{name}, {count} conversations: {metric} {mean:.3f} of {len(values)}")  # noqa: T201
        assert mean >= floor
