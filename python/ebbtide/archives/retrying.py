"""Bounded retries: a server that is away for a moment is asked again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from ebbtide.archives.base import UnusableError
from ebbtide.errors import ExternalError

__all__ = ["Retry"]

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Retry:
    """How often and how patiently a server that cannot be used is asked again.

    Attributes:
        attempts: Calls at most, the first included.
        first: Seconds before the second call; doubled each time.
        most: Seconds between two calls at most.
        sleep: Waits; replaced in tests.
    """

    attempts: int = 4
    first: float = 0.5
    most: float = 8.0
    sleep: Callable[[float], None] = time.sleep

    def __call__(
        self, work: Callable[_Given, _Result], *given: _Given.args, **named: _Given.kwargs
    ) -> _Result:
        """Call ``work``, again where the archive was unavailable and may be back.

        Every call to an archive may be repeated: it does nothing a second time. So may
        opening one: ``Retry()(open_archive, address)``.

        Raises:
            ExternalError: The last one, after ``attempts`` calls.
        """
        pause = self.first
        for _ in range(self.attempts - 1):
            try:
                return work(*given, **named)
            except ExternalError as error:
                if error.code != "archive.unavailable" or isinstance(error, UnusableError):
                    raise
            self.sleep(min(pause, self.most))
            pause *= 2
        return work(*given, **named)
