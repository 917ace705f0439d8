"""Constraint claims: what is allowed, forbidden or required."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ebbtide.analysis.facts import Claim
from ebbtide.analysis.normalise import word_set
from ebbtide.analysis.patterns import guarded
from ebbtide.analysis.signals.claim_limits import limited, limits
from ebbtide.analysis.signals.claim_parts import ClaimReader, PlacedClaim
from ebbtide.analysis.signals.cues_constraint import CONSTRAINT, CONSTRAINT_NOT
from ebbtide.analysis.signals.text import Clause
from ebbtide.analysis.signals.values import action_phrase

__all__ = ["constraint_claims"]

_LEAD = r"^\W*(?:(?:please|and|but|so|also|ok|okay|just|remember|note|actually|now)\b[\s,:]*)*"
_STATED = guarded(
    _LEAD + r"(?P<what>[\w' /-]{2,80}?)\s*(?:is|are|isn't|aren't|'s|was"
    r"|were)\s+(?P<middle>(?:(?:now|strictly|no longer|still|not|again|also|currently"
    r"|never)\s+)*)"
    "(?P<word>allowed|permitted|ok(?:ay)? again|forbidden|prohibited|banned|off[- ]limits"
    r"|required|mandatory|compulsory)\b",
    re.IGNORECASE,
)
_IMPERATIVE = guarded(
    _LEAD + "(?P<word>(?:do not|don't|never) forget to|(?:do not|don't|never)(?: ever)?|avoid"
    r"|always|only(?= use)|(?=use\b))\s*",
    re.IGNORECASE,
)
_MODAL = guarded(
    r"(?P<who>\b(?:you|we|I|they|[\w-]+(?: [\w-]+){0,3}?))\s+"
    "(?P<word>must not|mustn't|must never|must|may not|shall not|cannot|can't|can not"
    "|have to|has to"
    "|(?:am|'m|are|'re|is)(?: now| again)* (?:not )?allowed to|don't have to|may"
    r"|can)\s+(?:now |only |always |again )*(?=[a-z])",
    re.IGNORECASE,
)
_EATS = guarded(
    r"\bI (?P<word>don'?t|do not|can'?t|cannot|can not|never|no longer|can|can now|(?=(?:eat"
    r"|drink|started eating|started drinking)\b))\s*(?:now |also |started )*"
    r"(?=(?:eating|drinking|eat|drink|tolerate|consume)\b|(?<=can't )have\b"
    r"|(?<=cant )have\b|(?<=cannot )have\b)",
    re.IGNORECASE,
)
_PRONOUNS = word_set("it that this he she they there i we you")
_DENIAL = guarded(r"\b(?:not|no longer|never|dont|cant)\b|n't", re.IGNORECASE)
_FORBIDDING = re.compile(r"forbidden|prohibited|banned|off", re.IGNORECASE)
_REQUIRING = guarded(r"required|mandatory|compulsory", re.IGNORECASE)
# A habit given up is a change of taste, not a rule.
_ANYMORE = guarded(r"\b(?:any ?more|any longer)\b", re.IGNORECASE)
_AGAIN = guarded(r"\b(?:again|now|from now on)\b", re.IGNORECASE)


def constraint_claims(reader: ClaimReader, clause: Clause) -> Iterator[PlacedClaim]:
    """The rule that one clause states, if it can be put as an action and a value."""
    match = None if _ANYMORE.search(clause.text) else _EATS.search(clause.text)
    if match and (match.group("word") or _AGAIN.search(clause.text)):
        denied = bool(_DENIAL.search(match.group("word")))
        yield from _rule(
            reader,
            clause,
            match,
            match.end(),
            len(clause.text),
            "forbidden" if denied else "allowed",
        )
        return
    if not CONSTRAINT.matches(clause.text) or CONSTRAINT_NOT.search(clause.text):
        return
    match = _STATED.search(clause.text)
    if match and match.group("what").lower().strip() not in _PRONOUNS:
        start, end = match.span("what")
        limit = limits(reader, clause.start + match.end(), clause.end)
        for item in _rule(reader, clause, match, start, end, _stated_value(match)):
            yield replace(
                item, claim=replace(item.claim, identity=limited(item.claim.identity, limit))
            )
        return
    match = _IMPERATIVE.search(clause.text)
    if match:
        word = match.group("word").lower()
        required = "forget" in word or word in ("always", "only", "")
        yield from _rule(
            reader,
            clause,
            match,
            match.end(),
            len(clause.text),
            "required" if required else "forbidden",
        )
        return
    match = _MODAL.search(clause.text)
    if match:
        start = match.end()
        who = match.group("who").lower().split()[-1]
        subject = (
            "" if who in ("you", "we", "i", "they", "people", "everyone") else match.group("who")
        )
        yield from _rule(
            reader,
            clause,
            match,
            start,
            len(clause.text),
            _modal_value(match.group("word")),
            subject,
        )


def _stated_value(match: re.Match[str]) -> str:
    denied = bool(_DENIAL.search(match.group("middle")) or "n't" in match.group())
    word = match.group("word")
    if _REQUIRING.search(word):
        return "allowed" if denied else "required"
    forbidding = bool(_FORBIDDING.match(word))
    return "forbidden" if forbidding != denied else "allowed"


def _modal_value(word: str) -> str:
    word = word.lower()
    if word == "don't have to":
        return "allowed"
    if _DENIAL.search(word) or word == "cannot":
        return "forbidden"
    return "allowed" if "allowed" in word or word in ("may", "can") else "required"


def _rule(
    reader: ClaimReader,
    clause: Clause,
    match: re.Match[str],
    start: int,
    end: int,
    value: str,
    subject: str = "",
) -> Iterator[PlacedClaim]:
    action = action_phrase(reader.doc, clause.start + start, clause.start + end)
    if subject:
        offset = clause.start + match.start("who")
        owner = action_phrase(reader.doc, offset, clause.start + match.end("who"))
        action = f"{owner} {action}".strip()
    if action and not action.startswith("give up"):
        claim = Claim("constraint", reader.speaker, f"constraint:{action}", value)
        yield PlacedClaim(claim, clause.start + match.start(), clause.start + end)
