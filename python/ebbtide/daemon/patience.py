"""How long a daemon waits for its clients, and for how many of them."""

from __future__ import annotations

import asyncio
import resource

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["ClientConnection"]

_SILENT_SECONDS = 30.0
"""Longest silence before a first request, or amid the head of one."""

_MOST = 4096


class ClientConnection(H11Protocol):
    """A connection that is ended where its client says nothing.

    Uvicorn waits for ever for a first request, and for the rest of a head. Where too many
    are open, the one that was idle for longest makes room: its client makes another when
    it has something to say.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client is there."""
        super().connection_made(transport)
        self._wait()
        if len(self.connections) > _most():
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """It said something."""
        super().data_received(data)
        if self._is_idle() and self.timeout_keep_alive_task is None:
            self._wait()

    def on_response_complete(self) -> None:
        """It was answered."""
        super().on_response_complete()
        self._since = self.loop.time()

    def _wait(self) -> None:
        self._since = self.loop.time()
        # Uvicorn's own timer between two requests: whatever comes ends it.
        self.timeout_keep_alive_task = self.loop.call_later(
            _SILENT_SECONDS, self.timeout_keep_alive_handler
        )

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _make_room(self) -> None:
        others = [one for one in self.connections if isinstance(one, ClientConnection)]
        idle = [one for one in others if one._is_idle() and not one.transport.is_closing()]
        min(idle, key=lambda one: one._since).transport.abort()


def _most() -> int:
    """Connections at a time: a part of the file descriptors stays for the store."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = _MOST if soft == resource.RLIM_INFINITY else soft
    return min(_MOST, files - max(32, files // 4))
