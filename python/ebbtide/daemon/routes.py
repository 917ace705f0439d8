"""What can be asked of a memory over HTTP; each route is a method of :class:`Memory`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any

from ebbtide.daemon.lines import add_lines
from ebbtide.daemon.service import Service
from ebbtide.daemon.wire import INSTANCE_HEADER, KEY_HEADER, LINES, encoded
from ebbtide.errors import InputError
from ebbtide.extras import MissingExtraError
from ebbtide.memory import Memory
from ebbtide.remembering import add_and_get
from ebbtide.types import Turn

try:
    from fastapi import APIRouter, Depends, Header, Query, Request, Response
except ImportError as error:
    raise MissingExtraError(error, "serve") from error

from ebbtide.daemon import models

__all__ = ["adding", "changing", "reading"]

Namespace = Annotated[str, Query(description="The memory's name; any text.")]
Id = Annotated[int | None, Query(ge=0, description="The turn's interaction id.")]
ExternalId = Annotated[str | None, Query(description="Or your own id of it.")]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a write, of maybe several.

    Attributes:
        key: The same for each of them.
        instance: The process that an earlier one went to.
    """

    key: str | None
    instance: str | None


def _attempt(
    key: Annotated[
        str | None,
        Header(
            alias=KEY_HEADER,
            min_length=1,
            max_length=200,
            description="The same key twice is carried out once, and answered alike.",
        ),
    ] = None,
    instance: Annotated[
        str | None,
        Header(
            alias=INSTANCE_HEADER,
            description="Refuse, unless an earlier attempt went to this very process.",
        ),
    ] = None,
) -> Attempt:
    return Attempt(key, instance)


Attempted = Annotated[Attempt, Depends(_attempt)]

_LINES_BODY = {
    "requestBody": {
        "required": True,
        "description": "One turn a line, as JSON; OpenAI chat messages too.",
        "content": {LINES: {"schema": {"type": "string"}}},
    }
}


async def _once(
    service: Service,
    namespace: str,
    attempt: Attempt,
    asked: bytes,
    work: Callable[[Memory], bytes],
    *,
    create: bool = False,
) -> Response:
    """The answer of a write, carried out once for all its attempts."""
    found = await service.write(
        namespace, work, create=create, key=attempt.key, instance=attempt.instance, asked=asked
    )
    return _json(found)


