"""A store file opened, and a memory in it as its two sides share it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ebbtide import _core
from ebbtide.config import Config

if TYPE_CHECKING:
    from ebbtide.analysis.analyser import Analyser
    from ebbtide.ann import Graphs
    from ebbtide.llm.seam import JsonModel
    from ebbtide.observing import Watch

__all__ = ["Opened", "open_handle"]


@dataclass(frozen=True, slots=True)
class Opened:
    """What reading and writing a memory take.

    Attributes:
        handle: The memory in the core.
        analyser: What reads turns and questions.
        graphs: Its graph index.
        config: Its settings.
        watch: Who watches it.
        writable: Whether what is journalled may be taken in, and graphs be built.
        llm: The language model that takes part in it, if any.
    """

    handle: _core.MemoryHandle
    analyser: Analyser
    graphs: Graphs
    config: Config
    watch: Watch
    writable: bool
    llm: JsonModel | None


def open_handle(path: str | Path, config: Config, *, read_only: bool) -> _core.StoreHandle:
    """Open a store file; the writer's lock names this process to others."""
    return _core.StoreHandle(
        os.fspath(path),
        read_only=read_only,
        holder=f"process {os.getpid()} ({Path(sys.argv[0] or 'python').name})",
        synchronous_full=config["store"]["synchronous"] == "full",
    )
