"""What is raised where an optional part's packages are not installed."""

from __future__ import annotations

from typing import Any

from ebbtide.errors import ConfigError

__all__ = ["MissingExtraError"]


class MissingExtraError(ConfigError, ImportError):
    """A package of an optional part is missing; an ``ImportError`` to whoever imports it."""

    def __init__(self, error: ImportError, extra: str) -> None:
        """Say which extra brings the package that ``error`` is about."""
        missing = (error.name or extra).partition(".")[0]
        message = f'{missing} is not installed: pip install "ebbtide[{extra}]"'
        super().__init__(message, "config.model_missing")
        self._given = missing, extra

    def __reduce__(self) -> tuple[Any, ...]:
        """Exceptions are otherwise made again from their message alone."""
        missing, extra = self._given
        return type(self), (ImportError(name=missing), extra)
