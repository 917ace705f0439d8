"""Turns on their way into a memory: checked, read ahead, stored in batches."""

from __future__ import annotations

import json
import logging
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ebbtide.analysis.facts import TurnText
from ebbtide.errors import EbbtideError
from ebbtide.inputs import Prepared, Stamp, prepare
from ebbtide.mappings import refused, turn_from
from ebbtide.moments import stored_moment
from ebbtide.observing import name_of
from ebbtide.types import Turn, WriteReport

if TYPE_CHECKING:
    from ebbtide.analysis.analyser import Analysis
    from ebbtide.analysis.reading_ahead import Readers
    from ebbtide.llm.utility import Assessment

__all__ = [
    "BATCH",
    "BackgroundFlush",
    "Intake",
    "Item",
    "analysed",
    "for_core",
    "stored_input",
    "take_in",
    "text_of",
]

_LOG = logging.getLogger(__name__)

BATCH = 64
"""Turns committed together by ``add_many``."""

_QUIET_SECONDS = 0.02
"""Journalled turns are analysed once no more came for so long."""

_BURST = 256
"""With so many journalled turns waiting, analysis begins in any case."""


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """One turn off a caller's iterable.

    Attributes:
        intake: Where it goes.
        turn: The checked turn; None where it has nothing that was not said before.
        known: A turn by its external id is stored, or on its way.
    """

    intake: Intake
    turn: Prepared | None
    known: bool = False

    @property
    def text(self) -> TurnText | None:
        """What there is to analyse."""
        return None if self.turn is None or self.known else text_of(self.turn)


class Intake:
    """One memory's way in: which turns it knows, and how it stores a batch.

    Attributes:
        on_the_way: Texts of turns that were read and are not stored yet, by external id.
    """

    def __init__(
        self,
        knows: Callable[[str], bool],
        store: Callable[[list[tuple[Any, ...]]], WriteReport],
        max_chars: int,
        assess: Callable[[Prepared], Assessment | None] | None = None,
    ) -> None:
        """Name the memory's functions.

        Args:
            knows: Whether a turn of an external id was stored.
            store: Stores turns in the form of :func:`for_core`, in one transaction.
            max_chars: Longest turn.
            assess: What a language model says of a turn's utility, where one is asked.
        """
        self._assess = assess
        self._knows = knows
        self._store = store
        self._max_chars = max_chars
        self.on_the_way: dict[str, str] = {}

    def read(self, turns: Iterable[Turn | Mapping[str, Any]]) -> Iterator[Item]:
        """Check turns, one after the other.

        Raises:
            InputError: Naming the turn that is unusable.
            Exception: What the iterable raises.
        """
        for place, given in enumerate(turns):
            try:
                turn = prepare(turn_from(given), max_chars=self._max_chars)
            except EbbtideError as error:
                raise refused(error, place) from error
            yield Item(self, turn, turn is not None and self._known(turn))

    def _known(self, turn: Prepared) -> bool:
        # A known turn needs no analysis; the core would refuse it again.
        if turn.external_id is None:
            return False
        if turn.external_id in self.on_the_way or self._knows(turn.external_id):
            return True
        self.on_the_way[turn.external_id] = turn.text
        return False

    def store(self, batch: Sequence[tuple[Item, Analysis | None]]) -> WriteReport:
        """Commit a batch."""
        known = sum(item.known for item, _ in batch)
        new = [
            (item.turn, analysis)
            for item, analysis in batch
            if item.turn is not None and analysis is not None
        ]
        assess = self._assess or _nothing
        report = self._store([for_core(turn, found, assess(turn)) for turn, found in new])
        for turn, _ in new:
            self.on_the_way.pop(turn.external_id or "", None)
        return WriteReport(duplicates=known) + report


def take_in(
    items: Iterable[Item], readers: Readers, batch_size: int
) -> Iterator[tuple[Intake, WriteReport, int]]:
    """Store items in order, in batches; what comes next is analysed meanwhile.

    Args:
        items: Turns, maybe of several memories one after the other.
        readers: Who analyses.
        batch_size: Most items committed together.

    Yields:
        After each batch: whose it was, its report, and how many items it had.

    Raises:
        Exception: What reading or analysing an item raised; those before it are stored.
    """
    from ebbtide.analysis.reading_ahead import read_ahead

    stream = read_ahead(items, lambda item: item.text, readers)
    batch: list[tuple[Item, Analysis | None]] = []
    failure: Exception | None = None
    while failure is None:
        try:
            item, analysis = next(stream)
        except Exception as error:
            failure = error
        else:
            if batch and batch[0][0].intake is not item.intake:
                yield _stored(batch)
                batch = []
            batch.append((item, analysis))
        if batch and (failure is not None or len(batch) >= batch_size):
            yield _stored(batch)
            batch = []
    if not isinstance(failure, StopIteration):
        raise failure


