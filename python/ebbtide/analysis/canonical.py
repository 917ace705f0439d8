"""What the embedder returned, in the integers that the store keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ebbtide import _core

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["CanonicalPassage", "canonical_passages"]


@dataclass(frozen=True, slots=True, eq=False)
class CanonicalPassage:
    """One window of a text.

    Attributes:
        start: First character of the window in the turn.
        end: One past its last character.
        vector: int16 [d], a unit vector of scale 32767.
        tokens: int8 [t, d], unit vectors of scale 127, or None where the embedder
            gives none.
    """

    start: int
    end: int
    vector: NDArray[np.int16]
    tokens: NDArray[np.int8] | None

    def moved(self, prefix: int, length: int) -> CanonicalPassage:
        """With its bounds in a turn of ``length`` characters, not in the text embedded.

        Args:
            prefix: Characters that were put in front of the turn.
            length: Characters of the turn.
        """
        start, end = max(0, self.start - prefix), max(0, self.end - prefix)
        return CanonicalPassage(start, min(end, length), self.vector, self.tokens)


def canonical_passages(passages: Sequence[Any]) -> tuple[CanonicalPassage, ...]:
    """The passages of one text, as an embedder's ``encode`` returns them."""
    return tuple(
        CanonicalPassage(
            passage.start,
            passage.end,
            _core.unit_vectors(passage.vector.reshape(1, -1))[0],
            None if passage.tokens is None else _core.token_vectors(passage.tokens),
        )
        for passage in passages
    )
