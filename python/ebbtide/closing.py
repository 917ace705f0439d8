"""Things that hold something until they are closed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import NoReturn, Self

__all__ = ["Closing"]


class Closing(ABC):
    """A context manager by way of ``close``: leaving the block closes, whatever was raised."""

    @abstractmethod
    def close(self) -> None:
        """Free what is held."""

    def __enter__(self) -> Self:
        """Use as a context manager: closed at the end."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    def __reduce__(self) -> NoReturn:
        """Neither copied nor pickled: of two, each would close what the other still uses.

        Raises:
            TypeError: Always.
        """
        kind = type(self).__name__
        raise TypeError(f"a {kind} cannot be copied or pickled: share it, or open another one")
