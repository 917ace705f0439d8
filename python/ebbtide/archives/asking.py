"""A question to a shared archive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ebbtide.archives.base import Archive, agreed
from ebbtide.archives.reading import identity_of
from ebbtide.archives.retrying import Retry
from ebbtide.inputs import positive

if TYPE_CHECKING:
    from ebbtide.memory import Memory
    from ebbtide.types import Turn

__all__ = ["SharedEvidence", "search_archive"]


@dataclass(frozen=True, slots=True)
class SharedEvidence:
    """A turn that somebody archived.

    Attributes:
        rank: From 1, best first.
        score: Cosine of the question and the turn's best passage, in [-1, 1].
        namespace: The memory that it is from.
        writer: Who shipped it.
        turn: The turn as it was said. Its state, validity and tokens are None: they
            are known to the memory that it is from.
    """

    rank: int
    score: float
    namespace: str
    writer: str
    turn: Turn

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-able data."""
        return {
            "rank": self.rank,
            "score": self.score,
            "namespace": self.namespace,
            "writer": self.writer,
            "turn": self.turn.to_dict(),
        }


def search_archive(
    memory: Memory,
    archive: Archive,
    query_text: str,
    *,
    limit: int = 10,
    namespaces: Sequence[str] | None = None,
    filters: Mapping[str, Any] | None = None,
    retry: Retry | None = None,
) -> list[SharedEvidence]:
    """Turns of an archive near a question, best first, with whose they are.

    The question is embedded as ``memory`` embeds it, without the names of speakers that
    the memory knows. Ordered by exact cosine, then namespace, then id.

    Args:
        memory: Whose embedder reads the question; it is not searched itself.
        archive: Where to look.
        query_text: The question.
        limit: Turns at most.
        namespaces: In which memories; in all by default.
        filters: As ``Memory.retrieve`` takes them, and ``writer``.
        retry: How a server that is away is asked again.

    Raises:
        InputError: If the question or a filter is unusable.
        FingerprintError: If the archive's vectors were made with another embedder.
        ExternalError: ``archive.unavailable`` where the server stays away.
    """
    agreed(archive.identity, identity_of(memory), archive.place)
    limit = positive("limit", limit)
    vector = memory._asking.ask(query_text).vector
    again = retry or Retry()
    hits = again(archive.search, vector, limit, namespaces=namespaces, filters=filters)
    return [
        SharedEvidence(rank, hit.score, hit.record.namespace, hit.record.writer, hit.record.turn)
        for rank, hit in enumerate(hits, 1)
    ]
