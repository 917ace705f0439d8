"""Recurrence consolidation on conversations: its calibration, its rate, its events.

The thresholds of the RecMem paper are cosines of text-embedding-3-small; another
model's cosines lie elsewhere. What carries over is what they are for: a unit has as
many near ones as the recurrence threshold asks for when its topic recurs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ebbtide.config import Config
from ebbtide.errors import InputError
from ebbtide.evals.datasets import Conversation, measured_conversations
from ebbtide.evals.parts import Progress
from ebbtide.evals.systems import take_in
from ebbtide.memory import Memory

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "QUANTILES",
    "Calibration",
    "Consolidation",
    "Event",
    "calibrated",
    "consolidations",
    "draw_events",
]

QUANTILES = (0.5, 0.75, 0.9, 0.95, 0.98, 0.99)
"""Quantiles that a calibration reports."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """A similarity threshold, and what it was taken from.

    Attributes:
        conversations: Conversations read.
        units: Units in all of them.
        theta_count: The recurrence threshold.
        share: The quantile used: 1 − theta_count / units, averaged over conversations.
        theta_sim: The mean cosine at it, cut to two digits.
        quantiles: Mean cosine of two units of a conversation, by quantile.
    """

    conversations: int
    units: int
    theta_count: int
    share: float
    theta_sim: float
    quantiles: dict[float, float]


@dataclass(frozen=True, slots=True)
class Event:
    """One consolidation.

    Attributes:
        turn: The turn that set it off.
        kind: ``consolidate`` (an episode was made) or ``merge`` (one was extended).
        episode: The episode.
    """

    turn: int
    kind: str
    episode: int


@dataclass(frozen=True, slots=True)
class Consolidation:
    """What became of one conversation.

    Attributes:
        conversation: Its id.
        turns: Turns.
        units: Units that they form.
        consolidated: Units behind at least one episode.
        episodes: Episodes at its end.
        facts: Facts at its end, superseded ones included.
        events: In order.
    """

    conversation: str
    turns: int
    units: int
    consolidated: int
    episodes: int
    facts: int
    events: tuple[Event, ...]

    @property
    def rate(self) -> float:
        """Share of the units that were consolidated, 0 to 1."""
        return self.consolidated / self.units if self.units else 0.0

    @property
    def made(self) -> int:
        """Episodes made."""
        return sum(event.kind == "consolidate" for event in self.events)

    @property
    def merged(self) -> int:
        """Extensions of episodes."""
        return sum(event.kind == "merge" for event in self.events)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-able data."""
        return {**asdict(self), "made": self.made, "merged": self.merged, "rate": self.rate}


def calibrated(
    data: Path, config: Config, *, limit: int | None = None, progress: Progress | None = None
) -> Calibration:
    """The similarity at which the average unit has ``theta_count`` near ones.

    Of N units, ``theta_count / N`` of the others are as near as that: the threshold is
    the quantile 1 − theta_count / N of the cosines of all pairs of a conversation, the
    mean over conversations. It asks for recurrence that is no more than the model's
    usual nearness of anything to anything.

    Args:
        data: A LoCoMo or LongMemEval file.
        config: The settings, with consolidation on.
        limit: Most conversations.
        progress: Told of each conversation.

    Raises:
        InputError: No conversation has more units than the recurrence threshold.
    """
    import numpy as np

    policy = config["policy"]["recurrence"]
    paper = policy["thresholds"] == "paper"
    count = int(policy["paper_theta_count" if paper else "theta_count"])
    rows: list[list[float]] = []
    shares: list[float] = []
    units = 0
    conversations = list(itertools.islice(measured_conversations(data), limit))
    for done, conversation in enumerate(conversations, start=1):
        with _remembered(conversation, config) as memory:
            here = int(memory.stats()["recurrence"]["units"])
            if here > count + 1:
                shares.append(1 - count / here)
                found = np.quantile(memory.unit_cosines(), [*QUANTILES, shares[-1]])
                rows.append(found.tolist())
                units += here
        if progress is not None:
            progress(done, len(conversations))
    if not rows:
        message = f"{data.name} has no conversation with more than {count + 1} units"
        raise InputError(message, "input.transcript")
    means = [math.fsum(column) / len(rows) for column in zip(*rows, strict=True)]
    return Calibration(
        conversations=len(rows),
        units=units,
        theta_count=count,
        share=math.fsum(shares) / len(shares),
        theta_sim=max(0.0, math.floor(100 * means[-1]) / 100),
        quantiles=dict(zip(QUANTILES, means, strict=False)),
    )


