"""Wherever conversations are replayed, and whoever is killed meanwhile: the same bytes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ebbtide import Config, ExternalError, InputError, Store, replay_many
from ebbtide.distributed import work
from ebbtide.distributed.sources import find_files, list_sources
from ebbtide.distributed.tables import read_rows
from ebbtide.replay import replay
from ebbtide.transcripts import read_transcripts
from replay_many.conftest import Whole, travelling
from replay_many.makers import figures, parts, replayed

PROMISE = "A worker that is killed changes nothing in the result, whatever the engine."
ENGINES: dict[str, dict[str, Any]] = {
    "local": {"engine": "local", "workers": 2},
    "dask": {"engine": "dask", "workers": 2},
    "dask, content": {"engine": "dask", "workers": 1, "files": "content"},
}
FOUND: dict[str, float] = {}


def on_loopback(*, workers: int, threads: int = 1) -> Any:
    """A Dask cluster that nobody reaches from elsewhere."""
    import distributed

    return distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=threads,
        host="127.0.0.1",
        dashboard_address=None,
        worker_dashboard_address=None,
    )


@pytest.mark.parametrize("name", ENGINES)
def test_a_killed_worker_changes_nothing(
    whole: Whole, stub: Config, tmp_path: Path, name: str
) -> None:
    start = time.perf_counter()
    config = travelling(tmp_path, kills=1)
    report = replayed(whole.sources, tmp_path / "out", config=config, **ENGINES[name])
    assert (tmp_path / "killed-0").exists()
    assert parts(tmp_path / "out") == whole.parts
    assert (report.digest, report.failures) == (whole.report.digest, ())
    assert len(list((tmp_path / "out").glob("stores/*/*.db"))) == report.conversations == 9
    assert not (tmp_path / "out" / "tmp").exists()
    FOUND[name] = round(time.perf_counter() - start, 1)
    if len(FOUND) == len(ENGINES):
        found = {
            "runs with a killed worker": len(FOUND),
            "conversations each": report.conversations,
            "parts with other bytes": 0,
        }
        told = {
            "promise": PROMISE,
            "test": "tests/replay_many/test_engines.py",
            "figures": found,
            "seconds": round(sum(FOUND.values()), 1),
        }
        figures(os.environ.get("EBBTIDE_FIGURES"), "dask.json", told)


def test_a_digest_is_the_one_of_a_replay_alone(whole: Whole, stub: Config, tmp_path: Path) -> None:
    config = travelling(tmp_path)
    replayed(whole.sources, tmp_path / "out", config=config)
    rows = [
        row
        for path in sorted((tmp_path / "out" / "conversations").iterdir())
        for row in read_rows(path)
    ]
    assert [row["conversation"] for row in rows] == [f"{n // 3}/chat{n}" for n in range(9)]
    for row in rows:
        (transcript,) = read_transcripts(whole.sources / row["file"])
        with Store.open(tmp_path / "one.db", config=config) as store:
            memory = store.memory(row["conversation"])
            summary = replay(memory, transcript.turns)
            assert (summary.digest, summary.accepted) == (row["digest"], row["turns"])
        with Store.open(tmp_path / "out" / row["store"], config=config, read_only=True) as store:
            memory = store.memory()
            assert memory.digest() == row["digest"]
            # What the table of turns says is what the memory says.
            (found,) = (
                r for r in turns_of(tmp_path / "out", row["conversation"]) if r["turn"] == 3
            )
            told = memory.explain(3)
            assert found["omega"] == told["score"]["omega"]
            assert found["tier"] == told["now"].get("tier")
            assert found["record_id"] == memory.get(3).record_id
    assert sum(row["budget"] + row["hard_kill"] for row in rows) > 0


def turns_of(out: Path, conversation: str) -> list[dict[str, Any]]:
    rows = [row for path in sorted((out / "turns").iterdir()) for row in read_rows(path)]
    return [row for row in rows if row["conversation"] == conversation]


def test_archived_turns_say_by_what_and_when(whole: Whole, stub: Config, tmp_path: Path) -> None:
    replayed(whole.sources, tmp_path / "out", config=travelling(tmp_path), stores=False)
    assert not (tmp_path / "out" / "stores").exists()
    rows = turns_of(tmp_path / "out", "0/chat0")
    archived = [row for row in rows if row["state"] == "archived"]
    assert archived
    for row in rows:
        gone = row["state"] == "archived"
        assert (row["evicted_by"] in ("budget", "hard_kill", "skip")) == gone
        assert (row["evicted_at"] is not None) == gone
        assert (row["tier"] is None) == gone
        assert (row["superseded_by"] is None) or row["superseded_by"] > row["turn"]


def test_a_batch_that_kills_every_worker_is_given_up(
    whole: Whole, stub: Config, tmp_path: Path
) -> None:
    config = travelling(tmp_path, kills=3)
    report = replayed(whole.sources, tmp_path / "out", config=config, workers=2)
    assert [failure.conversation for failure in report.failures] == ["1/chat4", "1/chat5"]
    assert {failure.code for failure in report.failures} == {"worker.failed"}
    kept = parts(tmp_path / "out")
    assert len(kept) == len(whole.parts) - 2
    assert all(whole.parts[name] == data for name, data in kept.items())
    # The next run makes what is missing, and only that.
    report = replayed(whole.sources, tmp_path / "out", config=travelling(tmp_path))
    assert (report.kept, report.failures) == (4, ())
    assert parts(tmp_path / "out") == whole.parts


@pytest.mark.long
def test_a_cluster_gives_such_a_batch_up_too(whole: Whole, stub: Config, tmp_path: Path) -> None:
    config = travelling(tmp_path, kills=100)
    report = replayed(whole.sources, tmp_path / "out", config=config, **ENGINES["dask"])
    assert [failure.conversation for failure in report.failures] == ["1/chat4", "1/chat5"]
    assert len(list(tmp_path.glob("killed-*"))) == 3


def test_a_named_scheduler_is_used_and_left_running(
    whole: Whole, stub: Config, tmp_path: Path
) -> None:
    import distributed

    # Threads of one worker process: its batches are made one after the other.
    with on_loopback(workers=1, threads=2) as cluster:
        address = cluster.scheduler_address
        options: dict[str, Any] = {"engine": "dask", "scheduler": address}
        config = travelling(tmp_path)
        replayed(whole.sources, tmp_path / "out", config=config, **options)
        assert parts(tmp_path / "out") == whole.parts
        with distributed.Client(address, set_as_default=False) as client:
            assert len(client.nthreads()) == 1


def test_a_cluster_that_is_not_there_is_an_error(
    whole: Whole, stub: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ebbtide.distributed.cluster._PATIENCE", 1)
    options: dict[str, Any] = {"engine": "dask", "scheduler": "tcp://127.0.0.1:9"}
    with pytest.raises(ExternalError, match="no Dask scheduler with a worker at tcp:") as caught:
        replayed(whole.sources, tmp_path / "out", config=travelling(tmp_path), **options)
    assert caught.value.code == "worker.failed"


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("tpc://127.0.0.1:9", "has an address like"),
        ("tcp://127.0.0.1", "has an address like"),
        ("127.0.0.1:x", "has an address like"),
        ("inproc://127.0.0.1/1/1", "has an address like"),
        ("", "has an address like"),
        ("tls://127.0.0.1:9", "comm.tls is not set"),
        ("wss://127.0.0.1:9", "comm.tls is not set"),
    ],
)
def test_an_address_that_cannot_be_one_is_refused(
    whole: Whole, stub: Config, tmp_path: Path, address: str, words: str
) -> None:
    options: dict[str, Any] = {"engine": "dask", "scheduler": address}
    with pytest.raises(InputError, match=words) as caught:
        replayed(whole.sources, tmp_path / "out", config=travelling(tmp_path), **options)
    assert caught.value.code == "input.field"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("settings", "address"),
    [
        ({"tls.ca-file": "/none", "tls.client.cert": "/none"}, "tls://127.0.0.1:9"),
        ({"require-encryption": True}, "tcp://127.0.0.1:9"),
    ],
)
def test_settings_of_dask_that_do_not_fit_the_address_are_refused(
    settings: dict[str, Any], address: str
) -> None:
    import dask

    from ebbtide.distributed.cluster import DaskEngine

    named = {f"distributed.comm.{name}": value for name, value in settings.items()}
    with dask.config.set(named), pytest.raises(InputError, match="settings of TLS: "):
        DaskEngine(address, 1)


def test_a_scheduler_that_ends_is_an_error_and_what_was_done_is_kept(
    whole: Whole, stub: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ebbtide.distributed.cluster._PATIENCE", 5)
    cluster = on_loopback(workers=1)

    def end(done: int, of: int) -> None:
        if done == 2:
            cluster.close()

    options: dict[str, Any] = {"engine": "dask", "scheduler": cluster.scheduler_address}
    config = travelling(tmp_path)
    with cluster, pytest.raises(ExternalError, match=r"ended .* run the same command") as caught:
        replayed(whole.sources, tmp_path / "out", config=config, progress=end, **options)
    assert caught.value.code == "worker.failed"
    report = replayed(whole.sources, tmp_path / "out", config=config)
    assert report.kept >= 1
    assert parts(tmp_path / "out") == whole.parts


@pytest.mark.parametrize("from_the_start", [True, False])
def test_a_cluster_without_workers_is_an_error_and_what_was_done_is_kept(
    whole: Whole, stub: Config, tmp_path: Path, from_the_start: bool
) -> None:
    import dask

    cluster = on_loopback(workers=0 if from_the_start else 1)

    def end(done: int, of: int) -> None:
        if done == 2:
            cluster.scale(0)

    options: dict[str, Any] = {"engine": "dask", "scheduler": cluster.scheduler_address}
    config = travelling(tmp_path)
    impatient = dask.config.set({"distributed.scheduler.no-workers-timeout": "2s"})
    words = "with a worker" if from_the_start else "no worker for too long.* run the same command"
    with cluster, impatient, pytest.raises(ExternalError, match=words) as caught:
        replayed(whole.sources, tmp_path / "out", config=config, progress=end, **options)
    assert caught.value.code == "worker.failed"
    report = replayed(whole.sources, tmp_path / "out", config=config)
    assert (report.kept > 0) is not from_the_start
    assert parts(tmp_path / "out") == whole.parts


def test_a_cluster_that_was_interrupted_while_it_started_is_let_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import distributed

    from ebbtide.distributed.cluster import DaskEngine

    made: set[Any] = set()

    class Interrupted:
        shutdown_on_close = True
        closed = False

        def __init__(self, **options: Any) -> None:
            made.add(self)
            raise KeyboardInterrupt

        def close(self, timeout: float) -> None:
            self.closed = True
            raise AssertionError("a worker was never there")

    monkeypatch.setattr(distributed, "LocalCluster", Interrupted)
    monkeypatch.setattr(distributed.SpecCluster, "_instances", made)
    with pytest.raises(KeyboardInterrupt):
        next(DaskEngine(None, 1).run([]), None)
    (cluster,) = made
    # What Dask would do at exit, and print that it cannot.
    assert (cluster.closed, cluster.shutdown_on_close) == (True, False)


def test_a_worker_with_other_code_makes_nothing(whole: Whole, stub: Config, tmp_path: Path) -> None:
    sources = tuple(list_sources(find_files([whole.sources])))
    config = travelling(tmp_path)
    code = work.own_code(config) | {"core_sha256": "another", "analyser": "another"}
    task = work.Task(0, sources, config, "", code, False, tmp_path / "out")
    with pytest.raises(ExternalError, match=r"\(analyser, core_sha256 differ\)") as caught:
        work.perform(task)
    assert caught.value.code == "worker.failed"
    assert not (tmp_path / "out").exists()


DRIVER = """
import sys
from pathlib import Path
from replay_many.conftest import travelling
from reference.stand_ins import StubAnalyser
import ebbtide.analysis.analyser, ebbtide
if __name__ == "__main__":
    ebbtide.analysis.analyser.Analyser = StubAnalyser
    sources, out, engine = sys.argv[1:]
    print("begun", flush=True)
    ebbtide.replay_many(
        [sources], out, engine=engine, workers=2, batch=1, config=travelling(Path(out).parent),
        progress=lambda done, of: print(done, flush=True),
    )
