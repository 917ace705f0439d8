"""Where the server listens, bound before anything is said or served."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from ebbtide.errors import ExternalError
from ebbtide.messages import reason

__all__ = ["listening"]

_WAITING = 512
"""Connections that the system keeps until the server takes them."""


@contextmanager
def listening(host: str, port: int) -> Iterator[list[socket.socket]]:
    """Listening sockets on every address of a host, closed at the end.

    Args:
        host: A name or an address of this machine.
        port: The port.

    Raises:
        ExternalError: With code ``daemon.address``, if the port is taken or the host is
            another's.
    """
    with ExitStack() as stack:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            sockets = [
                listener
                for family, kind, protocol, _, address in dict.fromkeys(found)
                if (listener := _bound(family, kind, protocol, address, stack)) is not None
            ]
            if not sockets:
                raise OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
        except (OSError, UnicodeError) as error:
            why = reason(error)
            message = f"port {port} of {host} cannot be used: {why}; choose another"
            raise ExternalError(message, "daemon.address") from error
        yield sockets


def _bound(
    family: int, kind: int, protocol: int, address: tuple[object, ...], stack: ExitStack
) -> socket.socket | None:
    """A listening socket; None for an address that this machine has no use for.

    ``localhost``, say, is an address of IPv6 too, also where the system does without.
    """
    try:
        # The protocol is named: asyncio sends small answers at once over such sockets only.
        listener = stack.enter_context(socket.socket(family, kind, protocol))
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
        listener.listen(_WAITING)
    except OSError as error:
        if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
            return None
        raise
    return listener
