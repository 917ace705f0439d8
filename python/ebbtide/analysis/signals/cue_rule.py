"""A cue list: one named pattern a rule, matched inside one clause.

Patterns see the matching text (ASCII apostrophes), never the stored one. The name
says which rule to look at where a cue surprises.
"""

from __future__ import annotations

import re

from ebbtide.analysis.patterns import PatternList, guarded

__all__ = ["FIRST_PERSON", "rules"]

FIRST_PERSON = r"(?:I|we)"


def rules(*pairs: tuple[str, str]) -> PatternList:
    """A list of (name, pattern) pairs that ignore case."""
    return PatternList((name, guarded(pattern, re.IGNORECASE)) for name, pattern in pairs)
