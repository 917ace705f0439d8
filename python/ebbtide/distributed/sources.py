"""Which conversations there are: files, directories and patterns, in one fixed order."""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ebbtide.errors import EbbtideError, InputError
from ebbtide.inputs import readable
from ebbtide.messages import reason, shown
from ebbtide.transcripts import (
    Lines,
    TurnReader,
    check_transcript,
    read_lines,
    read_transcripts,
    split_messages,
    stem_of,
)
from ebbtide.types import Turn

__all__ = ["Reader", "Source", "find_files", "list_sources"]

_ENDINGS = (".jsonl", ".json", ".jsonl.gz", ".json.gz")


@dataclass(frozen=True, slots=True)
class Source:
    """One conversation and where it stands.

    Attributes:
        conversation: Its name: the file's, below the folder that all files share,
            and within a file that holds several its own id behind it. No other
            conversation has it.
        file: The file's name below that folder.
        path: The file.
        data_sha256: Of the file.
        place: Which one it is of a file of benchmark samples, from 0.
        lines: Its lines, where a file was split by a field.
        failure: Message and code of what makes the file unreadable as a whole.
    """

    conversation: str
    file: str
    path: Path
    data_sha256: str
    place: int | None = None
    lines: tuple[Lines, ...] | None = None
    failure: tuple[str, str] | None = None


def find_files(given: Iterable[str | Path], *, but: Path | None = None) -> list[Path]:
    """The files that are meant, each once, ordered by path.

    Args:
        given: Files; directories, of which everything below that ends like a
            transcript is taken, hidden files left out; patterns like ``2024/**/*.jsonl``.
        but: An absolute path; what is below it is left out.

    Raises:
        InputError: ``input.transcript``: one of them is, or leads to, no file;
            ``input.field``: it is no path.
    """
    found: set[Path] = set()
    for one in given:
        if not isinstance(one, str | os.PathLike):
            raise InputError(f"a transcript is named by its path, not {shown(one)}", "input.field")
        try:
            files = _files(Path(one))
        except OSError as error:
            message = f"{one} cannot be read: {reason(error)}"
            raise InputError(message, "input.transcript") from error
        if not files:
            raise InputError(f"there is no transcript file at {one}", "input.transcript")
        found.update(Path(os.path.abspath(file)) for file in files)  # noqa: PTH100
    if but is not None:
        found = {path for path in found if not path.is_relative_to(but)}
    if not found:
        raise InputError("name at least one transcript", "input.transcript")
    return sorted(found, key=lambda path: path.parts)


def _files(path: Path) -> list[Path]:
    """The files that a path or a pattern names, or that are below a directory."""
    if path.is_dir():
        return list(_below(path))
    if path.exists() or not glob.has_magic(str(path)):
        return [path] if path.is_file() else []
    named = glob.glob(str(path), recursive=True)  # noqa: PTH207
    return [file for file in map(Path, named) if file.is_file()]


def _below(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if not hidden and path.name.endswith(_ENDINGS) and path.is_file():
            yield path


def list_sources(files: Sequence[Path], split_by: str | None = None) -> Iterator[Source]:
    """The conversations of all files, in order; a file that cannot be read is one with a failure.

    A name that came before gets ``#2``, ``#3`` and so on, whichever file it is from:
    ``a.json`` with a sample ``x`` and ``a/x.jsonl`` would both be ``a/x``.

    Args:
        files: Absolute paths, ordered.
        split_by: The field that tells the conversations of a JSON Lines file apart.
    """
    from ebbtide.evals.datasets.fields import UniqueNames
    from ebbtide.evals.provenance import file_sha256

    root = Path(os.path.commonpath([path.parent for path in files]))
    named = [readable(path.relative_to(root).as_posix()) for path in files]
    stems = Counter(map(stem_of, named))
    unique = UniqueNames()
    for path, file in zip(files, named, strict=True):
        name = stem_of(file) if stems[stem_of(file)] == 1 else file
        whole = Source(name, file, path, "")
        try:
            whole = replace(whole, data_sha256=file_sha256(path))
            found = list(_within(whole, split_by))
        except EbbtideError as error:
            found = [replace(whole, failure=(str(error), error.code))]
        for source in found:
            yield replace(source, conversation=unique(source.conversation))


def _within(whole: Source, split_by: str | None) -> Iterator[Source]:
    if check_transcript(whole.path):
        for place, transcript in enumerate(read_transcripts(whole.path)):
            name = f"{whole.conversation}/{readable(transcript.name or '')}"
            yield replace(whole, conversation=name, place=place)
    elif split_by is None:
        yield whole
    else:
        for value, lines in split_messages(whole.path, split_by).items():
            name = f"{whole.conversation}/{value}"
            yield replace(whole, conversation=name, lines=tuple(lines))


class Reader:
    """Opens conversations; samples of a file that are asked for in order cost one pass.

    What is read must be what was listed: behind the last turn of a conversation the file
    is compared with its hash, once for as long as the system says that it is untouched.
    """

    def __init__(self) -> None:
        """Nothing is open yet."""
        self._same: dict[Path, tuple[str, tuple[int, ...]]] = {}
        self._file: tuple[Path, str] | None = None
        self._next = 0
        self._samples: Iterator[TurnReader] = iter(())

    def turns(self, source: Source) -> TurnReader:
        """The turns of a conversation; behind them an error where the file has changed.

        Raises:
            InputError: If its file cannot be read.
        """
        if source.failure is not None:
            raise InputError(*source.failure)
        return _Listed(self._opened(source), lambda: self._check(source))

    def _check(self, source: Source) -> None:
        """Refuse a file that is not what it was when it was listed."""
        from ebbtide.evals.provenance import file_sha256

        path = source.path
        try:
            state = _state(path)
            if self._same.get(path) == (source.data_sha256, state):
                return
            # Changed again meanwhile, it would be known by an old hash.
            sound = file_sha256(path) == source.data_sha256 and _state(path) == state
        except (OSError, EbbtideError):
            sound = False
        if not sound:
            message = "the file was changed while it was replayed: run it again"
            raise InputError(message, "input.transcript")
        self._same[path] = source.data_sha256, state

    def _opened(self, source: Source) -> TurnReader:
        if source.lines is not None:
            return read_lines(source.path, source.lines)
        if source.place is None:
            return next(read_transcripts(source.path)).turns
        return self._sample(source)

    def _sample(self, source: Source) -> TurnReader:
        assert source.place is not None
        if self._file != (source.path, source.data_sha256) or source.place < self._next:
            self._file = (source.path, source.data_sha256)
            self._samples = (found.turns for found in read_transcripts(source.path))
            self._next = 0
        for turns in self._samples:
            self._next += 1
            if self._next > source.place:
                return turns
        message = f"{source.path} holds no conversation {source.place + 1} any more"
        raise InputError(message, "input.transcript")


def _state(path: Path) -> tuple[int, ...]:
    """What the system says of a file; another one after every change."""
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


class _Listed:
    """A conversation's turns, and behind them a look at the file that they are from."""

    def __init__(self, turns: TurnReader, check: Callable[[], None]) -> None:
        self._turns = turns
        self._check = check

    @property
    def place(self) -> str:
        return self._turns.place

    @property
    def local(self) -> bool:
        return self._turns.local

    @property
    def skipped(self) -> int:
        return self._turns.skipped

    def __iter__(self) -> Iterator[Turn]:
        yield from self._turns
        self._check()