def _stored(batch: list[tuple[Item, Analysis | None]]) -> tuple[Intake, WriteReport, int]:
    intake = batch[0][0].intake
    return intake, intake.store(batch), len(batch)


def analysed(
    turns: Iterable[tuple[int, Prepared]],
    readers: Readers,
    assess: Callable[[int, Prepared], Assessment | None],
) -> Iterator[list[tuple[int, tuple[Any, ...]]]]:
    """Stored turns with their ids, analysed, in batches in the form that the core reads."""
    from ebbtide.analysis.reading_ahead import read_ahead

    batch: list[tuple[int, tuple[Any, ...]]] = []
    for (number, turn), analysis in read_ahead(turns, lambda item: text_of(item[1]), readers):
        assert analysis is not None
        batch.append((number, for_core(turn, analysis, assess(number, turn))))
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def text_of(turn: Prepared) -> TurnText:
    """A turn as the analysis takes it."""
    return TurnText(turn.text, turn.role, turn.speaker, turn.moment)


def for_core(
    turn: Prepared, analysis: Analysis, assessment: Assessment | None = None
) -> tuple[Any, ...]:
    """An analysed turn in the form that the core reads."""
    said = None if assessment is None else assessment.for_core()
    return turn, analysis.facts, list(analysis.passages), list(analysis.card_vectors), said


def _nothing(_: Prepared) -> None:
    return None


def stored_input(row: Mapping[str, Any]) -> Prepared:
    """A stored turn as the analysis takes it."""
    turn = Turn._from_core(row)
    stamp = None
    if row["timestamp"] is not None:
        stamp = Stamp(row["timestamp"], row["utc_micros"], row["naive_timestamp"])
    return Prepared(
        text=turn.text,
        role=turn.role,
        speaker=turn.speaker,
        stamp=stamp,
        session_id=turn.session_id,
        external_id=turn.external_id,
        provenance=None if turn.provenance is None else json.dumps(dict(turn.provenance)),
        metadata=row["metadata"],
        received_at=0,
        moment=stored_moment(row),
    )


class BackgroundFlush:
    """Analyses journalled turns in a thread of its own, once a burst of them is over.

    Analysis holds Python's lock for milliseconds at a time: begun at once, it would
    slow down the very calls that do not want to wait for it.
    """

    def __init__(self, flush: Callable[[], None]) -> None:
        """Start the thread.

        Args:
            flush: Takes in every journalled turn; a method, whose object is not kept alive:
                the thread ends with it.

        Raises:
            RuntimeError: If no thread can be started.
        """
        self._flush = weakref.WeakMethod(flush, lambda _: self._end(given_up=True))
        self._waiting = 0
        self._stopping = False
        self._given_up = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="ebbtide-flush", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Another turn was journalled."""
        with self._changed:
            self._waiting += 1
            if self._waiting == 1:
                self._changed.notify()

    def stop(self, *, finish: bool = True) -> None:
        """End it.

        Args:
            finish: Wait until what is pending is taken in; an interrupt ends the waiting.
        """
        self._end(given_up=not finish)
        if finish:
            try:
                self._thread.join()
            except BaseException:
                self._end(given_up=True)
                raise

    def _end(self, *, given_up: bool) -> None:
        with self._changed:
            self._stopping = True
            self._given_up = given_up
            self._changed.notify()

    def _run(self) -> None:
        while self._wait():
            flush = self._flush()
            if flush is None:
                return
            try:
                flush()
            except Exception as error:  # a caller's embedder may raise anything
                if self._given_up:  # the memory was closed meanwhile
                    return
                # The turns stay journalled; the next call that needs their
                # analysis tries again and raises the error where it is seen.
                name = name_of(error)
                fields = {"event": "flush.failed", "error": name}
                _LOG.warning("journalled turns wait for another try [%s]", name, extra=fields)
            # Where nobody else has the memory any more, it goes here.
            del flush

    def _wait(self) -> bool:
        """Until there is something to do; False where all is done and it shall end."""
        with self._changed:
            while not self._waiting and not self._stopping:
                self._changed.wait()
            seen = 0
            while seen < self._waiting < _BURST and not self._stopping:
                seen = self._waiting
                self._changed.wait(_QUIET_SECONDS)
            found, self._waiting = self._waiting > 0, 0
            return found and not self._given_up
