"""Conversations put into the order in which they began.

Exports list the newest conversation first, and a memory needs the oldest first. The
turns wait in a temporary file; what is held is a date and two numbers for each group.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from tempfile import SpooledTemporaryFile

from ebbtide.errors import InputError
from ebbtide.importers.reading import Reading
from ebbtide.importers.texts import seconds_of
from ebbtide.types import Turn

__all__ = ["in_order"]

_IN_MEMORY = 8_000_000
"""Bytes above which the turns go to the disk."""


def in_order(
    reading: Reading, groups: Iterable[list[Turn]], *, newest_first: bool = False
) -> Iterator[Turn]:
    """The turns of the groups, the group that begins first before the others.

    Groups without a date come first. A file that breaks in the middle still gives the
    groups before the break, then the error.

    Args:
        reading: Asked whether to go on.
        groups: Turns that belong together, in order.
        newest_first: Of groups that begin at one moment the last read comes first.

    Raises:
        ExportError: The one that ended ``groups``, behind all turns.
    """
    starts, offsets = array("d"), array("q")
    failure: InputError | None = None
    with SpooledTemporaryFile(max_size=_IN_MEMORY, mode="w+b") as spool:
        try:
            for group in groups:
                if reading.stopped():
                    return
                if group:
                    starts.append(seconds_of(group[0].timestamp))
                    offsets.append(spool.tell())
                    spool.write(_packed(group))
        except InputError as error:
            failure = error
        sign = -1 if newest_first else 1
        for index in sorted(range(len(starts)), key=lambda i: (starts[i], sign * i)):
            spool.seek(offsets[index])
            for fields in json.loads(spool.readline()):
                yield Turn(**fields)
    if failure is not None:
        raise failure


def _packed(group: list[Turn]) -> bytes:
    rows = [{k: v for k, v in asdict(turn).items() if v is not None} for turn in group]
    return json.dumps(rows).encode() + b"\n"
