"""The peer in a process of its own: its protocol with a stand-in, and, where there is
a prepared environment, the peer itself."""

from __future__ import annotations

import json
import os
import signal
import sys
import textwrap
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from ebbtide.analysis.embedding import ModelEmbedder
from ebbtide.errors import ConfigError, EbbtideError, InputError
from ebbtide.evals.datasets import Conversation, DatasetTurn, Question
from ebbtide.evals.peers import (
    DmfMemory,
    PeerEnvironment,
    PeerError,
    PeerProcess,
    PeerUnavailableError,
    install,
    open_dmf,
    open_environment,
    peer_environment,
)
from ebbtide.evals.peers.system import open_worker, peer_settings
from ebbtide.evals.systems import PEERS, System

WORKER = """
import json, os, sys, time

def say(request, **fields):
    print(json.dumps({"n": request["n"], "seconds": 0.25, **fields}), flush=True)

added = []
for line in sys.stdin:
    request = json.loads(line)
    op = request["op"]
    if op == "add":
        added += request["turns"]
        say(request, added=len(request["turns"]))
    elif op == "recall":
        say(request, ids=[turn["id"] for turn in added][: request["limit"]], score=8.5)
    elif op == "context":
        say(request, text="an old song", tokens=3, ids=[added[0]["id"]])
    elif op == "stats":
        say(request, rss_mb=12.5, active=len(added), archived=0)
    elif op == "echo":
        say(request, text=request["text"])
    elif op == "sleep":
        time.sleep(600)
    elif op == "die":
        print("the last straw", file=sys.stderr, flush=True)
        os._exit(3)
    elif op == "half":
        sys.stdout.write('{"n": 1, "sec')
        sys.stdout.flush()
        os._exit(0)
    elif op == "garbage":
        print("Loading model ...", flush=True)
    elif op == "list":
        print("[1, 2]", flush=True)
    elif op == "late":
        say({"n": request["n"] - 1})
    elif op == "deaf":
        say(request)
        time.sleep(600)
    elif op == "close":
        say(request)
        break
    else:
        say(request, error=f"ValueError: no operation {op!r}")
"""

FIRST = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


def turn(number: int, text: str, speaker: str | None = "Ada") -> DatasetTurn:
    when = FIRST + timedelta(days=number)
    return DatasetTurn(f"D1:{number}", text, "user", speaker, when, f"session_{number}")


def question(text: str) -> Question:
    return Question("q", text, "", "single-hop", (), ())


SAID = [
    turn(1, "I went to the harbour with my brother Otto yesterday."),
    turn(2, "How lovely! What did you see there?", "Ben"),
    turn(3, "We saw a red lighthouse and three fishing boats."),
    turn(4, "My new job at the bakery starts on Monday.", "Ben"),
    turn(5, "Congratulations! I adopted a cat called Pepper last week."),
]
TALK = Conversation("talk", ("Ada", "Ben"), SAID, [], [])


@pytest.fixture
def stand_in(tmp_path: Path) -> Iterator[PeerProcess]:
    """A worker that understands the protocol and misbehaves when told to."""
    script = tmp_path / "worker.py"
    script.write_text(textwrap.dedent(WORKER), encoding="utf-8")
    with PeerProcess([sys.executable, str(script)], tmp_path / "log.txt") as process:
        yield process


def test_an_answer_comes_without_its_wrapping(stand_in: PeerProcess) -> None:
    assert stand_in.ask("echo", 30, text="Zürich\n\u2028 {") == {"text": "Zürich\n\u2028 {"}
    assert stand_in.seconds == {"echo": [0.25]}


def test_an_error_leaves_the_process_usable(stand_in: PeerProcess) -> None:
    with pytest.raises(PeerError, match="failed to fly: ValueError: no operation 'fly'"):
        stand_in.ask("fly", 30)
    assert stand_in.ask("echo", 30, text="still here") == {"text": "still here"}


def test_silence_past_the_timeout_ends_it(stand_in: PeerProcess) -> None:
    start = time.monotonic()
    with pytest.raises(PeerError, match=r"did not answer 'sleep' in 0\.2 s"):
        stand_in.ask("sleep", 0.2)
    assert time.monotonic() - start < 30
    assert not stand_in.running
    with pytest.raises(PeerError, match="cannot echo: it has ended"):
        stand_in.ask("echo", 30, text="")


def test_a_request_that_is_not_read_does_not_block(stand_in: PeerProcess) -> None:
    stand_in.ask("deaf", 30)
    with pytest.raises(PeerError, match="did not answer 'echo'"):
        stand_in.ask("echo", 0.2, text="x" * 4_000_000)
    assert not stand_in.running


def test_an_end_is_told_with_its_last_words(stand_in: PeerProcess) -> None:
    with pytest.raises(PeerError, match=r"ended during 'die' with status 3; .*the last straw"):
        stand_in.ask("die", 30)
    assert not stand_in.running


def test_being_killed_is_told(stand_in: PeerProcess) -> None:
    os.kill(stand_in.pid, signal.SIGKILL)
    with pytest.raises(PeerError, match="ended"):
        stand_in.ask("echo", 30, text="")


@pytest.mark.parametrize("op", ["garbage", "list", "late"])
def test_a_line_that_is_no_answer_ends_it(stand_in: PeerProcess, op: str) -> None:
    stand_in.ask("echo", 30, text="")
    with pytest.raises(PeerError, match=f"answered '{op}' with"):
        stand_in.ask(op, 30)
    assert not stand_in.running


