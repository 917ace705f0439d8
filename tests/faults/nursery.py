"""A process that has everything imported and makes children to be killed.

A line ``OP STORE [ARGUMENT ...]`` on standard input forks a child that does it. Lines on
standard output: ``pid N``, then what the child says (``ack X``: that much is done), then
``gone STATUS`` once it ended. Turns are scripted, models are stand-ins.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from reference.stand_ins import HashEmbedder, StubAnalyser, scripted

from ebbtide import Config, EbbtideError, Memory, Store
from ebbtide.analysis import analyser
from ebbtide.cli import main as command_line


def config() -> Config:
    return Config().with_embedder(HashEmbedder(32)).replace(capacity={"token_budget": 256})


def say(words: str) -> None:
    os.write(1, f"{words}\n".encode())


def add(store: str, first: str, count: str, wait: str = "complete") -> None:
    memory = Memory.open(store, config=config())
    for number in range(int(first), int(first) + int(count)):
        memory.add(**scripted(number), wait=wait)
        say(f"ack {number + 1}")
    memory.close()


def journalled(store: str, first: str, count: str) -> None:
    add(store, first, count, wait="journalled")


def batch(store: str, first: str, count: str) -> None:
    memory = Memory.open(store, config=config())
    end = int(first) + int(count)
    for number in range(int(first), end, 5):
        memory.add_many(scripted(n) for n in range(number, min(number + 5, end)))
        say(f"ack {min(number + 5, end)}")
    memory.close()


def delete(store: str, *ids: str) -> None:
    memory = Memory.open(store, config=config())
    for one in ids:
        memory.delete(int(one))
        say(f"ack {one}")
    memory.close()


def forget(store: str, *ids: str) -> None:
    with Memory.open(store, config=config()) as memory:
        memory.forget(ids=[int(one) for one in ids])
        say("ack all")


def reindex(store: str) -> None:
    with Memory.open(store, config=config(), reindexing=True) as memory:
        memory.reindex()
        say("ack all")


def load(store: str, file: str, name: str) -> None:
    with Store.open(store, config=config()) as opened:
        opened.load(file, namespace=name)
        say("ack all")


def export(store: str, file: str) -> None:
    with Memory.open(store, config=config(), read_only=True) as memory:
        memory.export(file)
        say("ack all")


def backup(store: str, file: str) -> None:
    with Store.open(store, config=config(), read_only=True) as opened:
        opened.backup(file)
        say("ack all")


def create(store: str) -> None:
    with Memory.open(store, config=config()):
        say("ack all")


def replay(store: str, file: str) -> None:
    """The command line, with its own handling of Ctrl-C; the stand-in's configuration."""
    from ebbtide.cli import replaying

    replaying.settings_from = lambda *_: config()  # type: ignore[assignment]
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    shown, out = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(out, 1)
    try:
        command_line(["replay", file, "--store", store, "--batch-size", "8"])
    except SystemExit as end:
        os.dup2(shown, 1)
        say(f"ack {end.code or 0}")


def race(store: str) -> None:
    """Open it for writing if nobody has it, and keep it for a moment."""
    try:
        with Memory.open(store, config=config()):
            say("ack won")
            signal.sigtimedwait([signal.SIGUSR1], 10)
    except EbbtideError as error:
        say(f"ack {error.code}")


OPERATIONS: dict[str, Callable[..., None]] = {
    op.__name__: op
    for op in (
        add, journalled, batch, delete, forget, reindex, load, export, backup, create, replay, race,
    )
}  # fmt: skip


def child(words: list[str]) -> None:
    """In the child: do it and end, with no way back into the parent's code."""
    status = 1
    try:
        os.close(0)
        say(f"pid {os.getpid()}")
        OPERATIONS[words[0]](*words[1:])
        status = 0
    except BaseException:
        with contextlib.suppress(BaseException):
            traceback.print_exc()
    finally:
        os._exit(status)


def main() -> None:
    analyser.Analyser = StubAnalyser  # type: ignore[misc,assignment]
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    say("ready")
    for line in sys.stdin:
        number = os.fork()
        if not number:
            child(line.rstrip("\n").split("\t"))
        _, status = os.waitpid(number, 0)
        say(f"gone {os.waitstatus_to_exitcode(status)}")


if __name__ == "__main__":
    main()
