"""The evaluation report against rows small enough to work out by hand."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from ebbtide.errors import ConfigError, InputError
from ebbtide.evals.metrics import CUTOFFS, bootstrap_interval
from ebbtide.evals.report import results_page, write_report
from ebbtide.evals.report.headroom import headroom_table
from ebbtide.evals.report.markdown import table_markdown
from ebbtide.evals.report.page import explorer
from ebbtide.evals.report.plots import draw_plots, system_styles
from ebbtide.evals.report.runs import Run, load_run, load_runs, system_order
from ebbtide.evals.report.tables import (
    Cell,
    Table,
    all_tables,
    budget_table,
    category_table,
    confidence_table,
    cutoff_table,
    difference_table,
    headline_table,
    timing_table,
)
from ebbtide.evals.results import BUDGETS, METRICS, SESSION_METRICS, write_table

pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

COMMAND = "/home/someone/bin/ebbtide eval locomo --data /home/someone/dev.json.gz --out /tmp/r"
QUESTIONS = (
    # id, category, abstention, recall@10 of bm25, of default
    ("q1", "multi-hop", False, 0.0, 0.5),
    ("q2", "single-hop", False, 1.0, 1.0),
    ("q3", "single-hop", False, 0.5, 1.0),
    ("q4", "temporal", False, 1.0, 0.0),
    ("q5", "adversarial", True, None, None),
)


def row(system: str, question: tuple[Any, ...], place: int) -> dict[str, Any]:
    name, category, abstention, sparse, own = question
    value = own if system == "default" else sparse
    found: dict[str, Any] = {
        "dataset": "locomo",
        "system": system,
        "conversation": "c1" if place < 3 else "c2",
        "question_id": name,
        "category": category,
        "question": f"What | about <b>{name}</b>?",
        "answer": "" if abstention else "7 May",
        "abstention": abstention,
        "evidence": [],
        "ranked": [],
        "confidence": None,
        "latency_ms": float(place + 1),
    }
    if system == "default":
        found["confidence"] = (0.9, 0.8, 0.4, 0.7, 0.2)[place]
    found |= dict.fromkeys((*METRICS, *SESSION_METRICS), value)
    for budget in BUDGETS:
        for kind in ("recall", "any", "all", "contains"):
            found[f"budget_{budget}_{kind}"] = value
        found[f"budget_{budget}_tokens"] = float(budget - place)
    return found


def conversation(system: str, name: str, turns: int, size: int | None) -> dict[str, Any]:
    return {
        "dataset": "locomo",
        "system": system,
        "conversation": name,
        "turns": turns,
        "noise_turns": 0,
        "questions": 3,
        "ingest_s": 2.0,
        "rss_mb": turns / 10,
        "llm_tokens": 0,
        "state_bytes": size,
        "digest": None,
    }


def write_run(folder: Path, edit: Callable[[list[dict[str, Any]]], None] | None = None) -> Path:
    folder.mkdir(parents=True)
    rows = [
        row(system, question, place)
        for system in ("default", "bm25")
        for place, question in enumerate(QUESTIONS)
    ]
    if edit is not None:
        edit(rows)
    write_table(folder / "rows.parquet", "rows", rows)
    held = [conversation("default", "c1", 400, 4000), conversation("default", "c2", 600, 8000)]
    held += [conversation("bm25", "c1", 400, None), conversation("bm25", "c2", 600, None)]
    write_table(folder / "conversations.parquet", "conversations", held)
    manifest = {
        "ebbtide": "0.1.0",
        "dataset": "locomo",
        "data": "dev.json.gz",
        "data_sha256": "ab" * 32,
        "systems": {"bm25": {}, "default": {}},
        "seed": 0,
        "options": {"command": COMMAND},
        "versions": {"python": "3.11.7", "numpy": "2.0.0"},
        "machine": {"system": "Linux", "processor": "x86_64", "cores": 2, "memory_gib": 8.0},
        "date": "2024-01-08",
        "digest": "cd" * 32,
        "questions": 4,
        "left_out": 1,
        "unresolved": 0,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "first")


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    return load_run(folder)


@pytest.fixture(scope="module")
def report(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_report([folder, folder], tmp_path_factory.mktemp("out") / "new" / "folder")


def shown(cell: Cell) -> str:
    return f"{cell.text} ({cell.interval})" if cell.interval else cell.text


def texts(table: Table | None) -> dict[str, dict[str, str]]:
    """Cells by system and column."""
    assert table is not None
    labels = [column.label for column in table.columns]
    return {
        row[0].text: dict(zip(labels[1:], [shown(cell) for cell in row[1:]], strict=True))
        for row in table.rows
    }


def test_systems_come_in_display_order(run: Run) -> None:
    assert run.systems == ["bm25", "default"]
    names = ["zeta", "alpha", "dmf-memory", "default", "paper", "rrf", "dense", "bm25", "full"]
    assert system_order(names) == [
        *("full", "bm25", "dense", "rrf", "paper", "default", "dmf-memory", "alpha", "zeta")
    ]


def test_headline_is_mean_and_interval_of_the_questions_with_evidence(run: Run) -> None:
    cells = texts(headline_table(run))
    low_high = bootstrap_interval([0.5, 1.0, 1.0, 0.0])
    assert cells["default"]["n"] == "4"
    assert cells["default"]["recall@10"] == f"0.625 ({low_high.low:.3f}–{low_high.high:.3f})"
    assert cells["bm25"]["session all@5"].startswith("0.625 (")
    assert list(cells["bm25"]) == [
        *("n", "recall@5", "recall@10", "recall_any@10", "recall_all@10", "MRR", "nDCG@10"),
        "session all@5",
    ]


def test_differences_are_paired(run: Run) -> None:
    # bm25 minus default: -0.5, 0, -0.5, +1.
    interval = bootstrap_interval([-0.5, 0.0, -0.5, 1.0])
    cell = texts(difference_table(run))["bm25"]["recall@10"]
    assert interval.low < 0 < interval.high
    assert cell == f"0.000 (−{-interval.low:.3f} to +{interval.high:.3f})"


def test_only_questions_that_both_answered_are_compared(tmp_path: Path) -> None:
    def edit(rows: list[dict[str, Any]]) -> None:
        rows[:] = [r for r in rows if r["system"] == "default" or r["question_id"] in ("q1", "q3")]

    run = load_run(write_run(tmp_path / "r", edit))
    table = difference_table(run)
    assert table is not None
    assert texts(table)["bm25"]["n"] == "2"
    assert texts(table)["bm25"]["recall@10"] == "−0.500 (−0.500 to −0.500)"
    assert table.rows[0][3].strong
    assert texts(headline_table(run))["bm25"]["n"] == "2"


def test_without_default_there_is_nothing_to_compare_with(tmp_path: Path) -> None:
    def edit(rows: list[dict[str, Any]]) -> None:
        rows[:] = [r for r in rows if r["system"] == "bm25"]

    run = load_run(write_run(tmp_path / "r", edit))
    assert difference_table(run) is None
    assert explorer(run) is None
    assert confidence_table(run) is None
    assert [t.key for t in all_tables(run)][:2] == ["quality", "budget"]


def test_what_is_left_to_gain(tmp_path: Path) -> None:
    def edit(rows: list[dict[str, Any]]) -> None:
        first = rows[0]
        first["evidence"] = ["a", "b", "c"]
        # Two of three are among the first thirty, one of them only just.
        first["ranked"] = ["a", *(f"x{i}" for i in range(28)), "b", "c"]
        first["budget_2048_all"], first["budget_2048_contains"] = 1.0, 0.0
        rows[1]["budget_2048_all"], rows[1]["budget_2048_contains"] = 0.0, 1.0

    cells = texts(headroom_table(load_run(write_run(tmp_path / "r", edit))))["default"]
    assert cells["ideal order of 30"] == "0.667"
    # q1 and q3 have all evidence, of which only q3 contains the answer; q2 and q4 have not.
    assert cells["contexts ≤2,048 with all evidence"] == "2"
    assert cells["containment in these"] == "0.500"
    assert cells["containment in the others"] == "0.500"


def test_budgets(run: Run) -> None:
    cells = texts(budget_table(run))
    assert cells["default"]["recall_all ≤512"] == "0.625"
    assert cells["default"]["containment ≤4,096"] == "0.625"
    assert cells["default"]["tokens ≤2,048"] == "2,046"


def test_categories_without_recall_are_left_out(run: Run) -> None:
    assert texts(category_table(run)) == {
        "bm25": {"multi-hop (1)": "0.000", "single-hop (2)": "0.750", "temporal (1)": "1.000"},
        "default": {"multi-hop (1)": "0.500", "single-hop (2)": "1.000", "temporal (1)": "0.000"},
    }


def test_the_best_of_a_column_is_strong(run: Run) -> None:
    table = category_table(run)
    assert table is not None
    assert [[cell.strong for cell in row] for row in table.rows] == [
        [False, False, False, True],
        [False, True, True, False],
    ]
    assert "| default | **0.500** | **1.000** | 0.000 |" in table_markdown(table)
    quality = headline_table(run)
    assert quality is not None
    assert "| **0.625** (0." in table_markdown(quality)


def test_cutoffs_name_every_metric(run: Run) -> None:
    table = cutoff_table(run, sessions=True)
    assert table is not None
    assert len(table.columns) == 1 + 3 * len(CUTOFFS) + 2
    assert set(texts(table)["bm25"].values()) == {"0.625"}


def test_confidence_on_answerable_and_unanswerable_questions(run: Run) -> None:
    assert texts(confidence_table(run)) == {
        "default": {
            "answerable n": "4",
            "answerable mean": "0.700",
            "answerable below 0.5": "0.250",
            "unanswerable n": "1",
            "unanswerable mean": "0.200",
            "unanswerable below 0.5": "1.000",
        }
    }


def test_timing(run: Run) -> None:
    cells = texts(timing_table(run))
    # Latencies 1 to 5 ms; 1,000 turns in 4 s; 12,000 bytes for 1,000 turns.
    assert cells["default"] == {
        "turns/s": "250",
        "p50 ms": "3.0",
        "p95 ms": "4.8",
        "p99 ms": "5.0",
        "RSS MiB": "60",
        "bytes/turn": "12",
        "LLM tokens": "0",
    }
    assert cells["bm25"]["bytes/turn"] == "–"


def test_only_ingestion_that_was_timed_counts(folder: Path) -> None:
    run = load_run(folder)
    for held in run.conversations:
        if held["conversation"] == "c2":
            held["ingest_s"] = None
    assert texts(timing_table(run))["default"]["turns/s"] == "200"
    for held in run.conversations:
        held["ingest_s"] = None
    assert texts(timing_table(run))["default"]["turns/s"] == "–"


def test_rows_in_another_order_give_the_same_report(
    tmp_path: Path, folder: Path, report: list[Path]
) -> None:
    again = write_run(tmp_path / "shuffled", lambda rows: rows.reverse())
    assert [replace(t) for t in all_tables(load_run(again))] == all_tables(load_run(folder))
    for old, new in zip(report, write_report([again, again], tmp_path / "out"), strict=True):
        assert old.read_bytes() == new.read_bytes(), old.name


def test_what_is_written(report: list[Path]) -> None:
    kinds = ("recall-by-k", "containment-by-budget", "recall-by-category", "latency")
    assert [path.name for path in report] == [
        "report.md",
        *(f"locomo-dev-{kind}.png" for kind in kinds),
        *(f"locomo-dev-2-{kind}.png" for kind in kinds),
        "report.html",
    ]
    assert all(path.is_file() for path in report)


def test_plots_drawn_twice_are_the_same_bytes(run: Run) -> None:
    import matplotlib as mpl

    first = draw_plots(run)
    before = dict(mpl.rcParams)
    with mpl.rc_context({"lines.linewidth": 9.0, "font.size": 30, "axes.facecolor": "red"}):
        second = draw_plots(run)
    assert first == second
    assert dict(mpl.rcParams) == before
    assert all(plot.png.startswith(b"\x89PNG") for plot in first)
    assert b"Software" not in first[0].png
    assert "default 0.625, 0.625" in first[0].alt


def test_no_plot_without_values(tmp_path: Path) -> None:
    def edit(rows: list[dict[str, Any]]) -> None:
        for r in rows:
            r |= {name: None for name, value in r.items() if "recall" in name or "_any" in name}
            r |= {f"budget_{b}_contains": None for b in BUDGETS}

    run = load_run(write_run(tmp_path / "r", edit))
    assert [plot.key for plot in draw_plots(run)] == ["latency"]
    assert headline_table(run) is None


def test_budgets_that_were_not_run_are_left_out_of_the_plot(tmp_path: Path) -> None:
    def edit(rows: list[dict[str, Any]]) -> None:
        for r in rows:
            r["budget_512_contains"] = None

    run = load_run(write_run(tmp_path / "r", edit))
    plot = next(plot for plot in draw_plots(run) if plot.key == "containment-by-budget")
    assert "bm25 0.625, 0.625, 0.625;" in plot.alt
    assert texts(budget_table(run))["bm25"]["containment ≤512"] == "–"


def test_twelve_systems_look_different() -> None:
    names = [*("full", "last_n", "bm25", "dense", "rrf", "paper", "default", "dmf-memory")]
    styles = system_styles([*names, "a", "b", "c", "d"])
    assert len({(s.colour, s.marker) for s in styles.values()}) == 12


class Page(HTMLParser):
    """Collects what a browser would fetch, ids, and text inside tables."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.ids: list[str] = []
        self.named: list[str] = []
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("src", "srcset", "href", "xlink:href", "data", "action", "poster"):
                self.fetched.append(value or "")
            if name == "id":
                self.ids.append(value or "")
            if name in ("aria-labelledby", "for"):
                self.named.append(value or "")


