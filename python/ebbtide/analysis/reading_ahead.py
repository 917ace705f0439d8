"""Reading ahead: the next turns are analysed while the caller stores the last ones.

Chunks of turns go to readers, at most a few at a time; results come back in order.
A chunk is larger than a batch, for the embedder runs texts of one length together
and finds the more of them the more it sees. How turns fall into chunks changes
nothing: an analysis depends on its turn alone.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from ebbtide.analysis.facts import TurnFacts, TurnText
from ebbtide.threads import submitted

if TYPE_CHECKING:
    from ebbtide.analysis.analyser import Analyser, Analysis

__all__ = ["HereReaders", "Readers", "ThreadReaders", "read_ahead"]

CHUNK_TURNS = 256
"""Most turns of a chunk."""

CHUNK_CHARACTERS = 65_536
"""A chunk with more is closed: the vectors of a long text take much memory."""

FIRST_CHUNK = 64
"""Turns of the first chunk; each is twice the one before, so that work starts early."""

_SLICE = 64
"""Turns parsed in one go; between two, a reader can be stopped."""

_Item = TypeVar("_Item")


class Readers(Protocol):
    """What analyses chunks: threads of this process, or other processes.

    Attributes:
        ahead: Chunks to be under way beside the one whose result is awaited.
        chunk_turns: Most turns of a chunk.
    """

    ahead: int
    chunk_turns: int

    def begin(self, turns: Sequence[TurnText]) -> Callable[[], list[Analysis]]:
        """Start reading; the returned function waits for the result, or raises its error."""
        ...

    def close(self) -> None:
        """Drop what has not begun, and wait for the threads or processes to end."""
        ...


class ThreadReaders:
    """Two threads of this process.

    Both take tasks in the order they were given: a chunk's parse, then its forward
    passes. So one thread parses while the other embeds, and whichever is done first
    helps the other or goes on to the next chunk.
    """

    ahead = 1
    chunk_turns = CHUNK_TURNS

    def __init__(self, analyser: Analyser) -> None:
        """Threads start with the first chunk."""
        self._analyser = analyser
        self._stopped = threading.Event()
        self._executor = ThreadPoolExecutor(2, thread_name_prefix="ebbtide-read")

    def begin(self, turns: Sequence[TurnText]) -> Callable[[], list[Analysis]]:
        """Start reading; see :class:`Readers`."""
        facts = self._submit(self._facts, turns)
        passages = self._analyser.begin_passages(turns, self._submit)
        return lambda: self._analyser.joined(turns, facts.result(), passages())

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        return submitted(self._executor, function, *arguments)

    def _facts(self, turns: Sequence[TurnText]) -> list[TurnFacts]:
        facts: list[TurnFacts] = []
        for first in range(0, len(turns), _SLICE):
            if self._stopped.is_set():
                break  # nobody waits for the result
            facts += self._analyser.facts(turns[first : first + _SLICE])
        return facts

    def close(self) -> None:
        """Stop and join the threads."""
        self._stopped.set()
        self._executor.shutdown(wait=True, cancel_futures=True)


class HereReaders:
    """No thread at all: a chunk is read when its result is asked for.

    For a process that is one of several, each with a core of its own.
    """

    ahead = 0
    chunk_turns = CHUNK_TURNS

    def __init__(self, analyser: Analyser) -> None:
        """Nothing starts."""
        self._analyser = analyser

    def begin(self, turns: Sequence[TurnText]) -> Callable[[], list[Analysis]]:
        """What reads them; see :class:`Readers`."""
        return lambda: self._analyser.analyse_here(turns)

    def close(self) -> None:
        """Nothing to end."""


def read_ahead(
    items: Iterable[_Item], text_of: Callable[[_Item], TurnText | None], readers: Readers
) -> Iterator[tuple[_Item, Analysis | None]]:
    """Pair items with the analyses of their texts, in order.

    Args:
        items: Taken from in this thread, at most ``readers.ahead + 1`` chunks
            before they are given out.
        text_of: An item's text; None where it needs no analysis, and gets None.
        readers: Who analyses.

    Raises:
        Exception: What ``items`` or an analysis raised, after everything before it
            was given out.
    """
    chunks = _chunks(iter(items), text_of, readers.chunk_turns)
    under_way: deque[tuple[_Chunk[_Item], Callable[[], list[Analysis]]]] = deque()
    failure: Exception | None = None
    while failure is None:
        chunk, failure = next(chunks)
        if chunk.items:
            distinct = chunk.distinct()
            under_way.append((chunk, readers.begin(distinct) if distinct else list))
        while len(under_way) > (readers.ahead if failure is None else 0):
            chunk, wait = under_way.popleft()
            yield from chunk.paired(wait())
    if not isinstance(failure, StopIteration):
        raise failure


def _chunks(
    items: Iterator[_Item], text_of: Callable[[_Item], TurnText | None], most: int
) -> Iterator[tuple[_Chunk[_Item], Exception | None]]:
    """Chunks, the last one (maybe an empty one) with what ended the items."""
    size = min(FIRST_CHUNK, most)
    while True:
        chunk: _Chunk[_Item] = _Chunk([], [])
        characters = 0
        while len(chunk.items) < size and characters < CHUNK_CHARACTERS:
            try:
                item = next(items)
            except Exception as error:
                yield chunk, error
                return
            text = text_of(item)
            chunk.items.append(item)
            chunk.texts.append(text)
            characters += len(text.text) if text is not None else 0
        yield chunk, None
        size = min(2 * size, most)


@dataclass(frozen=True, slots=True)
class _Chunk(Generic[_Item]):
    """Items with their texts, side by side."""

    items: list[_Item]
    texts: list[TurnText | None]

    def distinct(self) -> list[TurnText]:
        """Every text once: equal turns are read once."""
        return list(dict.fromkeys(text for text in self.texts if text is not None))

    def paired(self, analyses: Sequence[Analysis]) -> Iterator[tuple[_Item, Analysis | None]]:
        """Each item with the analysis of its text, given those of ``distinct``."""
        by_text = dict(zip(self.distinct(), analyses, strict=True))
        for item, text in zip(self.items, self.texts, strict=True):
            yield item, None if text is None else by_text[text]
