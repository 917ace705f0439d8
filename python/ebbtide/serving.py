"""A web server that ends in order, whatever its clients do."""

from __future__ import annotations

import asyncio
import math
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import uvicorn

from ebbtide.threads import when_told_to_end

__all__ = ["OrderlyServer"]

_PARTING_SECONDS = 20.0
"""Clients have so long to take their answers, or end their requests, when it ends."""

_LOOK_SECONDS = 0.5


class OrderlyServer(uvicorn.Server):
    """Uvicorn that returns when a signal told it to end: its caller has things to close.

    Requests that are being answered are finished, however long it takes. A client that
    sends its request, or takes its answer, bit by bit or not at all is left after a while.

    Attributes:
        interrupted: Whether Ctrl-C ended it.
    """

    def __init__(self, config: uvicorn.Config, started: Callable[[], object]) -> None:
        """Serve nothing yet.

        Args:
            config: As Uvicorn takes it.
            started: Called once requests are answered, and signals are heard.
        """
        super().__init__(config)
        self.interrupted = False
        self._when_started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        asyncio.get_running_loop().set_exception_handler(_Reports())
        await super().startup(sockets)
        self._when_started()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Be told by signals when to end.

        Uvicorn's own raises them anew when it has stopped, and with SIGTERM the process
        would end before anything is closed.
        """
        with when_told_to_end(self.handle_exit):
            yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to end; with a second Ctrl-C, at once."""
        self.interrupted = self.interrupted or sig == signal.SIGINT
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish what is being answered."""
        parting = asyncio.create_task(self._part())
        try:
            await super().shutdown(sockets)
        finally:
            parting.cancel()

    async def _part(self) -> None:
        """Cut off those that the server waits for, again and again."""
        await asyncio.sleep(_PARTING_SECONDS)
        while True:
            for connection in list(self.server_state.connections):
                if not _is_worked_for(connection):
                    connection.transport.abort()
            await asyncio.sleep(_LOOK_SECONDS)


def _is_worked_for(connection: Any) -> bool:
    """Whether a request is there whole, and nothing of its answer."""
    cycle = connection.cycle
    return cycle is not None and not cycle.more_body and not cycle.response_started


class _Reports:
    """Logs what goes wrong in an event loop.

    Where no connection can be taken, for want of file descriptors, it tries hundreds of
    times a second: of that one is logged.
    """

    def __init__(self) -> None:
        self._last = -math.inf

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if "accept" in context["message"]:
            now = loop.time()
            if now < self._last + 1:
                return
            self._last = now
        loop.default_exception_handler(context)