def adding(service: Callable[[], Service]) -> APIRouter:
    """Routes that store turns; the memory is made where it is missing."""
    router = APIRouter(tags=["write"])

    async def written(
        namespace: str, attempt: Attempt, asked: bytes, work: Callable[[Memory], bytes]
    ) -> Response:
        return await _once(service(), namespace, attempt, asked, work, create=True)

    @router.post("/turns", response_model=models.Report)
    async def add(
        turn: models.GivenTurn,
        request: Request,
        attempt: Attempted,
        namespace: Namespace = "default",
    ) -> Response:
        """Store one turn; the memory is made where it is missing."""

        def work(memory: Memory) -> bytes:
            return encoded(memory.add(**dict(turn)).to_dict())

        return await written(namespace, attempt, b"add" + await request.body(), work)

    @router.post("/remember", response_model=models.Remembered)
    async def remember(
        turn: models.GivenTurn,
        request: Request,
        attempt: Attempted,
        namespace: Namespace = "default",
    ) -> Response:
        """Store one turn, as `/turns` does, and give it back with its id."""

        def work(memory: Memory) -> bytes:
            report, stored = add_and_get(memory, **dict(turn))
            found = {
                "report": report.to_dict(),
                "turn": None if stored is None else stored.to_dict(),
            }
            return encoded(found)

        return await written(namespace, attempt, b"remember" + await request.body(), work)

    @router.post("/turns/lines", response_model=models.Report, openapi_extra=_LINES_BODY)
    async def add_many(
        request: Request,
        attempt: Attempted,
        namespace: Namespace = "default",
        before: Annotated[
            int, Query(ge=0, description="Turns of the same call in earlier requests.")
        ] = 0,
    ) -> Response:
        """Store turns in order, one a line; an unusable one keeps those before it."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != LINES:
            raise InputError(f"the body must be {LINES}, one turn a line", "input.field")
        body = await request.body()

        def work(memory: Memory) -> bytes:
            return encoded(add_lines(memory, body, before=before).to_dict())

        return await written(namespace, attempt, b"lines" + body, work)

    return router


def changing(service: Callable[[], Service]) -> APIRouter:
    """Routes that change or erase what is stored."""
    router = APIRouter(tags=["write"])

    @router.delete("/turn", status_code=204, response_class=Response)
    async def delete(
        namespace: Namespace = "default", interaction_id: Id = None, external_id: ExternalId = None
    ) -> Response:
        """Erase one turn."""

        def work(memory: Memory) -> bytes:
            memory.delete(interaction_id, external_id=external_id)
            return b""

        await service().write(namespace, work)
        return Response(status_code=204)

    @router.delete("/turns", status_code=204, response_class=Response)
    async def delete_all(namespace: Namespace = "default") -> Response:
        """Erase every turn of a memory; its name stays."""

        def work(memory: Memory) -> bytes:
            memory.delete_all()
            return b""

        await service().write(namespace, work)
        return Response(status_code=204)

    async def erased(
        namespace: str, attempt: Attempt, asked: bytes, work: Callable[[Memory], list[Turn]]
    ) -> Response:
        def told(memory: Memory) -> bytes:
            return encoded({"turns": [turn.to_dict() for turn in work(memory)]})

        return await _once(service(), namespace, attempt, asked, told)

    @router.post("/forget", response_model=models.TurnsAnswer)
    async def forget(
        given: models.Forgotten,
        request: Request,
        attempt: Attempted,
        namespace: Namespace = "default",
    ) -> Response:
        """Erase the turns that answer a question, have these ids or were said before a time."""
        asked = b"forget" + await request.body()
        return await erased(namespace, attempt, asked, lambda m: m.forget(**dict(given)))

    @router.post("/retain", response_model=models.TurnsAnswer)
    async def retain(
        given: models.Retention,
        request: Request,
        attempt: Attempted,
        namespace: Namespace = "default",
    ) -> Response:
        """Erase turns beyond an age or a number."""
        asked = b"retain" + await request.body()
        return await erased(namespace, attempt, asked, lambda m: m.retain(**dict(given)))

    @router.post("/relations", response_model=models.Report)
    async def relate(given: models.Relation, namespace: Namespace = "default") -> Response:
        """Say how one turn relates to an older one."""

        def work(memory: Memory) -> bytes:
            return encoded(memory.relate(given.newer, given.relation, given.older).to_dict())

        return _json(await service().write(namespace, work))

    @router.post("/flush", status_code=204, response_class=Response)
    async def flush(namespace: Namespace = "default") -> Response:
        """Wait until every journalled turn is analysed."""
        await service().read(namespace, Memory.flush)
        return Response(status_code=204)

    @router.put("/namespace", response_model=models.NamespaceAnswer)
    async def create(namespace: Namespace = "default") -> Response:
        """Open a memory, making it where it is missing."""

        def work(memory: Memory) -> bytes:
            return encoded({"namespace": memory.namespace})

        return _json(await service().write(namespace, work, create=True))

    @router.delete("/namespace", status_code=204, response_class=Response)
    async def delete_namespace(namespace: Namespace = "default") -> Response:
        """Erase a memory and its name."""
        await service().delete(namespace)
        return Response(status_code=204)

    return router


def reading(service: Callable[[], Service]) -> APIRouter:
    """Routes that change nothing."""
    router = APIRouter(tags=["read"])

    async def read(namespace: str, work: Callable[[Memory], Any]) -> Response:
        # The thread that reads also writes the JSON: a page of turns may be long.
        return _json(await service().read(namespace, lambda memory: encoded(work(memory))))

    @router.post("/retrieve", response_model=models.EvidenceAnswer)
    async def retrieve(asked: models.Question, namespace: Namespace = "default") -> Response:
        """Turns that answer a question, best first."""

        def work(memory: Memory) -> dict[str, Any]:
            return {"evidence": [one.to_dict() for one in memory.retrieve(**dict(asked))]}

        return await read(namespace, work)

    @router.post("/context", response_model=models.Rendered)
    async def context(asked: models.ContextQuestion, namespace: Namespace = "default") -> Response:
        """Evidence and the active conversation as one block of text for a prompt."""

        def work(memory: Memory) -> dict[str, Any]:
            found = memory.context(**dict(asked))
            return {"text": found.text, "shown": found.shown, "tokens": found.tokens}

        return await read(namespace, work)

    @router.post("/trace", response_model=models.TraceAnswer)
    async def trace(asked: models.TraceQuestion, namespace: Namespace = "default") -> Response:
        """How a question is answered: its frame, and every candidate's scores and fate."""
        return await read(namespace, lambda memory: memory.trace(**dict(asked)))

    @router.get("/turns", response_model=models.Page)
    async def turns(
        namespace: Namespace = "default",
        state: Annotated[str | None, Query(description="active or archived.")] = None,
        first: Annotated[int, Query(ge=0, description="The id to begin with.")] = 0,
        limit: Annotated[int, Query(ge=1, le=1000, description="Most turns.")] = 256,
        metadata: Annotated[
            str | None, Query(description="Values that metadata must have: an object in JSON.")
        ] = None,
    ) -> Response:
        """Stored turns in order of their ids, a page at a time."""
        wanted = None if metadata is None else _object(metadata)

        def work(memory: Memory) -> dict[str, Any]:
            rows = memory.turns(state=state, first=first, metadata=wanted)
            found = list(islice(rows, limit + 1))
            more = found[limit].interaction_id if len(found) > limit else None
            return {"turns": [turn.to_dict() for turn in found[:limit]], "next": more}

        return await read(namespace, work)

    @router.get("/turn", response_model=models.StoredTurn)
    async def get(
        namespace: Namespace = "default", interaction_id: Id = None, external_id: ExternalId = None
    ) -> Response:
        """One stored turn."""

        def work(memory: Memory) -> dict[str, Any]:
            return memory.get(interaction_id, external_id=external_id).to_dict()

        return await read(namespace, work)

    @router.get("/history", response_model=models.TurnsAnswer)
    async def history(
        namespace: Namespace = "default", interaction_id: Id = None, external_id: ExternalId = None
    ) -> Response:
        """The turns that a turn is related to by lineage, itself included."""

        def work(memory: Memory) -> dict[str, Any]:
            found = memory.history(interaction_id, external_id=external_id)
            return {"turns": [turn.to_dict() for turn in found]}

        return await read(namespace, work)

    @router.get("/explain", response_model=models.ExplainAnswer)
    async def explain(
        namespace: Namespace = "default", interaction_id: Id = None, external_id: ExternalId = None
    ) -> Response:
        """The life of one turn: signals, score, decisions, lineage, where it stands."""
        return await read(
            namespace, lambda memory: memory.explain(interaction_id, external_id=external_id)
        )

    @router.get("/stats", response_model=models.StatsAnswer)
    async def stats(namespace: Namespace = "default") -> Response:
        """The memory in numbers."""
        return await read(namespace, Memory.stats)

    @router.get("/digest", response_model=models.DigestAnswer)
    async def digest(namespace: Namespace = "default") -> Response:
        """SHA-256 of the logical state: equal whenever the same turns went in."""
        return await read(namespace, lambda memory: {"digest": memory.digest()})

    @router.get("/namespaces", response_model=models.NamespacesAnswer)
    async def namespaces() -> Response:
        """Names of the memories in the store, ordered."""
        return _json(encoded({"namespaces": await service().namespaces()}))

    return router


def _object(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        message = f"metadata must be an object in JSON: {error}"
        raise InputError(message, "input.field") from error


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json")
