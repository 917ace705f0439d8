"""JSON of any size read value by value: what is held is the value at hand."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any

from ebbtide.importers.failures import ExportError

__all__ = ["JsonStream", "Pair"]

Pair = tuple[str, Any]

_SPACE = " \t\r\n"
_LARGEST = 256_000_000
"""Characters of one value, a conversation say; more would not fit into memory."""
_TAIL = 16
"""Characters before the end of what was read that may belong to a cut-off token."""


class JsonStream:
    """One or several JSON documents, one behind the other (JSON Lines is that, too).

    Python's own decoder reads each value, so a value is held whole; the arrays and
    objects around it are walked. Where the decoder stops because the text read so
    far ends, the text is doubled and the value read again.

    Args:
        chunks: The text, in pieces of any length.
        place: The file's name, for errors.
    """

    def __init__(self, chunks: Iterator[str], place: str) -> None:
        self._chunks = chunks
        self._place = place
        self._text = ""
        self._at = 0
        self._ended = False
        self._lines = 1
        self._column = 0
        self._decode = json.JSONDecoder(parse_constant=lambda _: None).raw_decode

    def peek(self) -> str:
        """The next character that is no space; empty at the end."""
        while True:
            text, at = self._text, self._at
            while at < len(text) and text[at] in _SPACE:
                at += 1
            self._at = at
            if at < len(text):
                return text[at]
            if not self._more():
                return ""

    def value(self) -> Any:
        """The next value, whole.

        Raises:
            ExportError: If there is none, or it is too large to be held.
        """
        self.peek()
        while True:
            try:
                value, end = self._decode(self._text, self._at)
            except json.JSONDecodeError as error:
                beyond = error.pos - self._at  # reading on moves the value to the front
                if self._cut_off(error) and self._more(double=True):
                    continue
                raise self.error(f"not valid JSON: {error.msg}", self._at + beyond) from None
            except RecursionError:
                raise self.error("the JSON is nested too deeply") from None
            except ValueError as error:  # a number of thousands of digits
                raise self.error(f"unreadable JSON: {error}") from None
            if end == len(self._text) and self._text[end - 1].isalnum() and self._more():
                continue  # a number may go on
            self._at = end
            return value

    def documents(self) -> Iterator[Any]:
        """Every document; one that is an array is given element by element."""
        while (mark := self.peek()) != "":
            if mark == "[":
                yield from self.items()
            else:
                yield self.value()

    def items(self) -> Iterator[Any]:
        """The elements of the array that comes next."""
        self._take("[")
        if self.peek() == "]":
            self._at += 1
            return
        while True:
            yield self.value()
            if self._take(",", "]") == "]":
                return

    def pairs(self, streamed: Collection[str] = ()) -> Iterator[Pair]:
        """Names and values of the object that comes next.

        Args:
            streamed: Names whose arrays are given as iterators; each is read to its
                end before the next pair.
        """
        self._take("{")
        if self.peek() == "}":
            self._at += 1
            return
        while True:
            if self.peek() != '"':
                raise self.error("not valid JSON: a name in double quotes is expected")
            name = self.value()
            self._take(":")
            if name in streamed and self.peek() == "[":
                items = self.items()
                yield name, items
                for _ in items:
                    pass
            else:
                yield name, self.value()
            if self._take(",", "}") == "}":
                return

    def error(self, words: str, at: int | None = None) -> ExportError:
        """An error that names the line and column of ``at``, or of what comes next."""
        at = self._at if at is None else at
        before = self._text.rfind("\n", 0, at)
        column = at - before if before >= 0 else self._column + at + 1
        line = self._lines + self._text.count("\n", 0, at)
        return ExportError(words, f"{self._place}, line {line}, column {column}")

    def _take(self, *marks: str) -> str:
        found = self.peek()
        if found not in marks or not found:
            shown = repr(found) if found else "the end of the file"
            wanted = " or ".join(repr(mark) for mark in marks)
            raise self.error(f"not valid JSON: {wanted} is expected, not {shown}")
        self._at += 1
        return found

    def _cut_off(self, error: json.JSONDecodeError) -> bool:
        """Whether more text may mend it."""
        if self._ended:
            return False
        if len(self._text) - self._at > _LARGEST:
            raise self.error(f"a value has more than {_LARGEST:,} characters")
        return error.msg.startswith("Unterminated") or error.pos > len(self._text) - _TAIL

    def _more(self, *, double: bool = False) -> bool:
        """Read on, dropping what is done with; False at the end."""
        done, rest = self._text[: self._at], self._text[self._at :]
        if done:
            newline = done.rfind("\n")
            self._column = len(done) - newline - 1 if newline >= 0 else self._column + len(done)
            self._lines += done.count("\n")
        pieces, wanted = [rest], len(rest) if double else 1
        while wanted > 0 and not self._ended:
            piece = next(self._chunks, None)
            if piece is None:
                self._ended = True
            else:
                pieces.append(piece)
                wanted -= len(piece)
        self._text, self._at = "".join(pieces), 0
        return len(self._text) > len(rest)
