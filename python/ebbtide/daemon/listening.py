"""Where a daemon listens: a Unix socket or a loopback port, and the token that goes with it."""

from __future__ import annotations

import fcntl
import os
import secrets
import socket
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ebbtide.errors import ConfigError, ExternalError

__all__ = ["Address", "loopback", "own_token", "tcp_listener", "unix_listener"]

_WAITING = 512
"""Connections that the system keeps while the daemon is busy."""


@dataclass(frozen=True, slots=True)
class Address:
    """A bound socket and its name for clients."""

    listener: socket.socket
    name: str
    port: int | None


def loopback(host: str) -> str:
    """The host, if nobody outside this machine reaches it.

    Raises:
        ConfigError: If it is not 127.0.0.1, ::1 or localhost.
    """
    if host.lower() == "localhost":
        return "127.0.0.1"
    if host not in ("127.0.0.1", "::1"):
        message = (
            f"the daemon listens on loopback only, and {host} is not; for other machines put "
            "a proxy with TLS or an SSH tunnel in front of 127.0.0.1"
        )
        raise ConfigError(message, "config.range")
    return host


@contextmanager
def tcp_listener(host: str, port: int) -> Iterator[Address]:
    """A listening socket on a loopback port, closed at the end.

    Args:
        host: As :func:`loopback` gives it.
        port: The port; 0 for one that is free.

    Raises:
        ExternalError: With code ``daemon.address``, if the port is taken.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named: asyncio sends small answers at once over such sockets only.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen(_WAITING)
        except OSError as error:
            message = f"port {port} of {host} cannot be used: {error.strerror}; choose another"
            raise ExternalError(message, "daemon.address") from error
        bound = listener.getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        yield Address(listener, f"http://{shown}:{bound}", bound)


@contextmanager
def unix_listener(path: Path) -> Iterator[Address]:
    """A listening Unix socket that only this user may use; removed at the end.

    A socket file that a dead process left is replaced.

    Raises:
        ExternalError: With code ``daemon.address``, if a process listens there (which is
            named), if something else is in the way, or if it cannot be made.
    """
    path = path.absolute()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        try:
            with _folder_locked(path.parent):
                _make_room(path)
                mask = os.umask(0o177)
                try:
                    listener.bind(os.fspath(path))
                finally:
                    os.umask(mask)
                # Within the lock: until it listens, it looks like one left behind.
                listener.listen(_WAITING)
        except OSError as error:
            message = f"the socket {path} cannot be made: {error}; choose another with --socket"
            raise ExternalError(message, "daemon.address") from error
        made = path.stat()
        try:
            yield Address(listener, os.fspath(path), None)
        finally:
            if path.exists() and os.path.samestat(path.stat(), made):
                path.unlink()


@contextmanager
def _folder_locked(folder: Path) -> Iterator[None]:
    """One process at a time looks at a socket there and replaces it."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


def _make_room(path: Path) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        message = f"{path} is there and is no socket; choose another with --socket"
        raise ExternalError(message, "daemon.address")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(os.fspath(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except OSError:  # somebody listens, but is busy or another user's
            holder = "another process"
        else:
            holder = _peer(probe)
    message = f"{holder} listens on {path}; stop it, or choose another with --socket"
    raise ExternalError(message, "daemon.address")


def _peer(connected: socket.socket) -> str:
    """The process at the other end, where the system tells."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return "another process"
    size = struct.calcsize("3i")
    process, _, _ = struct.unpack("3i", connected.getsockopt(socket.SOL_SOCKET, option, size))
    return f"process {process}"


def own_token(path: Path) -> str:
    """The token in a file, which is made, with a random one, where it is missing.

    Raises:
        ConfigError: If other users may read it, or it holds no usable token.
        ExternalError: If it cannot be read or made.
    """
    try:
        try:
            made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            pass
        else:
            with os.fdopen(made, "w", encoding="ascii") as file:
                file.write(secrets.token_urlsafe(32) + "\n")
        if path.stat().st_mode & 0o077:
            message = f"other users can read the token in {path}; run: chmod 600 {path}"
            raise ConfigError(message, "config.range")
        token = path.read_bytes().strip()
    except OSError as error:
        message = f"the token file {path} cannot be used: {error.strerror}"
        raise ExternalError(message, "daemon.address") from error
    if len(token) < 16 or not all(0x21 <= byte <= 0x7E for byte in token):
        message = f"{path} holds no token: at least 16 printable ASCII characters without spaces"
        raise ConfigError(message, "config.range")
    return token.decode("ascii")
