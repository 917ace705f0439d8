"""Files that somebody named: there whole or not at all, with an error that says what to do."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from ebbtide.errors import InputError, StoreError
from ebbtide.messages import reason

__all__ = [
    "into_place",
    "made_whole",
    "read_json",
    "write_json",
    "write_text",
    "write_whole",
    "writing",
]

_Kind = TypeVar("_Kind")


@contextmanager
def made_whole(path: Path) -> Iterator[Path]:
    """Where to write a file that then takes its place; its folder is made where it is missing.

    Raises:
        StoreError: ``store.open``: it cannot be written.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with _replacing(path) as part:
            yield part


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    part = path.with_name(f"{path.name}.tmp")
    try:
        yield part
        into_place(part, path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise


def write_whole(path: Path, content: bytes) -> None:
    """Write a file; what was there stays as it is until all of it is written.

    A link stays one, a file keeps its permissions, and a device or a pipe is written to.

    Raises:
        OSError: It cannot be written.
    """
    place = Path(os.path.realpath(path))
    if place.exists() and not place.is_file():
        place.write_bytes(content)
        return
    with _replacing(place) as part:
        part.touch()
        if place.exists():
            shutil.copymode(place, part)
        part.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """Write a text in UTF-8.

    Raises:
        StoreError: ``store.open``: it cannot be written.
    """
    with made_whole(path) as part:
        part.write_text(text, encoding="utf-8")


def write_json(path: Path, data: Any) -> None:
    """Write JSON.

    Raises:
        StoreError: ``store.open``: it cannot be written.
    """
    write_text(path, json.dumps(data, indent=1) + "\n")


def read_json(path: Path, kind: type[_Kind]) -> _Kind:
    """What :func:`write_json` wrote: a list or a mapping.

    Raises:
        InputError: ``input.transcript``: it is missing, damaged or something else.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, kind):
            return found
        why: object = f"it holds no {kind.__name__}"
    except (OSError, ValueError, RecursionError) as error:
        why = reason(error)
    message = f"{path} cannot be read: {why}; delete it and run it again, it is made anew"
    raise InputError(message, "input.transcript")


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Writing a file or folder that somebody named.

    Raises:
        StoreError: ``store.open``: the system refuses it.
    """
    try:
        yield
    except OSError as error:
        blocked = isinstance(error, FileExistsError | NotADirectoryError)
        why = "a file is in its way" if blocked else reason(error)
        message = f"{place} cannot be written: {why}; make room, or name another place"
        raise StoreError(message, "store.open") from error


def into_place(made: Path, place: Path) -> None:
    """Move a file or folder to where it counts; it is there whole, after a power cut too.

    Args:
        made: What is complete, on the same disk.
        place: Where it goes, in a folder that is there; a file there gives way.
    """
    for path in (made, *made.rglob("*")):
        _sync(path)
    made.replace(place)
    # Names are kept by folders; without this the next part may outlive this one.
    _sync(place.parent)


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
