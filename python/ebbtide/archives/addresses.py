"""Which archive an address means."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from ebbtide.archives.base import Archive, Identity
from ebbtide.errors import InputError

__all__ = ["open_archive"]

_KEYWORDS = re.compile(r"\s*\w+\s*=")
"""How the other connection strings of PostgreSQL begin: ``host=… dbname=…``."""
_CUT_SHORT = re.compile(r"\s*(?:postgres(?:ql)?|chromas?):(?!//)", re.IGNORECASE)


def open_archive(address: str, embedding: Identity | None = None) -> Archive:
    """Open an archive, or make it where ``embedding`` says what it is to hold.

    Args:
        address: ``postgresql://user@host:port/database`` or ``host=… dbname=…``,
            ``chroma://host:port/collection`` (``chromas://`` for HTTPS), or the path of a
            file.
        embedding: What the caller's vectors are made with, see
            :func:`ebbtide.archives.identity_of`; None takes the archive's own.

    Raises:
        InputError: For an address of another kind.
        ExternalError: ``archive.unavailable`` if it cannot be reached, or is to be made
            and ``embedding`` is None.
        FingerprintError: If its vectors were made with another embedder.
        MissingExtraError: If the backend's packages are not installed.
    """
    if not isinstance(address, str):
        message = f"an archive's address is text, not {type(address).__name__}"
        raise InputError(message, "input.field")
    if _CUT_SHORT.match(address):
        # Taken for a file, it would be shown with the password in it.
        raise InputError(
            "an archive on a server is named postgresql://user@host:port/database or "
            "chroma://host:port/collection, with two slashes; a file of such a name, ./NAME",
            "input.field",
        )
    scheme, mark, _ = address.partition("://")
    if scheme in ("postgresql", "postgres") or _KEYWORDS.match(address):
        from ebbtide.archives.postgres import PostgresArchive

        return PostgresArchive(address, embedding)
    if not mark:
        from ebbtide.archives.file import FileArchive

        return FileArchive(address, embedding)
    if scheme in ("chroma", "chromas"):
        from ebbtide.archives.chroma import ChromaArchive

        host, port, collection = _chroma(address)
        return ChromaArchive(host, port, collection, embedding, ssl=scheme == "chromas")
    raise InputError(
        f"no archive is reached by {scheme}://; there are postgresql://, chroma:// and files",
        "input.field",
    )


def _chroma(address: str) -> tuple[str, int, str]:
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:  # a bracket that is not closed, a port that is none
        host, port = None, None
    if host and port is not None:
        collection = parts.path.strip("/") or "ebbtide"
        if "/" not in collection and collection.strip("."):
            return host, port, collection
    raise InputError("a Chroma archive is named chroma://host:port/collection", "input.field")
