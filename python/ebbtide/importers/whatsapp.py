"""WhatsApp: the text file of "Export chat", or the zip around it.

The file is written for people: dates as the phone shows them, in its language and
without a time zone, and notices among the messages. It is read twice: first for the
form of its dates, which only all of them together tell, then for its messages.
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from ebbtide.importers.failures import ExportError
from ebbtide.importers.files import Part, pieces
from ebbtide.importers.reading import Reading, Thread
from ebbtide.importers.texts import clean, digest
from ebbtide.importers.whatsapp_dates import DateOrders, Header, header_of
from ebbtide.importers.whatsapp_words import message_words, plain_name, split_sender
from ebbtide.types import Turn

__all__ = ["looks_like", "turns"]

_LONGEST = 8_000_000
"""Characters of one message; what is longer is no chat."""
_MINUTES = 256
"""Clock times for which equal messages are counted: the hour that comes twice in autumn."""
_TITLE = re.compile(
    r"(?:WhatsApp[ -]Chat (?:with|mit|-|con|com|avec|met)|Chat de WhatsApp con|"
    r"Conversa do WhatsApp com|(?:Conversation|Discussion) WhatsApp avec|"
    r"Chat WhatsApp con|WhatsApp-chat met)\s+",
    re.IGNORECASE,
)
_COPY = re.compile(r"\s*\(\d{1,3}\)$")


def looks_like(text: str) -> bool:
    """Whether one of the first lines is the beginning of a message."""
    return any(header_of(line.rstrip("\r")) for line in text.split("\n")[:5])


def turns(reading: Reading) -> Iterator[Turn]:
    """The turns, in the order of the file."""
    named = [part for part in reading.parts if part.name.removesuffix(".gz").endswith(".txt")]
    parts = named or (list(reading.parts) if len(reading.parts) == 1 else [])
    if not parts:
        words = 'there is no text file in it; use "Export chat" in WhatsApp'
        raise reading.error(words)
    for part in parts:
        title = _title(part)
        thread = reading.thread(f"whatsapp-{title}", title, key=f"whatsapp/{title}")
        if reading.wants(thread):
            yield from _Chat(reading, part, thread).turns()


def _title(part: Part) -> str:
    """What the chat is called, from the file's name; copies of a file have a number behind it."""
    stem = part.stem
    if stem == "_chat":  # on an iPhone only the archive has the name
        outer = part.path if part.packed or part.path.is_dir() else part.path.absolute().parent
        stem = Path(outer.name.removesuffix(".zip")).name or stem
    title = _COPY.sub("", _TITLE.sub("", clean(stem)))
    return title or clean(stem) or "chat"


@dataclass(slots=True)
class _Chat:
    """One file."""

    reading: Reading
    part: Part
    thread: Thread

    def turns(self) -> Iterator[Turn]:
        orders = self._orders()
        order = self.reading.options.date_order or orders.best()
        if self.reading.options.date_order is None and (doubt := orders.doubt()):
            self.reading.note(f"{self.part.place}: {doubt}")
        seen: OrderedDict[str, Counter[str]] = OrderedDict()
        before: datetime | None = None
        for header, body in self._messages(orders.form, order):
            sender, text, generated = split_sender(header.rest)
            if sender is None:
                self.reading.skip("system")
                continue
            words = message_words("\n".join([text, *body]), generated=generated)
            if not words.text:
                self.reading.skip(words.reason)
                continue
            before = self._placed(header.moment(order), before)
            name = digest(header.raw, sender, words.text)
            count = _count(seen, header.raw, name)
            yield self.reading.said(
                self.thread,
                name if count == 1 else f"{name}-{count}",
                words.text,
                speaker=plain_name(sender),
                timestamp=before.isoformat() if before else None,
            )

    def _orders(self) -> DateOrders:
        orders = DateOrders()
        for line in _lines(self.part, pieces(self.part)):
            header = header_of(line)
            if header is not None:
                orders.note(header)
        if orders.form is None:
            words = (
                "no line begins like a WhatsApp message, with a date, a time and a name; use "
                '"Export chat" in WhatsApp, without changing the file'
            )
            raise self.reading.error(words, self.part.place)
        return orders

    def _messages(self, form: str | None, order: str) -> Iterator[tuple[Header, list[str]]]:
        """Message by message: its first line, and the lines that go on."""
        header: Header | None = None
        body: list[str] = []
        length = 0
        for line in _lines(self.part, self.reading.text(self.part)):
            found = header_of(line)
            if found is not None and found.form == form and found.moment(order) is not None:
                if header is not None:
                    yield header, body
                header, body, length = found, [], 0
            elif header is not None:
                length += len(line) + 1
                if length > _LONGEST:
                    words = f"the message of {header.raw} has more than {_LONGEST:,} characters"
                    raise self.reading.error(words, self.part.place)
                body.append(line)
            elif clean(line.strip("\ufeff\u200e")):
                self.reading.skip("unknown")  # lines above the first message
        if header is not None:
            yield header, body

    def _placed(self, clock: datetime | None, before: datetime | None) -> datetime | None:
        """The clock time in its zone; in the hour that comes twice, time goes on."""
        zone = self.reading.options.timezone
        if clock is None or zone is None:
            return clock
        first, second = clock.replace(tzinfo=zone), clock.replace(tzinfo=zone, fold=1)
        if before is not None and first.timestamp() < before.timestamp() <= second.timestamp():
            return second
        return first


def _count(seen: OrderedDict[str, Counter[str]], clock: str, name: str) -> int:
    """How often this message came at this clock time, to tell equal ones apart."""
    counts = seen.setdefault(clock, Counter())
    counts[name] += 1
    if len(seen) > _MINUTES:
        seen.popitem(last=False)
    return counts[name]


def _lines(part: Part, texts: Iterator[str]) -> Iterator[str]:
    """Lines without their ends; other characters that break lines stay inside."""
    rest = ""
    for text in texts:
        *lines, rest = (rest + text).split("\n")
        for line in lines:
            yield line.removesuffix("\r")
        if len(rest) > _LONGEST:
            raise ExportError(f"a line has more than {_LONGEST:,} characters", part.place)
    if rest:
        yield rest.removesuffix("\r")
