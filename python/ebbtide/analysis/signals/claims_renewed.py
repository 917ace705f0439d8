"""Values given to what the turn names before: "we changed the password, it's now mango77"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ebbtide.analysis.facts import Claim
from ebbtide.analysis.patterns import AnyOf, guarded
from ebbtide.analysis.signals.claim_parts import ClaimReader, PlacedClaim
from ebbtide.analysis.signals.claims_settings import (
    MOVED,
    SOFT,
    happens,
    identity_of,
    limited_topic,
    of_sort,
    suits,
    value_of,
)
from ebbtide.analysis.signals.setting_values import NAMED, VALUE
from ebbtide.analysis.signals.text import Clause, Sentence
from ebbtide.analysis.signals.values import tokens_from

__all__ = ["renewal_claims"]

_ANY = f"(?:(?i:{VALUE})|{NAMED})"
_WHO = r"\b(?i:I|we|they)(?i:'ve| have| had to)?(?i: just| recently| finally| also)*"
_NEW = guarded(
    rf"{_WHO} (?i:(?:changed|updated|reset|replaced|rotated)\s+(?:the|our|my)"
    r"|(?:got|have|chose|picked|bought)\s+(?:an?|the|our|my)\s+(?P<new>new))\s+"
    r"(?P<np>(?:[\w.#/+-]+(?:'s)?\s+){0,3}?[\w.#/+-]+)\s*(?:[,;:–—-]+|\b(?i:and)\b)\s*"
    rf"(?i:(?:it|that|this|the new one)(?:'s| is)\s+)?(?i:{SOFT})(?P<value>{_ANY})(?P<tail>.*)$"
)
_IT_MOVED = guarded(
    r"\b(?i:(?:they|we|he|she|I|someone|somebody)(?:'ve| have| has| had to)?(?: just)? "
    rf"{MOVED} it(?: back| forward| up| down| over)?"
    rf"|it(?:'s| is| has| was| got)(?: now| just| been)* {MOVED}) (?i:to|until) "
    rf"(?i:{SOFT})(?P<value>{_ANY})(?P<tail>.*)$"
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
        # A new password takes the place of the old one, a new meeting does not.
        phrase = match.group("np")
        identity = identity_of(phrase)
        if identity and not (match.group("new") and happens(identity)):
            yield from _renewed(reader, sentence, match, phrase)
        return
    match = _IT_MOVED.search(sentence.text)
    if match is None:
        match = _IT_IS_NOW.search(sentence.text)
        if match is None or not (match.group("now") or match.group("after")):
            return
    phrase = _mentioned(reader, sentence.start + match.start())
    if phrase:
        yield from _renewed(reader, sentence, match, phrase)


def _renewed(
    reader: ClaimReader, sentence: Sentence, match: re.Match[str], phrase: str
) -> Iterator[PlacedClaim]:
    identity = identity_of(phrase)
    if identity is None or not suits(identity, match.group("value")):
        return
    value = value_of(identity, match.group("value"))
    whole = Clause(sentence.start, sentence.end, sentence.text)
    topic = limited_topic(reader, whole, of_sort(identity, value), match.start("tail"))
    yield reader.place(sentence, match, Claim("current_state", reader.speaker, topic, value))


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
