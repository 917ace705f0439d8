"""Values of what its form tells to be a setting: ``LOG_LEVEL``, ``max_connections``, ``--jobs``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ebbtide.analysis.facts import Claim
from ebbtide.analysis.patterns import guarded
from ebbtide.analysis.signals.claim_parts import ClaimReader, PlacedClaim
from ebbtide.analysis.signals.claims_settings import limited_topic
from ebbtide.analysis.signals.setting_values import NAMED, VALUE, normal
from ebbtide.analysis.signals.text import Clause

__all__ = ["key_claims"]

_KEY = (
    r"(?<![\w.@/-])`?(?P<key>[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[a-z][a-z0-9]*(?:_[a-z0-9]+)+"
    r"|--[a-z][\w-]+)`?(?![\w.(/])"
)
_SWITCH = (
    r"(?:true|false|on|off|yes|no|none|null|enabled|disabled|debug|info|warn(?:ing)?|error|trace"
    r"|default|auto|unlimited|unset|empty)\b(?! (?!(?:in|for|on|at|by|now|again|because|and|but"
    r"|so|everywhere|instead|from|since|not)\b)\w)"
)
_GIVEN = rf"`?(?:(?i:{VALUE})|(?i:{_SWITCH})|{NAMED})"
# After "set to" any word is the value.
_ANY = rf"(?:{_GIVEN}|`?[\w./:-]+)"
_NOW = r"(?:(?i:now|still|currently|actually|again)\s+)*"
_END = r"`?(?P<tail>.*)$"
_IS = guarded(
    rf"{_KEY} ?(?:(?P<be>is|was) {_NOW}(?:(?i:(?:set|at|back to|set back to)\s+(?:to\s+)?)"
    rf"(?P<set>{_ANY})|(?P<value>{_GIVEN}))|[=:] ?(?P<is>{_ANY})){_END}"
)
_CHANGES = (
    "(?:changed?|set|moved?|switch(?:ed)?|updated?|rais(?:ed?|ing)|lower(?:ed)?|increased?"
    "|decreased?|reduced?|bump(?:ed)?|went|dropped|reset)"
)
_CHANGED = guarded(
    rf"(?:(?i:\b{_CHANGES}) (?i:(?:the|our|my) )?{_KEY}|{_KEY.replace('key', 'of')}"
    rf" (?i:(?:is |was |has been |got )?{_CHANGES}))"
    rf"(?i: (?:back |up |down )?)(?:(?i:from) (?P<old>{_ANY})`? )?(?i:to) (?P<value>{_ANY}){_END}"
)
_NOT_DONE = guarded(
    r"(?:\b(?:not|never|almost|nearly|to|should|could|would)\b|n't\b)", re.IGNORECASE
)


def key_claims(reader: ClaimReader, clause: Clause) -> Iterator[PlacedClaim]:
    """What a clause says a setting of a program to be, by its name in the program."""
    if not ("_" in clause.text or "--" in clause.text):
        return
    match = _CHANGED.search(clause.text)
    if match is not None:
        told = clause.text[: match.start()]
        done = not _NOT_DONE.search(told) and not (reader.advises and _orders(match))
        if done:
            key, now = match.group("key") or match.group("of"), match.group("value")
            yield from _key(reader, clause, match, "current_state", key, now, match.group("old"))
        return
    match = _IS.search(clause.text)
    if match is not None:
        value = match.group("set") or match.group("value") or match.group("is")
        kind = "past_state" if match.group("be") == "was" else "current_state"
        yield from _key(reader, clause, match, kind, match.group("key"), value)


def _orders(match: re.Match[str]) -> bool:
    """Whether it tells somebody to do it: from an assistant that is advice."""
    return match.group().split()[0].lower() in ("set", "change", "move", "raise", "lower", "bump")


def _key(
    reader: ClaimReader,
    clause: Clause,
    match: re.Match[str],
    kind: str,
    key: str,
    value: str,
    old: str | None = None,
) -> Iterator[PlacedClaim]:
    topic = limited_topic(reader, clause, f"setting {key.lower()}", match.start("tail"))
    value, old = _plain(value), _plain(old) if old else None
    yield reader.place(clause, match, Claim(kind, reader.speaker, topic, value, old))
    if old:
        yield reader.place(clause, match, Claim("correction", reader.speaker, topic, value, old))


def _plain(value: str) -> str:
    return normal(value.strip("`'\".,;"))
