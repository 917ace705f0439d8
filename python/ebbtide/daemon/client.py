"""A memory in another process, used as one in this."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from ebbtide.closing import Closing
from ebbtide.daemon.bodies import ANY_LENGTH, json_body, line_requests, question_body
from ebbtide.daemon.transport import Transport
from ebbtide.daemon.wire import (
    LINES,
    evidence_from,
    given_turn,
    moment,
    rendered_from,
    report_from,
    turn_from_wire,
)
from ebbtide.errors import InputError
from ebbtide.forgetting import checked_request, checked_rule, several
from ebbtide.inputs import (
    checked_text,
    interaction_id_of,
    positive,
    prepare,
    turn_named,
    turns_asked,
)
from ebbtide.messages import shown
from ebbtide.types import RenderedContext, RetrievedEvidence, Turn, WriteReport

__all__ = ["RemoteMemory", "connect"]


def connect(
    url_or_socket: str | Path,
    *,
    token: str | Path | None = None,
    namespace: str = "default",
    timeout: float = 300.0,
) -> RemoteMemory:
    """What :func:`ebbtide.connect` leads to, which says what is given and raised."""
    checked_text("namespace", namespace)
    memory = RemoteMemory(Transport(url_or_socket, token, timeout), namespace)
    try:
        memory.create()
    except BaseException:
        memory.close()
        raise
    return memory


class RemoteMemory(Closing):
    """A :class:`~ebbtide.Memory` that a daemon holds; get one from :func:`connect`.

    Methods have the names, arguments, results and errors of :class:`~ebbtide.Memory`.
    Each may also raise ``ExternalError`` where the daemon cannot be reached. A request
    whose answer is lost is sent again where that cannot do a write twice: reads, and
    adds, by an idempotency key or the turn's ``external_id``. May be shared by threads, and
    by forks, which make connections of their own.
    """

    def __init__(self, transport: Transport, namespace: str) -> None:
        """Use :func:`connect` instead."""
        self._transport = transport
        self._namespace = namespace

    @property
    def namespace(self) -> str:
        """The memory's name within its store."""
        return self._namespace

    def create(self) -> None:
        """Make the memory where it is missing, as :func:`connect` does."""
        self._transport.write("PUT", "/namespace", self._query(), keyed=True, repeatable=True)

    # Writing

    def add(
        self,
        text: str,
        *,
        role: str = "user",
        speaker: str | None = None,
        timestamp: Any = None,
        session_id: str | None = None,
        external_id: str | None = None,
        provenance: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        wait: str = "complete",
    ) -> WriteReport:
        """Store one turn, as :meth:`Memory.add` does.

        Raises:
            ExternalError: With code ``daemon.uncertain``, if the daemon went away before
                it answered: the turn may be stored. One with an ``external_id`` can be
                added again without harm.
        """
        turn = Turn(text, role, speaker, timestamp, session_id, external_id, provenance, metadata)
        return report_from(self._add("/turns", turn, wait))

    def remember(
        self,
        text: str,
        *,
        role: str = "user",
        speaker: str | None = None,
        timestamp: Any = None,
        session_id: str | None = None,
        external_id: str | None = None,
        provenance: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> tuple[WriteReport, Turn | None]:
        """Store one turn, as :meth:`add` does, and have it back with its id.

        Returns:
            The report, and the stored turn: the one known before where it is a duplicate,
            None where nothing but a rendered block was given.
        """
        turn = Turn(text, role, speaker, timestamp, session_id, external_id, provenance, metadata)
        found = self._add("/remember", turn, "complete")
        stored = found["turn"]
        return report_from(found["report"]), None if stored is None else turn_from_wire(stored)

    def _add(self, route: str, turn: Turn, wait: str) -> Any:
        if wait not in ("complete", "journalled"):
            message = f'wait must be "complete" or "journalled", not {shown(wait)}'
            raise InputError(message, "input.field")
        prepare(turn, max_chars=ANY_LENGTH)
        return self._transport.write(
            "POST",
            route,
            self._query(),
            json_body(given_turn(turn) | {"wait": wait}),
            keyed=True,
            repeatable=turn.external_id is not None,
        )

    def add_many(
        self,
        turns: Iterable[Turn | Mapping[str, Any]],
        *,
        progress: Callable[[int], None] | None = None,
    ) -> WriteReport:
        """Store turns in order, as :meth:`Memory.add_many` does; the iterable is streamed.

        Raises:
            InputError: Naming the turn that is unusable; those before it were kept.
        """
        reports: list[WriteReport] = []
        done = 0
        for lines, repeatable in line_requests(turns):
            reports.append(self._add_lines(lines, done, repeatable))
            done += len(lines)
            if progress is not None:
                progress(done)
        return WriteReport.total(reports or [self._add_lines([], 0, True)])

    def _add_lines(self, lines: list[bytes], before: int, repeatable: bool) -> WriteReport:
        query = self._query(before=before)
        body = b"\n".join(lines)
        return report_from(
            self._transport.write(
                "POST", "/turns/lines", query, body, kind=LINES, keyed=True, repeatable=repeatable
            )
        )

    def relate(self, newer: int, relation: str, older: int) -> WriteReport:
        """Say how one turn relates to an older one, as :meth:`Memory.relate` does."""
        checked_text("relation", relation)
        newer, older = interaction_id_of(newer), interaction_id_of(older)
        data = {"newer": newer, "relation": relation, "older": older}
        return report_from(
            self._transport.write("POST", "/relations", self._query(), json_body(data))
        )

    def delete(
        self, interaction_id: int | str | None = None, *, external_id: str | None = None
    ) -> None:
        """Erase one turn, as :meth:`Memory.delete` does."""
        self._transport.write("DELETE", "/turn", self._named(interaction_id, external_id))

    def delete_all(self) -> None:
        """Erase every turn of this memory."""
        self._transport.write("DELETE", "/turns", self._query())

    def forget(
        self,
        query_text: str | None = None,
        *,
        ids: Iterable[int | str] | int | str | None = None,
        limit: int = 1,
        before: Any = None,
        dry_run: bool = False,
    ) -> list[Turn]:
        """Erase the turns that match, as :meth:`Memory.forget` does."""
        checked_request(query_text, ids, limit, before)
        return self._erased(
            "/forget",
            query_text=query_text,
            ids=None if ids is None else [turn_named(one, None) for one in several(ids)],
            limit=None if query_text is None else positive("limit", limit),
            before=moment(before),
            dry_run=dry_run,
        )

    def retain(
        self,
        *,
        max_age: Any = None,
        max_records: int | None = None,
        now: Any = None,
        dry_run: bool = False,
    ) -> list[Turn]:
        """Erase turns beyond an age or a number, as :meth:`Memory.retain` does."""
        checked_rule(max_age, max_records, now)
        if isinstance(max_age, timedelta):
            max_age = max_age.total_seconds()
        return self._erased(
            "/retain",
            max_age=max_age,
            max_records=None if max_records is None else positive("max_records", max_records),
            now=None if max_age is None else moment(now),
            dry_run=dry_run,
        )

    def _erased(self, route: str, **asked: Any) -> list[Turn]:
        body = json_body({name: value for name, value in asked.items() if value is not None})
        found = self._transport.write("POST", route, self._query(), body, keyed=True)
        return [turn_from_wire(one) for one in found["turns"]]

    def flush(self) -> None:
        """Wait until every journalled turn is analysed and taken in."""
        self._transport.read("POST", "/flush", self._query())

    # Reading

    def retrieve(
        self,
        query_text: str,
        *,
        limit: int | None = None,
        max_tokens: int | None = None,
        query_time: Any = None,
        preset: str | None = None,
        filters: Mapping[str, Any] | None = None,
    ) -> list[RetrievedEvidence]:
        """Turns that answer a question, best first, as :meth:`Memory.retrieve` gives them."""
        asked = question_body(query_text, limit, query_time, preset, filters, max_tokens=max_tokens)
        found = self._transport.read("POST", "/retrieve", self._query(), asked)
        return [evidence_from(one) for one in found["evidence"]]

    def context(
        self,
        query_text: str,
        *,
        max_tokens: int | None = None,
        include_active: bool = True,
        query_time: Any = None,
        preset: str | None = None,
        limit: int | None = None,
        filters: Mapping[str, Any] | None = None,
    ) -> RenderedContext:
        """Evidence and the active conversation, as :meth:`Memory.context` gives them."""
        asked = question_body(
            query_text,
            limit,
            query_time,
            preset,
            filters,
            max_tokens=max_tokens,
            include_active=include_active,
        )
        return rendered_from(self._transport.read("POST", "/context", self._query(), asked))

    def render_context(
        self,
        query_text: str,
        *,
        max_tokens: int | None = None,
        include_active: bool = True,
        query_time: Any = None,
        preset: str | None = None,
        limit: int | None = None,
        filters: Mapping[str, Any] | None = None,
    ) -> str:
        """The ``text`` of :meth:`context`, whose arguments it takes."""
        return self.context(
            query_text,
            max_tokens=max_tokens,
            include_active=include_active,
            query_time=query_time,
            preset=preset,
            limit=limit,
            filters=filters,
        ).text

    def trace(
        self,
        query_text: str,
        *,
        limit: int | None = None,
        query_time: Any = None,
        preset: str | None = None,
        filters: Mapping[str, Any] | None = None,
        answer: str | None = None,
    ) -> dict[str, Any]:
        """How a question is answered, as :meth:`Memory.trace` shows it, with lists for tuples."""
        asked = question_body(query_text, limit, query_time, preset, filters, answer=answer)
        found: dict[str, Any] = self._transport.read("POST", "/trace", self._query(), asked)
        return found

    def turns(
        self,
        *,
        state: str | None = None,
        first: int = 0,
        metadata: Mapping[str, Any] | None = None,
    ) -> Iterator[Turn]:
        """Stored turns in id order, read in pages, as :meth:`Memory.turns` gives them."""
        at: int | None
        at, wanted = turns_asked(state, first, metadata)
        fields = None if wanted is None else json_body(wanted).decode("ascii")
        while at is not None:
            query = self._query(state=state, first=at, metadata=fields)
            page = self._transport.read("GET", "/turns", query)
            yield from map(turn_from_wire, page["turns"])
            at = page["next"]

    def get(
        self, interaction_id: int | str | None = None, *, external_id: str | None = None
    ) -> Turn:
        """One stored turn, by interaction id or external id."""
        return turn_from_wire(self._one("/turn", interaction_id, external_id))

    def history(
        self, interaction_id: int | str | None = None, *, external_id: str | None = None
    ) -> list[Turn]:
        """The turns that a turn is related to by lineage, itself included, in id order."""
        found = self._one("/history", interaction_id, external_id)
        return [turn_from_wire(one) for one in found["turns"]]

    def explain(
        self, interaction_id: int | str | None = None, *, external_id: str | None = None
    ) -> dict[str, Any]:
        """The life of one turn, as :meth:`Memory.explain` tells it."""
        return self._one("/explain", interaction_id, external_id)

    def stats(self) -> dict[str, Any]:
        """The memory in numbers."""
        found: dict[str, Any] = self._transport.read("GET", "/stats", self._query())
        return found

    def digest(self) -> str:
        """SHA-256 of the logical state, in hex."""
        return str(self._transport.read("GET", "/digest", self._query())["digest"])

    def __len__(self) -> int:
        """Number of stored turns."""
        return int(self.stats()["turns"])

    # The store and the daemon

    def namespaces(self) -> list[str]:
        """Names of the memories in the daemon's store, ordered."""
        return list(self._transport.read("GET", "/namespaces", {})["namespaces"])

    def delete_namespace(self, namespace: str) -> None:
        """Erase a memory and its name, as :meth:`Store.delete` does."""
        checked_text("namespace", namespace)
        self._transport.write("DELETE", "/namespace", {"namespace": namespace})

    def health(self) -> dict[str, Any]:
        """The daemon's version, process and store."""
        found: dict[str, Any] = self._transport.read("GET", "/health", {})
        return found

    def close(self) -> None:
        """Close the connections; the memory stays open in the daemon, for others."""
        self._transport.close()

    def _query(self, **more: Any) -> dict[str, Any]:
        return {"namespace": self._namespace, **more}

    def _named(self, interaction_id: int | str | None, external_id: str | None) -> dict[str, Any]:
        named = turn_named(interaction_id, external_id)
        field = "interaction_id" if isinstance(named, int) else "external_id"
        return self._query(**{field: named})

    def _one(
        self, route: str, interaction_id: int | str | None, external_id: str | None
    ) -> dict[str, Any]:
        found: dict[str, Any] = self._transport.read(
            "GET", route, self._named(interaction_id, external_id)
        )
        return found
