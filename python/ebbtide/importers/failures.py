"""What goes wrong in a file, and where."""

from __future__ import annotations

from typing import Any

from ebbtide.errors import InputError

__all__ = ["ExportError"]


class ExportError(InputError):
    """A file that cannot be read; callers of the package get a plain ``InputError``.

    Attributes:
        place: File, line or conversation; the message starts with it.
    """

    def __init__(self, words: str, place: str) -> None:
        super().__init__(f"{place}: {words}", "input.transcript")
        self.place = place
        self._words = words

    def __reduce__(self) -> tuple[Any, ...]:
        """Exceptions are otherwise made again from their message alone."""
        return type(self), (self._words, self.place)
