"""What an archive holds: one record a turn, in bytes that are equal everywhere."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ebbtide.errors import ExternalError
from ebbtide.inputs import checked_text
from ebbtide.messages import shown
from ebbtide.types import Turn

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "BLOCK",
    "Block",
    "Record",
    "blocks_of",
    "damaged",
    "escaped",
    "kept_fields",
    "keys_of",
    "unescaped",
]

BLOCK = 4096
"""Interaction ids that one sum of an inventory covers."""

_RAW = (
    "text",
    "role",
    "speaker",
    "timestamp",
    "utc_micros",
    "naive_timestamp",
    "session_id",
    "external_id",
    "provenance",
    "metadata",
    "record_id",
)
"""What is canonical of a stored turn. Its state, validity and tokens are not: they
follow from the turns before and after it, and from the settings."""


@dataclass(frozen=True, eq=False)
class Record:
    """One turn as it was said, with its vectors.

    Two records are the same where their ``hash`` is.

    Attributes:
        namespace: The memory in the archive.
        interaction_id: Number within the memory.
        raw: The turn's canonical fields, as the core gives them.
        vectors: int16 [passages, d], unit vectors of scale 32767.
        writer: Who shipped it first; no part of the hash.
    """

    namespace: str
    interaction_id: int
    raw: Mapping[str, Any]
    vectors: NDArray[np.int16]
    writer: str = ""

    @classmethod
    def of(
        cls,
        namespace: str,
        row: Mapping[str, Any],
        vectors: NDArray[np.int16],
        writer: str,
    ) -> Record:
        """The record of a stored turn, from the core's row of it."""
        raw = {name: row[name] for name in _RAW}
        return cls(namespace, int(row["interaction_id"]), raw, vectors, writer)

    @classmethod
    def stored(
        cls,
        namespace: str,
        interaction_id: int,
        *,
        body: bytes,
        vectors: bytes,
        dimension: int,
        digest: bytes,
        writer: str,
    ) -> Record:
        """A record as a server returns it, checked against its hash.

        Raises:
            ExternalError: ``archive.damaged`` if it is not what was put there.
        """
        try:
            raw = json.loads(body)
            numbers = np.frombuffer(vectors, "<i2").astype(np.int16).reshape(-1, dimension)
            record = cls(namespace, interaction_id, raw, numbers, writer)
            sound = record.hash == digest
        except (ValueError, TypeError, RecursionError):
            sound = False
        if not sound:
            raise damaged(namespace, interaction_id)
        return record

    @cached_property
    def body(self) -> bytes:
        """The canonical fields as JSON with sorted keys, UTF-8."""
        text = json.dumps(dict(self.raw), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return text.encode()

    @cached_property
    def vector_bytes(self) -> bytes:
        """The vectors as little-endian bytes, one passage after the other."""
        return np.ascontiguousarray(self.vectors, "<i2").tobytes()

    @cached_property
    def hash(self) -> bytes:
        """SHA-256 of id, body and vectors: 32 bytes."""
        sum_ = hashlib.sha256(f"{self.interaction_id}:{len(self.body)}:".encode())
        sum_.update(self.body)
        sum_.update(self.vector_bytes)
        return sum_.digest()

    @cached_property
    def turn(self) -> Turn:
        """The turn as callers see it; what was derived from it is None."""
        derived = {"state": None, "validity": None, "tokens": None}
        return Turn._from_core({**self.raw, **derived, "interaction_id": self.interaction_id})


def damaged(namespace: str, interaction_id: object) -> ExternalError:
    """The error for a record that is not what was put into the archive."""
    return ExternalError(
        f"turn {interaction_id} of {namespace!r} is damaged in the archive: its content does not "
        "match its hash; delete it there and push the memory again",
        "archive.damaged",
    )


def _damaged_key(found: object) -> ExternalError:
    return ExternalError(
        f"a name, an id or a hash in the archive is damaged, at {shown(found)}; push the memories "
        "to another archive",
        "archive.damaged",
    )


@dataclass(frozen=True, slots=True)
class Block:
    """The sums of one range of ids, ``BLOCK`` wide.

    Attributes:
        first: The range's first id.
        count: Records in it.
        ids: SHA-256 of their ids, decimal, joined by commas, in order.
        content: SHA-256 of their hashes, in order of id.
    """

    first: int
    count: int
    ids: bytes
    content: bytes


def blocks_of(rows: Iterable[tuple[int, bytes]]) -> list[Block]:
    """The sums of records given as id and hash, in order of id.

    Raises:
        ExternalError: ``archive.damaged`` where one of them is something else.
    """
    blocks: list[Block] = []
    for first, part in _ranges(rows):
        numbers = ",".join(str(number) for number, _ in part)
        content = hashlib.sha256(b"".join(digest for _, digest in part)).digest()
        blocks.append(Block(first, len(part), hashlib.sha256(numbers.encode()).digest(), content))
    return blocks


def _ranges(rows: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, list[tuple[int, bytes]]]]:
    part: list[tuple[int, bytes]] = []
    for row in rows:
        if not isinstance(row[0], int) or not isinstance(row[1], bytes):
            raise _damaged_key(row[0])
        if part and row[0] // BLOCK != part[0][0] // BLOCK:
            yield part[0][0] // BLOCK * BLOCK, part
            part = []
        part.append(row)
    if part:
        yield part[0][0] // BLOCK * BLOCK, part


def escaped(text: str) -> str:
    """A text that servers which know no NUL can keep; different texts stay different.

    Raises:
        InputError: If it is no text, or none that can be stored.
    """
    checked_text("a name in an archive", text)
    return text.replace("\\", "\\\\").replace("\0", "\\0")


def unescaped(text: str) -> str:
    """The text that :func:`escaped` was given.

    Raises:
        ExternalError: ``archive.damaged`` if it is no text.
    """
    if not isinstance(text, str):
        raise _damaged_key(text)
    if "\\" not in text:
        return text
    return "\\".join(part.replace("\\0", "\0") for part in text.split("\\\\"))


@dataclass(frozen=True, slots=True)
class _Keys:
    role: str
    speaker: str | None
    session_id: str | None
    utc_micros: int | None


def keys_of(record: Record) -> _Keys:
    """The fields that a server filters by, in the form that it keeps them in."""
    raw = record.raw

    def text(name: str) -> str | None:
        value = raw[name]
        return None if value is None else escaped(value)

    speaker = raw["speaker"]
    return _Keys(
        role=escaped(raw["role"]),
        # Filters take a speaker in whatever case.
        speaker=None if speaker is None else escaped(speaker.lower()),
        session_id=text("session_id"),
        utc_micros=raw["utc_micros"],
    )


def kept_fields(text: object, kinds: Mapping[str, type]) -> dict[str, Any] | None:
    """The fields of these kinds of a JSON object; None where it lacks one."""
    try:
        fields = json.loads(text)  # type: ignore[arg-type]  # a server may return anything
    except (TypeError, ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    found = {name: fields.get(name) for name in kinds}
    return found if all(type(found[name]) is kind for name, kind in kinds.items()) else None
