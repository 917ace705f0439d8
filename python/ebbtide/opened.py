"""A store file opened, and a memory in it as its two sides share it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ebbtide import _core
from ebbtide.config import Config
from ebbtide.errors import ConfigError, StoreError

if TYPE_CHECKING:
    from ebbtide.analysis.analyser import Analyser
    from ebbtide.ann import Graphs
    from ebbtide.llm.seam import JsonModel
    from ebbtide.observing import Watch

__all__ = ["PAGE", "Opened", "closed", "open_handle", "settings_of"]

PAGE = 256
"""Turns that are read of a memory at once, where all of them are gone through."""


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


def settings_of(config: Config | str | Path | None) -> Config:
    """A configuration as given, read from a TOML file, or the defaults.

    Raises:
        ConfigError: If it is none of these, or the file is unusable.
    """
    if isinstance(config, Config):
        return config
    if config is None:
        return Config()
    if isinstance(config, str | os.PathLike):
        return Config.load(config)
    message = (
        "config takes a Config or the path of a TOML file, not "
        f"{type(config).__name__}; Config().replace(section={{...}}) changes single settings"
    )
    raise ConfigError(message, "config.type")


def closed() -> StoreError:
    """The error for a call of a memory that was closed, in the words of the core."""
    return StoreError("this memory was closed; open it again", "store.closed")


def open_handle(path: str | Path, config: Config, *, read_only: bool) -> _core.StoreHandle:
    """Open a store file; the writer's lock names this process to others."""
    return _core.StoreHandle(
        os.fspath(path),
        read_only=read_only,
        holder=f"process {os.getpid()} ({Path(sys.argv[0] or 'python').name})",
        synchronous_full=config["store"]["synchronous"] == "full",
    )


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(
        before=_core.before_fork,
        after_in_parent=_core.after_fork_in_parent,
        after_in_child=_core.after_fork_in_child,
    )
