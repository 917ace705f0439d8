"""Two workers that share no network with each other and no files with the caller."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ebbtide import Config, Memory
from ebbtide.distributed.tables import read_rows
from ebbtide.replay import replay
from ebbtide.transcripts import read_transcripts
from replay_many.makers import figures, parts, replayed

PROMISE = (
    "Workers on other machines, one of them killed, give the digests and the tables of one process."
)
SUBNET = "10.211.97"


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


@dataclass(frozen=True)
class Place:
    """A network namespace that is joined to this one by a cable of its own."""

    name: str
    gateway: str
    address: str

    def run(self, hidden: Path, *words: str) -> subprocess.Popen[bytes]:
        """Run a program there that finds an empty folder where ours is."""
        inside = f'mount -t tmpfs none "{hidden}" && exec "$@"'
        return subprocess.Popen(
            ["ip", "netns", "exec", self.name, "unshare", "-m", "sh", "-c", inside, "sh", *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
        )


@contextmanager
def place(number: int) -> Iterator[Place]:
    name = f"ebbtide-{os.getpid()}-{number}"
    here, there = f"ebb{os.getpid()}{number}a"[-15:], f"ebb{os.getpid()}{number}b"[-15:]
    found = Place(name, f"{SUBNET}.{4 * number + 1}", f"{SUBNET}.{4 * number + 2}")
    ip("netns", "add", name)
    try:
        ip("link", "add", here, "type", "veth", "peer", "name", there, "netns", name)
        ip("addr", "add", f"{found.gateway}/30", "dev", here)
        ip("link", "set", here, "up")
        ip("-n", name, "addr", "add", f"{found.address}/30", "dev", there)
        ip("-n", name, "link", "set", there, "up")
        ip("-n", name, "link", "set", "lo", "up")
        yield found
    finally:
        ip("netns", "del", name)


@contextmanager
def ended_after(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture
def places() -> Iterator[list[Place]]:
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need Linux, root and iproute2")
    with ExitStack() as stack:
        try:
            found = [stack.enter_context(place(number)) for number in range(2)]
        except subprocess.CalledProcessError as error:
            pytest.skip(f"network namespaces are not permitted here: {error.stderr.strip()}")
        yield found


@pytest.fixture
def conversations(data_folder: Path, tmp_path: Path) -> Path:
    """LoCoMo conversations where the workers cannot read them."""
    (tmp_path / "in").mkdir()
    return shutil.copy(data_folder / "locomo" / "locomo_dev5.json.gz", tmp_path / "in")


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_workers_of_two_networks_with_the_models(
    places: list[Place], conversations: Path, tmp_path: Path
) -> None:
    import distributed

    start = time.perf_counter()
    with ExitStack() as stack:
        cluster = stack.enter_context(
            distributed.LocalCluster(n_workers=0, host="0.0.0.0", dashboard_address=None)
        )
        port = cluster.scheduler_address.rpartition(":")[2]
        for one in places:
            words = [sys.executable, "-m", "dask", "worker", f"tcp://{one.gateway}:{port}"]
            words += ["--nthreads", "1", "--nworkers", "1", "--no-dashboard"]
            stack.enter_context(ended_after(one.run(tmp_path, *words)))
        address = f"tcp://127.0.0.1:{port}"
        client = stack.enter_context(distributed.Client(address, set_as_default=False))
        client.wait_for_workers(2, timeout=120)
        workers = client.scheduler_info()["workers"]
        assert {info["host"] for info in workers.values()} == {one.address for one in places}
        pids = client.run(os.getpid)

        def kill_one(done: int, of: int) -> None:
            # The other conversations are in work then.
            if done and pids:
                os.kill(pids.popitem()[1], signal.SIGKILL)
                pids.clear()

        options: dict[str, Any] = {"engine": "dask", "scheduler": address, "batch": 1}
        report = replayed(
            conversations, tmp_path / "far", config=Config(), progress=kill_one, **options
        )
    assert report.failures == ()
    assert pids == {}
    alone = replayed(conversations, tmp_path / "here", config=Config(), workers=2, batch=1)
    assert parts(tmp_path / "far") == parts(tmp_path / "here")
    assert report.digest == alone.digest
    rows = {
        row["conversation"]: row
        for path in (tmp_path / "far" / "conversations").iterdir()
        for row in read_rows(path)
    }
    checked = 0
    for transcript in read_transcripts(conversations):
        row = rows[f"locomo_dev5/{transcript.name}"]
        with Memory.in_memory() as memory:
            assert replay(memory, transcript.turns).digest == row["digest"]
        with Memory.open(tmp_path / "far" / row["store"], read_only=True) as memory:
            assert memory.digest() == row["digest"]
        checked += 1
    assert checked == report.conversations == 5
    found = {
        "conversations": checked,
        "turns": report.turns,
        "workers, each in a network of its own": 2,
        "workers killed": 1,
        "digests that differ": 0,
        "parts with other bytes": 0,
    }
    told = {
        "promise": PROMISE,
        "test": "tests/replay_many/test_machines.py",
        "figures": found,
        "seconds": round(time.perf_counter() - start, 1),
    }
    figures(os.environ.get("EBBTIDE_FIGURES"), "dask-machines.json", told)
