"""The methods of mem0's ``Memory`` over an ebbtide store, for code that was written for it.

No language model reads the messages: each is kept word for word, as a turn. Users have a
memory each; agents and runs have one where no user is named. Updating stores the new
words beside the old ones, which they supersede.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import ebbtide.memory as engine
from ebbtide.adapters.clock import Clock, utc_now
from ebbtide.adapters.mem0_shapes import (
    NAME,
    created_of,
    current,
    id_of,
    is_current,
    least_of,
    messages_of,
    metadata_of,
    number_of,
    own_removed,
    relink,
    root_of,
    scope_of,
    shape,
    version_from,
    versions_of,
    wanted_of,
)
from ebbtide.adapters.ranking import ranked
from ebbtide.closing import Closing
from ebbtide.config import Config
from ebbtide.errors import InputError, NotFoundError
from ebbtide.mappings import turn_from
from ebbtide.messages import shown
from ebbtide.remembering import add_and_get
from ebbtide.store import Store
from ebbtide.types import Turn

__all__ = ["Memory"]


class Memory(Closing):
    """Stands in for ``mem0.Memory``; results have the shapes that it gives.

    A memory's id is ``NUMBER@SCOPE``. Scores are confidences in [0, 1]; below 0.5 the
    memory does not know. Results have ``validity`` too: ``current``, or ``superseded``,
    ``corrected`` or ``invalidated`` by a newer statement.

    Filters compare for equality; mem0's operators are refused. Safe to share between
    threads.
    """

    def __init__(
        self,
        path: str | Path = "memory.db",
        *,
        config: Config | str | Path | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Open a store file, creating it where it is missing.

        Args:
            path: The store file.
            config: Settings of ebbtide; mem0's have no place here.
            clock: Gives the time of a message; the system's by default.

        Raises:
            StoreError: As :meth:`ebbtide.Store.open`.
        """
        self._store = Store.open(path, config=config)
        self._clock = clock or utc_now
        self._lock = threading.RLock()
        self._opened: dict[str, engine.Memory] = {}

    def add(
        self,
        messages: str | Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        infer: bool = True,
        memory_type: str | None = None,
        prompt: str | None = None,
        timestamp: Any = None,
    ) -> dict[str, Any]:
        """Store messages, those of the system and those without content left out.

        Args:
            messages: A text of the user, or messages with ``role`` and ``content``.
            user_id: Whose memory it is.
            agent_id: Of which agent.
            run_id: Of which run; the session of the turns.
            metadata: Kept with each, and what filters compare.
            infer: Has no effect: nothing is inferred, and nothing needs to be.
            memory_type: Has no effect, as no summary is made.
            prompt: Has no effect, as no model is asked.
            timestamp: When it was said, where a message has no ``timestamp`` of its own;
                now by default.

        Returns:
            ``{"results": [{"id", "memory", "event": "ADD", "actor_id", "role"}]}``.

        Raises:
            InputError: If no id is given, or a message is unusable; those before it
                were kept.
        """
        scope = scope_of(user_id, agent_id, run_id, None)
        given = messages_of(messages)
        name, value = next(iter(scope.items()))
        results: list[dict[str, Any]] = []
        with self._lock:
            memory = self._memory(f"{NAME}{name}={value}")
            for message in given:
                turn = turn_from(message)
                if turn.role == "system":
                    continue
                fields = {**own_removed(metadata or {}), **scope, "mem0": {}}
                if turn.speaker is not None:
                    fields["actor_id"] = turn.speaker
                stored = self._store_turn(memory, turn, fields, timestamp)
                if stored is not None:
                    item = {"id": id_of(memory, stored), "memory": stored.text, "event": "ADD"}
                    results.append({**item, "actor_id": stored.speaker, "role": stored.role})
        return {"results": results}

    def search(
        self,
        query: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        top_k: int = 20,
        limit: int | None = None,
        threshold: float | None = 0.0,
        rerank: bool = False,
        explain: bool = False,
    ) -> dict[str, Any]:
        """Memories that answer a question, best first.

        Args:
            query: The question.
            user_id: Whose, here or in ``filters``; so the other two.
            agent_id: Of which agent.
            run_id: Of which run.
            filters: Ids, and fields of the metadata that must be equal.
            top_k: How many at most.
            limit: The older name of ``top_k``.
            threshold: Least score, if any.
            rerank: Has no effect: results are always ranked anew.
            explain: Has no effect: ``trace`` of the memory itself explains.
        """
        scope = scope_of(user_id, agent_id, run_id, filters)
        wanted, least = wanted_of(top_k, limit), least_of(threshold)
        with self._lock:
            each = [
                islice(_ranked(memory, query, scope), wanted) for memory in self._memories(scope)
            ]
            # Confidence is comparable between memories; each keeps its own order.
            found = heapq.merge(*each, key=lambda item: -float(item["score"]))
            items = [item for item in found if item["score"] >= least]
        return {"results": items[:wanted]}

    def get(self, memory_id: str) -> dict[str, Any] | None:
        """One memory by its id, or None."""
        with self._lock:
            try:
                memory, versions = self._versions(memory_id)
            except NotFoundError:
                return None
            return shape(memory, versions[-1])

    def get_all(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        top_k: int = 20,
        limit: int | None = None,
    ) -> dict[str, Any]:
        """Memories, those of one user after another's, each oldest first.

        The arguments are those of :meth:`search`.
        """
        scope = scope_of(user_id, agent_id, run_id, filters)
        with self._lock:
            items = (
                shape(memory, turn)
                for memory in self._memories(scope)
                for turn in current(memory, memory.turns(metadata=scope))
            )
            return {"results": list(islice(items, wanted_of(top_k, limit)))}

    def update(
        self, memory_id: str, data: str, metadata: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Give a memory new words; the old ones stay in its history.

        Raises:
            NotFoundError: If there is no such memory.
            InputError: If the words are unusable.
        """
        with self._lock:
            memory, versions = self._versions(memory_id)
            old = versions[-1]
            fields = {**metadata_of(old), **own_removed(metadata or {})}
            fields["mem0"] = {"root": root_of(old), "created": created_of(old)}
            turn = Turn(text=data, role=old.role, speaker=old.speaker)
            new = self._store_turn(memory, turn, fields, None)
            if new is None:
                raise InputError("the new text is only a rendered block of memory", "input.field")
            memory.relate(number_of(new), "supersedes", number_of(old))
        return {"message": "Memory updated successfully!"}

    def delete(self, memory_id: str) -> dict[str, Any]:
        """Erase a memory with its history.

        Raises:
            NotFoundError: If there is no such memory.
        """
        with self._lock:
            memory, versions = self._versions(memory_id)
            memory.forget(ids=[number_of(turn) for turn in versions])
        return {"message": "Memory deleted successfully!"}

    def delete_all(
        self,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Erase every memory of a user, an agent or a run.

        Raises:
            InputError: If no id is given; :meth:`reset` erases everything.
        """
        scope = scope_of(user_id, agent_id, run_id, None)
        with self._lock:
            for memory in self._memories(scope):
                memory.forget(ids=[number_of(turn) for turn in memory.turns(metadata=scope)])
        return {"message": "Memories deleted successfully!"}

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """What a memory said before and says now, oldest first.

        Raises:
            NotFoundError: If there is no such memory; erasing erases its history.
        """
        with self._lock:
            _, versions = self._versions(memory_id)
        olds = [None, *(turn.text for turn in versions)]
        return [
            {
                "id": turn.record_id,
                "memory_id": memory_id,
                "old_memory": old,
                "new_memory": turn.text,
                "event": "ADD" if old is None else "UPDATE",
                "created_at": created_of(versions[0]),
                "updated_at": None if old is None else turn.timestamp,
                "actor_id": turn.speaker,
                "role": turn.role,
                "is_deleted": False,
            }
            for old, turn in zip(olds, versions, strict=False)
        ]

    def reset(self) -> None:
        """Erase everything that was stored through this class."""
        with self._lock:
            for name in self._names():
                self._opened.pop(name, None)
                self._store.delete(name)

    def close(self) -> None:
        """Free the store file."""
        self._store.close()

    def _memory(self, name: str) -> engine.Memory:
        if name not in self._opened:
            memory = self._store.memory(name)
            relink(memory)
            self._opened[name] = memory
        return self._opened[name]

    def _names(self) -> list[str]:
        return [name for name in self._store.namespaces() if name.startswith(NAME)]

    def _memories(self, scope: Mapping[str, Any]) -> list[engine.Memory]:
        """Where turns of that scope may lie: with the user, or anywhere if none is named."""
        names = self._names()
        if "user_id" in scope:
            names = [name for name in names if name == f"{NAME}user_id={scope['user_id']}"]
        return [self._memory(name) for name in names]

    def _store_turn(
        self, memory: engine.Memory, turn: Turn, fields: Mapping[str, Any], timestamp: Any
    ) -> Turn | None:
        """Store a turn and read it back; None where only a rendered block was in it."""
        said = timestamp if turn.timestamp is None else turn.timestamp
        _, stored = add_and_get(
            memory,
            text=turn.text,
            role=turn.role,
            speaker=turn.speaker,
            timestamp=self._clock() if said is None else said,
            session_id=fields.get("run_id"),
            metadata=fields,
        )
        return stored

    def _versions(self, memory_id: str) -> tuple[engine.Memory, list[Turn]]:
        """A memory's versions, oldest first; the last one is what it says now."""
        number, _, scope = memory_id.partition("@") if isinstance(memory_id, str) else ("", "", "")
        missing = NotFoundError(f"there is no memory {shown(memory_id)}", "not_found.turn")
        if not (number.isascii() and number.isdecimal()) or NAME + scope not in self._names():
            raise missing
        memory = self._memory(NAME + scope)
        version = version_from(memory, int(number[:18]))
        if version is None:  # as for the number of a later version, which is nobody's id
            raise missing
        return memory, versions_of(memory, version)


def _ranked(
    memory: engine.Memory, query: str, scope: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Memories as evidence, best first; versions that were replaced are passed over."""
    for turn, score in ranked(memory, query, scope):
        if turn.validity == "current" or is_current(memory, turn):
            yield {**shape(memory, turn), "score": score or 0.0}
