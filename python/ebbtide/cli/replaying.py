"""`ebbtide replay`: files to memories, with a progress bar on standard error."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from ebbtide.cli.output import stderr
from ebbtide.errors import InputError
from ebbtide.replay import ReplaySummary, replay
from ebbtide.store import Store
from ebbtide.transcripts import Transcript, read_transcripts
from ebbtide.types import WriteReport

if TYPE_CHECKING:
    from ebbtide.config import Config

__all__ = ["progress_bar", "replay_files"]


def progress_bar() -> Progress:
    """A bar on standard error; silent where that is no terminal."""
    console = stderr()
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )


def replay_files(
    files: Sequence[Path],
    store: Path,
    settings: Config,
    *,
    namespace: str | None,
    conversation: str | None,
    batch_size: int,
) -> list[ReplaySummary]:
    """Replay every conversation of every file; each of several gets a memory of its own."""
    transcripts = [t for file in files for t in read_transcripts(file)]
    if conversation is not None:
        known = ", ".join(t.name for t in transcripts if t.name) or "none"
        transcripts = [t for t in transcripts if t.name == conversation]
        if not transcripts:
            message = f"there is no conversation {conversation!r} in the files; there are: {known}"
            raise InputError(message, "input.transcript")
    summaries = []
    with Store.open(store, config=settings) as opened, progress_bar() as bar:
        for transcript in transcripts:
            name = namespace or transcript.name or "default"
            summaries.append(_replay_one(opened, transcript, name, batch_size, bar))
    return summaries


def _replay_one(
    store: Store, transcript: Transcript, namespace: str, batch_size: int, bar: Progress
) -> ReplaySummary:
    label = transcript.name or transcript.path.name
    task = bar.add_task(label, total=transcript.turns, note="")

    def show(summary: ReplaySummary, report: WriteReport) -> None:
        tiers = " ".join(f"{name} {count}" for name, count in sorted(report.tiers.items()))
        elapsed = bar.tasks[task].elapsed or 0.0
        speed = summary.accepted / elapsed if elapsed > 0 else 0.0
        bar.update(task, completed=summary.turns, note=f"{speed:.0f} turns/s, {tiers}")

    return replay(store.memory(namespace), transcript.read(), batch_size=batch_size, progress=show)
