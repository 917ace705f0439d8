"""Bodies of requests and answers, as the OpenAPI description shows them.

What goes in is checked by these for its shape alone; the memory checks the rest, with
the words and codes that it has for a caller in the same process.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ebbtide.extras import MissingExtraError

try:
    from pydantic import BaseModel, ConfigDict, Field
except ImportError as error:
    raise MissingExtraError(error, "serve") from error

__all__ = [
    "ContextQuestion",
    "DigestAnswer",
    "ErrorAnswer",
    "Evidence",
    "EvidenceAnswer",
    "ExplainAnswer",
    "Forgotten",
    "GivenTurn",
    "Health",
    "NamespaceAnswer",
    "NamespacesAnswer",
    "Page",
    "Question",
    "Relation",
    "Remembered",
    "Rendered",
    "Report",
    "Retention",
    "StatsAnswer",
    "StoredTurn",
    "TraceAnswer",
    "TraceQuestion",
    "TurnsAnswer",
]

_Time = str | int | float
_TIME = "ISO 8601 text, or seconds since 1970; without a zone it is UTC."


class _Given(BaseModel):
    """Nothing is converted, and a name that does not exist is an error."""

    model_config = ConfigDict(extra="forbid", strict=True)


class GivenTurn(_Given):
    """One turn of a conversation."""

    text: Annotated[str, Field(description="What was said; kept as it is.")]
    role: Annotated[str, Field(description="user, assistant, system, tool or another.")] = "user"
    speaker: Annotated[str | None, Field(description="The speaker's name.")] = None
    timestamp: Annotated[_Time | None, Field(description=f"When it was said: {_TIME}")] = None
    session_id: Annotated[str | None, Field(description="Its conversation session.")] = None
    external_id: Annotated[
        str | None, Field(description="Your own id; the same id twice is one turn.")
    ] = None
    provenance: Annotated[
        dict[str, Any] | None, Field(description="Such as is_user_correction: true.")
    ] = None
    metadata: Annotated[dict[str, Any] | None, Field(description="Anything else.")] = None
    wait: Annotated[
        Literal["complete", "journalled"],
        Field(description="journalled: answer once the raw turn is safe, analyse later."),
    ] = "complete"


class Relation(_Given):
    """How one turn relates to an older one."""

    newer: Annotated[int, Field(ge=0, description="Interaction id of the relating turn.")]
    relation: Annotated[
        str, Field(description="supersedes, corrects, invalidates or conflicts_with.")
    ]
    older: Annotated[int, Field(ge=0, description="Interaction id of the other.")]


class Forgotten(_Given):
    """Which turns are to be erased: those that answer a question, or of ids, or a time."""

    query_text: Annotated[
        str | None, Field(description="The turns that answer this question best.")
    ] = None
    ids: Annotated[
        list[int | str] | None, Field(description="Or of these interaction or external ids.")
    ] = None
    limit: Annotated[int, Field(description="With a question, most turns.")] = 1
    before: Annotated[_Time | None, Field(description=f"Only what was said before: {_TIME}")] = None
    dry_run: Annotated[bool, Field(description="Erase nothing.")] = False


class Retention(_Given):
    """What is kept; the rest is erased."""

    max_age: Annotated[float | None, Field(description="Greatest age in seconds.")] = None
    max_records: Annotated[int | None, Field(description="Most turns that stay.")] = None
    now: Annotated[
        _Time | None, Field(description=f"When age is reckoned from; needed with it. {_TIME}")
    ] = None
    dry_run: Annotated[bool, Field(description="Erase nothing.")] = False


class _Asked(_Given):
    query_text: Annotated[str, Field(description="The question, in full words.")]
    limit: Annotated[int | None, Field(ge=1, description="Most turns.")] = None
    query_time: Annotated[
        _Time | None,
        Field(description=f"When it is asked; the newest turn's time by default. {_TIME}"),
    ] = None
    preset: Annotated[str | None, Field(description="default or paper.")] = None
    filters: Annotated[
        dict[str, Any] | None,
        Field(description="role, speaker, session_id, since, until, metadata."),
    ] = None


class Question(_Asked):
    """A question to a memory."""

    max_tokens: Annotated[int | None, Field(ge=1, description="Most tokens of the turns.")] = None


class ContextQuestion(_Asked):
    """A question whose answer goes into a prompt."""

    max_tokens: Annotated[int | None, Field(ge=1, description="Most tokens of the block.")] = None
    include_active: Annotated[
        bool, Field(description="Whether the active conversation follows the evidence.")
    ] = True


class TraceQuestion(_Asked):
    """A question whose answering is to be shown."""

    answer: Annotated[
        str | None, Field(description="An answer to check, for the policy quality.")
    ] = None


class StoredTurn(BaseModel):
    """A turn as the memory has it."""

    text: str
    role: str
    speaker: str | None
    timestamp: Annotated[str | None, Field(description="As it was given.")]
    session_id: str | None
    external_id: str | None
    provenance: dict[str, Any] | None
    metadata: dict[str, Any] | None
    interaction_id: Annotated[int, Field(description="From 0, never used again.")]
    record_id: Annotated[str, Field(description="Equal wherever the same turn went in.")]
    state: Annotated[str, Field(description="active or archived.")]
    validity: Annotated[str, Field(description="current, superseded, corrected or invalidated.")]
    tokens: int
    utc: Annotated[str | None, Field(description="The time in UTC, ISO 8601.")]


class Evicted(BaseModel):
    """A turn that left the active memory."""

    interaction_id: int
    reason: str


class Report(BaseModel):
    """What a write did."""

    accepted: Annotated[int, Field(description="Turns stored.")]
    duplicates: Annotated[int, Field(description="Turns known by their external id.")]
    evicted: list[Evicted]
    superseded: Annotated[list[int], Field(description="Ids that stopped being current.")]
    tiers: Annotated[dict[str, int], Field(description="Active turns by tier.")]
    active_tokens: int
    over_budget_tokens: int
    over_budget_turns: int


class Remembered(BaseModel):
    """What a write did, and the turn that the memory has now."""

    report: Report
    turn: Annotated[
        StoredTurn | None, Field(description="null where only a rendered block was given.")
    ]


class Support(BaseModel):
    """A turn behind evidence."""

    turn: StoredTurn
    relation: str


class Evidence(BaseModel):
    """One turn that answers."""

    rank: Annotated[int, Field(description="From 1, best first.")]
    score: float
    kind: str
    turn: StoredTurn
    channels: dict[str, float]
    features: dict[str, float]
    support: list[Support]
    confidence: Annotated[float, Field(description="0 to 1; below 0.5 it does not know.")]
    card: dict[str, Any] | None


class EvidenceAnswer(BaseModel):
    """Evidence, best first."""

    evidence: list[Evidence]


class Rendered(BaseModel):
    """A block of text for a prompt."""

    text: str
    shown: Annotated[list[int], Field(description="Interaction ids of the turns in it.")]
    tokens: int


class TraceAnswer(BaseModel):
    """How a question is answered."""

    frame: dict[str, Any]
    candidates: list[Any]
    evidence: list[Evidence]
    deliberation: dict[str, Any] | None


class TurnsAnswer(BaseModel):
    """Turns in order of their ids."""

    turns: list[StoredTurn]


class Page(BaseModel):
    """Some of the turns, and where the next page begins."""

    turns: list[StoredTurn]
    next: Annotated[int | None, Field(description="`first` of the next page; null at the end.")]


class ExplainAnswer(BaseModel):
    """The life of one turn; its parts are described under `Memory.explain`."""

    model_config = ConfigDict(extra="allow")

    turn: dict[str, Any]


class StatsAnswer(BaseModel):
    """The memory in numbers; its parts are described under `Memory.stats`."""

    model_config = ConfigDict(extra="allow")

    turns: int
    next_id: int


class DigestAnswer(BaseModel):
    """SHA-256 of the logical state, in hex."""

    digest: str


class NamespaceAnswer(BaseModel):
    """One memory's name."""

    namespace: str


class NamespacesAnswer(BaseModel):
    """The memories of the store, ordered by name."""

    namespaces: list[str]


class Health(BaseModel):
    """Who answers."""

    status: Literal["ok"]
    version: Annotated[str, Field(description="Of ebbtide.")]
    instance: Annotated[str, Field(description="Random; another one after each start.")]
    process: Annotated[int, Field(description="Process id.")]
    store: Annotated[str, Field(description="The store file.")]


class ErrorBody(BaseModel):
    """What went wrong."""

    code: Annotated[str, Field(description="Stable; docs/errors.md lists them.")]
    message: Annotated[str, Field(description="One sentence that says what to do.")]


class ErrorAnswer(BaseModel):
    """The one shape of every error."""

    error: ErrorBody
