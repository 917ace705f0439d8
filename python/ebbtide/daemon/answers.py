"""Writes that carry an idempotency key, and what came of them."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from ebbtide.errors import InputError

__all__ = ["Answers"]

_KEPT_SECONDS = 900.0
_KEPT = 50_000
"""Answers kept at most: minutes of writing at full speed, where a client's retries end
within one."""


@dataclass(frozen=True, slots=True)
class _Known:
    asked: bytes
    task: asyncio.Task[bytes]
    at: float


class Answers:
    """Runs each keyed write once; who asks again gets the first answer, errors included.

    The answers live as long as the process. That is enough, because a client that lost
    an answer names the process it wrote to, and another one refuses.
    """

    def __init__(self) -> None:
        """Begin with no answers."""
        self._known: OrderedDict[tuple[str, str], _Known] = OrderedDict()
        self._running: set[asyncio.Task[bytes]] = set()

    async def once(
        self,
        namespace: str,
        key: str | None,
        asked: bytes,
        work: Callable[[], Coroutine[Any, Any, bytes]],
    ) -> bytes:
        """The answer of ``work``, which runs at most once for a key.

        It is carried out to its end although its caller goes away.

        Args:
            namespace: The memory written to; keys of two memories are two keys.
            key: The caller's key; None runs it in any case.
            asked: The request, to notice a key that is used for another one.
            work: Makes the coroutine that writes.

        Raises:
            InputError: If the key came with another request before.
        """
        if key is None:
            return await asyncio.shield(self._started(work))
        asked = hashlib.sha256(asked).digest()
        known = self._known.get((namespace, key))
        if known is None:
            self._forget_old()
            known = _Known(asked, self._started(work), time.monotonic())
            self._known[namespace, key] = known
        elif known.asked != asked:
            message = "this idempotency key came with another request before; use a new one"
            raise InputError(message, "input.field")
        return await asyncio.shield(known.task)

    async def settled(self) -> None:
        """Wait until every write that was begun is over."""
        while self._running:
            await asyncio.wait(self._running)

    def _started(self, work: Callable[[], Coroutine[Any, Any, bytes]]) -> asyncio.Task[bytes]:
        task = asyncio.create_task(work())
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[bytes]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # seen, though nobody may be left to ask for it

    def _forget_old(self) -> None:
        oldest = time.monotonic() - _KEPT_SECONDS
        while self._known:
            first = next(iter(self._known.values()))
            if not first.task.done() or (first.at > oldest and len(self._known) < _KEPT):
                return
            self._known.popitem(last=False)
