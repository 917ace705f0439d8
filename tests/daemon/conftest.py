"""A daemon in a thread of the test's process, and one in a process of its own."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ebbtide import Config
from ebbtide.daemon import RemoteMemory, connect
from ebbtide.daemon.server import Daemon, Settings


@dataclass(frozen=True)
class Served:
    """A running daemon."""

    address: str
    store: Path
    token: Path

    def connect(self, namespace: str = "default", **more: Any) -> RemoteMemory:
        token = self.token if self.address.startswith("http") else None
        return connect(self.address, token=token, namespace=namespace, **more)


@contextmanager
def serving(settings: Settings) -> Iterator[Served]:
    """A daemon in a thread, until the end of the block."""
    told: queue.Queue[str | BaseException] = queue.Queue()
    daemon = Daemon(settings)

    def run() -> None:
        try:
            daemon.run(told.put)
        except BaseException as error:
            told.put(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        address = told.get(timeout=60)
        if isinstance(address, BaseException):
            raise address
        yield Served(address, settings.store, Path(f"{settings.store}.token"))
    finally:
        daemon.stop()
        thread.join(60)
        assert not thread.is_alive()


@pytest.fixture
def start(stub: Config, store_path: Path) -> Iterator[Callable[..., Served]]:
    """Starts daemons without models; over a Unix socket unless told otherwise."""
    with ExitStack() as running:

        def one(**changes: Any) -> Served:
            config = changes.pop("config", stub)
            store = changes.pop("store", store_path)
            settings = Settings(store=store, config=config, **changes)
            return running.enter_context(serving(settings))

        yield one


@pytest.fixture(params=["socket", "port"])
def served(request: pytest.FixtureRequest, start: Callable[..., Served]) -> Served:
    """A daemon over each of its two ways."""
    return start() if request.param == "socket" else start(port=0)
