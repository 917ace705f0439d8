"""A store file that holds many memories."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from ebbtide import _core
from ebbtide.ann import erase
from ebbtide.config import Config
from ebbtide.memory import Memory

__all__ = ["Store", "open_handle"]


def open_handle(path: str | Path, config: Config, *, read_only: bool) -> _core.StoreHandle:
    """Open a store file; the writer's lock names this process to others."""
    return _core.StoreHandle(
        os.fspath(path),
        read_only=read_only,
        holder=f"process {os.getpid()} ({Path(sys.argv[0] or 'python').name})",
        synchronous_full=config["store"]["synchronous"] == "full",
    )


class Store:
    """One file with many memories, kept apart by name.

    Example:
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "store.db"
        >>> with Store.open(path) as store:
        ...     _ = store.memory("ana").add("I live in Porto.")
        ...     store.namespaces()
        ['ana']
    """

    def __init__(self, handle: _core.StoreHandle, config: Config, *, read_only: bool) -> None:
        """Use :meth:`open` instead."""
        self._handle = handle
        self._config = config
        self._read_only = read_only
        self._memories: dict[str, Memory] = {}

    @classmethod
    def open(
        cls, path: str | Path, *, config: Config | None = None, read_only: bool = False
    ) -> Store:
        """Open a store file, creating it where it is missing.

        Raises:
            StoreError: As :meth:`Memory.open`.
        """
        settings = config or Config()
        handle = open_handle(path, settings, read_only=read_only)
        return cls(handle, settings, read_only=read_only)

    def memory(self, namespace: str = "default") -> Memory:
        """The memory of that name, opened once and kept open with the store."""
        if namespace not in self._memories:
            self._memories[namespace] = Memory(
                self._handle,
                namespace,
                self._config,
                owns_store=False,
                read_only=self._read_only,
            )
        return self._memories[namespace]

    def namespaces(self) -> list[str]:
        """Names of the memories in it, ordered."""
        return self._handle.namespaces()

    def delete(self, namespace: str) -> None:
        """Erase a memory and its name; the others stay as they are, byte for byte.

        Raises:
            NotFoundError: If there is no such memory.
        """
        opened = self._memories.pop(namespace, None)
        if opened is not None:
            opened.close()
        self._handle.delete(namespace)
        path = self._handle.path()
        if path is not None:
            erase(path, namespace)

    def close(self) -> None:
        """Close every memory and free the file."""
        for memory in self._memories.values():
            memory.close()
        self._memories.clear()
        self._handle.close()

    def __enter__(self) -> Self:
        """Use as a context manager: closed at the end."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()
