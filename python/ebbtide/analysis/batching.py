"""Texts side by side: how many go together, and which rows are whose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["portions", "rows_of"]

_Text = TypeVar("_Text", bound=Sized)
_Number = TypeVar("_Number", bound=np.generic)


def portions(texts: Iterable[_Text], most: int) -> Iterator[list[_Text]]:
    """Texts in order, as many at once as have ``most`` tokens together, or a longer one."""
    portion: list[_Text] = []
    tokens = 0
    for text in texts:
        if portion and tokens + len(text) > most:
            yield portion
            portion, tokens = [], 0
        portion.append(text)
        tokens += len(text)
    if portion:
        yield portion


def rows_of(texts: Sequence[Sized], rows: NDArray[_Number]) -> list[NDArray[_Number]]:
    """Each text's rows out of those of all, as views: a row a token, text after text."""
    ends = accumulate(map(len, texts), initial=0)
    return [rows[start:end] for start, end in pairwise(ends)]
