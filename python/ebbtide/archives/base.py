"""The one interface of archives, and what its backends share."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

from ebbtide.archives.records import Block, Record, escaped, kept_fields
from ebbtide.errors import (
    ExternalError,
    FingerprintError,
    InputError,
    NotFoundError,
    SchemaVersionError,
)
from ebbtide.inputs import checked_mapping, checked_text, filters_for_core

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "SCHEMA",
    "Archive",
    "Filters",
    "Hit",
    "Identity",
    "Source",
    "UnusableError",
    "agreed",
    "conflict",
    "fresh",
    "names_of",
    "not_there",
    "one_namespace",
    "strangers",
    "unavailable",
]

SCHEMA = 1
"""Raised when a release can no longer read what an earlier one archived."""

_SOURCE: Mapping[str, type] = {
    "cursor": int,
    "next_id": int,
    "analyser": str,
    "token_counter": str,
    "relations": list,
}

_USER_INFO = re.compile(r"://\S*@")
"""Who asks, with the password, where a driver repeats an address."""


class UnusableError(ExternalError):
    """An archive that cannot be used, and will not be in a moment: no use in asking again."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What every vector in an archive was made with.

    Attributes:
        embedding: Fingerprint of the embedder and of what it is given.
        dimension: Numbers in a vector.
        schema: Layout of the archive.
    """

    embedding: str
    dimension: int
    schema: int = SCHEMA

    def to_json(self) -> str:
        """As it is kept in an archive."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: object, place: str) -> Identity:
        """As it was kept in an archive.

        Raises:
            ExternalError: ``archive.damaged`` if it is something else.
        """
        fields = kept_fields(text, {"embedding": str, "dimension": int, "schema": int})
        if fields is None or fields["dimension"] < 1:
            raise ExternalError(
                f"{place} is damaged: it does not say what its vectors were made with; push its "
                "memories to another archive",
                "archive.damaged",
            )
        return cls(**fields)


def agreed(found: Identity | None, wanted: Identity | None, place: str) -> Identity:
    """The identity of an archive: its own where it has one, which must be the wanted one.

    Raises:
        SchemaVersionError: If the archive has a layout that this release does not know.
        FingerprintError: If its vectors were made with another embedder.
        ExternalError: If there is no archive yet and nobody says what it is to hold.
    """
    if found is None:
        if wanted is None:
            raise UnusableError(
                f"{place} holds no archive yet; `ebbtide archive push` makes one",
                "archive.unavailable",
            )
        return wanted
    if found.schema != SCHEMA:
        raise SchemaVersionError(
            f"{place} has archive schema {found.schema}, this release knows {SCHEMA}; "
            "upgrade ebbtide, or migrate the archive with the release that made it",
            "schema.version",
        )
    if wanted is not None and (found.embedding, found.dimension) != (
        wanted.embedding,
        wanted.dimension,
    ):
        raise FingerprintError(
            f"the vectors in {place} were made with {found.embedding} ({found.dimension} "
            f"dimensions), this memory's with {wanted.embedding} ({wanted.dimension}); use the "
            "same model, or another archive",
            "fingerprint.analyser",
        )
    return found


