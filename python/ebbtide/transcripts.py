"""Transcript files as streams of turns: JSON Lines of messages, and LoCoMo JSON."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, cast

from ebbtide.errors import InputError
from ebbtide.inputs import checked_text, readable
from ebbtide.mappings import NOTHING, turn_from
from ebbtide.messages import reason
from ebbtide.types import Turn

if TYPE_CHECKING:
    from ebbtide.evals.datasets import Conversation

__all__ = [
    "Lines",
    "Transcript",
    "TurnReader",
    "check_transcript",
    "read_lines",
    "read_transcripts",
    "split_messages",
    "stem_of",
]

_HEAD = 4096
_GZIP = b"\x1f\x8b"
_MARK = b"\xef\xbb\xbf"
"""The mark that Windows puts before UTF-8; files put together have it inside, too."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of a file that follow each other.

    Attributes:
        offset: First byte.
        first: Number of the first line, from 1.
        count: How many.
    """

    offset: int
    first: int
    count: int


class TurnReader(Protocol):
    """The turns of one conversation, in order, each with an external id."""

    @property
    def place(self) -> str:
        """Where the turn read last stands: file and line, or conversation and id."""

    @property
    def local(self) -> bool:
        """Whether that turn's id is unique within its file only."""

    @property
    def skipped(self) -> int:
        """Messages left out so far since they have no content."""

    def __iter__(self) -> Iterator[Turn]:
        """Read the conversation from its start.

        Raises:
            InputError: Saying what is wrong at ``place``.
        """


@dataclass(frozen=True, slots=True)
class Transcript:
    """One conversation of a file.

    Attributes:
        path: The file.
        name: Conversation id, for files that may hold several, else None.
        total: Messages in it, the empty ones not always left out.
        turns: Its turns.
    """

    path: Path
    name: str | None
    total: int
    turns: TurnReader


def read_transcripts(path: str | Path, *, qualified: bool = False) -> Iterator[Transcript]:
    """The conversations of a transcript file, one at a time.

    JSON Lines (one message a line) is one conversation; a LoCoMo or LongMemEval
    file has one for each of its samples. Both may be gzipped.

    Args:
        path: The file.
        qualified: Put the conversation's id before the ids of its turns, which
            come again in other conversations: ``conv-26/D1:3``.

    Raises:
        InputError: If there is no such file, or what is read of it has neither form.
    """
    file = Path(path)
    if not check_transcript(file):
        yield Transcript(file, None, _count_lines(file), _Messages(file))
        return
    from ebbtide.evals.datasets import iter_conversations

    for conversation in iter_conversations(file):
        prefix = f"{conversation.id}/" if qualified else ""
        turns = _Sample(file, conversation, prefix)
        yield Transcript(file, conversation.id, len(conversation.turns), turns)


def check_transcript(path: str | Path) -> bool:
    """Whether a file holds benchmark samples (True) or JSON Lines of messages (False).

    Told by its first line, and by its name only where that is inconclusive.

    Raises:
        InputError: If it cannot be opened.
    """
    file = Path(path)
    line = b""
    try:
        _check_file(file)
        with _opened(file) as stream:
            while not line and (more := stream.readline(_HEAD)):
                line = more.lstrip(_MARK + b" \t\r\n")
            if line.startswith(b"["):
                return True  # a whole LoCoMo file is one line: no need to read all of it
            if not line.endswith(b"\n"):
                line += stream.readline()
    except (gzip.BadGzipFile, EOFError, zlib.error):
        line = b""  # reading it says where it breaks
    except OSError as error:
        raise InputError(f"{file} cannot be read: {reason(error)}", "input.transcript") from error
    try:
        first = json.loads(line)
    except (ValueError, RecursionError):
        return file.name.endswith((".json", ".json.gz"))
    return isinstance(first, dict) and _is_sample(first)


def _check_file(file: Path) -> None:
    if file.is_file():
        return
    message = f"there is no transcript file at {file}"
    if file.is_dir():
        message = f"{file} is a folder; name files, or take it whole: `ebbtide replay --out`"
    elif file.exists():
        message = f"{file} is no file that can be read twice; write what it holds to one"
    raise InputError(message, "input.transcript")


def _is_sample(line: dict[str, Any]) -> bool:
    """Whether it is a benchmark's: a message may have fields of these names, but no such values."""
    of_locomo = isinstance(line.get("conversation"), dict)
    return of_locomo or isinstance(line.get("haystack_sessions"), list)


