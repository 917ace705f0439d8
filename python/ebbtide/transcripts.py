"""Transcript files as streams of turns: JSON Lines of messages, and LoCoMo JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ebbtide.errors import EbbtideError, InputError
from ebbtide.inputs import turn_from
from ebbtide.types import Turn

__all__ = ["Transcript", "read_transcripts"]


@dataclass(frozen=True, slots=True)
class Transcript:
    """One conversation of a file.

    Attributes:
        path: The file.
        name: Conversation id for files that hold several, else None.
        turns: Turns in it, if that is known without reading it through.
    """

    path: Path
    name: str | None
    turns: int | None

    def read(self) -> Iterator[Turn]:
        """Its turns, in order, each with an external id.

        A turn without an id of its own is called ``<file stem>#<line>``. Messages
        without content are left out.

        Raises:
            InputError: Naming file, line and what is wrong there.
        """
        if self.name is None:
            yield from _json_lines(self.path)
        else:
            yield from _dataset(self.path, self.name)


def read_transcripts(path: str | Path) -> list[Transcript]:
    """The conversations of a transcript file.

    JSON Lines (one message a line) is one conversation; a LoCoMo file (JSON, or
    JSON compressed with gzip) has one for each of its samples.

    Raises:
        InputError: If there is no such file or it has neither form.
    """
    file = Path(path)
    if not file.is_file():
        raise InputError(f"there is no transcript at {file}", "input.transcript")
    if file.name.endswith((".json", ".json.gz")):
        from ebbtide.evals.datasets import iter_conversations

        return [Transcript(file, c.id, len(c.turns)) for c in iter_conversations(file)]
    with file.open("rb") as lines:
        count = sum(1 for line in lines if line.strip())
    return [Transcript(file, None, count)]


def _json_lines(path: Path) -> Iterator[Turn]:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                turn = _message(line, f"{path.stem}#{number}")
            except (EbbtideError, ValueError, RecursionError) as error:
                raise InputError(f"{path}, line {number}: {error}", "input.transcript") from error
            if turn is not None:
                yield turn


def _message(line: bytes, fallback: str) -> Turn | None:
    message: Any = json.loads(line)
    if not isinstance(message, dict):
        raise InputError("a line must be a JSON object with `role` and `content`", "input.field")
    content = message.get("text", message.get("content"))
    if not content and not message.get("tool_calls"):
        return None
    turn = turn_from(message)
    return turn if turn.external_id is not None else replace(turn, external_id=fallback)


def _dataset(path: Path, name: str) -> Iterator[Turn]:
    from ebbtide.evals.datasets import iter_conversations

    for conversation in iter_conversations(path):
        if conversation.id != name:
            continue
        for turn in conversation.turns:
            if turn.text:
                yield Turn(
                    text=turn.text,
                    role=turn.role,
                    speaker=turn.speaker,
                    timestamp=turn.timestamp,
                    session_id=turn.session_id,
                    external_id=turn.external_id,
                )
        return
