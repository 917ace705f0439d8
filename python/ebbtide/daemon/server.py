"""The process: opens the store, listens, and ends without losing anything."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from ebbtide.config import Config
from ebbtide.daemon.app import build_app
from ebbtide.daemon.guard import Guard
from ebbtide.daemon.listening import Address, loopback, own_token, tcp_listener, unix_listener
from ebbtide.daemon.service import Service
from ebbtide.daemon.wire import MAX_BODY
from ebbtide.errors import ConfigError
from ebbtide.extras import MissingExtraError
from ebbtide.store import Store

try:
    import uvicorn
except ImportError as error:
    raise MissingExtraError(error, "serve") from error

from ebbtide.daemon.patience import ClientConnection
from ebbtide.serving import OrderlyServer

__all__ = ["Daemon", "Settings"]

_IDLE_SECONDS = 75
"""Unused connections stay open for so long: longer than clients keep them."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What is served, and where.

    Attributes:
        store: The store file.
        config: Its configuration.
        socket: A Unix socket; beside the store where neither it nor a port is given.
        host: A loopback address.
        port: Its port; 0 takes a free one. None for a Unix socket.
        token_file: Holds the token. Over a port there is one in any case, in a file
            beside the store; over a Unix socket only where this is given.
        max_body: Most bytes of a request's body.
        warm_up: Whether the models are loaded beside the first requests, rather than by the
            first that needs them. An embedder of one's own is left alone.
    """

    store: Path
    config: Config | None = None
    socket: Path | None = None
    host: str = "127.0.0.1"
    port: int | None = None
    token_file: Path | None = None
    max_body: int = MAX_BODY
    warm_up: bool = True


class Daemon:
    """The single writer of a store, for several processes.

    Example:
        Serve until the process is told to stop (SIGTERM, SIGINT or SIGHUP)::

            Daemon(Settings(Path("memory.db"))).run(print)
    """

    def __init__(self, settings: Settings) -> None:
        """Check the settings; nothing is opened.

        Raises:
            ConfigError: If the address is not loopback, or there are two.
        """
        if settings.socket is not None and settings.port is not None:
            message = "a daemon listens on a Unix socket or on a port; give one of them"
            raise ConfigError(message, "config.range")
        self._settings = settings
        self._host = loopback(settings.host)
        self._server: OrderlyServer | None = None
        self._stopping = False

    def run(self, ready: Callable[[str], None] | None = None) -> None:
        """Serve until :meth:`stop` or a signal; requests that run are finished.

        Args:
            ready: Called with the address once requests are answered.

        Raises:
            StoreError: If another process writes the store (named), or it cannot be opened.
            ExternalError: If the address cannot be used.
        """
        settings = self._settings
        # The store comes first: its lock decides which daemon is the one.
        store = Store.open(settings.store, config=settings.config)
        try:
            token = self._token()
            with self._listening() as address:
                asyncio.run(self._serve(store, address, token, ready))
        finally:
            store.close()

    def stop(self) -> None:
        """End :meth:`run` from another thread."""
        self._stopping = True
        if self._server is not None:
            self._server.should_exit = True

    def _token(self) -> str | None:
        settings = self._settings
        if settings.token_file is not None:
            return own_token(settings.token_file)
        if settings.port is None:
            return None
        return own_token(_beside(settings.store, ".token"))

    def _listening(self) -> AbstractContextManager[Address]:
        settings = self._settings
        if settings.port is not None:
            return tcp_listener(self._host, settings.port)
        return unix_listener(settings.socket or _beside(settings.store, ".sock"))

    async def _serve(
        self,
        store: Store,
        address: Address,
        token: str | None,
        ready: Callable[[str], None] | None,
    ) -> None:
        service = Service(store)
        app = Guard(
            build_app(lambda: service, store=str(self._settings.store)),
            instance=service.instance,
            token=token,
            max_body=self._settings.max_body,
            port=address.port,
        )
        self._server = OrderlyServer(_config(app), lambda: ready and ready(address.name))
        self._server.should_exit = self._stopping
        if self._settings.warm_up and store.config.embedder is None:
            store.warm_up(wait=False)
        try:
            await self._server.serve(sockets=[address.listener])
        finally:
            await service.close()


def _config(app: Guard) -> uvicorn.Config:
    """Uvicorn without what does not belong on loopback."""
    return uvicorn.Config(
        app,
        access_log=False,
        date_header=False,
        http=ClientConnection,
        lifespan="off",
        log_config=None,
        log_level="warning",
        loop="asyncio",
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=_IDLE_SECONDS,
        ws="none",
    )


def _beside(store: Path, ending: str) -> Path:
    return store.with_name(store.name + ending)
