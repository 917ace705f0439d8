"""Exports made for the tests."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ebbtide import Turn
from ebbtide.importers import Export, read


def said(export: Export) -> list[tuple[str, str]]:
    """Speaker or role, and text."""
    return [(turn.speaker or turn.role, turn.text) for turn in export]


def written(path: Path, value: Any) -> Path:
    """A file with text, bytes, or a value as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(value, bytes):
        path.write_bytes(value)
    else:
        text = value if isinstance(value, str) else json.dumps(value)
        path.write_text(text, encoding="utf-8", newline="")
    return path


def zipped(path: Path, files: Mapping[str, Any]) -> Path:
    """A zip archive of such files."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in files.items():
            archive.writestr(name, value if isinstance(value, str | bytes) else json.dumps(value))
    return path


def only(name: str, path: Path, **options: Any) -> Turn:
    """The one turn of an export."""
    (turn,) = read(name, path, **options)
    return turn


def message(role: str, *parts: Any, time: Any = 1_700_000_000.0, **fields: Any) -> dict[str, Any]:
    """A ChatGPT message."""
    content = {"content_type": "text", "parts": list(parts)}
    base = {"author": {"role": role}, "create_time": time, "content": content, "recipient": "all"}
    return {**base, **fields}


def chat(
    name: str, *messages: dict[str, Any] | None, time: Any = 1_700_000_000.0, **fields: Any
) -> dict[str, Any]:
    """A ChatGPT conversation without branches."""
    mapping: dict[str, Any] = {"root": {"id": "root", "parent": None, "message": None}}
    parent = "root"
    for number, value in enumerate(messages):
        node = f"{name}-{number}"
        body = None if value is None else {"id": node, **value}
        mapping[node] = {"id": node, "parent": parent, "message": body}
        parent = node
    base = {"title": name.title(), "create_time": time, "conversation_id": name}
    return {**base, "mapping": mapping, "current_node": parent, **fields}
