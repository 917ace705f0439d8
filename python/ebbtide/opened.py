"""An open memory, as its two sides share it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ebbtide import _core
    from ebbtide.analysis.analyser import Analyser
    from ebbtide.ann import Graphs
    from ebbtide.config import Config
    from ebbtide.llm.seam import JsonModel
    from ebbtide.observing import Watch

__all__ = ["Opened"]


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
