"""Whether a sentence speaks of the past or the future, from surface words.

"On Tuesday" and "in May" name a day or month without saying which one. The
nearest tense word of the same sentence decides; a tagger is not needed for that
and would cost more than everything else here.
"""

from __future__ import annotations

import re

from ebbtide.analysis.patterns import lazy

__all__ = ["tense_near"]

_FUTURE = (
    r"will|won't|won’t|shall|gonna|wanna|going to|plan(?:s|ning)?|hop(?:e|es|ing) to|"
    r"look(?:ing)? forward|can't wait|can’t wait|upcoming|want(?:s)? to|let's|let’s|see you|"
    r"should|due (?!to\b)|deadline|scheduled for|appointment is|tomorrow|starts?|begins?|"
    r"is (?:on|in|at)|are (?:on|in|at)|"
    r"(?:am|are|is) (?!been|having|being|feeling|loving|doing)(?:[a-z]+ )?[a-z]+ing"
)
_FUTURE_CLITIC = (
    r"['’]ll\b|['’](?:m|re|s) (?!been|having|being|feeling|loving|doing)"
    r"(?:(?:also|just|really|all|actually|still) )?[a-z]+ing\b"
)
_PAST = (
    r"was|were|wasn't|weren't|did|didn't|had|went|got|took|made|saw|came|met|bought|found|told|"
    r"said|gave|left|ran|won|ate|drove|flew|spent|began|wrote|been|gone|done|seen|thought|"
    r"taught|felt|kept|lost|sold|paid|sent|became|brought|held|heard|broke|chose|fell|grew|"
    r"knew|led|rode|sang|swam|threw|woke|wore|hit|put|read|built|caught|drew|slept|spoke|"
    r"(?!need|feed|speed|indeed|breed|seed|bleed|excited|interested|stoked|tired|united|"
    r"scared|hundred|sacred|wicked|naked|succeed|proceed|exceed|supposed|embed)[a-z]{2,}ed"
)
_CUE = lazy(
    rf"\b(?P<past>was|were|did|had) (?:planning|going to|supposed|scheduled)\b"
    rf"|\b(?P<future>{_FUTURE})\b|(?P<clitic>{_FUTURE_CLITIC})|\b(?P<past2>{_PAST})\b",
    re.IGNORECASE,
)
_SENTENCE_END = lazy(r"[.!?;](?=\s)|\n")


def tense_near(text: str, start: int, end: int) -> str:
    """``past``, ``future`` or ``none``: the tense word nearest to a span.

    Args:
        text: The whole text.
        start: First character of the time expression.
        end: One past its last character.
    """
    # A window bounds the work on texts without sentence ends.
    low, high = max(0, start - 200), min(len(text), end + 120)
    for match in _SENTENCE_END.finditer(text, low, start):
        low = match.end()
    stop = _SENTENCE_END.search(text, end, high)
    high = stop.start() if stop else high
    best: tuple[int, str] | None = None
    for match in _CUE.finditer(text, low, high):
        if match.start() < end and match.end() > start:
            continue
        distance = start - match.end() if match.end() <= start else match.start() - end
        kind = "future" if match.group("future") or match.group("clitic") else "past"
        if best is None or distance < best[0]:
            best = distance, kind
    return best[1] if best else "none"
