"""Connect to a memory of a daemon; its client is imported when it is first used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ebbtide.daemon import RemoteMemory

__all__ = ["connect"]


def connect(
    url_or_socket: str | Path,
    *,
    token: str | Path | None = None,
    namespace: str = "default",
    timeout: float = 300.0,
) -> RemoteMemory:
    """A memory that a daemon (``ebbtide serve``) holds, made where it is missing.

    Args:
        url_or_socket: ``http://127.0.0.1:PORT``, or the path of the daemon's Unix socket.
        token: The daemon's token, or the :class:`~pathlib.Path` of the file with it.
        namespace: Which memory of the store.
        timeout: Seconds without an answer after which a request counts as lost.

    Raises:
        ExternalError: If no daemon answers there, or it does not know the token.
        ConfigError: If the address is another machine's without ``https://`` or is none,
            or the token cannot be one.
    """
    # Only here: most programs hold their memory themselves.
    from ebbtide.daemon import client

    return client.connect(url_or_socket, token=token, namespace=namespace, timeout=timeout)
