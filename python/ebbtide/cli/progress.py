"""The progress bar, and Ctrl-C as a request."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from ebbtide.cli.output import stderr

__all__ = ["counting", "progress_bar", "stop_on_interrupt"]


def progress_bar(console: Console | None = None, *, quiet: bool = False) -> Progress:
    """A bar on standard error; none where that is no terminal, or by wish."""
    console = console or stderr()
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=quiet or not console.is_terminal,
    )


@contextmanager
def counting(
    name: str, things: str, *, quiet: bool = False
) -> Iterator[Callable[[int, int], None]]:
    """A bar that is told how many of how many things are done."""
    with progress_bar(quiet=quiet) as bar:
        task = bar.add_task(name, total=None, note=things)

        def progress(done: int, count: int) -> None:
            bar.update(task, completed=done, total=count)

        yield progress


@contextmanager
def stop_on_interrupt() -> Iterator[Callable[[], bool]]:
    """The first Ctrl-C makes the yielded function true, the second one interrupts.

    An exception at any place in the models' code may be swallowed there; a flag
    is seen between two batches, and the batch at hand is committed whole.
    """
    asked = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before)
