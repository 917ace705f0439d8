"""Noise sentences: templates with slots, read from ``templates.toml``."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources

__all__ = ["CATEGORIES", "Template", "TemplateSet", "category_of", "templates"]

CATEGORIES = ("filler", "status", "tangent")
"""LoCoMo-Noise's categories: phatic padding, passing states, out-of-context remarks."""

_SLOT = re.compile(r"\{([A-Za-z]+)\}")


@dataclass(frozen=True)
class Template:
    """One sentence with slots.

    Attributes:
        pattern: As in the file, such as ``"{Wait}, just going to {chore}."``.
        slots: The values of every slot it may name.
    """

    pattern: str
    slots: Mapping[str, Sequence[str]] = field(repr=False)

    @functools.cached_property
    def capacity(self) -> int:
        """How many ways there are to fill the slots, at least 1."""
        total = 1
        seen: list[str] = []
        for name in _SLOT.findall(self.pattern):
            total *= len(self.slots[name.lower()]) - seen.count(name.lower())
            seen.append(name.lower())
        return total

    def fill(self, below: Callable[[int], int]) -> str:
        """Fill every slot; a slot named twice takes two different values.

        Args:
            below: Draws an index from 0 up to, not including, its argument.
        """
        used: dict[str, list[str]] = {}

        def value(match: re.Match[str]) -> str:
            name = match[1].lower()
            taken = used.setdefault(name, [])
            free = [choice for choice in self.slots[name] if choice not in taken]
            taken.append(free[below(len(free))])
            return _capitalised(taken[-1]) if match[1][0].isupper() else taken[-1]

        return _SLOT.sub(value, self.pattern)

    @functools.cached_property
    def _literal(self) -> str:
        return max(_SLOT.split(self.pattern)[::2], key=len).casefold()

    @functools.cached_property
    def _matcher(self) -> re.Pattern[str]:
        # A split by a pattern with one group alternates literals and slot names.
        pieces = _SLOT.split(self.pattern)
        for place, piece in enumerate(pieces):
            if place % 2:
                choices = (re.escape(choice.casefold()) for choice in self.slots[piece.lower()])
                pieces[place] = f"(?:{'|'.join(choices)})"
            else:
                pieces[place] = re.escape(piece.casefold())
        return re.compile("".join(pieces))

    def matches(self, folded: str) -> bool:
        """Whether this template can say the casefolded text."""
        # Hardly any text holds the longest literal, and the search for it is cheap.
        return self._literal in folded and self._matcher.fullmatch(folded) is not None


@dataclass(frozen=True)
class TemplateSet:
    """The template file.

    Attributes:
        mix: Percent of each category, 100 in all.
        by_category: The templates of each category, in the file's order.
    """

    mix: Mapping[str, int]
    by_category: Mapping[str, Sequence[Template]]


@functools.cache
def templates() -> TemplateSet:
    """Return the packaged templates, read once."""
    source = resources.files(__package__).joinpath("templates.toml")
    data = tomllib.loads(source.read_text(encoding="utf-8"))
    slots: dict[str, list[str]] = data["slots"]
    return TemplateSet(
        mix={category: data["mix"][category] for category in CATEGORIES},
        by_category={
            category: tuple(Template(pattern, slots) for pattern in data["templates"][category])
            for category in CATEGORIES
        },
    )


def category_of(text: str) -> str | None:
    """Return the category whose templates can say ``text``, letter case aside.

    Returns:
        One of :data:`CATEGORIES`; None for a text of any other origin.
    """
    folded = text.casefold()
    for category, members in templates().by_category.items():
        if any(template.matches(folded) for template in members):
            return category
    return None


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
