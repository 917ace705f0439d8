"""Which archive an address means."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ebbtide.archives.base import Archive, Identity
from ebbtide.errors import InputError

if TYPE_CHECKING:
    from urllib.parse import SplitResult

__all__ = ["open_archive"]


def open_archive(address: str, embedding: Identity | None = None) -> Archive:
    """Open an archive, or make it where ``embedding`` says what it is to hold.

    Args:
        address: ``postgresql://user@host:port/database``, ``chroma://host:port/collection``
            (``chromas://`` for HTTPS), or the path of a file.
        embedding: What the caller's vectors are made with, see
            :func:`ebbtide.archives.identity_of`; None takes the archive's own.

    Raises:
        InputError: For an address of another kind.
        ExternalError: ``archive.unavailable`` if it cannot be reached, or is to be made
            and ``embedding`` is None.
        FingerprintError: If its vectors were made with another embedder.
        MissingExtraError: If the backend's packages are not installed.
    """
    scheme, mark, _ = address.partition("://")
    if not mark:
        from ebbtide.archives.file import FileArchive

        return FileArchive(address, embedding)
    if scheme in ("postgresql", "postgres"):
        from ebbtide.archives.postgres import PostgresArchive

        return PostgresArchive(address, embedding)
    if scheme in ("chroma", "chromas"):
        from ebbtide.archives.chroma import ChromaArchive

        host, port, collection = _chroma(urlsplit(address))
        return ChromaArchive(host, port, collection, embedding, ssl=scheme == "chromas")
    raise InputError(
        f"no archive is reached by {scheme}://; there are postgresql://, chroma:// and files",
        "input.field",
    )


def _chroma(parts: SplitResult) -> tuple[str, int, str]:
    try:
        port = parts.port
    except ValueError:
        port = None
    collection = parts.path.strip("/") or "ebbtide"
    if not parts.hostname or port is None or "/" in collection:
        message = "a Chroma archive is named chroma://host:port/collection"
        raise InputError(message, "input.field")
    return parts.hostname, port, collection
