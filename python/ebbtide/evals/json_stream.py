"""Reading large JSON files one value at a time."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

from ebbtide.errors import InputError

__all__ = ["json_values"]

_CHUNK = 1 << 20


def json_values(path: str | Path) -> Iterator[Any]:
    """Yield the items of a JSON array, or the JSON values that follow each other.

    Args:
        path: JSON or JSON lines, UTF-8 with or without a byte order mark, plain
            or gzipped; told apart by the bytes, not by the name.

    Raises:
        OSError: The file cannot be opened.
        InputError: ``input.transcript``: broken JSON or gzip. Values before the
            break have been yielded by then.
    """
    path = Path(path)
    with path.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        stream = cast("IO[bytes]", gzip.GzipFile(fileobj=raw) if packed else raw)
        try:
            with io.TextIOWrapper(stream, encoding="utf-8-sig") as text:
                yield from _scan(text)
        except (ValueError, RecursionError, EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InputError(f"{path.name}: not JSON: {error}", "input.transcript") from error


def _scan(stream: IO[str]) -> Iterator[Any]:
    decoder = json.JSONDecoder()
    buffer = stream.read(_CHUNK).lstrip()
    in_array = buffer.startswith("[")
    buffer = buffer[1:] if in_array else buffer
    ended = False
    while True:
        buffer = buffer.lstrip()
        if in_array and buffer.startswith("]"):
            break
        try:
            if not buffer:
                raise json.JSONDecodeError("unexpected end", buffer, 0)
            value, end = decoder.raw_decode(buffer)
            if not ended and end == len(buffer):
                # A number cut by the chunk's end would decode as a shorter one.
                raise json.JSONDecodeError("perhaps more", buffer, end)
        except json.JSONDecodeError:
            # Reading as much again as is waiting keeps large samples linear.
            more = stream.read(max(_CHUNK, len(buffer)))
            if ended and not buffer and not in_array:
                return
            if ended:
                raise
            ended = not more
            buffer += more
            continue
        yield value
        buffer = buffer[end:].lstrip()
        if in_array and buffer.startswith(","):
            buffer = buffer[1:]
