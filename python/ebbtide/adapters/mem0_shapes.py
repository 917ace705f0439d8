"""Ids, scopes, versions and shapes of the facade for mem0."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ebbtide.errors import InputError, NotFoundError
from ebbtide.inputs import positive
from ebbtide.memory import Memory
from ebbtide.messages import shown
from ebbtide.types import Turn

__all__ = [
    "NAME",
    "created_of",
    "current",
    "id_of",
    "is_current",
    "least_of",
    "messages_of",
    "metadata_of",
    "number_of",
    "own_removed",
    "relink",
    "root_of",
    "scope_of",
    "shape",
    "version_from",
    "versions_of",
    "wanted_of",
]

NAME = "mem0:"
"""What the names of the memories begin with."""

_SCOPES = ("user_id", "agent_id", "run_id")
_OWN = (*_SCOPES, "actor_id", "mem0")
"""Fields of a turn's metadata that are not the caller's."""


def messages_of(messages: Any) -> list[Mapping[str, Any]]:
    """The messages of a call, each with its content in a form of ours.

    Those whose content is empty, as an assistant's may be, are passed over, as mem0 does.

    Raises:
        InputError: If there are none to be had from it.
    """
    if isinstance(messages, str):
        return [{"content": messages}]
    given = [messages] if isinstance(messages, Mapping) else messages
    if not isinstance(given, Iterable):
        message = f"messages must be a text, a message or a list, not {type(messages).__name__}"
        raise InputError(message, "input.field")
    found = ({"content": item} if isinstance(item, str) else item for item in given)
    return [_with_parts(item) for item in found if not _is_silent(item)]


def _is_silent(item: Any) -> bool:
    if not isinstance(item, Mapping) or item.get("tool_calls") or item.get("text") is not None:
        return False
    return item.get("content", item) in (None, "", [])


def _with_parts(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """mem0 takes one part of a content, such as a picture, without a list around it."""
    content = item.get("content") if isinstance(item, Mapping) else None
    return {**item, "content": [content]} if isinstance(content, Mapping) else item


def scope_of(
    user_id: str | None,
    agent_id: str | None,
    run_id: str | None,
    filters: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Ids and filters in one, the ids first.

    Raises:
        InputError: If no id is among them, or a filter is an operator.
    """
    given = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
    merged = {**(filters or {}), **{key: v for key, v in given.items() if v is not None}}
    ids = {key: merged[key] for key in _SCOPES if key in merged}
    if not ids:
        raise InputError("name a user_id, an agent_id or a run_id", "input.field")
    for key, value in ids.items():
        if not isinstance(value, str) or not value.strip():
            raise InputError(f"{key} must be a text that is not blank", "input.field")
        ids[key] = value.strip()  # as mem0 does: what is around a name makes no other user
    for key, value in merged.items():
        operator = key in ("AND", "OR", "NOT") or str(key).startswith("$")
        if operator or isinstance(value, Mapping) or value == "*":
            message = f"filter {shown(key)} is an operator; filters here compare for equality"
            raise InputError(message, "input.field")
    return {**ids, **{key: value for key, value in merged.items() if key not in ids}}


def wanted_of(top_k: int, limit: int | None) -> int:
    """How many results are asked for, under either name."""
    return positive("top_k", top_k if limit is None else limit)


def least_of(threshold: float | None) -> float:
    """The least score that is asked for."""
    if threshold is None:
        return 0.0
    if not isinstance(threshold, int | float) or isinstance(threshold, bool):
        message = f"threshold must be a number or None, not {shown(threshold)}"
        raise InputError(message, "input.field")
    return threshold


def metadata_of(turn: Turn) -> dict[str, Any]:
    """A turn's metadata; empty where it has none."""
    return dict(turn.metadata or {})


def own_removed(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What of a turn's metadata is the caller's: an update, say, moves no memory."""
    return {key: value for key, value in metadata.items() if key not in _OWN}


def number_of(turn: Turn) -> int:
    """A stored turn's interaction id."""
    assert turn.interaction_id is not None
    return turn.interaction_id


def _kept(turn: Turn) -> Mapping[str, Any]:
    """What this facade keeps with a turn; nothing where the turn came in another way."""
    kept = metadata_of(turn).get("mem0")
    return kept if isinstance(kept, Mapping) else {}


def root_of(turn: Turn) -> int:
    """The interaction id that a turn's memory began with; its turn may be erased since."""
    root = _kept(turn).get("root")
    return root if isinstance(root, int) else number_of(turn)


def is_later(turn: Turn) -> bool:
    """Whether a turn is a version that took the place of another."""
    return root_of(turn) != number_of(turn)


def id_of(memory: Memory, turn: Turn) -> str:
    """The id of the memory that a turn is a version of."""
    return f"{root_of(turn)}@{memory.namespace.removeprefix(NAME)}"


def created_of(turn: Turn) -> Any:
    """When the first version was stored."""
    return _kept(turn).get("created", turn.timestamp)


def version_from(memory: Memory, root: int) -> Turn | None:
    """A version of the memory that began with a turn; None if there is no such memory.

    The first version may have been erased on its own, by ``ebbtide retain``, say: what is
    left keeps the id that callers hold.
    """
    try:
        first = memory.get(root)
    except NotFoundError:
        return next((turn for turn in memory.turns(first=root) if root_of(turn) == root), None)
    return None if is_later(first) else first


def versions_of(memory: Memory, version: Turn) -> list[Turn]:
    """What is there of a version's memory, oldest first; never empty."""
    root = root_of(version)
    return [turn for turn in memory.history(number_of(version)) if root_of(turn) == root]


def relink(memory: Memory) -> None:
    """Relate versions to those they replaced, where they are not.

    A process may have ended just before it did, or a version between two was erased.
    """
    newest: dict[int, int] = {}
    for turn in memory.turns():
        number, root = number_of(turn), root_of(turn)
        before = newest.get(root)
        if before is not None and before not in map(number_of, versions_of(memory, turn)):
            memory.relate(number, "supersedes", before)
        newest[root] = number


def is_current(memory: Memory, turn: Turn) -> bool:
    """Whether no later version of the same memory replaced it."""
    return number_of(versions_of(memory, turn)[-1]) == number_of(turn)


def current(memory: Memory, turns: Iterable[Turn]) -> Iterator[Turn]:
    """Those turns that no later version of the same memory replaced."""
    for turn in turns:
        if turn.validity == "current" or is_current(memory, turn):
            yield turn


def shape(memory: Memory, turn: Turn) -> dict[str, Any]:
    """A memory as mem0 gives it, with its validity beside."""
    metadata = metadata_of(turn)
    item: dict[str, Any] = {
        "id": id_of(memory, turn),
        "memory": turn.text,
        "hash": turn.record_id,
        "created_at": created_of(turn),
        "updated_at": turn.timestamp if is_later(turn) else None,
        "role": turn.role,
        "validity": turn.validity,
    }
    item |= {key: metadata[key] for key in (*_SCOPES, "actor_id") if key in metadata}
    item["metadata"] = own_removed(metadata)
    return item
