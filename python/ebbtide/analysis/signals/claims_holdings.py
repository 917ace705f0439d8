"""Claims about what somebody has, and about their weight and height."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ebbtide.analysis.facts import Claim
from ebbtide.analysis.normalise import word_set
from ebbtide.analysis.patterns import AnyOf, guarded, lazy
from ebbtide.analysis.signals.claim_limits import for_a_time, limited, limits
from ebbtide.analysis.signals.claim_parts import ADVERBS, SUBJECT, ClaimReader, PlacedClaim
from ebbtide.analysis.signals.claim_tenses import BE, HAVE, LONG_PAST
from ebbtide.analysis.signals.people import NAMES, RELATIVE
from ebbtide.analysis.signals.setting_values import MONTH, WEEKDAY, normal
from ebbtide.analysis.signals.text import Clause
from ebbtide.analysis.signals.values import noun_lemma, tokens_from

__all__ = ["holding_claims"]

# What one has for years, and knows whether one has it.
_PETS = word_set("dog cat puppy kitten rabbit hamster parrot horse pony goldfish tortoise")
_THINGS = word_set(
    """car bike bicycle motorcycle motorbike scooter van truck boat camper caravan house garden
    balcony garage piano guitar violin drone tv television dishwasher dryer roommate flatmate"""
)
# Of these one has several, each of a kind: "my gym membership".
_OF_A_KIND = word_set("subscription membership")
_HELD = _PETS | _THINGS | _OF_A_KIND
_NOUN = "(?:" + "|".join(sorted(_HELD)) + ")"
_NOUNS = "(?:" + "|".join(sorted(form for noun in _HELD for form in (noun, f"{noun}s"))) + ")"

_HAS = guarded(
    SUBJECT + rf"(?i:{ADVERBS}(?:have|has|'ve got|have got|has got|own|owns|got|bought|adopted) "
    rf"(?:an?|my own|our own) (?:[\w-]+ ){{0,2}}?(?P<noun>{_NOUN})\b)"
)
_HAS_NOT = guarded(
    SUBJECT + rf"(?i:{ADVERBS}(?:(?:don'?t|do not|doesn'?t|does not|no longer|never) (?:have|own)s?"
    r"|no longer has|(?:have|has) no) (?:(?:an?|any|the|my|our) )?(?:[\w-]+ )?"
    rf"(?P<noun>{_NOUNS})\b)"
)
_GAVE = guarded(
    SUBJECT + rf"(?i:(?:{HAVE} )?{ADVERBS}(?:had to )?(?:sold|sell|gave away|give away|got rid of"
    rf"|get rid of|rehomed|rehome|scrapped|cancel(?:l?ed)?) (?:my|our|the) (?:[\w-]+ )?"
    rf"(?P<noun>{_NOUN})\b)"
)
_GONE = guarded(
    rf"(?:(?P<s>\b[Mm]y {RELATIVE})'s |\b[Mm]y )(?P<noun>{_NOUN}) (?:{NAMES} )?"
    r"(?i:(?:sadly |just |unfortunately |recently )*"
    r"(?:(?:has |had to be )?(?:died|passed away|put (?:down|to sleep))"
    r"|(?:was|got|has been) (?:just )?(?:stolen|totall?ed|put (?:down|to sleep))))\b"
)
_WEIGHS = guarded(
    SUBJECT + rf"(?i:{ADVERBS}(?:weighs?|{BE} {ADVERBS}(?:down|up|back) (?:to|at)) "
    r"(?:about |around |almost |only )?(?P<value>\d{2,3}(?:[.,]\d)? ?(?:kg|kgs|kilos?|kilograms?"
    r"|lbs?|pounds|stone))\b)"
)
_TALL = guarded(
    SUBJECT + rf"(?i:{BE} {ADVERBS}(?:about |around |almost |only )?(?P<value>"
    r"\d(?:[.,]\d{1,2})? ?(?:m|meters?|metres?)|\d{3} ?(?:cm|centimeters?|centimetres?)"
    r"|\d ?(?:'|ft|foot|feet) ?(?:\d{1,2}(?:\"|''| ?in(?:ches)?)?)?)(?: tall\b|(?=\s*[.,;!]|\s*$)))"
)
_STATED = AnyOf(_HAS, _HAS_NOT, _GAVE, _GONE, _WEIGHS, _TALL)
_ONE_UNIT = (
    (lazy(r"(?<=\d) ?(?:kgs?|kilos?|kilograms?)\b", re.IGNORECASE), " kg"),
    (lazy(r"(?<=\d) ?(?:lbs?|pounds)\b", re.IGNORECASE), " lb"),
)
# Of houses one may have two; when one got or lost a thing limits nothing.
_IN_A_PLACE = lazy(
    rf"(?:in|at|on|near|by) (?!(?:{MONTH}|{WEEKDAY}|spring|summer|autumn|fall|winter)\b|\d)",
    re.IGNORECASE,
)
# "No car today" is for the day, "yet" and "here" leave it open.
_FOR_NOW = guarded(
    r"\b(?:today|tonight|tomorrow|this (?:week|weekend|month)|yet|here|with me)\b", re.IGNORECASE
)


def holding_claims(reader: ClaimReader, clause: Clause) -> Iterator[PlacedClaim]:
    """What the speaker, a relative or a named person has or has no more."""
    if not _STATED.may_match(clause.text):
        return
    for pattern, denied in ((_HAS, False), (_HAS_NOT, True), (_GAVE, True), (_GONE, True)):
        for match in pattern.finditer(clause.text):
            yield from _held(reader, clause, match, denied=denied)
    for pattern, identity in ((_WEIGHS, "weight"), (_TALL, "height")):
        for match in pattern.finditer(clause.text):
            subject = reader.subject(match, clause.start)
            if subject:
                value = _measure(match.group("value"))
                yield reader.place(clause, match, Claim("current_state", subject, identity, value))


def _held(
    reader: ClaimReader, clause: Clause, match: re.Match[str], *, denied: bool
) -> Iterator[PlacedClaim]:
    subject = reader.subject(match, clause.start)
    at, end = clause.start + match.start("noun"), clause.start + match.end()
    said = tokens_from(reader.doc, at, clause.end)
    # A car seat is no car.
    seat = len(said) > 1 and said[1].pos_ == "NOUN"
    if subject is None or not said or seat or LONG_PAST.search(clause.text):
        return
    if _FOR_NOW.search(clause.text) or for_a_time(clause):
        return
    noun = noun_lemma(said[0])
    if noun in _OF_A_KIND:
        kind = said[0].nbor(-1)
        if kind.pos_ not in ("NOUN", "PROPN"):
            return
        noun = f"{noun_lemma(kind)} {noun}"
    limit = limits(reader, end, clause.end)
    identity = limited(f"possession:{noun}", limit if _IN_A_PLACE.match(limit) else "")
    yield reader.place(clause, match, Claim("current_state", subject, identity, noun, None, denied))


def _measure(value: str) -> str:
    for unit, written in _ONE_UNIT:
        value = unit.pattern.sub(written, value)
    return normal(value)
