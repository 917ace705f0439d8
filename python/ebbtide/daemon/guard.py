"""What a request must pass before anything reads it: where from, by whom, how large."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import unquote_to_bytes

from ebbtide.daemon.wire import INSTANCE_HEADER, error_data

__all__ = ["Guard", "RefusedError", "is_loopback"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_SILENT_SECONDS = 30.0
_BODY_SECONDS = 120.0
_MOST = 512

_PATIENCE = 8
"""Times the longest body that is read before one that is longer is cut off."""


def is_loopback(host: str) -> bool:
    """Whether a host's name means this machine and nothing else."""
    return host.lower() in _LOOPBACK


class RefusedError(Exception):
    """A request that goes no further."""

    def __init__(self, code: str, message: str, status: int) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status


class Guard:
    """Turns away what must not reach the memories, in front of an ASGI application."""

    def __init__(
        self,
        app: App,
        *,
        instance: str,
        token: str | None,
        max_body: int,
        port: int | None = None,
        silent_seconds: float = _SILENT_SECONDS,
        body_seconds: float = _BODY_SECONDS,
        most: int = _MOST,
    ) -> None:
        """Guard an application.

        Args:
            app: The application.
            instance: Sent with every answer.
            token: What the ``Authorization`` header must carry; None where the
                socket's permissions decide.
            max_body: Most bytes of a body.
            port: The port that the ``Host`` header must name; None for a Unix socket.
            silent_seconds: Longest silence in the middle of a body.
            body_seconds: Longest time that a whole body may take.
            most: Requests at the same time; more are asked to come back.
        """
        self._app = app
        self._instance = (INSTANCE_HEADER.lower().encode(), instance.encode())
        self._token = None if token is None else token.encode()
        self._max_body = max_body
        self._port = port
        self._silent_seconds = silent_seconds
        self._body_seconds = body_seconds
        self._most = most
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it with an error."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        self._running += 1
        try:
            self._check(scope)
            body = await self._body(scope, receive)
            if body is not None:
                await self._app(scope, _replayed(body, receive), self._named(send))
        except RefusedError as refused:
            await self._refuse(refused, send)
        finally:
            self._running -= 1

    def _check(self, scope: Scope) -> None:
        names = [name for name, _ in scope["headers"]]
        headers = dict(scope["headers"])
        if b"origin" in headers:
            # A program sends none. A page in a browser does, and has no business here.
            message = "requests of web pages are not answered: leave out the Origin header"
            raise RefusedError("daemon.origin", message, 403)
        if names.count(b"host") != 1 or not self._is_here(headers[b"host"]):
            # A name that was made to point here (DNS rebinding) is not this machine's.
            message = "the Host header must name this machine's loopback address and the port"
            raise RefusedError("daemon.origin", message, 403)
        if self._token is not None and not self._is_known(headers.get(b"authorization", b"")):
            message = (
                "this daemon asks for its token: send `Authorization: Bearer TOKEN`, where TOKEN "
                "is the content of the file that was named when it started"
            )
            raise RefusedError("daemon.token", message, 401)
        if self._running > self._most:
            message = f"{self._most} requests are being answered; try again in a second"
            raise RefusedError("daemon.unavailable", message, 503)
        if not _is_unicode(scope["query_string"]):
            raise RefusedError("input.unicode", "the query of the address is not UTF-8", 422)

    def _is_here(self, given: bytes) -> bool:
        host, _, port = given.decode("latin-1").rpartition(":")
        if not host or port.endswith("]"):  # there is no port
            host, port = given.decode("latin-1"), ""
        if self._port is not None and port != str(self._port) and (port or self._port != 80):
            return False
        return is_loopback(host.removeprefix("[").removesuffix("]"))

    def _is_known(self, given: bytes) -> bool:
        kind, _, token = given.partition(b" ")
        assert self._token is not None
        # Compared in constant time, whatever is given.
        return hmac.compare_digest(token.strip(), self._token) and kind.lower() == b"bearer"

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """The whole body, counted while it arrives; None where the client went away.

        What is too long is not kept, but read on for a while: a client that still sends
        would lose the answer otherwise.
        """
        body = bytearray()
        size = 0
        fits = _declared(scope["headers"]) <= self._max_body
        end = time.monotonic() + self._body_seconds
        while True:
            left = end - time.monotonic()
            try:
                message = await asyncio.wait_for(receive(), min(left, self._silent_seconds))
            except TimeoutError:
                words = f"nothing of the body came for {self._silent_seconds:g} seconds"
                if left < self._silent_seconds:
                    words = f"the body was not there whole after {self._body_seconds:g} seconds"
                raise RefusedError("daemon.unavailable", words, 408) from None
            if message["type"] != "http.request":
                return None
            part = message.get("body", b"")
            size += len(part)
            fits = fits and size <= self._max_body
            if fits:
                body += part
            more = message.get("more_body", False)
            if not fits and (not more or size > _PATIENCE * self._max_body):
                raise RefusedError("input.too_long", self._too_long(), 413)
            if not more:
                return bytes(body)

    def _too_long(self) -> str:
        return (
            f"the body is longer than {self._max_body:,} bytes; send turns in several "
            "requests, or start the daemon with a larger --max-body"
        )

    def _named(self, send: Send) -> Send:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), self._instance]
            await send(message)

        return sending

    async def _refuse(self, refused: RefusedError, send: Send) -> None:
        body = error_data(refused.code, refused.message)
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            self._instance,
        ]
        if refused.status == 401:
            headers.append((b"www-authenticate", b'Bearer realm="ebbtide"'))
        if refused.status in (408, 413):
            # The rest of the body is not read: nothing else can follow it.
            headers.append((b"connection", b"close"))
        if refused.status == 503:
            headers.append((b"retry-after", b"1"))
        start = {"type": "http.response.start", "status": refused.status, "headers": headers}
        await send(start)
        await send({"type": "http.response.body", "body": body})


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body again, for the application; then whatever comes."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _declared(headers: Iterable[tuple[bytes, bytes]]) -> int:
    """The length that is announced; 0 where none is. The server refuses what is no number."""
    return int(dict(headers).get(b"content-length", b"0")[:20])


def _is_unicode(query: bytes) -> bool:
    try:
        unquote_to_bytes(query).decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