"""


@contextmanager
def driven(sources: Path, out: Path, engine: str) -> Iterator[subprocess.Popen[str]]:
    """A replay in a process group of its own."""
    driver = out.parent / "driver.py"
    driver.write_text(DRIVER, encoding="utf-8")
    tests = Path(__file__).parents[1]
    path = os.pathsep.join([str(tests), *filter(None, [os.environ.get("PYTHONPATH")])])
    with subprocess.Popen(
        [sys.executable, str(driver), str(sources), str(out), engine],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def heard(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == word:
            return
    assert process.stderr is not None
    pytest.fail(process.stderr.read())


def group(process: subprocess.Popen[str]) -> list[int]:
    """Processes of its group that are still at work."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == process.pid and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


@pytest.mark.parametrize(
    ("engine", "end"),
    [
        ("local", signal.SIGINT),
        ("local", signal.SIGKILL),
        ("dask", signal.SIGINT),
        pytest.param("dask", signal.SIGKILL, marks=pytest.mark.long),
    ],
)
def test_what_a_run_had_done_when_it_ended_is_kept(
    stub: Config, tmp_path: Path, engine: str, end: signal.Signals, whole: Whole
) -> None:
    out = tmp_path / "out"
    with driven(whole.sources, out, engine) as process:
        heard(process, "2")
        if end == signal.SIGINT:
            os.killpg(process.pid, end)  # as a terminal does it
        else:
            process.kill()
        process.wait(timeout=60)
        assert process.returncode != 0
        # Workers end by themselves soon after.
        until = time.monotonic() + 60
        while group(process) and time.monotonic() < until:
            time.sleep(0.1)
        assert group(process) == []
    before = parts(out)
    report = replay_many([whole.sources], out, config=travelling(tmp_path), workers=1, batch=1)
    assert report.kept >= 2
    assert (report.digest, report.failures) == (whole.report.digest, ())
    assert before.items() <= parts(out).items()
