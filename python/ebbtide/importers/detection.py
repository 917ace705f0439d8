"""Which format a file has, told by its beginning."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

from ebbtide.errors import InputError
from ebbtide.importers import (
    chatgpt,
    claude,
    discord,
    gemini,
    langchain,
    openai,
    sharegpt,
    slack,
    whatsapp,
)
from ebbtide.importers.failures import ExportError
from ebbtide.importers.files import Part, parts_of, pieces
from ebbtide.importers.jsonstream import JsonStream

__all__ = ["FORMATS", "MODULES", "detect"]

MODULES: dict[str, ModuleType] = {
    "chatgpt": chatgpt,
    "claude": claude,
    "gemini": gemini,
    "openai": openai,
    "sharegpt": sharegpt,
    "langchain": langchain,
    "whatsapp": whatsapp,
    "slack": slack,
    "discord": discord,
}
"""The module of each format: ``turns(reading)`` gives its turns, ``looks_like`` tells it."""

FORMATS = tuple(MODULES)
"""Names of the formats."""

_DAY = re.compile(r"(?:.*/)?[^/]+/\d{4}-\d{2}-\d{2}\.json")
_FIRST = 50
"""Elements looked at before a list is given up on."""


def detect(path: str | Path) -> str:
    """The name of the format that an export has.

    Raises:
        InputError: If there is no such file, or it is none of ``FORMATS``.
    """
    file = Path(path)
    try:
        parts = parts_of(file)
        if any(_DAY.fullmatch(part.inner) for part in parts):
            return "slack"
        for part in sorted(parts, key=_promising):
            if found := _format_of(part):
                return found
    except ExportError as error:
        raise InputError(str(error), error.code) from error.__cause__
    words = f"{file}: the format is not recognised; name it, one of {', '.join(FORMATS)}"
    raise InputError(words, "input.transcript")


def _promising(part: Part) -> tuple[bool, bool, str]:
    """Conversations before the rest; Gemini's activity before that of other products."""
    known = part.name.startswith(("conversations", "_chat"))
    return not known, not gemini.PRODUCT.search(part.inner), part.inner


def _format_of(part: Part) -> str | None:
    first = next(pieces(part), "")
    start = first.lstrip()[:1]
    if start not in ("{", "[") or whatsapp.looks_like(first):
        return "whatsapp" if whatsapp.looks_like(first) else None
    stream = JsonStream(pieces(part), part.place)
    if start == "{":
        # A file of a channel begins with what it is about; its messages may be many.
        head: dict[str, Any] = {}
        for name, value in islice(stream.pairs(streamed=("messages",)), _FIRST):
            if isinstance(value, Iterator):
                if discord.looks_like(head):
                    return "discord"
                head[name] = list(islice(value, 1))
                break
            head[name] = value
        return _item_format(head)
    for item in islice(stream.documents(), _FIRST):
        if isinstance(item, list) and item:
            item = item[0]
        if isinstance(item, Mapping) and (found := _item_format(item)):
            return found
    return None


def _item_format(item: Mapping[str, Any]) -> str | None:
    others = (name for name in MODULES if name != "whatsapp")
    return next((name for name in others if MODULES[name].looks_like(item)), None)