def test_the_page_refers_to_nothing_outside(report: list[Path]) -> None:
    text = report[-1].read_text()
    page = Page(text)
    assert [link for link in page.fetched if not link.startswith("#")] == []
    assert {link[1:] for link in page.fetched} <= set(page.ids)
    assert set(page.named) <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    assert not {"link", "iframe", "img", "object", "base"} & set(page.tags)
    assert re.findall(r"https?:|//[a-z]|@import|url\((?!#)", text.split("<script>")[0]) == []
    assert "http" not in text.split("<script>")[1].replace("http-equiv", "")
    assert "default-src 'none'" in text
    assert "prefers-color-scheme: dark" in text


def test_the_page_escapes_what_it_shows(report: list[Path]) -> None:
    text = report[-1].read_text()
    assert "What | about &lt;b&gt;q1&lt;/b&gt;?" in text
    assert "<b>q1" not in text


def test_every_table_and_plot_has_words(report: list[Path]) -> None:
    text = report[-1].read_text()
    assert text.count("<table") == text.count("<caption")
    assert text.count("<svg") == text.count('role="img" aria-label=') == 8
    # Colours follow the page: none of the plot's own is left.
    for svg in re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL):
        assert set(re.findall(r"#[0-9a-f]{6}\b", svg)) == set()