@dataclass(frozen=True, slots=True)
class Source:
    """What an archive knows of the memory behind a namespace, besides its turns.

    Attributes:
        cursor: One past the highest id that was ever put.
        next_id: The memory's next interaction id.
        analyser: Fingerprint of its analysis.
        token_counter: Its token counter.
        relations: Relations that its callers stated: newer, relation, older.
    """

    cursor: int = 0
    next_id: int = 0
    analyser: str = ""
    token_counter: str = ""
    relations: tuple[tuple[int, str, int], ...] = ()

    def to_json(self) -> str:
        """As it is kept in an archive."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: object, namespace: str) -> Source:
        """As it was kept in an archive.

        Raises:
            ExternalError: ``archive.damaged`` if it is something else.
        """
        fields = kept_fields(text, _SOURCE)
        relations = [] if fields is None else fields["relations"]
        stated = all(
            isinstance(one, list) and [type(part) for part in one] == [int, str, int]
            for one in relations
        )
        if fields is None or not stated or min(fields["cursor"], fields["next_id"]) < 0:
            raise ExternalError(
                f"what the archive knows of the memory behind {namespace!r} is damaged; erase that "
                "namespace there and push the memory again",
                "archive.damaged",
            )
        return cls(**{**fields, "relations": tuple(map(tuple, relations))})

    def not_behind(self, known: Source) -> Source:
        """This, but with a cursor no lower than that of what is known."""
        return replace(self, cursor=max(self.cursor, known.cursor))

    def moved(self, records: Sequence[Record]) -> Source:
        """With the cursor past these records."""
        past = max((record.interaction_id + 1 for record in records), default=0)
        return replace(self, cursor=max(self.cursor, past))


@dataclass(frozen=True, slots=True)
class Hit:
    """A record that a search found, and its cosine in [-1, 1]."""

    score: float
    record: Record

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-able data."""
        return {
            "score": self.score,
            "namespace": self.record.namespace,
            "writer": self.record.writer,
            "turn": self.record.turn.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class Filters:
    """What a search lets through; None lets everything through.

    Attributes:
        role: The turn's role.
        speaker: Its speaker, lower case.
        session_id: Its session.
        since: Earliest time, microseconds since 1970, UTC.
        until: Latest time, inclusive.
        writer: Who shipped it.
        metadata: Fields that must have these values.
        namespaces: The memories to search.
    """

    role: str | None = None
    speaker: str | None = None
    session_id: str | None = None
    since: int | None = None
    until: int | None = None
    writer: str | None = None
    metadata: Mapping[str, Any] | None = None
    namespaces: tuple[str, ...] | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any] | None, namespaces: Sequence[str] | None) -> Self:
        """Filters as ``Memory.retrieve`` takes them, ``writer``, and where to search.

        Raises:
            InputError: For an unknown filter or an unusable value.
        """
        wanted = {} if given is None else dict(checked_mapping("filters", given))
        writer = wanted.pop("writer", None)
        if writer is not None:
            checked_text("filter writer", writer)
        fields = filters_for_core(wanted) or {}
        if "speaker" in fields:
            fields["speaker"] = fields["speaker"].lower()
        return cls(writer=writer, namespaces=names_of(namespaces), **fields)

    @property
    def equalities(self) -> list[tuple[str, str]]:
        """Column and value of what must be equal, as :func:`keys_of` keeps them."""
        given = {
            "role": self.role,
            "speaker": self.speaker,
            "session": self.session_id,
            "writer": self.writer,
        }
        return [(name, escaped(value)) for name, value in given.items() if value is not None]

    def lets_metadata(self, record: Record) -> bool:
        """Whether the record's metadata has the wanted fields.

        Decided here for every backend: servers differ in what equals what.
        """
        if not self.metadata:
            return True
        text = record.raw["metadata"]
        fields = {} if text is None else json.loads(text)
        return all(
            name in fields and _same_json(fields[name], value)
            for name, value in self.metadata.items()
        )


def names_of(namespaces: Sequence[str] | None) -> tuple[str, ...] | None:
    """Names of memories as a caller lists them, each once; None stands for all.

    Raises:
        InputError: If it is no list of names.
    """
    if isinstance(namespaces, str):
        raise InputError("namespaces must be a list of names, not one name", "input.field")
    if namespaces is None:
        return None
    return tuple(dict.fromkeys(checked_text("a namespace", name) for name in namespaces))


