"""Work in parts that are kept: in parallel, resumable, ended at once when it has to be.

A part is a file that is there whole or not at all. A directory remembers in
``plan.json`` what its parts are of, and takes none of anything else.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ebbtide.errors import InputError
from ebbtide.files import write_json, writing

__all__ = ["Pool", "Progress", "claim", "claimed", "end_with"]

Progress = Callable[[int, int], None]
"""Told what is done and what there is in all, as far as is known."""

_PLAN = "plan.json"
_FOLDERS = ("parts", "clean")
_NAMES = {
    "core_sha256": "the compiled core",
    "sources_sha256": "ebbtide's code",
    "data_sha256": "the data",
    "prompts_sha256": "the prompts",
}
_SHOWN = 40


def claim(
    out: Path,
    identity: Mapping[str, Any],
    *,
    fresh: bool = False,
    folders: Sequence[str] = _FOLDERS,
) -> None:
    """Make a directory the one of a run, for this call and those that go on with it.

    Args:
        out: The directory; made where it is missing.
        identity: What makes two runs the same, JSON-able.
        fresh: Delete the parts that are there, of whatever run.
        folders: Where the parts are.

    Raises:
        InputError: ``input.field``: it holds parts of another run; what differs is named.
        StoreError: ``store.open``: it cannot be made or written.
    """
    path = out / _PLAN
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    # Only where a run has been: another directory's "parts" are not ours to delete.
    if fresh and path.exists():
        for name in folders:
            shutil.rmtree(out / name, ignore_errors=True)
    elif path.exists():
        changed = _differences(_read(path), identity)
        if changed:
            message = (
                f"{out} holds another run ({'; '.join(changed)}); "
                "name another directory with --out, or start over there with --fresh"
            )
            raise InputError(message, "input.field")
    write_json(path, identity)


@contextmanager
def claimed(
    out: Path | None, identity: Mapping[str, Any], *, fresh: bool = False
) -> Iterator[Path]:
    """A claimed directory; one that ends with the call where none is named.

    Raises:
        InputError: As :func:`claim` does; StoreError likewise.
    """
    if out is not None:
        claim(out, identity, fresh=fresh)
        yield out
        return
    with tempfile.TemporaryDirectory(prefix="ebbtide-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _read(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = None
    return found if isinstance(found, dict) else {}


def _differences(before: Mapping[str, Any], now: Mapping[str, Any], under: str = "") -> list[str]:
    """What is not as before, one phrase each, in alphabetical order."""
    found: list[str] = []
    for name, value in sorted(now.items()):
        old = before.get(name)
        if old == value:
            continue
        if isinstance(old, dict) and isinstance(value, dict):
            found += _differences(old, value, f"{under}{name} ")
        elif len(str(old)) <= _SHOWN and len(str(value)) <= _SHOWN and name in before:
            found.append(f"{under}{name} was {old}, is {value}")
        else:
            found.append(f"{_NAMES.get(name, under + name)} differs")
    return found


class Pool:
    """Runs what makes parts: a few at a time, so that what they are made of does not pile up.

    With one worker everything runs in this process. With more, an error or Ctrl-C ends
    the others at once: what they were at is done anew the next time.
    """

    def __init__(
        self, workers: int, progress: Progress | None = None, *, total: int | None = None
    ) -> None:
        """Start no process yet.

        Args:
            workers: Processes.
            progress: Told of each finished task.
            total: Tasks in all, where that is known.
        """
        self._workers = workers
        self._progress = progress
        self._done = self._all = 0
        self._total = total
        self._running: set[Future[Any]] = set()
        self._executor: ProcessPoolExecutor | None = None
        if workers > 1:
            context = multiprocessing.get_context("spawn")
            self._watched, self._alive = context.Pipe(duplex=False)
            self._executor = ProcessPoolExecutor(
                workers, mp_context=context, initializer=end_with, initargs=(self._watched,)
            )

    def __enter__(self) -> Pool:
        return self

    def submit(self, parts: Sequence[Path], make: Callable[..., Any], *given: Any) -> None:
        """Have parts made, unless all of them are there.

        Args:
            parts: The files that ``make`` writes.
            make: A function that a new process can import.
            given: Its arguments.
        """
        self._all += 1
        if all(part.exists() for part in parts):
            self._finished(1)
        elif self._executor is None:
            make(*given)
            self._finished(1)
        else:
            if len(self._running) >= 2 * self._workers:
                self._wait(FIRST_COMPLETED)
            self._running.add(self._executor.submit(make, *given))

    def _wait(self, until: str) -> None:
        done, self._running = wait(self._running, return_when=until)
        for future in done:
            future.result()
            self._finished(1)

    def _finished(self, count: int) -> None:
        self._done += count
        if self._progress is not None:
            self._progress(self._done, max(self._all, self._total or 0))

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._executor is None:
            return
        whole = False
        try:
            if kind is None:
                while self._running:
                    self._wait(FIRST_COMPLETED)
                whole = True
        finally:
            if not whole:
                self._alive.close()
            self._executor.shutdown(wait=True, cancel_futures=True)
            self._alive.close()
            self._watched.close()


def end_with(alive: Connection) -> None:
    """In a worker: end with the parent's end of the pipe, whatever is being done."""
    # Ctrl-C reaches every process of a terminal; what follows from it is the parent's to say.
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def wait_for_the_end() -> None:
        with contextlib.suppress(EOFError, OSError):
            alive.recv()
        os._exit(1)

    threading.Thread(target=wait_for_the_end, daemon=True).start()
