"""The command line: what it prints where, its exit codes, and that replays resume."""

from __future__ import annotations

import gzip
import inspect
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

from ebbtide import Config, EbbtideError, Memory, Store
from ebbtide.cli import main
from ebbtide.cli.progress import stop_on_interrupt

COMMAND = [sys.executable, "-c", "from ebbtide.cli import main; main()"]


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    def document(self) -> Any:
        """What `--json` printed: one document and no more."""
        assert self.code == 0, self.err
        return json.loads(self.out)

    def error(self) -> str:
        """The code of an error that `--json` printed."""
        assert self.code != 0
        assert self.out == ""
        error = json.loads(self.err)["error"]
        assert sorted(error) == ["code", "message"]
        return str(error["code"])


Run = Callable[..., Done]


@pytest.fixture
def run(stub: Config, run_with_models: Run) -> Run:
    """The command line in this process, without models."""
    return run_with_models


@pytest.fixture
def run_with_models(capsys: pytest.CaptureFixture[str]) -> Run:
    """The command line in this process."""

    def go(*words: object) -> Done:
        code: Any = 0
        try:
            main([str(word) for word in words])
        except SystemExit as exit_:
            code = exit_.code or 0
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return Done(code, captured.out, captured.err)

    return go


def real(*words: object, **environment: str) -> Done:
    """The command line in a process of its own, with the models."""
    done = subprocess.run(
        [*COMMAND, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, **environment},
    )
    assert "Traceback" not in done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


def chat(path: Path, texts: list[str], **fields: str) -> Path:
    lines = [json.dumps({"role": "user", "content": text, **fields}) for text in texts]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def locomo(path: Path) -> Path:
    samples: list[dict[str, Any]] = [
        {
            "sample_id": name,
            "conversation": {
                "speaker_a": "Ida",
                "speaker_b": "Ole",
                "session_1_date_time": "1:56 pm on 8 May, 2023",
                "session_1": [
                    {"speaker": "Ida", "dia_id": "D1:1", "text": f"{name}: the port is v1"},
                    {"speaker": "Ole", "dia_id": "D1:2", "text": "noted"},
                    {"speaker": "Ole", "dia_id": "D1:3", "text": ""},
                ],
            },
            "qa": [],
        }
        for name in ("conv-a", "conv-b")
    ]
    path.write_text(json.dumps(samples), encoding="utf-8")
    return path


@pytest.fixture
def filled(run: Run, tmp_path: Path, store_path: Path) -> Path:
    """A store with one small memory."""
    texts = ["The port is v1.", "thanks", "The port is v2, not v1.", "tea in the garden"]
    file = chat(tmp_path / "chat.jsonl", texts, speaker="Ana", timestamp="2024-05-01")
    assert run("replay", file, "--store", store_path).code == 0
    return store_path


def names_in(path: Path) -> list[str]:
    with Store.open(path, read_only=True) as store:
        return store.namespaces()


# The real thing, in processes of its own


def test_a_partial_replay_is_gone_on_with(
    tmp_path: Path, example_turns: list[dict[str, Any]]
) -> None:
    lines = [json.dumps(turn) for turn in example_turns[:30]]
    file, store = tmp_path / "chat.jsonl", tmp_path / "memory.db"
    file.write_text("\n".join(lines[:12]) + "\n" + lines[12][:40], encoding="utf-8")
    first = real("replay", file, "--store", store, "--batch-size", 5)
    assert first.code == 1
    assert first.out == ""
    assert f"{file}:13: the line is not JSON" in first.err
    assert "the 12 before it were kept" in first.err
    file.write_text("\n".join(lines), encoding="utf-8")
    second = real("replay", file, "--store", store, "--json")
    (data,) = second.document()["replays"]
    assert second.err == ""
    assert (data["accepted"], data["duplicates"]) == (18, 12)
    with Memory.in_memory() as memory:
        memory.add_many(example_turns[:30])
        assert data["digest"] == memory.digest()

    question = "Which port does the invoice service run on?"
    asked = real("ask", "--store", store, question, "--limit", 3)
    assert asked.code == 0
    assert asked.err == ""
    assert "s1:26" in asked.out
    assert "8080" in asked.out
    found = real("ask", "--store", store, question, "--limit", 3, "--json").document()
    assert [item["rank"] for item in found["evidence"]] == [1, 2, 3]
    assert found["question"] == question