def test_half_a_line_is_an_end(stand_in: PeerProcess) -> None:
    with pytest.raises(PeerError, match="ended during 'half' with status 0"):
        stand_in.ask("half", 30)


def test_closing_twice_and_closing_what_hangs(stand_in: PeerProcess) -> None:
    stand_in.ask("deaf", 30)
    stand_in.close(timeout=0.2)
    assert not stand_in.running
    stand_in.close()


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PeerError, match="cannot be started") as caught:
        PeerProcess([str(tmp_path / "none")], tmp_path / "log.txt")
    assert caught.value.code == "peer.failed"


def test_the_client_speaks_for_the_harness(stand_in: PeerProcess) -> None:
    peer = DmfMemory(stand_in, SAID[:1])
    peer.ingest(SAID[1:])
    system: System = peer
    ranking = system.rank(question("Who?"), 2)
    assert ranking is not None
    assert (ranking.ids, ranking.confidence) == (["D1:1", "D1:2"], None)
    context = system.context(question("Who?"), 100)
    assert (context.text, context.tokens, context.shown) == ("an old song", 3, frozenset({"D1:1"}))
    facts = system.facts()
    assert (facts["llm_tokens"], facts["rss_mb"], facts["active"]) == (0, 12.5, 5)
    assert facts["ingest_s"] == 0.5
    assert facts["peer_seconds"]["recall"] == {"count": 1, "sum": 0.25, "median": 0.25}


def test_settings_are_those_of_the_dataset() -> None:
    limits = {
        (name, speakers): peer_settings(name, speakers=speakers)["retrieval"]["final_recall_limit"]
        for name in PEERS
        for speakers in (True, False)
    }
    assert [limits[name, True] for name in PEERS] == [8, 5, 20]
    assert [limits[name, False] for name in PEERS] == [10, 5, 20]
    with pytest.raises(InputError, match="there is no peer 'none'; choose from dmf-memory"):
        peer_settings("none", speakers=True)


def test_the_worker_answers_before_and_without_the_peer(tmp_path: Path) -> None:
    worker = Path(install.__file__).with_name("worker_dmf.py")
    with PeerProcess([sys.executable, str(worker)], tmp_path / "log.txt") as process:
        with pytest.raises(PeerError, match="'recall' before 'open'"):
            process.ask("recall", 60, question="Who?", limit=1)
        with pytest.raises(PeerError, match="no operation 'nothing'"):
            process.ask("nothing", 60)


def test_no_environment_is_said_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(PeerUnavailableError, match="prepare one there first") as caught:
        open_environment(tmp_path)
    assert isinstance(caught.value, ConfigError)
    assert isinstance(caught.value, EbbtideError)
    assert caught.value.code == "config.model_missing"


def test_a_failed_installation_is_said_and_leaves_no_stamp(tmp_path: Path) -> None:
    with pytest.raises(PeerUnavailableError, match=r"cannot be installed.*leave the peer out"):
        peer_environment(tmp_path, python=str(tmp_path / "no-python"))
    assert not (tmp_path / "environment.json").exists()


def test_an_environment_of_other_versions_is_refused(tmp_path: Path) -> None:
    details = {"peer": "dmf-memory==0.2.0", "requirements": [], "carriers": []}
    (tmp_path / "environment.json").write_text(json.dumps(details), encoding="utf-8")
    with pytest.raises(PeerUnavailableError, match="of other versions; prepare it anew"):
        open_environment(tmp_path)


@pytest.fixture(scope="module")
def environment() -> PeerEnvironment:
    """The prepared environment that EBBTIDE_PEER_DIR names."""
    directory = os.environ.get("EBBTIDE_PEER_DIR")
    if not directory:
        pytest.skip("no environment of dmf-memory; set EBBTIDE_PEER_DIR to a prepared one")
    return open_environment(Path(directory))


def test_preparing_again_changes_nothing(environment: PeerEnvironment) -> None:
    stamp = environment.directory / "environment.json"
    before = stamp.stat()
    assert peer_environment(environment.directory) == environment
    assert stamp.stat() == before


@pytest.mark.parametrize("name", PEERS)
def test_the_peer_finds_turns_and_keeps_to_budgets(environment: PeerEnvironment, name: str) -> None:
    asked = question("What is Ada's cat called?")
    with open_dmf(name, TALK, environment) as peer:
        ids = peer.rank(asked, 3).ids
        assert ids[0] == "D1:5"
        assert set(ids) <= {one.external_id for one in SAID}
        assert len(ids) == len(set(ids)) <= 3
        assert peer.rank(asked, 3).ids == ids
        wide = peer.context(asked, 1000)
        assert "Pepper" in wide.text
        assert "D1:5" in wide.shown
        narrow = peer.context(asked, 60)
        assert 0 < narrow.tokens <= 60
        assert narrow.shown < wide.shown or narrow == wide
        assert peer.context(asked, 5).text == ""
        facts = peer.facts()
    assert facts["llm_tokens"] == 0
    assert facts["active"] + facts["archived"] == len(SAID)
    assert facts["rss_mb"] > 50


def test_the_peer_embeds_with_the_same_weights(
    environment: PeerEnvironment, tmp_path: Path
) -> None:
    texts = [SAID[0].text, "Hey!", "word " * 900]
    chosen = peer_settings("dmf-memory", speakers=True)
    with open_worker(environment, tmp_path, chosen) as process:
        found = np.array([process.ask("embed", 60, text=text)["vector"] for text in texts])
    ours = ModelEmbedder().embed(texts).astype(np.float64)
    ours /= np.linalg.norm(ours, axis=1, keepdims=True)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    assert (found * ours).sum(axis=1).min() > 0.98
