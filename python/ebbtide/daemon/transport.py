"""Requests to a daemon: sent again where that cannot do a write twice."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from ebbtide.daemon.connections import Connections, LostError, NotSentError, Reply
from ebbtide.daemon.wire import INSTANCE_HEADER, KEY_HEADER, PREFIX, error_from
from ebbtide.errors import ConfigError, EbbtideError, ExternalError
from ebbtide.messages import reason
from ebbtide.opened import closed

__all__ = ["Transport"]

_PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
"""Seconds before each further attempt; about six in all, longer than a restart takes."""


class Transport:
    """Connections to one daemon; may be shared by threads."""

    def __init__(self, address: str | Path, token: str | Path | None, timeout: float) -> None:
        """Name the daemon; nothing is sent yet.

        Args:
            address: An ``http://`` or ``https://`` URL, or the path of a Unix socket.
            token: The token, or the :class:`Path` of the file that holds it.
            timeout: Seconds without an answer after which a request counts as lost; after
                so many altogether nothing is sent again.

        Raises:
            ConfigError: If the address would show the token to a network or is none, or
                the token cannot be one.
        """
        self._name = _checked(os.fspath(address))
        self._timeout = timeout
        self._instance: str | None = None
        self._headers = {} if token is None else {"Authorization": f"Bearer {_read(token)}"}
        self._connections = Connections(self._name, timeout)

    def read(
        self, method: str, route: str, query: Mapping[str, Any], body: bytes | None = None
    ) -> Any:
        """An answer to a request that changes nothing; tried again where it is lost.

        Raises:
            EbbtideError: What the daemon raised.
            ExternalError: If it cannot be reached.
        """
        return self._request(method, route, query, body, again=True)

    def write(
        self,
        method: str,
        route: str,
        query: Mapping[str, Any],
        body: bytes | None = None,
        *,
        kind: str = "application/json",
        keyed: bool = False,
        repeatable: bool = False,
    ) -> Any:
        """An answer to a request that changes the memory; carried out at most once.

        Args:
            method: The HTTP method.
            route: The path behind the version.
            query: Query parameters; None is left out.
            body: The body.
            kind: Its content type.
            keyed: Send an idempotency key, and ask for a lost answer with it.
            repeatable: Carrying it out twice changes nothing, even in another process.

        Raises:
            EbbtideError: What the daemon raised.
            ExternalError: If it cannot be reached, and with code ``daemon.uncertain`` if
                the answer was lost for good: it may or may not have been carried out.
        """
        headers = {"Content-Type": kind} if body is not None else {}
        if keyed:
            headers[KEY_HEADER] = secrets.token_hex(16)
        return self._request(
            method, route, query, body, headers=headers, again=keyed, anywhere=repeatable
        )

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()

    def _request(
        self,
        method: str,
        route: str,
        query: Mapping[str, Any],
        body: bytes | None,
        *,
        headers: Mapping[str, str] | None = None,
        again: bool,
        anywhere: bool = False,
    ) -> Any:
        """Send until there is an answer, or no way to have one.

        Args:
            method: The HTTP method.
            route: The path.
            query: Query parameters.
            body: The body.
            headers: Further headers; None marks a read.
            again: It may be sent again after an answer was lost.
            anywhere: Also to a daemon that was started since.
        """
        if self._connections.closed:
            raise closed()
        is_write = headers is not None
        sent = {**self._headers, **(headers or {})}
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
        shown = {name: value for name, value in query.items() if value is not None}
        target = f"{PREFIX}{route}?{urlencode(shown, quote_via=quote, safe='')}"
        instance = self._instance
        lost = False
        end = time.monotonic() + self._timeout
        failure: Exception
        for pause in (*_PAUSES, None):
            try:
                answer = self._connections.exchange(method, target, body, sent)
            except NotSentError as error:
                failure = error
                if instance is None:
                    break  # there never was a daemon to come back
            except LostError as error:
                failure = error
                lost = True
                if is_write and not again:
                    raise self._uncertain(error) from error
                if is_write and not anywhere:
                    # Only the process that may have carried it out knows the key.
                    sent[INSTANCE_HEADER] = instance or "unknown"
            else:
                self._instance = answer.headers.get(INSTANCE_HEADER.lower(), self._instance)
                if answer.status != 503:
                    return _content(answer)
                failure = _error(answer)  # stopping or busy: it was not begun
            if pause is None or time.monotonic() > end:
                break
            time.sleep(pause)
        if lost and is_write:
            raise self._uncertain(failure) from failure
        if isinstance(failure, EbbtideError):
            raise failure
        message = (
            f"no daemon answers at {self._name} ({failure}); start one with "
            "`ebbtide serve`, or correct the address"
        )
        raise ExternalError(message, "daemon.unavailable") from failure

    def _uncertain(self, failure: Exception) -> ExternalError:
        message = (
            f"the connection to {self._name} was lost ({failure}) before the answer "
            "came: the write may or may not have been carried out"
        )
        return ExternalError(message, "daemon.uncertain")


def _checked(address: str) -> str:
    """The address, if nobody on the way can read what is sent there."""
    if "://" not in address:
        return address
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
        _ = parts.port  # raises where it is no number of a port
    except ValueError as error:
        message = f"{address} is no address of a daemon: {error}; give http://127.0.0.1:PORT"
        raise ConfigError(message, "config.range") from error
    if parts.scheme not in ("http", "https") or not host:
        message = f"{address} is no address of a daemon: give http://127.0.0.1:PORT or a socket"
        raise ConfigError(message, "config.range")
    is_here = host == "localhost"
    with contextlib.suppress(ValueError):
        is_here = is_here or ipaddress.ip_address(host).is_loopback
    if parts.scheme == "http" and not is_here:
        message = (
            f"{host} is not this machine, and http:// would show the token and the turns "
            "to the network; use https:// or an SSH tunnel"
        )
        raise ConfigError(message, "config.range")
    return address


def _read(token: str | Path) -> str:
    """The token as a header takes it; no error shows it, not even a wrong one."""
    found = token
    if isinstance(token, Path):
        try:
            found = token.read_text(encoding="ascii", errors="replace")
        except OSError as error:
            message = f"the token file {token} cannot be read: {reason(error)}"
            raise ExternalError(message, "daemon.address") from error
    found = found.strip() if isinstance(found, str) else ""
    if not found or not all("!" <= character <= "~" for character in found):
        where = f"the file {token}" if isinstance(token, Path) else "what was given"
        message = (
            f"{where} is no token: give the content of the daemon's token file, which is printable "
            "ASCII without spaces, or its Path"
        )
        raise ConfigError(message, "config.range")
    return found


def _content(answer: Reply) -> Any:
    if answer.status >= 400:
        raise _error(answer)
    if answer.status == 204:
        return None
    try:
        return json.loads(answer.body)
    except ValueError as error:
        raise ExternalError("the daemon's answer is not JSON", "daemon.failed") from error


def _error(answer: Reply) -> EbbtideError:
    """The error that an answer carries."""
    try:
        found = json.loads(answer.body)["error"]
        return error_from(str(found["code"]), str(found["message"]))
    except (ValueError, KeyError, TypeError):
        message = f"status {answer.status} came from what is no ebbtide daemon"
        return ExternalError(message, "daemon.failed")