def consolidations(
    data: Path, config: Config, *, limit: int | None = None, progress: Progress | None = None
) -> list[Consolidation]:
    """Take conversations in and see what recurs.

    Args:
        data: A LoCoMo or LongMemEval file.
        config: The settings, with consolidation on.
        limit: Most conversations.
        progress: Told of each conversation.
    """
    conversations = list(itertools.islice(measured_conversations(data), limit))
    found: list[Consolidation] = []
    for conversation in conversations:
        with _remembered(conversation, config) as memory:
            found.append(_consolidation(conversation.id, memory))
        if progress is not None:
            progress(len(found), len(conversations))
    return found


def _remembered(conversation: Conversation, config: Config) -> Memory:
    memory = Memory.in_memory(config=config)
    try:
        take_in(memory, conversation)
    except BaseException:
        memory.close()
        raise
    return memory


def _consolidation(name: str, memory: Memory) -> Consolidation:
    events: set[tuple[int, str, int]] = set()
    units: set[tuple[int, ...]] = set()
    turns = 0
    for turn in memory.turns():
        turns += 1
        life = memory.explain(turn.interaction_id)
        for decision in life["decisions"]:
            if decision["kind"] in ("consolidate", "merge"):
                events.add((decision["at"], decision["kind"], decision["detail"]["episode"]))
        if life["recurrence"]["consolidated_in"]:
            units.add(tuple(life["recurrence"]["unit"]))
    numbers = memory.stats()["recurrence"]
    return Consolidation(
        conversation=name,
        turns=turns,
        units=numbers["units"],
        consolidated=len(units),
        episodes=numbers["episodes"],
        facts=numbers["facts"],
        events=tuple(Event(*event) for event in sorted(events)),
    )


def draw_events(found: Sequence[Consolidation], out: Path) -> list[Path]:
    """Draw the consolidation events over the turns, one PNG a conversation.

    Raises:
        ConfigError: ``config.model_missing``: matplotlib is not installed.
        StoreError: ``store.open``: the folder cannot be written.
    """
    from ebbtide.evals.report.runs import require
    from ebbtide.files import writing

    require("matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    for one in found:
        figure = Figure(figsize=(7.6, 3.4), layout="constrained")
        FigureCanvasAgg(figure)
        _draw(figure.add_subplot(), one)
        path = out / f"recurrence-{one.conversation}.png"
        with writing(path):
            figure.savefig(path, dpi=160, metadata={"Software": None})
        paths.append(path)
    return paths


def _draw(axes: Axes, one: Consolidation) -> None:
    for kind, label, colour in (
        ("merge", "episodes extended", "#2a78d6"),
        ("consolidate", "episodes made", "#d6562a"),
    ):
        turns = [event.turn for event in one.events if event.kind == kind]
        counts = range(1, len(turns) + 1)
        axes.step([0, *turns, one.turns], [0, *counts, len(turns)], where="post", color=colour)
        axes.plot(turns, counts, "o", markersize=3, color=colour, label=f"{label}: {len(turns)}")
    axes.set_title(
        f"{one.conversation}: {one.rate:.0%} of {one.units} units consolidated",
        loc="left",
        fontsize=11,
    )
    axes.set_xlabel("turn")
    axes.set_ylabel("events so far")
    axes.set_xlim(0, max(1, one.turns))
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper left", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