def split_messages(path: str | Path, field: str) -> dict[str, list[Lines]]:
    """Which lines of a JSON Lines file belong together, by a field of their messages.

    Args:
        path: The file; not packed, for its parts are read from their places.
        field: A field that every message has, text or a whole number.

    Returns:
        The lines by the field's value, in the order of each value's first line.

    Raises:
        InputError: If a line cannot be read or lacks the field: whose it is, nobody knows.
    """
    file = Path(path)
    found: dict[str, list[Lines]] = {}
    try:
        if _packed(file):
            message = f"{file} is packed; unpack it to have it split by {field!r}"
            raise InputError(message, "input.transcript")
        offset = 0
        with file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if _said(line):
                    value = _value_of(line, field, file, number)
                    runs = found.setdefault(value, [])
                    if runs and runs[-1].first + runs[-1].count == number:
                        runs[-1] = replace(runs[-1], count=runs[-1].count + 1)
                    else:
                        runs.append(Lines(offset, number, 1))
                offset += len(line)
    except OSError as error:
        raise InputError(f"{file} cannot be read: {reason(error)}", "input.transcript") from error
    return found


def _value_of(line: bytes, field: str, file: Path, number: int) -> str:
    try:
        value = _decoded(line).get(field)
    except InputError as error:
        raise InputError(f"{file}:{number}: {error}", error.code) from error
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and value:
        return checked_text(f"{file}:{number}: {field!r}", value)
    message = f"{file}:{number}: {field!r} must be text or a whole number to split by"
    raise InputError(message, "input.transcript")


def read_lines(path: str | Path, lines: Sequence[Lines]) -> TurnReader:
    """The messages on some lines of a file, as one conversation; see :func:`split_messages`."""
    return _Messages(Path(path), lines)


def stem_of(name: str) -> str:
    """A transcript's name without what such files end with."""
    return name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".json")


def _packed(path: Path) -> bool:
    with path.open("rb") as raw:
        return raw.read(2) == _GZIP


def _opened(path: Path) -> IO[bytes]:
    packed = _packed(path)
    return cast("IO[bytes]", gzip.open(path, "rb")) if packed else path.open("rb")


def _count_lines(path: Path) -> int:
    try:
        with _opened(path) as lines:
            return sum(1 for line in lines if _said(line))
    except (OSError, EOFError, zlib.error):
        return 0  # reading it again names the line


class _Messages:
    """JSON Lines; a message without an id is called ``<file stem>#<line>``."""

    def __init__(self, path: Path, some: Sequence[Lines] | None = None) -> None:
        self.place = path.name
        self.local = False
        self.skipped = 0
        self._path = path
        self._some = some
        self._stem = stem_of(readable(path.name))

    def __iter__(self) -> Iterator[Turn]:
        self.skipped = 0
        number = 0
        try:
            for number, line in self._lines():
                self.place = f"{self._path}:{number}"
                if not _said(line):
                    continue
                turn = self._turn(_decoded(line), number)
                if turn is None:
                    self.skipped += 1
                else:
                    yield turn
        except (OSError, EOFError, zlib.error) as error:
            self.place = f"{self._path}:{number + 1}"
            raise InputError(f"the file cannot be read on: {error}", "input.transcript") from error

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        with _opened(self._path) as file:
            if self._some is None:
                yield from enumerate(file, 1)
                return
            for run in self._some:
                file.seek(run.offset)
                for number in range(run.first, run.first + run.count):
                    yield number, file.readline()

    def _turn(self, message: dict[str, Any], number: int) -> Turn | None:
        given = [message[key] for key in message if key in ("text", "content")]
        said = (one for one in given if one not in NOTHING)
        content = next(said, None if given else ...)
        if content is None and not message.get("tool_calls"):
            return None
        turn = turn_from(message)
        if not turn.text.strip():
            return None
        if isinstance(turn.session_id, int) and not isinstance(turn.session_id, bool):
            turn = replace(turn, session_id=str(turn.session_id))
        # An empty id would make all such messages one.
        self.local = turn.external_id in (None, "")
        return replace(turn, external_id=f"{self._stem}#{number}") if self.local else turn


def _said(line: bytes) -> bool:
    """Whether there is anything on a line."""
    return bool(line.removeprefix(_MARK).strip())


def _decoded(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line.removeprefix(_MARK).rstrip().decode())
    except UnicodeDecodeError as error:
        message = f"the line is not UTF-8 at byte {error.start + 1}"
        raise InputError(message, "input.transcript") from error
    except json.JSONDecodeError as error:
        message = f"the line is not JSON: {error.msg} at character {error.pos + 1}"
        raise InputError(message, "input.transcript") from error
    except (ValueError, RecursionError) as error:  # a huge number, a deep list
        raise InputError(f"the line cannot be read: {error}", "input.transcript") from error
    if not isinstance(message, dict):
        words = f"a line must be a JSON object with `role` and `content`, not {_kind(message)}"
        raise InputError(words, "input.transcript")
    return message


def _kind(value: object) -> str:
    names = {list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


class _Sample:
    """One conversation of a benchmark file, already read."""

    local = True

    def __init__(self, path: Path, conversation: Conversation, prefix: str) -> None:
        self.place = f"{path}, conversation {conversation.id}"
        self.skipped = conversation.skipped_turns
        self._start = self.place
        self._turns = conversation.turns
        self._prefix = prefix

    def __iter__(self) -> Iterator[Turn]:
        for turn in self._turns:
            self.place = f"{self._start}, turn {turn.external_id}"
            yield turn.as_turn(prefix=self._prefix)
