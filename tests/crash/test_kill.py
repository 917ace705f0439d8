"""kill -9 at any moment: nothing acknowledged is lost, nothing is half done."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from reference.models import EchoModel
from reference.stand_ins import scripted
from tests.crash import writing

from ebbtide import Config, Memory

WRITER = Path(__file__).with_name("writer.py")
MODES = ("add", "batch", "journalled")


class Child:
    """A writing process."""

    def __init__(self, store: Path, budget: int, *flags: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(WRITER), str(store), str(budget), *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def ask(self, words: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{words}\n")
        self.process.stdin.flush()

    def hear(self, word: str) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith(f"{word} "), f"the writer said {line!r}"
        return line.split()[1]

    def kill(self) -> list[int]:
        """Kill it; returns what it had acknowledged and nobody had read yet."""
        os.kill(self.process.pid, signal.SIGKILL)
        assert self.process.stdout is not None
        rest = self.process.stdout.read().splitlines(keepends=True)
        self.end()
        return [int(line.split()[1]) for line in rest if line.endswith("\n")]

    def end(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()
        self.process.wait()


def uninterrupted(store: Path, budget: int, count: int, *flags: str) -> str:
    child = Child(store, budget, *flags)
    assert child.hear("have") == "0"
    child.ask(f"batch {count}")
    while int(child.hear("ack")) < count:
        pass
    child.ask("digest")
    digest = child.hear("digest")
    child.end()
    return digest


def killed(store: Path, budget: int, kills: int, seed: int, *flags: str) -> tuple[str, int]:
    """Digest and number of turns after so many kills."""
    chance = random.Random(seed)
    acknowledged = 0
    for _ in range(kills):
        child = Child(store, budget, *flags)
        found = int(child.hear("have"))
        assert found >= acknowledged, f"{acknowledged} were acknowledged, {found} are left"
        child.ask(f"{chance.choice(MODES)} {chance.randint(12, 30)}")
        new = found
        for _ in range(chance.randint(1, 2)):
            new = int(child.hear("ack"))
        time.sleep(chance.choice((0.0, 0.001, 0.003, 0.008)) * chance.random())
        acknowledged = max([new, *child.kill()])
        assert acknowledged > found
    child = Child(store, budget, *flags)
    found = int(child.hear("have"))
    assert found >= acknowledged
    child.ask("batch 25")
    while int(child.hear("ack")) < found + 25:
        pass
    child.ask("digest")
    digest = child.hear("digest")
    child.end()
    return digest, found + 25


def compare(folder: Path, budget: int, kills: int, seed: int, *flags: str) -> None:
    digest, count = killed(folder / "killed.db", budget, kills, seed, *flags)
    assert count >= kills
    assert digest == uninterrupted(folder / "whole.db", budget, count, *flags)


def test_eight_kills(tmp_path: Path) -> None:
    """Whole processes, which take long to start; tests/faults kills many, forked from one."""
    compare(tmp_path, 256, 8, seed=256)


@pytest.mark.long
@pytest.mark.parametrize("budget", [256, 1024, 4096])
def test_two_hundred_kills(tmp_path: Path, budget: int) -> None:
    compare(tmp_path, budget, 200, seed=7 * budget)


@pytest.mark.long
def test_kills_with_the_real_models(tmp_path: Path) -> None:
    compare(tmp_path, 256, 50, 11, "--real")


def test_killed_while_a_model_writes(stub: Config, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    done = subprocess.run([sys.executable, writing.__file__, str(path)], check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL
    with Memory.open(path, config=writing.config(), llm=EchoModel()) as memory:
        kept = len(memory)
        assert 0 < kept < writing.TURNS
        assert [turn.external_id for turn in memory.turns()] == [f"t{n}" for n in range(kept)]
        memory.add_many(scripted(n) for n in range(kept, writing.TURNS))
        digest = memory.digest()
    with Memory.in_memory(config=writing.config(), llm=EchoModel()) as memory:
        memory.add_many(scripted(n) for n in range(writing.TURNS))
        assert memory.digest() == digest
