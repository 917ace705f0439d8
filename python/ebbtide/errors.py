"""The one family of exceptions that ebbtide raises.

Every exception carries a stable machine-readable ``code``; the codes are listed
once, in the Rust core (``rust/core/src/error.rs``), and mapped here by class.
"""

from __future__ import annotations

__all__ = [
    "ConfigError",
    "EbbtideError",
    "ExternalError",
    "FingerprintError",
    "InputError",
    "NotFoundError",
    "SchemaVersionError",
    "StoreError",
]


class EbbtideError(Exception):
    """Base class: catch it to catch everything that ebbtide raises on purpose.

    Attributes:
        code: Stable identifier such as ``"config.unknown_key"``.
    """

    def __init__(self, message: str, code: str = "error") -> None:
        super().__init__(message)
        self.code = code


class ConfigError(EbbtideError):
    """A configuration key, value or model name cannot be used."""


class InputError(EbbtideError):
    """A turn, question or argument was refused; nothing was stored for it."""


class StoreError(EbbtideError):
    """The store file cannot be opened, locked, read or written."""


class SchemaVersionError(StoreError):
    """The store was written by a version whose schema this one does not know."""


class FingerprintError(StoreError):
    """The store was made with another analyser, embedder or token counter."""


class ExternalError(EbbtideError):
    """Something outside failed: a language model's endpoint, an archive's server."""


class NotFoundError(EbbtideError):
    """No turn, namespace or file by that name or id."""
