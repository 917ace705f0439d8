"""Claims of what became of a thing: it is called off, or it has another name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ebbtide.analysis.facts import Claim
from ebbtide.analysis.normalise import nfc_lower, word_set
from ebbtide.analysis.patterns import guarded
from ebbtide.analysis.signals.claim_limits import limits
from ebbtide.analysis.signals.claim_parts import UNSPECIFIED, ClaimReader, PlacedClaim
from ebbtide.analysis.signals.claims_settings import happens, identity_of, of_sort, owned
from ebbtide.analysis.signals.people import MANY
from ebbtide.analysis.signals.setting_values import NAMED, VALUE, is_value, normal
from ebbtide.analysis.signals.text import Clause

__all__ = ["event_claims"]

_LATELY = r"(?:(?:now|just|been|also|already|finally|unfortunately|sadly|officially)\s+)*"
_OFF = r"(?:cancell?ed|called off|off(?=\s*(?:[.,;!(]|$|because\b|after all)))"
_THING = r"(?P<np>(?:[\w'-]+ ){0,5}?[\w'-]+)"
_IS_OFF = guarded(
    rf"(?:^|\b(?:the|our|my|this)\b)[\s,:]*{_THING}(?:\s+(?:just|now|also|already))?"
    r"(?:\s+(?:is|are|was|were|got|has|have)|'s)"
    rf"\s+{_LATELY}(?P<how>{_OFF})\b(?P<tail>.*)$",
    re.IGNORECASE,
)
_CALLED_OFF = guarded(
    rf"\b(?:I|we|they|he|she)(?: have| has|'ve|'s)?(?: had to)?\s+{_LATELY}"
    rf"(?:cancel(?:l?ed)?|call(?:ed)? off)\s+(?:the|our|my|this)\s+{_THING}"
    r"(?P<tail>\s*(?:$|[.,;!)(]|\b(?:because|due|until|till|on|for|with|of|to|at|in|from|after"
    r"|this|next|yesterday|today|tonight|tomorrow|last|again|as|so|and|but|since)\b).*)$",
    re.IGNORECASE,
)
# "The date is off" says that it is wrong.
_WRONG = word_set("date deadline due-date due start end birthday anniversary")
# These say why or until when, not which.
_NOT_WHICH = word_set("because due until till after by yesterday")
_WHICH = word_set("for of with to")
_HOURS = ("", " time", " month")

_MARRYING = guarded(
    r"\b(?:I|we)(?:'re|'m| are| am)?(?: finally| also| now)* (?:get|getting|going to get) married"
    rf" (?:(?:on|in|at|this|next) )?(?P<value>{VALUE})",
    re.IGNORECASE,
)

_WORDS = r"[a-z][\w'-]*(?: [a-z][\w'-]*){0,2}?"
_NEW_NAME = rf"(?:{NAMED}|(?<=(?i:\bto ))[\w.-]+(?=\s*(?:[.,;!]|$)))"
_RENAMED = guarded(
    r"\b(?i:I|we|they|he|she)(?i:'ve| have| has)?\s+(?i:(?:now|just|also|finally|recently)\s+)*"
    r"(?i:renamed|rebranded)\s+"
    rf"(?:(?i:the|our|my|this)\s+(?P<np>{_WORDS})(?:\s+(?i:from)\s+(?P<old>{NAMED}))?"
    rf"|(?P<only>{NAMED}))\s+(?i:(?:to|as|into)\s+)?(?P<value>{_NEW_NAME})"
)
_WAS_RENAMED = guarded(
    rf"\b(?i:the|our|my|this)\s+(?P<np>{_WORDS})(?:\s+(?i:is|was|got|has|have)|'s)\s+(?i:{_LATELY})"
    rf"(?i:renamed|rebranded)(?:\s+(?i:from)\s+(?P<old>{NAMED}))?\s+(?i:(?:to|as|into)\s+)?"
    rf"(?P<value>{_NEW_NAME})"
)
_CALLED = guarded(
    rf"\b(?P<whose>(?i:the|our|this))\s+(?P<np>{_WORDS})(?:\s+(?i:is|will be)|'s)"
    rf"\s+(?P<now>(?i:now\s+)?)(?i:called|named)\s+(?P<value>{NAMED})"
)
# Of these one speaks of one, whose name may change; of films and books one after another.
_ONES = word_set(
    """service project app application company startup product team repo repository website
    newsletter"""
)


def event_claims(reader: ClaimReader, clause: Clause) -> Iterator[PlacedClaim]:
    """What one clause says to be called off or named anew."""
    match = _IS_OFF.search(clause.text) or _CALLED_OFF.search(clause.text)
    if match:
        yield from _called_off(reader, clause, match)
    match = _MARRYING.search(clause.text)
    if match:
        value = normal(match.group("value"))
        topic = of_sort("wedding", value)
        yield reader.place(clause, match, Claim("current_state", reader.speaker, topic, value))
    match = _RENAMED.search(clause.text) or _WAS_RENAMED.search(clause.text)
    if match is None:
        match = _CALLED.search(clause.text)
        if match and not _is_one(match):
            return
    if match:
        yield from _named(reader, clause, match)


def _called_off(reader: ClaimReader, clause: Clause, match: re.Match[str]) -> Iterator[PlacedClaim]:
    topic = identity_of(match.group("np"))
    if topic is None or not happens(topic):
        return
    noun, _, which = topic.partition(" for ")
    if noun in _WRONG and match.groupdict().get("how") == "off":
        return
    if is_value(which):
        # "The Friday meeting is cancelled" leaves that of Monday.
        value = normal(which)
        claim = Claim("current_state", reader.speaker, of_sort(noun, value), value, negated=True)
        yield reader.place(clause, match, claim)
        return
    limit = limits(reader, clause.start + match.start("tail"), clause.end)
    kind, _, what = limit.partition(" ")
    if kind in _WHICH and what:
        topic = owned(topic, what)
    elif limit and kind not in _NOT_WHICH:
        return
    noun, *rest = topic.split(" for ", maxsplit=1)
    for sort in _HOURS:
        identity = " for ".join([noun + sort, *rest])
        claim = Claim("current_state", reader.speaker, identity, "cancelled")
        yield reader.place(clause, match, claim)


def _is_one(match: re.Match[str]) -> bool:
    """Whether the thing that is called so has one name at a time, as far as is said."""
    words = nfc_lower(match.group("np")).split()
    return bool(match.group("now")) or words[-1] in _ONES or match.group("whose").lower() == "our"


def _named(reader: ClaimReader, clause: Clause, match: re.Match[str]) -> Iterator[PlacedClaim]:
    groups = match.groupdict()
    value = _name(match.group("value"))
    old = groups.get("old") or groups.get("only")
    thing = nfc_lower(groups.get("np") or "").removesuffix(" name").removesuffix("'s")
    if value in MANY or thing in MANY:
        return
    named = (
        Claim("current_state", reader.speaker, f"name of {thing}", value, old and _name(old))
        if thing
        else Claim("correction", reader.speaker, UNSPECIFIED, value, old and _name(old))
    )
    yield reader.place(clause, match, named)


def _name(text: str) -> str:
    return nfc_lower(text.strip("\"'").rstrip("."))
