"""The way in: an export as turns that ``ebbtide.replay`` stores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import tzinfo
from itertools import chain, groupby
from pathlib import Path
from zoneinfo import ZoneInfo

from ebbtide.errors import InputError
from ebbtide.importers.detection import FORMATS, MODULES, detect
from ebbtide.importers.failures import ExportError
from ebbtide.importers.files import Part, parts_of
from ebbtide.importers.reading import NAMED, Options, Reading
from ebbtide.importers.whatsapp_dates import ORDERS
from ebbtide.messages import shown
from ebbtide.types import Turn

__all__ = ["Export", "ExportPart", "read"]


class Export:
    """The turns of an export, oldest conversation first; reading starts anew each time.

    Every turn has its conversation as ``session_id`` and an ``external_id`` that is the
    same in a later export, so importing again adds what is new. ``metadata`` names the
    ``source`` and the conversation's ``title``.

    Attributes:
        format: Name of the format.
        path: The file, folder or archive.
        place: Where the turn read last stands.
        local: Whether that turn's id is unique within its file only.
        stop: Asked while conversations are put into order; once true, reading ends.
        advanced: Called whenever another piece of the file was read.
    """

    def __init__(self, format: str, path: Path, options: Options, parts: list[Part]) -> None:  # noqa: A002
        """Use :func:`read` instead."""
        self.format = format
        self.path = path
        self.stop: Callable[[], bool] = lambda: False
        self.advanced: Callable[[], None] = lambda: None
        self.place = str(path)
        self._options = options
        self._parts = parts
        self._reading = self._new()
        self._begun: Iterator[Turn] | None = None

    def __iter__(self) -> Iterator[Turn]:
        """Read it from the start.

        Raises:
            InputError: If it cannot be read on, naming the place, or if no
                conversation is called as asked; the turns before were given.
        """
        begun, self._begun = self._begun, None
        return self._turns() if begun is None else begun

    def peek(self) -> Turn | None:
        """The first turn, which the next reading gives again; None where there is none.

        Raises:
            InputError: As reading does.
        """
        turns = iter(self)
        first = next(turns, None)
        self._begun = iter(()) if first is None else chain((first,), turns)
        return first

    def _turns(self) -> Iterator[Turn]:
        self._reading = reading = self._new()
        try:
            for turn in MODULES[self.format].turns(reading):
                self.place = f"{self.path}, message {turn.external_id}"
                yield turn
        except ExportError as error:
            self.place = error.place
            raise InputError(str(error), error.code) from error.__cause__
        self.place = str(self.path)
        if not reading.seen and reading.options.conversation is not None and not self.stop():
            known = ", ".join(reading.conversations[:NAMED]) or "none"
            more = ", …" if len(reading.conversations) > NAMED else ""
            message = (
                f"{self.path}: no conversation is called {reading.options.conversation!r}; "
                f"there are: {known}{more}"
            )
            raise InputError(message, "input.transcript")

    @property
    def local(self) -> bool:
        """Whether the id of the turn read last is unique within its file only."""
        return self._reading.local

    @property
    def skips(self) -> Counter[str]:
        """Messages left out so far, by reason; ``REASONS`` explains them."""
        return self._reading.skips

    @property
    def skipped(self) -> int:
        """Messages left out so far."""
        return self._reading.skips.total()

    @property
    def notes(self) -> list[str]:
        """Guesses that were made and dates that could not be read, as sentences."""
        return self._reading.told()

    @property
    def fraction(self) -> float | None:
        """How much of the export was read, 0 to 1; None where its size is not known."""
        total = sum(part.size for part in self._parts)
        return min(self._reading.bytes_read / total, 1.0) if total else None

    def by_conversation(self) -> Iterator[ExportPart]:
        """Its conversations, one after the other; each is to be read before the next."""
        for name, turns in groupby(self, key=lambda turn: turn.session_id or ""):
            yield ExportPart(self, name, turns)

    def _new(self) -> Reading:
        return Reading(
            self.format,
            self._parts,
            self._options,
            stopped=lambda: self.stop(),
            ticked=lambda: self.advanced(),
            place=str(self.path),
        )


class ExportPart:
    """One conversation of an export, to be read once; ``replay`` takes it as it takes all.

    Attributes:
        name: The conversation's id.
    """

    def __init__(self, export: Export, name: str, turns: Iterator[Turn]) -> None:
        """Made by :meth:`Export.by_conversation`."""
        self.name = name
        self._export = export
        self._turns = turns

    def __iter__(self) -> Iterator[Turn]:
        """Its turns."""
        return self._turns

    @property
    def place(self) -> str:
        """Where the turn read last stands."""
        return self._export.place

    @property
    def local(self) -> bool:
        """Whether that turn's id is unique within its file only."""
        return self._export.local

    @property
    def skipped(self) -> int:
        """Always 0: the export counts what was left out of all its conversations."""
        return 0


def read(
    format: str,  # noqa: A002
    path: str | Path,
    *,
    conversation: str | None = None,
    timezone: str | tzinfo | None = None,
    date_order: str | None = None,
) -> Export:
    """An export as turns; nothing but its list of files is read yet.

    Args:
        format: One of ``FORMATS``, or ``auto``.
        path: The file, or the zip archive or folder of the whole export.
        conversation: Only the conversation with this id or title.
        timezone: Name of the time zone that clock times without one were read off in
            (WhatsApp), and whose days count (Gemini). Without it WhatsApp's times
            stay without a zone, which a memory reads as UTC.
        date_order: ``dmy``, ``mdy`` or ``ymd``, for WhatsApp; found out by default.

    Raises:
        InputError: If there is no such file, format, time zone or order.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "WhatsApp Chat with Ana.txt"
        >>> _ = path.write_text("31/12/24, 21:41 - Ana: We land on 4 March")
        >>> [(turn.speaker, turn.text, turn.timestamp) for turn in read("whatsapp", path)]
        [('Ana', 'We land on 4 March', '2024-12-31T21:41:00')]
    """
    file = Path(path)
    if format != "auto" and format not in FORMATS:
        words = f"no format is called {shown(format)}; there are auto, {', '.join(FORMATS)}"
        raise InputError(words, "input.field")
    if date_order is not None and date_order not in ORDERS:
        words = f"date_order is one of {', '.join(ORDERS)}, not {shown(date_order)}"
        raise InputError(words, "input.field")
    options = Options(conversation, _zone(timezone), date_order)
    try:
        name = detect(file) if format == "auto" else format
        return Export(name, file, options, parts_of(file))
    except ExportError as error:
        raise InputError(str(error), error.code) from error.__cause__


def _zone(name: str | tzinfo | None) -> tzinfo | None:
    if name is None or isinstance(name, tzinfo):
        return name
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError, TypeError) as error:
        words = f"no time zone is called {shown(name)}; take a name such as Europe/Lisbon"
        raise InputError(words, "input.field") from error