def _same_json(one: Any, other: Any) -> bool:
    """Whether two values are equal as JSON has it: 1 is 1.0, and True is neither."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same_json(one[k], other[k]) for k in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(_same_json(a, b) for a, b in pairs)
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


@runtime_checkable
class Archive(Protocol):
    """Records of many memories on one server.

    Every method raises ``ExternalError`` (``archive.unavailable``) where the server
    cannot be reached; the next call tries to reach it again.
    """

    identity: Identity
    place: str

    def put(self, namespace: str, records: Sequence[Record]) -> int:
        """Keep records; those that are there already are passed over.

        Returns:
            How many were new.

        Raises:
            ExternalError: ``archive.conflict`` if another record has the same
                namespace and id; none of the call's records is kept then.
        """

    def get(self, namespace: str, ids: Sequence[int]) -> list[Record]:
        """The records of these ids that there are, in order of id."""

    def page(self, namespace: str, first: int, limit: int) -> list[Record]:
        """Up to ``limit`` records from id ``first`` on, in order of id."""

    def search(
        self,
        vector: NDArray[np.int16] | NDArray[np.float32],
        limit: int,
        *,
        namespaces: Sequence[str] | None = None,
        filters: Mapping[str, Any] | None = None,
    ) -> list[Hit]:
        """Records by cosine of their best passage, then namespace, then id.

        Args:
            vector: int16 unit vector of scale 32767 or float32, [d].
            limit: Records at most.
            namespaces: Where to search; everywhere by default.
            filters: As ``Memory.retrieve`` takes them, and ``writer``.
        """

    def delete(self, namespace: str, ids: Sequence[int]) -> int:
        """Erase records; returns how many there were."""

    def delete_namespace(self, namespace: str) -> int:
        """Erase a namespace with all its records; returns how many there were."""

    def namespaces(self) -> list[str]:
        """The namespaces, ordered."""

    def count(self, namespace: str | None = None) -> int:
        """Records of a namespace, or of all."""

    def cursor(self, namespace: str) -> int:
        """One past the highest id ever put; 0 for a namespace that is not there."""

    def source(self, namespace: str) -> Source | None:
        """What is known of the memory behind a namespace."""

    def set_source(self, namespace: str, source: Source) -> None:
        """Note what is known of the memory; the cursor only ever moves up."""

    def ids(self, namespace: str, first: int, end: int) -> list[int]:
        """Ids of records from ``first`` up to, not including, ``end``; in order."""

    def inventory(self, namespace: str) -> list[Block]:
        """Sums over ids and contents, by range of ids; empty ranges are left out."""

    def close(self) -> None:
        """Free the connection."""


def unavailable(place: str, error: BaseException, *, passing: bool) -> ExternalError:
    """The error for a server that failed or cannot be reached.

    Args:
        place: The archive.
        error: What its driver says.
        passing: Whether it may be otherwise in a moment, so that it is asked again.
    """
    # What drivers say often spans lines and repeats itself.
    what = " ".join(_USER_INFO.sub("://", str(error)).split())[:300] or type(error).__name__
    kind = ExternalError if passing else UnusableError
    return kind(f"the archive {place} cannot be used: {what}", "archive.unavailable")


def conflict(namespace: str, interaction_id: int) -> ExternalError:
    """The error for another record under the same key."""
    return ExternalError(
        f"the archive has another turn {interaction_id} in {namespace!r}: it belongs to another "
        "memory; push under another name, or delete that namespace",
        "archive.conflict",
    )


def not_there(place: str, namespace: str, there: Sequence[str]) -> NotFoundError:
    """The error for a namespace that an archive does not have."""
    listed = ", ".join(map(repr, there)) or "none"
    message = f"{place} has no namespace {namespace!r}; there are: {listed}"
    return NotFoundError(message, "not_found.namespace")


def strangers(namespace: str) -> ExternalError:
    """The error for turns of which none is one of the memory's."""
    return ExternalError(
        f"the archive has turns of {namespace!r}, of which this memory has none: push under "
        "another name; or, if all that was pushed there has been erased from this memory since, "
        "run `ebbtide archive erase` for that namespace first",
        "archive.conflict",
    )


def fresh(namespace: str, records: Sequence[Record], there: Mapping[int, bytes]) -> list[Record]:
    """The records that are not there yet.

    Args:
        namespace: Where they go.
        records: What is put.
        there: Hashes by id of what is there.

    Raises:
        ExternalError: If one differs from what is there or from another of them.
    """
    seen: dict[int, bytes] = dict(there)
    new: list[Record] = []
    for record in records:
        known = seen.setdefault(record.interaction_id, record.hash)
        if known != record.hash:
            raise conflict(namespace, record.interaction_id)
        if record.interaction_id not in there:
            new.append(record)
    distinct = {record.interaction_id: record for record in new}
    return [distinct[number] for number in sorted(distinct)]


def one_namespace(namespace: str, records: Iterable[Record], dimension: int) -> None:
    """Refuse records that belong elsewhere or have vectors of another length.

    Raises:
        InputError: Naming the record.
    """
    checked_text("namespace", namespace)
    for record in records:
        if record.namespace != namespace:
            message = f"a record of {record.namespace!r} was put into {namespace!r}"
            raise InputError(message, "input.field")
        if record.vectors.ndim != 2 or record.vectors.shape[1] != dimension:
            message = (
                f"turn {record.interaction_id} has vectors of shape {record.vectors.shape}, the "
                f"archive keeps [passages, {dimension}]"
            )
            raise InputError(message, "input.facts")
