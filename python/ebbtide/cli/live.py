"""What a replay does to its memory, shown while it runs."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from ebbtide.cli.output import plain, stderr
from ebbtide.cli.progress import progress_bar
from ebbtide.cli.show import TIERS

if TYPE_CHECKING:
    from ebbtide.replay import ReplaySummary
    from ebbtide.transcripts import Transcript
    from ebbtide.types import WriteReport

__all__ = ["ReplayView", "StackedBar"]

_BARS = 10
"""Bars of finished conversations that stay on the screen."""

_WIDTH = 22
"""Characters of a bar."""

_STYLES = {"healthy": "blue", "unstable": "yellow", "critical": "magenta", "tokens": "default"}
_SHAPES = {"healthy": "█", "unstable": "▓", "critical": "▒", "tokens": "█"}
_ASCII = {"healthy": "#", "unstable": "+", "critical": "-", "tokens": "#"}


class StackedBar:
    """Counts as parts of one bar, told apart by their shape as well as by their colour."""

    def __init__(self, counts: dict[str, int], whole: int, width: int = _WIDTH) -> None:
        """``whole`` is what a full bar stands for; the rest of it stays empty."""
        self._counts = counts
        self._whole = max(whole, 1)
        self._width = width

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The bar as one line of text."""
        shapes, empty = (_ASCII, ".") if options.ascii_only else (_SHAPES, "░")
        line = Text()
        done = drawn = 0
        for name, count in self._counts.items():
            done += count
            # Rounded at the ends of the parts: their sum is then never over the width.
            end = min(round(done / self._whole * self._width), self._width)
            line.append(shapes[name] * (end - drawn), style=_STYLES[name])
            drawn = end
        line.append(empty * (self._width - drawn), style="dim")
        yield line

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """As wide as it is, in a table too."""
        return Measurement(self._width, self._width)


class ReplayView:
    """Bars of the transcripts, and below them the memory that is being filled.

    On standard error, and only where that is a terminal; at the end the bars stay.

    Args:
        token_budget: Most tokens of the active memory.
        quiet: Whether to show nothing at all.
        console: Where to show it; standard error by default.
    """

    def __init__(
        self, token_budget: int, *, quiet: bool = False, console: Console | None = None
    ) -> None:
        """Nothing is shown before it is entered."""
        self._budget = token_budget
        self._console = console or stderr()
        self._bars = progress_bar(self._console)
        shown = self._console.is_terminal and not quiet
        self._live = Live(self._bars, console=self._console) if shown else None

    def __enter__(self) -> Self:
        """Begin to show it."""
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the bars and nothing else: the summary has the numbers."""
        if self._live is not None:
            self._live.update(self._bars)
            self._live.stop()

    def follow(self, transcript: Transcript) -> Callable[[ReplaySummary, WriteReport], None]:
        """A bar for one transcript; returns what moves it on."""
        label = plain(transcript.name or transcript.path.name)
        task = self._bars.add_task(label, total=transcript.total, note="")

        def advance(summary: ReplaySummary, report: WriteReport) -> None:
            note = f"{summary.turns_per_second:.0f} turns/s"
            self._bars.update(task, completed=summary.turns + summary.skipped, note=note)
            finished = [one for one in self._bars.tasks if one.finished and one.visible]
            if len(finished) > _BARS:
                self._bars.update(finished[0].id, visible=False)
            if self._live is not None:
                self._live.update(Group(self._bars, self._memory(summary, report)))

        return advance

    def _memory(self, summary: ReplaySummary, report: WriteReport) -> Table:
        """The state after a batch; fits 80 columns."""
        table = Table.grid(padding=(0, 2))
        table.add_column()
        table.add_column(min_width=40)
        tiers = {name: report.tiers.get(name, 0) for name in TIERS}
        active, tokens = sum(tiers.values()), report.active_tokens
        counts = ", ".join(f"{count:,} {name}" for name, count in tiers.items())
        table.add_row("active turns", counts, StackedBar(tiers, active))
        over = tokens - self._budget
        share = f"{tokens:,} of {self._budget:,}"
        if over > 0:
            share += f", {over:,} over"
        table.add_row("active tokens", share, StackedBar({"tokens": tokens}, self._budget))
        reasons = {"hard_kill": "decayed", "budget": "over the budget", "skip": "kept out"}
        gone = ", ".join(
            f"{summary.evictions[reason]:,} {words}"
            for reason, words in reasons.items()
            if reason != "skip" or summary.evictions[reason]
        )
        table.add_row("evicted", gone)
        table.add_row("superseded", f"{summary.superseded:,}")
        return table
