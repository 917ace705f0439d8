"""What a benchmark yields: figures with their unit and spread, and the machine."""

from __future__ import annotations

import gc
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ebbtide.cores import usable_cores

__all__ = ["Figure", "Machine", "milliseconds", "quantile", "sample", "timed"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure.

    Attributes:
        section: What it belongs to: ``start-up``, ``replay``, ``add``, ``recall``, ``kernels``.
        name: What was measured.
        unit: ``ms``, ``turns/s``, ``MB``, ``×`` …
        value: The median of the rounds, or the one value there is.
        size: Records, turns or elements it was measured at; None where that means nothing.
        p99: 99th percentile of single calls, where there were enough of them.
        rounds: How many values the median is of.
        note: What must be known to read it.
    """

    section: str
    name: str
    unit: str
    value: float
    size: int | None = None
    p99: float | None = None
    rounds: int = 1
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-able data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Machine:
    """Where it was measured; ``instructions`` are those that the default model runs by."""

    system: str
    processor: str
    processors: int
    python: str
    ebbtide: str
    instructions: str = ""

    @classmethod
    def here(cls) -> Machine:
        """This machine."""
        from ebbtide._core import __version__, instructions

        return cls(
            system=f"{platform.system()} {platform.machine()}",
            processor=_processor(),
            instructions=instructions(),
            processors=usable_cores(),
            python=platform.python_version(),
            ebbtide=__version__,
        )

    def sentence(self) -> str:
        """In one line."""
        told = f" ({self.instructions})" if self.instructions else ""
        return (
            f"ebbtide {self.ebbtide}, Python {self.python}, {self.system}, "
            f"{self.processor}{told}, {self.processors} processors"
        )


def _processor() -> str:
    """The processor's name, or what the platform says of it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:  # noqa: PTH123
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "an unknown processor"


def timed(work: Callable[[], object]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def sample(work: Callable[[], object], rounds: int, *, warm_up: int = 1) -> list[float]:
    """Seconds of each of so many calls, after some that are not counted.

    The garbage collector is off meanwhile, as in ``timeit``.
    """
    for _ in range(warm_up):
        work()
    enabled = gc.isenabled()
    gc.disable()
    try:
        seconds = [timed(work) for _ in range(rounds)]
    finally:
        if enabled:
            gc.enable()
    return seconds


def quantile(values: Sequence[float], share: float) -> float:
    """The value that so large a share of all stays at or below: one that was measured."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def milliseconds(
    section: str, name: str, seconds: Sequence[float], *, size: int | None = None
) -> Figure:
    """Median and 99th percentile of single calls; the latter from 100 calls on."""
    return Figure(
        section=section,
        name=name,
        unit="ms",
        value=1e3 * statistics.median(seconds),
        size=size,
        p99=1e3 * quantile(seconds, 0.99) if len(seconds) >= 100 else None,
        rounds=len(seconds),
    )