def test_the_explorer_lists_where_systems_differ(run: Run) -> None:
    found = explorer(run)
    assert found is not None
    assert found.systems == ["bm25", "default"]
    assert found.chosen == ("default", "bm25")
    assert [(q["id"], q["values"]) for q in found.questions] == [
        ("q1", [0.0, 0.5]),
        ("q3", [0.5, 1.0]),
        ("q4", [1.0, 0.0]),
    ]


def test_the_markdown_report(report: list[Path]) -> None:
    text = report[0].read_text()
    assert "## LoCoMo: dev.json.gz\n" in text
    assert "## LoCoMo: dev.json.gz, run 2\n" in text
    assert "](locomo-dev-2-latency.png)" in text
    assert text.count(f"Source: `{COMMAND}`; ebbtide 0.1.0, numpy 2.0.0") == 2 * 9
    assert "Linux, x86_64, 2 cores, 8.0 GiB, 2024-01-08." in text


def test_the_results_page_has_the_command_without_folders(folder: Path) -> None:
    text = results_page([folder])
    assert "ebbtide eval locomo --data dev.json.gz --out DIR\n" in text
    assert "/home" not in text
    assert ".png" not in text
    assert "4 questions, 1 left out, 0 evidence references unresolved" in text
    assert "2 conversations, 1,000 turns" in text
    assert "`cdcdcdcdcdcdcdcd`" in text
    assert text == results_page([folder])


