"""Files of an export: one file, a folder or a zip archive, as pieces of text."""

from __future__ import annotations

import codecs
import gzip
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, cast

from ebbtide.importers.failures import ExportError

__all__ = ["Part", "parts_of", "pieces"]

_ZIP = b"PK\x03\x04"
_PIECE = 1 << 17
_SUFFIXES = (".json", ".jsonl", ".txt", ".html", ".gz")
_BROKEN = (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError, NotImplementedError)
"""What reading a damaged, encrypted or strangely packed archive raises."""


@dataclass(frozen=True, slots=True)
class Part:
    """One file of an export.

    Attributes:
        path: The file, folder or archive that was named.
        inner: Its path inside the folder or archive, with ``/``; the bare name of a
            file that was named itself.
        size: Bytes, unpacked; 0 where that is not known.
        packed: Whether it is in a zip archive.
    """

    path: Path
    inner: str
    size: int
    packed: bool

    @property
    def name(self) -> str:
        """Its file name."""
        return PurePosixPath(self.inner).name

    @property
    def stem(self) -> str:
        """Its file name without ``.gz`` and without the kind."""
        return PurePosixPath(self.name.removesuffix(".gz")).stem

    @property
    def place(self) -> str:
        """How errors name it."""
        return str(self.path) if self._alone else f"{self.path}/{self.inner}"

    @property
    def _alone(self) -> bool:
        return not self.packed and not self.path.is_dir()

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """Its bytes, unpacked."""
        if self.packed:
            with zipfile.ZipFile(self.path) as archive, archive.open(self.inner) as stream:
                yield stream
            return
        path = self.path if self._alone else self.path / self.inner
        with path.open("rb") as raw:
            gzipped = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            if not gzipped:
                yield raw
                return
            with gzip.open(raw) as stream:
                yield cast("IO[bytes]", stream)


def parts_of(path: Path) -> list[Part]:
    """The text files of an export, ordered by their path inside it.

    Raises:
        ExportError: If there is no such file, it is a damaged archive, or something in it
            leads out of it.
    """
    try:
        if path.is_dir():
            found = [
                Part(path, file.relative_to(path).as_posix(), file.stat().st_size, packed=False)
                for file in path.rglob("*")
                if file.is_file()
            ]
        elif path.exists() and not path.is_file():
            words = "it is no file that can be read twice; write what it holds to one"
            raise ExportError(words, str(path))
        elif not path.is_file():
            raise ExportError("there is no such file or folder", str(path))
        elif zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                found = [
                    Part(path, info.filename, info.file_size, packed=True)
                    for info in archive.infolist()
                    if not info.is_dir()
                ]
        else:
            with path.open("rb") as raw:
                if raw.read(len(_ZIP)) == _ZIP:
                    words = "it is a zip that is cut short or damaged; fetch it again"
                    raise ExportError(words, str(path))
            gzipped = path.name.endswith(".gz")
            return [Part(path, path.name, 0 if gzipped else path.stat().st_size, packed=False)]
    except _BROKEN as error:
        raise ExportError(f"the file cannot be opened: {error}", str(path)) from error
    for part in found:
        _stay_inside(part)
    kept = [part for part in found if part.name.endswith(_SUFFIXES) and not _is_debris(part)]
    return sorted(kept, key=lambda part: part.inner)


def _stay_inside(part: Part) -> None:
    """Refuse a link or a name by which an export reaches files that are not its own."""
    inner = PurePosixPath(part.inner.replace("\\", "/"))
    if part.packed:
        outside = inner.is_absolute() or ".." in inner.parts
    else:
        real = (part.path / part.inner).resolve()
        outside = not real.is_relative_to(part.path.resolve())
    if outside:
        words = f"it has something that leads out of it, {part.inner!r}: it is not read"
        raise ExportError(words, str(part.path))


def _is_debris(part: Part) -> bool:
    """What macOS leaves in archives beside each file."""
    return part.inner.startswith("__MACOSX/") or part.name.startswith("._")


def pieces(part: Part, read: Callable[[int], None] | None = None) -> Iterator[str]:
    """The text of a file, piece by piece; UTF-8, or UTF-16 with its mark.

    Args:
        part: The file.
        read: Told how many bytes were read, each time.

    Raises:
        ExportError: If it cannot be read on, or is not in such an encoding.
    """
    offset = 0
    try:
        with part.opened() as stream:
            data = stream.read(_PIECE)
            marks = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
            encoding = "utf-16" if data.startswith(marks) else "utf-8-sig"
            decoder = codecs.getincrementaldecoder(encoding)("strict")
            while data:
                if read is not None:
                    read(len(data))
                if text := decoder.decode(data):
                    yield text
                offset += len(data)
                data = stream.read(_PIECE)
            if text := decoder.decode(b"", final=True):
                yield text
    except UnicodeDecodeError as error:
        words = f"the text is not {error.encoding.upper()} near byte {offset + error.start + 1:,}"
        raise ExportError(f"{words}; save the file as UTF-8", part.place) from error
    except ExportError:
        raise
    except _BROKEN as error:
        raise ExportError(f"the file cannot be read on: {error}", part.place) from error