def test_an_interrupted_replay_is_gone_on_with(
    tmp_path: Path, example_turns: list[dict[str, Any]]
) -> None:
    turns = example_turns[:200]
    file, store = tmp_path / "chat.jsonl", tmp_path / "memory.db"
    file.write_text("\n".join(json.dumps(turn) for turn in turns), encoding="utf-8")
    words = ["replay", str(file), "--store", str(store), "--batch-size", "2"]
    process = subprocess.Popen(
        [*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while process.poll() is None and stored(store) == 0:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out == ""
    assert "run the same command again" in err
    assert err.count("\n") == 1
    done = stored(store)
    assert 0 < done < len(turns)
    (data,) = real(*words[:-2], "--json").document()["replays"]
    assert (data["accepted"], data["duplicates"]) == (len(turns) - done, done)
    with Memory.in_memory() as memory:
        memory.add_many(turns)
        assert data["digest"] == memory.digest()


def stored(store: Path) -> int:
    try:
        with Memory.open(store, read_only=True) as memory:
            return len(memory)
    except EbbtideError:
        return 0  # not made yet


def test_asking_works_beside_a_writer_and_creates_nothing(tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    missing = real("ask", "--store", store, "Where?")
    assert missing.code == 1
    assert missing.out == ""
    assert missing.err.startswith(f"ebbtide: there is no store at {store}; check the path")
    assert missing.err.endswith(" [not_found.store]\n")
    assert list(tmp_path.iterdir()) == []
    with Memory.open(store) as memory:
        memory.add("I moved to Porto in May.", speaker="Ana")
        found = real("ask", "--store", store, "Where does Ana live?", "--context")
        assert found.code == 0
        assert "I moved to Porto in May." in found.out
        locked = real("delete", "--store", store, "0", "--json")
        assert locked.code == 1
        assert locked.error() == "store.locked"


def test_help_is_quick_and_version_names_the_models() -> None:
    code = (
        "import sys\nfrom ebbtide.cli import main\n"
        "try:\n    main(['--help'])\nfinally:\n"
        "    heavy = {'numpy', 'spacy', 'onnxruntime', 'tokenizers', 'vaderSentiment'}\n"
        "    print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "[]\n")
    version = real("--version")
    assert version.code == 0
    assert version.out.startswith("ebbtide 0.")
    assert "embedder=bge-small-en-v1.5" in version.out


def test_it_runs_as_a_module() -> None:
    words = [sys.executable, "-m", "ebbtide", "--help"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: ebbtide [OPTIONS] COMMAND")


def test_output_survives_a_poor_encoding_and_a_closed_pipe(tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    with Memory.open(store) as memory:
        memory.add("Olá do Porto", external_id="é")
    poor = real("explain", "--store", store, 0, PYTHONIOENCODING="ascii")
    assert poor.code == 0
    assert "Ol\\xe1" in poor.out
    assert real("explain", "--store", store, "0", "--json", PYTHONIOENCODING="ascii").document()
    reader, writer = os.pipe()
    os.close(reader)
    for unbuffered in ("", "1"):  # the last flush fails, or the first write
        done = subprocess.run(
            [*COMMAND, "ask", "--store", str(store), "Porto?", "--context"],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
        assert done.stderr == ""
        assert done.returncode == 0
    os.close(writer)


def test_every_command_does_its_part_and_prints_one_document(
    run_with_models: Run, tmp_path: Path, example_turns: list[dict[str, Any]]
) -> None:
    run, file, store = run_with_models, tmp_path / "chat.jsonl", tmp_path / "memory.db"
    turns = [{**turn, "mood": number} for number, turn in enumerate(example_turns[:30])]
    file.write_text("\n".join(json.dumps(turn) for turn in turns), encoding="utf-8")

    def document(*words: object) -> Any:
        done = run(*words, "--store", store, "--json")
        assert done.err == ""
        return done.document()

    (replayed,) = document("replay", file)["replays"]
    numbers = document("stats")
    assert numbers["turns"] == numbers["active"] + numbers["archived"] == 30
    assert numbers["digest"] == replayed["digest"]
    found = document("ask", "Which port does the invoice service run on?")
    assert found["knows"]
    best = found["evidence"][0]["turn"]
    assert "8080" in best["text"]
    assert best["metadata"] == {"mood": best["interaction_id"]}
    life = document("explain", "s1:26")
    assert [row["relation"] for row in life["older"]] == ["corrects"]
    rebuilt = document("reindex")
    assert (rebuilt["turns"], rebuilt["digest"]) == (30, replayed["digest"])
    assert document("delete", "s1:26")["deleted"]["external_id"] == "s1:26"
    assert run("explain", "s1:26", "--store", store, "--json").error() == "not_found.turn"
    assert document("stats")["turns"] == 29


# Replay


def test_replay_prints_a_summary_on_standard_output(run: Run, tmp_path: Path) -> None:
    file = chat(tmp_path / "chat.jsonl", ["one", "", "two"])
    done = run("replay", file, "--store", tmp_path / "m.db")
    assert (done.code, done.err) == (0, "")
    rows = dict(line.split(maxsplit=1) for line in done.out.splitlines() if len(line.split()) > 1)
    assert rows["accepted"].strip() == "2"
    assert rows["skipped"].strip() == "1"
    assert {"duplicates", "active", "archived", "tiers", "evicted", "superseded"} <= set(rows)
    assert {"seconds", "turns/s", "digest"} <= set(rows)
    assert len(rows["digest"].strip()) == 64


def test_conversations_get_memories_of_their_own(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = locomo(tmp_path / "two.json")
    for _ in range(2):
        assert run("replay", file, "--store", tmp_path / "each.db").code == 0
    assert names_in(tmp_path / "each.db") == ["conv-a", "conv-b"]
    monkeypatch.setenv("COLUMNS", "80")
    shown = run("replay", file, "--store", tmp_path / "each.db").out
    assert "…" not in shown
    assert "conv-a" in shown
    assert "0 turns stored" in shown
    numbers = run("stats", "--store", tmp_path / "each.db", "-n", "conv-a", "--json").document()
    assert numbers["turns"] == 2

    done = run("replay", file, "--store", tmp_path / "one.db", "--conversation", "conv-b", "--json")
    (data,) = done.document()["replays"]
    assert (data["namespace"], data["accepted"], data["skipped"]) == ("conv-b", 2, 1)
    assert names_in(tmp_path / "one.db") == ["conv-b"]

    words = ("--conversation", "conv-a", "--namespace", "mine")
    assert run("replay", file, "--store", tmp_path / "named.db", *words).code == 0
    assert names_in(tmp_path / "named.db") == ["mine"]


def test_several_conversations_in_one_named_memory_stay_apart(run: Run, tmp_path: Path) -> None:
    file = locomo(tmp_path / "two.json")
    done = run("replay", file, "--store", tmp_path / "m.db", "--namespace", "all", "--json")
    assert [data["accepted"] for data in done.document()["replays"]] == [2, 2]
    words = ("--namespace", "all", "--conversation", "conv-b", "--json")
    (again,) = run("replay", file, "--store", tmp_path / "m.db", *words).document()["replays"]
    assert (again["accepted"], again["duplicates"]) == (0, 2)
    numbers = run("stats", "--store", tmp_path / "m.db", "--json").document()
    assert numbers["turns"] == 4


def test_an_unknown_conversation_names_those_there_are(run: Run, tmp_path: Path) -> None:
    file = locomo(tmp_path / "two.json")
    done = run("replay", file, "--store", tmp_path / "m.db", "--conversation", "conv-c")
    assert done.code == 1
    assert "conv-a, conv-b" in done.err
    assert not (tmp_path / "m.db").exists()


def test_a_missing_file_among_several_stops_before_the_work(run: Run, tmp_path: Path) -> None:
    file = chat(tmp_path / "chat.jsonl", ["one"])
    done = run("replay", file, tmp_path / "typo.jsonl", "--store", tmp_path / "m.db", "--json")
    assert done.code == 1
    assert done.error() == "input.transcript"
    assert not (tmp_path / "m.db").exists()


def test_a_bad_line_in_the_middle(run: Run, tmp_path: Path) -> None:
    file = chat(tmp_path / "chat.jsonl", ["one", "two"])
    file.write_text(file.read_text() + "{]\n" + file.read_text())
    done = run("replay", file, "--store", tmp_path / "m.db")
    assert (done.code, done.out) == (1, "")
    assert f"{file}:3: " in done.err
    assert "the 2 before it were kept" in done.err
    assert done.err.count("\n") == 1
    assert run("stats", "--store", tmp_path / "m.db", "--json").document()["turns"] == 2

    file.write_text(file.read_text().replace("{]", '{"text": "mended"}'))
    words = ("replay", file, "--json", "--store")
    (again,) = run(*words, tmp_path / "m.db").document()["replays"]
    (whole,) = run(*words, tmp_path / "whole.db").document()["replays"]
    assert (again["accepted"], again["duplicates"], whole["accepted"]) == (3, 2, 5)
    assert again["digest"] == whole["digest"]


def test_a_gzipped_benchmark_file(run: Run, tmp_path: Path) -> None:
    plain, packed = locomo(tmp_path / "two.json"), tmp_path / "packed.json.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    digests = [
        [data["digest"] for data in run(*words, "--json").document()["replays"]]
        for words in (
            ("replay", plain, "--store", tmp_path / "plain.db"),
            ("replay", packed, "--store", tmp_path / "packed.db"),
        )
    ]
    assert digests[0] == digests[1]
    assert len(digests[0]) == 2


def test_an_empty_namespace_is_one_too(run: Run, tmp_path: Path) -> None:
    file, store = chat(tmp_path / "chat.jsonl", ["tea"]), tmp_path / "m.db"
    assert run("replay", file, "--store", store, "--namespace", "").code == 0
    assert names_in(store) == [""]
    assert "tea" in run("ask", "tea", "--store", store, "--namespace", "").out


def test_progress_goes_to_a_terminal_only(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    file = chat(tmp_path / "[x] chat.jsonl", ["one", "two"])
    done = run("replay", file, "--store", tmp_path / "m.db")
    assert "[x] chat.jsonl" in done.err
    assert "2/2" in done.err
    assert "turns/s" in done.err
    assert "…" not in done.err.split("2/2")[-1]
    for quietly in ("--json", "--quiet"):
        assert run("replay", file, "--store", tmp_path / "m.db", quietly).err == ""


def test_the_first_interrupt_asks_and_the_second_one_insists() -> None:
    before = signal.getsignal(signal.SIGINT)
    with stop_on_interrupt() as stop:
        assert not stop()
        signal.raise_signal(signal.SIGINT)
        assert stop()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_the_token_budget_is_taken(run: Run, tmp_path: Path) -> None:
    file = chat(tmp_path / "chat.jsonl", [f"turn {n} " + "word " * 40 for n in range(40)])
    done = run("replay", file, "--store", tmp_path / "m.db", "--token-budget", 256, "--json")
    assert done.document()["replays"][0]["archived"] > 0


# Ask


def test_evidence_is_a_table_that_says_when_it_may_not_know(run: Run, filled: Path) -> None:
    found = run("ask", "--store", filled, "port", "--json").document()
    done = run("ask", "--store", filled, "port")
    assert (done.code, done.err) == (0, "")
    assert ("may not know" in done.out) is not found["knows"]
    assert found["knows"] is (found["evidence"][0]["confidence"] >= 0.5)
    assert "2024-05-01" in done.out
    assert "Ana" in done.out
    assert "chat#3" in done.out
    assert "(corrected) The port is v1." in done.out


def test_a_narrow_terminal_gets_lines_and_not_a_table(
    run: Run, filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    done = run("ask", "--store", filled, "port")
    assert done.code == 0
    lines = done.out.splitlines()
    assert all(len(line) <= 30 for line in lines)
    assert any(line.startswith("1. ") for line in lines)
    assert {"(corrected) The port is v1.", "The port is v2, not v1."} <= set(lines)


def test_confidence_decides_what_is_said(
    run: Run, filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for least, said in ((0.0, False), (1.1, True)):
        monkeypatch.setattr("ebbtide.cli.show.KNOWS", least)
        assert ("may not know" in run("ask", "--store", filled, "port").out) is said


def test_filters_and_a_memory_that_knows_nothing(run: Run, filled: Path) -> None:
    done = run("ask", "--store", filled, "port", "--speaker", "Nobody")
    assert done.code == 0
    assert "does not know" in done.out
    found = run("ask", "--store", filled, "port", "--speaker", "Ana", "-k", 2, "--json").document()
    assert len(found["evidence"]) == 2
    assert run("ask", "--store", filled, "port", "--role", "tool", "--json").document() == {
        "question": "port",
        "knows": False,
        "evidence": [],
    }


def test_trace_and_context(run: Run, filled: Path) -> None:
    traced = run("ask", "--store", filled, "port", "--trace", "-k", 1)
    assert traced.code == 0
    for words in ("kept", "cut", "found by", "score"):
        assert words in traced.out
    document = run("ask", "--store", filled, "port", "--trace", "--json").document()
    assert {"frame", "candidates", "evidence"} <= set(document)
    context = run("ask", "--store", filled, "port", "--context", "--max-tokens", 60, "--json")
    assert context.document()["tokens"] <= 60
    assert run("ask", "--store", filled, "port", "--context", "--trace").code == 2


def test_stored_text_steers_neither_markup_nor_terminal(run: Run, tmp_path: Path) -> None:
    store = tmp_path / "m.db"
    file = chat(tmp_path / "c.jsonl", ["port [/red] \x1b[31mred\x07"], speaker="[/b]", id="[i]")
    assert run("replay", file, "--store", store, "--namespace", "[u]").code == 0
    forget = ["forget", "port"]
    for words in (["ask", "port"], ["ask", "port", "--trace"], ["explain", "0"], ["stats"], forget):
        done = run(*words, "--store", store)
        assert done.code == 0
        assert "\x1b" not in done.out
        assert "\x07" not in done.out
        assert "[" in done.out
    shown = run("ask", "port", "--store", store).out
    assert "[/b]" in shown
    assert "[/red]" in shown


def test_pending_turns_are_analysed_first(run: Run, stub: Config, filled: Path) -> None:
    with Memory.open(filled) as memory:
        leave_pending(memory)
    assert run("stats", "--store", filled, "--json").document()["pending"] == 1
    assert "still to come" in run("explain", "--store", filled, 4).out
    assert "still pending" in run("ask", "--store", filled, "pending").out
    assert run("stats", "--store", filled, "--json").document()["pending"] == 0


def test_pending_turns_of_a_writer_are_left_to_it(run: Run, filled: Path) -> None:
    with Memory.open(filled) as memory:
        leave_pending(memory)
        done = run("ask", "--store", filled, "port", "--json")
        assert done.document()["evidence"]
        assert "still being analysed" in done.err


def leave_pending(memory: Memory) -> None:
    """Journal a turn as a process does that is killed before its analysis."""
    from ebbtide import Turn
    from ebbtide.inputs import prepare

    prepared = prepare(Turn("still pending"), max_chars=100)
    assert prepared is not None
    memory._handle.journal([prepared])


# Which memory, which turn


def test_one_of_several_memories_has_to_be_named(run: Run, tmp_path: Path) -> None:
    store = tmp_path / "m.db"
    run("replay", locomo(tmp_path / "two.json"), "--store", store)
    for words in (["ask", "x"], ["explain", "0"], ["stats"], ["delete", "0"], ["reindex"]):
        for more in ([], ["--namespace", "conv-c"]):
            done = run(*words, "--store", store, *more)
            assert (done.code, done.out) == (1, ""), words
            assert "'conv-a', 'conv-b'" in done.err
            assert "--namespace" in done.err
    assert run("stats", "--store", store, "-n", "conv-b").code == 0


def test_a_missing_store_is_not_found_and_not_made(run: Run, tmp_path: Path) -> None:
    store = tmp_path / "none.db"
    for words in (["ask", "x"], ["explain", "0"], ["stats"], ["delete", "0"], ["reindex"]):
        done = run(*words, "--store", store, "--json")
        assert done.code == 1
        assert done.error() == "not_found.store"
    assert list(tmp_path.iterdir()) == []


def test_a_number_that_is_two_turns_is_refused(run: Run, tmp_path: Path) -> None:
    store, file = tmp_path / "m.db", tmp_path / "chat.jsonl"
    messages = [{"id": 1, "text": "first"}, {"id": 2, "text": "second"}]
    file.write_text("\n".join(map(json.dumps, messages)))
    run("replay", file, "--store", store)
    done = run("delete", "--store", store, "1")
    assert done.code == 1
    assert "--by" in done.err
    life = run("explain", "--store", store, "1", "--by", "external", "--json").document()
    assert life["turn"]["text"] == "first"
    life = run("explain", "--store", store, "1", "--by", "id", "--json").document()
    assert life["turn"]["text"] == "second"
    life = run("explain", "--store", store, "2", "--json").document()
    assert life["turn"]["text"] == "second"


@pytest.mark.parametrize("name", ["99", "none", "²", "-", "9" * 5000])
def test_an_unknown_turn_is_not_found(run: Run, filled: Path, name: str) -> None:
    for command in ("explain", "delete"):
        done = run(command, "--store", filled, "--json", "--", name)
        assert done.code == 1
        assert done.error() == "not_found.turn"


def test_explain_tells_the_life_of_a_turn(run: Run, filled: Path) -> None:
    done = run("explain", "--store", filled, "chat#1")
    assert (done.code, done.err) == (0, "")
    for words in (
        "The port is v1.",
        "Survival Score",
        "density",
        "σ(",
        "superseded",
        "corrects",
        "Lineage",
        "ana: port",
        "corrected",
    ):
        assert words in done.out, words


def test_delete_erases(run: Run, filled: Path) -> None:
    done = run("delete", "--store", filled, "chat#1", "--json")
    assert done.document()["deleted"] == {"interaction_id": 0, "external_id": "chat#1"}
    assert run("explain", "--store", filled, "chat#1").code == 1
    assert run("stats", "--store", filled, "--json").document()["turns"] == 3


# Settings, models, usage


def test_a_store_of_another_model_is_reindexed(
    run: Run, filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reference.stand_ins import StubAnalyser

    class Other(StubAnalyser):
        def __init__(self, nlp: Any, *, embedder: Any = None, cards: bool = False) -> None:
            super().__init__(nlp, embedder=embedder, cards=cards)
            self.fingerprint = "other"

    monkeypatch.setattr("ebbtide.analysis.analyser.Analyser", Other)
    refused = run("ask", "--store", filled, "port", "--json")
    assert refused.error() == "fingerprint.analyser"
    assert "ebbtide reindex" in refused.err
    done = run("reindex", "--store", filled, "--json")
    assert done.document()["turns"] == 4
    assert run("ask", "--store", filled, "port").code == 0
    assert run("stats", "--store", filled, "--json").document()["analyser"] == "other"


def test_config_show_is_toml_that_loads_again(run: Run, tmp_path: Path) -> None:
    for preset in ("default", "paper"):
        file = tmp_path / f"{preset}.toml"
        file.write_text(run("config", "show", "--preset", preset).out)
        assert Config.load(file).to_dict() == Config(preset).to_dict()
        shown = run("config", "show", file, "--json").document()
        assert shown == Config(preset).to_dict()


def test_config_check(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('[ltm]\nchroma_path = "x"\n')
    done = run("config", "check", file)
    assert done.code == 0
    assert "note: [ltm] chroma_path has no effect" in done.out
    assert done.out.endswith(": ok\n")
    assert run("config", "check", "--preset", "paper").code == 0
    document = run("config", "check", file, "--json").document()
    assert document["ok"] is True
    assert len(document["notes"]) == 1

    monkeypatch.undo()  # the real analyser knows which models there are
    for text, code in (
        ("[capacity\n", "config.syntax"),
        ("[capacity]\ntoken_budge = 5\n", "config.unknown_key"),
        ("[capacity]\ntoken_budget = 'x'\n", "config.type"),
        ("[capacity]\ntoken_budget = 0\n", "config.range"),
        ("[nlp]\nspacy_model = 'no_such_model'\n", "config.model"),
        ("[nlp]\nmodel_name = 'some/other'\n", "config.model_missing"),
    ):
        file.write_text(text)
        done = run("config", "check", file, "--json")
        assert done.code == 2
        assert done.error() == code


def test_usage_errors_exit_with_2(run: Run, filled: Path) -> None:
    for words in (
        ["ask"],
        ["ask", "x"],
        ["nonsense"],
        ["ask", "x", "--store", filled, "--limit", "0"],
        ["ask", "x", "--store", filled, "--preset", "nope"],
        ["replay", "x", "--store", filled, "--batch-size", "0"],
        ["doctor", "--store", filled, "--erase-damaged-turns"],
        ["replay", "x", "--store", filled, "--token-budget", "-5"],
    ):
        done = run(*words)
        assert (done.code, done.out) == (2, ""), words
        assert done.err
    assert "goes in quotes" in run("ask", "what", "port", "--store", filled).err
    done = run("ask", " ", "--store", filled)
    assert (done.code, done.out) == (1, "")
    assert run("ask", "x", "--store", filled, "--query-time", "no day", "--json").error() == (
        "input.timestamp"
    )


def test_with_json_usage_errors_are_json_too(run: Run, filled: Path) -> None:
    for words in (
        ["ask", "--store", filled],
        ["explain", "0", "--store", filled, "--by", "name"],
        ["ask", "x", "--store", filled, "--trace", "--context"],
        ["stats", "--store", filled, "--no-such-option"],
    ):
        done = run(*words, "--json")
        assert done.code == 2
        assert done.error() == "usage"


def test_a_setting_in_the_wrong_place_is_told_its_section(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    for text, said in (
        ("token_budget = 5", "write it under [capacity]"),
        ("[capacity]\nfinal_recall_limit = 5", "or `final_recall_limit` in [retrieval]?"),
    ):
        file.write_text(text, encoding="utf-8")
        done = run("config", "check", file)
        assert done.code == 2
        assert f"{said} [config.unknown_key]" in done.err


def test_a_file_that_is_not_there_is_named_once(run: Run, tmp_path: Path) -> None:
    none = tmp_path / "none"
    for words in (["config", "check", none], ["ask", "x", "--store", none, "--config", none]):
        done = run(*words)
        assert done.code == 2
        assert f"{none} cannot be read: No such file or directory [config.syntax]" in done.err


def test_an_export_is_sent_to_the_command_that_reads_it(run: Run, tmp_path: Path) -> None:
    export = chat(tmp_path / "export.json", [])
    export.write_text('[{"mapping": {}}]', encoding="utf-8")
    done = run("replay", export, "--store", tmp_path / "m.db")
    assert done.code == 1
    assert "`ebbtide import`" in done.err


def test_a_configuration_that_is_refused_leaves_no_store(run: Run, tmp_path: Path) -> None:
    file, store = chat(tmp_path / "chat.jsonl", ["one"]), tmp_path / "m.db"
    settings = tmp_path / "settings.toml"
    settings.write_text("[capacity]\ntoken_budge = 5\n")
    for words in (["replay", file], ["ask", "x"], ["explain", "0"], ["stats"], ["reindex"]):
        done = run(*words, "--store", store, "--config", settings)
        assert (done.code, done.out) == (2, "")
        assert "did you mean `token_budget`?" in done.err
    # The parser of the settings says this one on several lines.
    done = run("replay", file, "--store", store, "--token-budget", "-5")
    assert done.err.count("\n") == 1
    assert not store.exists()


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, typer.Abort])
def test_an_interrupt_exits_with_130_everywhere(
    run: Run, filled: Path, monkeypatch: pytest.MonkeyPatch, interrupt: type[BaseException]
) -> None:
    def stop(*_: object) -> None:
        raise interrupt

    monkeypatch.setattr("ebbtide.cli.explaining.settings_from", stop)
    done = run("stats", "--store", filled)
    assert (done.code, done.out, done.err) == (130, "", "")


@pytest.mark.parametrize(
    "start", [COMMAND[-1], "import runpy; runpy.run_module('ebbtide', None, '__main__')"]
)
def test_an_interrupt_while_it_is_imported_says_nothing(start: str) -> None:
    code = f"""
import sys

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupts())
{start}
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_alone_it_shows_help_with_examples(run: Run) -> None:
    done = run()
    assert (done.code, done.err) == (0, "")
    assert done.out == run("--help").out
    assert "ebbtide replay examples/conversation.jsonl --store memory.db" in done.out
    names = ("replay", "ask", "explain", "stats", "delete", "reindex", "config show")
    for command in (*names, "config check"):
        shown = run(*command.split(), "--help").out
        assert f"\n  Examples:\n    ebbtide {command}" in shown
        assert "--json" in shown, command
    # The list of commands has the first sentence of each, whole.
    assert "..." not in done.out.partition("Commands:")[2]


def test_defaults_of_options_are_those_of_the_package() -> None:
    """Some options have a number of their own, so that help does not load what they are of."""
    from ebbtide.archives import search_archive
    from ebbtide.bench import run
    from ebbtide.cli import archiving, benching, comparing, inspecting, serving
    from ebbtide.daemon.wire import MAX_BODY
    from ebbtide.evals.misses import find_misses
    from ebbtide.inspection import LIMIT

    def default(function: Callable[..., Any], name: str) -> Any:
        return inspect.signature(function).parameters[name].default

    assert default(serving.serve, "max_body") == MAX_BODY
    assert default(inspecting.inspect, "limit") == default(inspecting.plot, "limit") == LIMIT
    for command, function, names in (
        (archiving.search, search_archive, ("limit",)),
        (benching.bench, run, ("rounds", "turns")),
        (comparing.misses, find_misses, ("k", "max_tokens", "seed")),
    ):
        for name in names:
            assert default(command, name) == default(function, name), name