def test_a_run_without_a_command_gets_one(run: Run) -> None:
    bare = replace(run, manifest={**run.manifest, "options": {}})
    assert bare.public_command == (
        "ebbtide eval locomo --data dev.json.gz --system bm25 --system default --out DIR"
    )


@pytest.mark.parametrize("name", ["manifest.json", "rows.parquet", "conversations.parquet"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    folder = write_run(tmp_path / "run")
    (folder / name).unlink()
    with pytest.raises(InputError, match=rf"run lacks {name}; give a directory") as caught:
        write_report([folder], tmp_path / "out")
    assert caught.value.code == "input.transcript"
    assert not (tmp_path / "out").exists()


def test_a_missing_folder_or_none_at_all(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no run directory"):
        load_run(tmp_path / "nowhere")
    with pytest.raises(InputError, match="at least one"):
        load_runs([])


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    (folder / "rows.parquet").write_bytes(b"no parquet")
    with pytest.raises(InputError, match=r"rows\.parquet is not readable Parquet"):
        load_run(folder)
    (folder / "manifest.json").write_text("{}")
    with pytest.raises(InputError, match=r"manifest\.json lacks ebbtide, dataset"):
        load_run(folder)
    (folder / "manifest.json").write_text("{")
    with pytest.raises(InputError, match="not JSON"):
        load_run(folder)


def test_bad_rows_are_named(tmp_path: Path) -> None:
    def infinite(rows: list[dict[str, Any]]) -> None:
        rows[2]["mrr"] = float("nan")

    cases: list[tuple[Callable[[list[dict[str, Any]]], None], str]] = [
        (infinite, "mrr of question 'q3' is not finite"),
        (lambda rows: rows.append(rows[0]), "question 'q1' is there twice for 'default'"),
    ]
    for number, (edit, message) in enumerate(cases):
        with pytest.raises(InputError, match=message):
            load_run(write_run(tmp_path / str(number), edit))


def test_missing_columns_are_named(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    table = pq.read_table(folder / "rows.parquet").drop_columns(["mrr", "latency_ms"])
    pq.write_table(table, folder / "rows.parquet")
    with pytest.raises(InputError, match="lacks the columns latency_ms, mrr; run") as caught:
        load_run(folder)
    assert caught.value.code == "input.field"


def test_a_missing_package_comes_with_its_remedy(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(name: str) -> Any:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr("ebbtide.evals.report.runs.importlib.import_module", gone)
    with pytest.raises(ConfigError, match=r'pyarrow is not installed: pip install "ebbtide\[eval'):
        load_run(folder)


def test_optional_packages_are_imported_late_and_pyplot_never(folder: Path, tmp_path: Path) -> None:
    code = (
        "import sys, pathlib, ebbtide.evals.report as report\n"
        "print(sorted({'matplotlib', 'pyarrow', 'jinja2'} & set(sys.modules)))\n"
        f"report.write_report([pathlib.Path({str(folder)!r})], pathlib.Path({str(tmp_path)!r}))\n"
        "print('matplotlib' in sys.modules, 'matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\nTrue False\n"
