"""A store file that holds many memories."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from ebbtide import _core
from ebbtide.ann import erase
from ebbtide.closing import Closing
from ebbtide.config import Config
from ebbtide.errors import InputError
from ebbtide.memory import Memory
from ebbtide.observing import scrubbed
from ebbtide.opened import open_handle, settings_of
from ebbtide.threads import in_passing
from ebbtide.types import Finding

if TYPE_CHECKING:
    from ebbtide.llm.seam import JsonModel

__all__ = ["Store"]


class Store(Closing):
    """One file with many memories, kept apart by name. May be shared by threads.

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
        self._opened: Callable[[Memory], None] | None = None
        # Two memories of one name would each write what the other does not know of.
        self._lock = threading.RLock()
        self._process = os.getpid()

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        config: Config | str | Path | None = None,
        read_only: bool = False,
    ) -> Store:
        """Open a store file, creating it where it is missing.

        Args:
            path: The store file.
            config: A :class:`Config`, or the path of a TOML file; for each of its memories.
            read_only: As for :meth:`Memory.open`.

        Raises:
            StoreError: As :meth:`Memory.open`.
            ConfigError: If the configuration is unusable.
        """
        settings = settings_of(config)
        handle = open_handle(path, settings, read_only=read_only)
        return cls(handle, settings, read_only=read_only)

    @property
    def config(self) -> Config:
        """The configuration that its memories are opened with."""
        return self._config

    def memory(self, namespace: str = "default", *, llm: JsonModel | None = None) -> Memory:
        """The memory of that name, opened once and kept open with the store.

        One that was closed is opened anew.

        Args:
            namespace: Its name.
            llm: A language model that takes part in it, as for :meth:`Memory.open`.

        Raises:
            InputError: If it is open with another language model, or with none; or the name
                is no text.
            FingerprintError: If it was made with another model or token counter.
            ConfigError: If a model is missing.
            NotFoundError: If the store was opened for reading and has no such memory.
        """
        opened = self._kept(namespace)
        if opened is None:
            with self._alone():
                opened = self._kept(namespace)
                if opened is None:
                    # One that was closed by itself: its end may still be under way.
                    self.release(namespace)
                    return self._open(namespace, llm=llm)
        if llm is not None and llm is not opened._llm:
            message = f"{namespace!r} is open with another llm or with none: release() it first"
            raise InputError(message, "input.field")
        return opened

    def _kept(self, namespace: str) -> Memory | None:
        found = self._memories.get(namespace)
        return None if found is None or found._closed else found

    def _open(
        self, namespace: str, *, reindexing: bool = False, llm: JsonModel | None = None
    ) -> Memory:
        memory = self._memories[namespace] = Memory(
            self._handle,
            namespace,
            self._config,
            owns_store=False,
            read_only=self._read_only,
            reindexing=reindexing,
            llm=llm,
        )
        if self._opened is not None:
            self._opened(memory)
        return memory

    def _alone(self) -> AbstractContextManager[object]:
        """No other thread opens or closes one of its memories."""
        # A fork has a copy of the lock, maybe taken by a thread that it does not have;
        # what it asks for is refused by the handle.
        return self._lock if os.getpid() == self._process else nullcontext()

    def warm_up(self, *, wait: bool = True) -> None:
        """Load the models that its memories share, as :meth:`Memory.warm_up` does.

        Args:
            wait: False returns at once and does it in a thread meanwhile.

        Raises:
            ConfigError: If a model is not installed.
        """
        from ebbtide.analysis.analyser import Analyser

        def load() -> None:
            with closing(Analyser(self._config["nlp"], embedder=self._config.embedder)) as analyser:
                analyser.warm_up(beside_others=not wait)

        if wait:
            load()
        else:
            in_passing(load)

    def release(self, namespace: str) -> None:
        """Close one memory and free what it holds; :meth:`memory` opens it anew."""
        with self._alone():
            opened = self._memories.pop(namespace, None)
            if opened is not None:
                opened.close()

    def namespaces(self) -> list[str]:
        """Names of the memories in it, ordered."""
        return self._handle.namespaces()

    def delete(self, namespace: str) -> None:
        """Erase a memory and its name; the others stay as they are, byte for byte.

        What :meth:`Memory.delete` says of other copies of an erased text holds here, too.

        Raises:
            NotFoundError: If there is no such memory.
        """
        with self._alone():
            self.release(namespace)
            scrubbed(self._handle.delete(namespace))
            path = self._handle.path()
            if path is not None:
                erase(path, namespace)

    def load(self, path: str | Path, *, namespace: str | None = None) -> Memory:
        """Read a memory from a file that :meth:`Memory.export` wrote: all of it, or nothing.

        Args:
            path: The file.
            namespace: A name for it that is not taken; its own by default.

        Raises:
            InputError: If the file is no such export, was altered or cut short, or the
                name is taken.
            SchemaVersionError: If a newer release wrote it.
            FingerprintError: If it was made with another model or token counter; it is
                in the store then, for ``ebbtide reindex``.
        """
        name, _ = self._handle.import_(os.fspath(path), namespace)
        return self.memory(name)

    def backup(self, path: str | Path) -> None:
        """Copy the whole store into a new file, in one state, while it is used.

        Raises:
            StoreError: If the file is there already, another store's log lies beside it, or
                it cannot be written.
        """
        self._handle.backup(os.fspath(path))

    def check(self) -> list[Finding]:
        """Read the whole file and tell what is wrong with it; nothing is changed."""
        return [Finding(**row) for row in self._handle.check()]

    def repair(self, *, erase_damaged_turns: bool = False) -> list[Finding]:
        """Rebuild derived data that is damaged; the turns themselves are not touched.

        Args:
            erase_damaged_turns: Give up the turns that are not what was written, so that
                a memory without a backup opens again, and the others with it.

        Returns:
            What is still wrong afterwards: damage to the turns, which only a backup mends.
        """
        with self._alone():
            return self._repair(erase_damaged_turns)

    def _repair(self, erase_damaged_turns: bool) -> list[Finding]:
        found = self.check()
        lost = {f.namespace for f in found if not f.repairable and f.namespace}
        damaged = {f.namespace for f in found if f.repairable and f.namespace}
        if erase_damaged_turns:
            damaged |= lost
            for name in sorted(lost):
                self.release(name)
                self._handle.erase_unsound_turns(name)
        else:
            # Nothing can be derived anew from a turn that cannot be read.
            damaged -= lost
        if not damaged and not any(f.repairable and f.namespace is None for f in found):
            return found
        names = sorted(damaged)
        for name in names:
            self.release(name)
        self._handle.erase_damaged(names)
        for name in names:
            self._open(name, reindexing=True).reindex()
        return self.check()

    def close(self) -> None:
        """Close every memory and free the file."""
        # Whatever ends the waiting for one of them, the file is free afterwards.
        with self._alone(), ExitStack() as ending:
            ending.callback(self._handle.close)
            ending.callback(self._memories.clear)
            for memory in self._memories.values():
                ending.callback(memory.close)
