"""Connections to one daemon, kept open between requests and shared by threads."""

from __future__ import annotations

import http.client
import os
import select
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

__all__ = ["Connections", "LostError", "NotSentError", "Reply"]

_IDLE_SECONDS = 30.0
"""Unused connections are not trusted for longer; the daemon keeps them for twice that."""

_KEPT = 16


class NotSentError(Exception):
    """The daemon cannot have seen the request."""


class LostError(Exception):
    """The daemon may have seen the request, but no answer came."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: its status, its headers by lower-case name, its body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Connections:
    """Sends requests to a URL or over a Unix socket."""

    def __init__(self, address: str, timeout: float) -> None:
        """Name the daemon; nothing is opened yet.

        Args:
            address: An ``http://`` or ``https://`` URL, or the path of a socket.
            timeout: Seconds without an answer after which a request counts as lost.
        """
        self._address = address
        self._timeout = timeout
        parts = urlsplit(address) if "://" in address else None
        self._prefix = parts.path.rstrip("/") if parts is not None else ""
        self._idle = _Idle()

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._idle.closed

    def exchange(
        self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Reply:
        """Send one request and read its answer.

        Raises:
            NotSentError: If no connection could be made.
            LostError: If the connection broke, or nothing came in time.
        """
        idle = self._own()
        connection = idle.take() or self._made()
        try:
            connection.request(method, self._prefix + target, body=body, headers=dict(headers))
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise LostError(str(error) or type(error).__name__) from error
        except BaseException:  # an interrupt: what comes next on it would be this answer
            connection.close()
            raise
        found = {name.lower(): value for name, value in answer.getheaders()}
        if answer.will_close or not idle.put(connection):
            connection.close()
        return Reply(answer.status, found, content)

    def close(self) -> None:
        """Close every connection that is not in use, and keep none from now on."""
        self._own().close()

    def _own(self) -> _Idle:
        """The idle connections of this process.

        A fork has copies of its parent's, over which it would get its parent's answers.
        Closing a copy tells the daemon nothing.
        """
        idle = self._idle
        if idle.process == os.getpid():
            return idle
        self._idle = fresh = _Idle(closed=idle.closed)
        idle.drop()
        return fresh

    def _made(self) -> http.client.HTTPConnection:
        connection = self._new()
        try:
            connection.connect()
        except OSError as error:
            connection.close()
            raise NotSentError(str(error) or type(error).__name__) from error
        return connection

    def _new(self) -> http.client.HTTPConnection:
        if "://" not in self._address:
            return _UnixConnection(self._address, self._timeout)
        parts = urlsplit(self._address)
        host = parts.hostname or "localhost"
        if parts.scheme == "https":
            return http.client.HTTPSConnection(host, parts.port, timeout=self._timeout)
        return http.client.HTTPConnection(host, parts.port, timeout=self._timeout)


class _Idle:
    """Open connections of one process that nobody uses."""

    def __init__(self, *, closed: bool = False) -> None:
        self.process = os.getpid()
        self.closed = closed
        self._connections: list[tuple[float, http.client.HTTPConnection]] = []
        self._lock = threading.Lock()

    def take(self) -> http.client.HTTPConnection | None:
        """A connection that is still open, as far as can be told; the newest first."""
        while True:
            with self._lock:
                if not self._connections:
                    return None
                since, connection = self._connections.pop()
            if time.monotonic() - since < _IDLE_SECONDS and not _is_readable(connection.sock):
                return connection
            connection.close()

    def put(self, connection: http.client.HTTPConnection) -> bool:
        """Keep a connection for the next request; whether there was room."""
        with self._lock:
            if self.closed or len(self._connections) >= _KEPT:
                return False
            self._connections.append((time.monotonic(), connection))
            return True

    def close(self) -> None:
        """Close them, and keep none from now on."""
        with self._lock:
            self.closed = True
        self.drop()

    def drop(self) -> None:
        """Close them without the lock, which a fork may have a copy of that is held for ever."""
        dropped, self._connections = self._connections, []
        for _, connection in dropped:
            connection.close()


def _is_readable(idle: socket.socket | None) -> bool:
    """Whether something came unasked: the end of the connection, mostly."""
    if idle is None:
        return True
    poll = select.poll()
    poll.register(idle, select.POLLIN | select.POLLHUP | select.POLLERR)
    return bool(poll.poll(0))
