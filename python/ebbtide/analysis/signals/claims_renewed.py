"""Values given to what the turn names before: "we changed the password, it's now mango77"."""

from __future__ import annotations

from collections.abc import Iterator

from ebbtide.analysis.patterns import AnyOf, guarded
from ebbtide.analysis.signals.claim_parts import ClaimReader, PlacedClaim
from ebbtide.analysis.signals.claims_settings import (
    MOVED,
    SOFT,
    happens,
    identity_of,
    value_claims,
)
from ebbtide.analysis.signals.setting_values import ANY, VALUE
from ebbtide.analysis.signals.text import Clause, Sentence
from ebbtide.analysis.signals.values import tokens_from

__all__ = ["renewal_claims"]

_WHO = r"\b(?i:I|we|they)(?i:'ve| have| had to)?(?i: just| recently| finally| also)*"
_NEW = guarded(
    rf"{_WHO} (?i:(?:changed|updated|reset|replaced|rotated)\s+(?:the|our|my)"
    r"|(?:got|have|chose|picked|bought)\s+(?:an?|the|our|my)\s+(?P<new>new))\s+"
    r"(?P<np>(?:[\w.#/+-]+(?:'s)?\s+){0,3}?[\w.#/+-]+)\s*(?:[,;:–—-]+|\b(?i:and)\b)\s*"
    rf"(?i:(?:it|that|this|the new one)(?:'s| is)\s+)?(?i:{SOFT})(?P<value>{ANY})(?P<tail>.*)$"
)
_IT_MOVED = guarded(
    r"\b(?i:(?:they|we|he|she|I|someone|somebody)(?:'ve| have| has| had to)?(?: just)? "
    rf"{MOVED} it(?: back| forward| up| down| over)?"
    rf"|it(?:'s| is| has| was| got)(?: now| just| been)* {MOVED}) (?i:to|until) "
    rf"(?i:{SOFT})(?P<value>{ANY})(?P<tail>.*)$"
)
_IT_IS_NOW = guarded(
    rf"\b(?i:it(?:'s| is)) (?P<now>(?i:now )?)(?i:(?:on|at|in|until) )?(?P<value>(?i:{VALUE}))"
    r"(?P<after>(?i: now| instead)?)(?P<tail>.*)$"
)
_STATED = AnyOf(_NEW, _IT_MOVED, _IT_IS_NOW)
_DETERMINERS = frozenset(["the", "our", "my", "this"])
# Characters before "it" among which the thing is looked for.
_REACH = 160


def renewal_claims(reader: ClaimReader, sentence: Sentence) -> Iterator[PlacedClaim]:
    """The new value of a thing that the sentence, or the one before it, names."""
    if not _STATED.may_match(sentence.text):
        return
    match = _NEW.search(sentence.text)
    if match:
        identity = identity_of(match.group("np"))
        # A new password takes the place of the old one, a new meeting does not.
        if identity and match.group("new") and happens(identity):
            identity = None
    else:
        match = _IT_MOVED.search(sentence.text)
        if match is None:
            match = _IT_IS_NOW.search(sentence.text)
            if match is None or not (match.group("now") or match.group("after")):
                return
        phrase = _mentioned(reader, sentence.start + match.start())
        identity = identity_of(phrase) if phrase else None
    if identity:
        whole = Clause(sentence.start, sentence.end, sentence.text)
        yield from value_claims(reader, whole, match, identity)


def _mentioned(reader: ClaimReader, before: int) -> str | None:
    """The thing with a value that was named last: "my flight", "the team meeting"."""
    for token in reversed(tokens_from(reader.doc, max(0, before - _REACH), before)):
        if identity_of(token.text) is None or token.pos_ not in ("NOUN", "PROPN"):
            continue
        first = token
        while first.i and first.nbor(-1).pos_ in ("NOUN", "PROPN", "ADJ"):
            first = first.nbor(-1)
        if first.i and first.nbor(-1).lower_ in _DETERMINERS:
            return reader.doc.text[first.idx : token.idx + len(token)]
    return None
