"""A cue list: one named pattern a rule, matched inside one clause.

Patterns see the matching text (ASCII apostrophes), never the stored one. The name
says which rule to look at where a cue surprises.
"""

from __future__ import annotations

import re

from ebbtide.analysis.triggers import GuardedPattern, guarded

__all__ = ["FIRST_PERSON", "Rule", "rules"]

Rule = tuple[str, GuardedPattern]

FIRST_PERSON = r"(?:I|we)"


def rules(*pairs: tuple[str, str]) -> tuple[Rule, ...]:
    """Compile (name, pattern) pairs, ignoring case."""
    return tuple((name, guarded(pattern, re.IGNORECASE)) for name, pattern in pairs)
