"""``ebbtide inspect``, ``ebbtide plot`` and the live view of ``ebbtide replay``."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ebbtide import Config, Memory, WriteReport
from ebbtide.cli import main
from ebbtide.cli.live import ReplayView, StackedBar
from ebbtide.inspection import LIMIT
from ebbtide.replay import ReplaySummary
from ebbtide.transcripts import read_transcripts

from .conftest import turns

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def store(quick: Config, store_path: Path) -> Path:
    with Memory.open(store_path, config=quick) as memory:
        memory.add_many(turns())
    return store_path


@pytest.fixture
def run(
    quick: Config,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Run:
    """The command line in this process, without models, in a folder of its own."""
    monkeypatch.setattr("ebbtide.cli.inspecting.settings_from", lambda config: quick)
    monkeypatch.chdir(tmp_path)

    def go(*words: object) -> tuple[int, str, str]:
        code: Any = 0
        try:
            main([str(word) for word in words])
        except SystemExit as exit_:
            code = exit_.code or 0
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return code, captured.out, captured.err

    return go


def test_inspect_writes_a_page_beside_you(run: Run, store: Path, tmp_path: Path) -> None:
    assert run("inspect", "--store", store) == (0, "wrote memory.html: 70 turns\n", "")
    page = (tmp_path / "memory.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert page.count('class="turn"') == 70


def test_inspect_takes_a_name_questions_and_a_limit(run: Run, store: Path, tmp_path: Path) -> None:
    words = ("--out", "ana.html", "--limit", 50, "--question", "port is v3", "--question", "cat")
    code, out, _ = run("inspect", "--store", store, *words)
    assert (code, out) == (0, "wrote ana.html: 50 turns; 20 older ones are left out (--limit)\n")
    page = (tmp_path / "ana.html").read_text(encoding="utf-8")
    assert page.count("data-question=") == 2


def test_inspect_prints_what_the_page_is_made_of(run: Run, store: Path, tmp_path: Path) -> None:
    code, out, _ = run("inspect", "--store", store, "--json")
    assert code == 0
    assert len(json.loads(out)["turns"]) == 70
    assert list(tmp_path.glob("*.html")) == []
    assert run("inspect", "--store", store, "--json", "--out", "a.html")[1] == out
    assert (tmp_path / "a.html").exists()


@pytest.mark.parametrize("there", [True, False])
def test_inspect_opens_the_page_where_a_browser_is(
    run: Run, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    asked: list[str] = []

    def browse(address: str) -> bool:
        asked.append(address)
        return there

    monkeypatch.setattr("webbrowser.open", browse)
    code, _, err = run("inspect", "--store", store, "--open")
    assert code == 0
    assert asked == [(tmp_path / "memory.html").as_uri()]
    assert ("no browser was found" in err) is not there


def test_nothing_is_written_over_the_store(run: Run, store: Path) -> None:
    before = store.read_bytes()
    for words in (["inspect", "--out", store], ["plot", "--out", store]):
        code, _, err = run(*words, "--store", store, "--json")
        assert (code, json.loads(err)["error"]["code"]) == (1, "input.field")
    assert store.read_bytes() == before


def test_a_page_takes_the_place_of_a_page_alone(run: Run, store: Path, tmp_path: Path) -> None:
    chat = tmp_path / "chat.jsonl"
    for text, code in (("", 0), ("<!doctype HTML>an earlier one", 0), ('{"text": "a"}\n', 1)):
        chat.write_text(text, encoding="utf-8")
        assert run("inspect", "--store", store, "--out", chat)[0] == code
    assert chat.read_text(encoding="utf-8") == '{"text": "a"}\n'


def test_what_cannot_be_written_is_an_error(run: Run, store: Path) -> None:
    for words in (["inspect", "--out", "no/such.html"], ["plot", "--out", "no/such.png"]):
        code, _, err = run(*words, "--store", store)
        assert code == 1
        assert f"cannot write {words[-1]}: No such file or directory" in err


def test_the_memory_is_named_where_there_are_several(run: Run, store: Path, quick: Config) -> None:
    with Memory.open(store, namespace="<other>", config=quick) as memory:
        memory.add("the port is v9")
    assert "choose one with --namespace" in run("inspect", "--store", store)[2]
    assert run("inspect", "--store", store, "-n", "<other>")[1] == "wrote memory.html: 1 turn\n"
    assert "<em>&lt;other&gt;</em>" in Path("memory.html").read_text(encoding="utf-8")


def test_plot_draws_a_file(run: Run, store: Path, tmp_path: Path) -> None:
    code, out, _ = run("plot", "--store", store, "--out", "m.svg", "--limit", 30, "--json")
    assert (code, json.loads(out)) == (0, {"file": "m.svg", "turns": 30, "left_out": 40})
    assert "<svg" in (tmp_path / "m.svg").read_text(encoding="utf-8")
    assert run("plot", "--store", store, "--out", "m.gif")[0] == 1


def test_the_commands_do_not_write_to_the_store(run: Run, store: Path, quick: Config) -> None:
    with Memory.open(store, config=quick):  # held by a writer all the while
        assert run("inspect", "--store", store, "--question", "port is v3")[0] == 0
        assert run("plot", "--store", store, "--out", "m.png")[0] == 0


def test_the_help_says_the_limit_that_the_data_has(run: Run) -> None:
    for command in ("inspect", "plot"):
        code, out, _ = run(command, "--help")
        assert code == 0
        assert f"default: {LIMIT}" in out
        assert "Examples:" in out


# The live view


def screen(*, terminal: bool) -> tuple[Console, io.StringIO]:
    held = io.StringIO()
    console = Console(
        file=held, force_terminal=terminal, width=100, height=30, legacy_windows=False, _environ={}
    )
    return console, held


def watched(tmp_path: Path, view: ReplayView) -> None:
    """A replay of two batches, told to the view."""
    file = tmp_path / "chat.jsonl"
    file.write_text('{"role": "user", "content": "x"}\n' * 4, encoding="utf-8")
    summary = ReplaySummary("default", turns=2, accepted=2, seconds=0.5)
    with view:
        (transcript,) = read_transcripts(file)
        advance = view.follow(transcript)
        tiers = {"healthy": 1, "unstable": 2, "critical": 5}
        summary.evictions = Counter(hard_kill=3, budget=1)
        summary.superseded = 7
        advance(summary, WriteReport(tiers=tiers, active_tokens=1_250))
        view._live and view._live.refresh()
        summary.turns = 4
        advance(summary, WriteReport(tiers=tiers, active_tokens=90))


def test_a_replay_shows_the_memory_on_a_terminal(tmp_path: Path) -> None:
    console, held = screen(terminal=True)
    watched(tmp_path, ReplayView(1_000, console=console))
    shown = held.getvalue()
    assert "chat.jsonl" in shown
    assert "4 turns/s" in shown
    assert "1 healthy, 2 unstable, 5 critical" in shown
    assert "1,250 of 1,000, 250 over" in shown
    assert "3 decayed, 1 over the budget" in shown
    assert re.search(r"superseded +7\b", shown)
    # What stays at the end are the bars.
    assert "healthy" not in shown.rpartition("chat.jsonl")[2]


@pytest.mark.parametrize(("terminal", "quiet"), [(False, False), (True, True)])
def test_a_replay_shows_nothing_elsewhere(tmp_path: Path, terminal: bool, quiet: bool) -> None:
    console, held = screen(terminal=terminal)
    watched(tmp_path, ReplayView(1_000, quiet=quiet, console=console))
    assert held.getvalue() == ""


def test_a_bar_is_as_long_as_its_parts() -> None:
    console = Console(width=40, file=io.StringIO(), _environ={})

    def drawn(counts: dict[str, int], whole: int) -> str:
        with console.capture() as capture:
            console.print(StackedBar(counts, whole, width=10))
        return capture.get().rstrip("\n")

    assert drawn({"healthy": 1, "unstable": 2, "critical": 2}, 5) == "██▓▓▓▓▒▒▒▒"
    assert drawn({"tokens": 5}, 10) == "█████░░░░░"
    assert drawn({"tokens": 50}, 10) == "█" * 10
    assert drawn({"healthy": 0, "unstable": 0, "critical": 0}, 0) == "░" * 10


def test_a_terminal_without_blocks_gets_letters() -> None:
    held = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    console = Console(width=40, file=held, force_terminal=True, color_system=None, _environ={})
    console.print(StackedBar({"healthy": 1, "unstable": 1, "critical": 1}, 4, width=8))
    held.flush()
    assert held.buffer.getvalue().decode() == "##++--..\n"  # type: ignore[attr-defined]
