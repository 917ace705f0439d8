"""Claims about a person's life: residence, relationship, names, age, counts, diet."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ebbtide.analysis.facts import Claim
from ebbtide.analysis.normalise import nfc_lower, word_set
from ebbtide.analysis.patterns import AnyOf, guarded, lazy
from ebbtide.analysis.signals.claim_limits import for_a_time, limited, limits, part_time
from ebbtide.analysis.signals.claim_parts import ADVERBS, SUBJECT, ClaimReader, PlacedClaim
from ebbtide.analysis.signals.claim_tenses import BE, HAVE, LONG_PAST, NOT, ended, is_past, kind_of
from ebbtide.analysis.signals.countries import COUNTRIES
from ebbtide.analysis.signals.people import MANY
from ebbtide.analysis.signals.text import Clause
from ebbtide.analysis.signals.values import (
    NUMBER_WORDS,
    object_list,
    object_phrases,
    place_name,
    tokens_from,
)

__all__ = ["life_claims"]

_LIVES = guarded(
    SUBJECT + rf"(?i:{ADVERBS}(?:{BE} )?{ADVERBS}{NOT}{ADVERBS}(?:{HAVE} )?(?:been )?{ADVERBS}"
    "(?P<verb>lives?|living|lived|based|resides?|reside|residing"
    r"|resided)\s+(?:right )?(?:in|at)\s+)"
)
_USED = guarded(SUBJECT + r"(?i:used to (?:live|reside)\s+(?:in|at|for|as)\s+(?:an? )?)")
_MOVED = guarded(
    SUBJECT + rf"(?i:(?:{HAVE} )?{ADVERBS}(?:moved|relocated)\s+(?:back |over |down |out |up |away "
    "|here )?"
    r"(?:with [\w ]{2,20}? )?(?:from (?P<old>[\w' .-]{2,30}?) )?(?:to|into (?:an?|our|my|the) "
    r"(?:[\w-]+ ){0,2}?(?:flat|house|apartment|place|home|condo|studio) in)\s+)"
)
_FROM = guarded(SUBJECT + rf"(?i:{BE} {ADVERBS}(?:originally )?from\s+)")
_GREW = guarded(SUBJECT + r"(?i:grew up in\s+)")
_JUST_MOVED = guarded(r"^\W*(?i:(?:just|finally|recently)\s+(?:moved|relocated)\s+to\s+)(?P<s>)")
_STATUS = guarded(
    SUBJECT
    + rf"(?i:(?P<be>{BE}|was|were|got|{HAVE} been|just got) {ADVERBS}(?:newly )?{NOT}{ADVERBS}"
    r"(?P<status>single|married|engaged|divorced|widowed|separated)\b(?! (?:mom|mum|dad"
    r"|parent|mother|father|by|in|with|minded|out|from|of)\b))"
)
_NOW = r"(?i:(?:actually|really|now|still)\s+)*"
_NAME = guarded(
    rf"(?P<whose>\b[Mm]y (?P<what>(?:[\w-]+ )?[\w-]+)'s) name (?i:is|was|'s)\s+(?P<neg>not )?{_NOW}"
    r"(?P<value>[A-Z][\w'-]*(?: [A-Z][\w'-]*)?)"
    rf"|(?P<own>\b[Mm]y) name(?i: is|'s)\s+{_NOW}(?P<own_value>[A-Z][\w'-]*(?: [A-Z][\w'-]*)?)"
    rf"|\b[Mm]y (?P<called>(?:[\w-]+ )?[\w-]+) (?i:is|'s) {_NOW}(?:called"
    r"|named)\s+(?P<called_value>[A-Z][\w'-]*)"
)
# Of these one has one: another name is another person.
_ROLE = guarded(
    r"\b(?:[Mm]y|[Oo]ur) (?i:new |current )?(?P<role>(?i:boss|manager|supervisor|landlord"
    r"|landlady|dentist|doctor|GP|therapist|accountant|husband|wife|boyfriend|girlfriend"
    rf"|fianc[eé]e?)) (?i:is|'s) {_NOW}(?i:(?:called|named) )?(?:(?:Dr|Prof|Mr|Mrs|Ms)\.? )?"
    r"(?P<value>[A-Z][\w'-]*(?: [A-Z][\w'-]*)?)(?=\s*(?:[.,;!)]|$))"
)
_COUNT = guarded(
    SUBJECT
    + rf"(?i:{ADVERBS}(?:have|has|'ve got|have got|own|owns)\s+(?P<number>\d{{1,4}}|"
    + "|".join(NUMBER_WORDS)
    + r")\s+)"
)
_AGE = guarded(
    SUBJECT + rf"(?i:(?:{BE} {ADVERBS}(?:turning )?|{ADVERBS}turned )(?P<age>\d{{1,3}})"
    r"(?: years?[- ]old\b|\s*[.!,]|\s*$| (?:yesterday|today|last (?:week|month|\w+day)"
    r"|this (?:week|month|year)|recently)\b))"
)
_DIET = guarded(
    SUBJECT + f"(?i:(?P<be>{BE}|was|were|went|became|turned"
    f"|{HAVE} (?:been|gone|become|turned)) {ADVERBS}{NOT}{ADVERBS}(?:an? )?(?:strict )?"
    r"(?P<diet>vegan|vegetarian|pescatarian|omnivore)\b(?!\s+(?:food|recipes?|dish"
    "|restaurant|ice)))"
)
# Who eats meat is no vegetarian.
_EATS_MEAT = guarded(
    SUBJECT + rf"(?i:(?:(?:{HAVE} )?{ADVERBS}(?:started|gone back to|went back to) eating meat\b"
    rf"|{ADVERBS}eats? meat (?:again|now|these days)\b))"
)
# "Vegan at home"; "not a vegan who preaches" is one.
_AT_TIMES = lazy(r"\s+(?:at|who|that)\b[\w ]{1,30}", re.IGNORECASE)
_ALLERGY = guarded(
    SUBJECT + rf"(?i:{BE} {ADVERBS}{NOT}{ADVERBS}(?:severely |very )?allergic to\s+)"
)
_INTOLERANT = guarded(
    SUBJECT + rf"(?i:{BE} {ADVERBS}{NOT}{ADVERBS}(?P<what>lactose|gluten)[ -]intolerant\b)"
)
_UNCOUNTED = word_set(
    """hour minute day week month year second time thing idea question option more reason way point
    choice other to of"""
)
_STATED = AnyOf(
    *(_LIVES, _USED, _MOVED, _JUST_MOVED, _FROM, _GREW),
    *(_STATUS, _AGE, _COUNT, _NAME, _ROLE),
    *(_DIET, _EATS_MEAT, _ALLERGY, _INTOLERANT),
)
_NOW_SO = guarded(r"\b(?:now|these days|nowadays|recently|no longer)\b", re.IGNORECASE)


def life_claims(reader: ClaimReader, clause: Clause) -> Iterator[PlacedClaim]:
    """Claims about the life of the speaker, a relative or a named person."""
    if not _STATED.may_match(clause.text):
        return
    yield from _residence(reader, clause)
    yield from _attributes(reader, clause)
    yield from _names(reader, clause)
    yield from _roles(reader, clause)
    yield from _diet(reader, clause)


def _residence(reader: ClaimReader, clause: Clause) -> Iterator[PlacedClaim]:
    end = clause.start + len(clause.text)
    for pattern, identity, kind in (
        (_LIVES, "residence", "current_state"),
        (_USED, "residence", "past_state"),
        (_MOVED, "residence", "current_state"),
        (_JUST_MOVED, "residence", "current_state"),
        (_FROM, "origin", "current_state"),
        (_GREW, "hometown", "past_state"),
    ):
        for match in pattern.finditer(clause.text):
            subject = reader.subject(match, clause.start)
            first = clause.start + match.end()
            value = place_name(reader.doc, reader.text, first, end, within=True)
            if subject is None or value is None:
                continue
            moved = pattern in (_MOVED, _JUST_MOVED)
            if moved and not _is_place(reader, match, first):
                continue
            past = pattern is _LIVES and is_past(match, clause)
            past = past or (pattern is _MOVED and bool(LONG_PAST.search(clause.text)))
            denied = pattern is _LIVES and ended(clause, match)
            old = match.group("old") if pattern is _MOVED else None
            limit = part_time(clause) if pattern is _LIVES else ""
            limit = for_a_time(clause) if moved else limit
            topic = identity
            if identity == "residence" and value in COUNTRIES:
                # Who lives in Portugal may live in Porto; who moves there lives in Rome no more.
                topic = "residence country"
                if moved or _NOW_SO.search(clause.text):
                    claim = Claim(kind, subject, limited(identity, limit), value, None, denied)
                    yield reader.place(clause, match, claim)
            yield reader.place(
                clause,
                match,
                Claim(
                    "past_state" if past else kind,
                    subject,
                    # Where one comes from is corrected, it does not change.
                    limited(topic, f"also {value}" if pattern is _FROM else limit),
                    value,
                    nfc_lower(old) if old else None,
                    denied,
                ),
            )


def _is_place(reader: ClaimReader, match: re.Match[str], start: int) -> bool:
    """Whether what somebody moved to is a place: not a team, a tool or a rank.

    Firms say "we moved to Slack", so after "we" it has to be told from a firm.
    """
    if reader.text == reader.text.lower():
        return True
    named = tokens_from(reader.doc, start, min(start + 40, len(reader.text)))
    kinds = {token.ent_type_ for token in named[:2] if token.text[:1].isupper()}
    if match.group("s").lower() == "we":
        return bool(kinds & _PLACES)
    if "relocated" in match.group().lower():
        return True
    return bool(kinds - {"", "PRODUCT"})


_PLACES = frozenset({"GPE", "LOC", "FAC", "NORP"})


def _attributes(reader: ClaimReader, clause: Clause) -> Iterator[PlacedClaim]:
    for match in _STATUS.finditer(clause.text):
        subject = reader.subject(match, clause.start)
        if subject:
            value = nfc_lower(match.group("status"))
            kind, denied = kind_of(match, clause), ended(clause, match)
            claim = Claim(kind, subject, "relationship status", value, negated=denied)
            yield reader.place(clause, match, claim)
    for match in _AGE.finditer(clause.text):
        subject = reader.subject(match, clause.start)
        if subject:
            yield reader.place(
                clause, match, Claim("current_state", subject, "age", match.group("age"))
            )
    for match in _COUNT.finditer(clause.text):
        subject = reader.subject(match, clause.start)
        things, last = object_list(reader.doc, clause.start + match.end(), clause.end)
        if subject and things and not _UNCOUNTED & set(things[0].split()):
            number = match.group("number").lower()
            limit = limits(reader, last, clause.end)
            identity = limited(f"count of {things[0]}", limit)
            claim = Claim("current_state", subject, identity, NUMBER_WORDS.get(number, number))
            yield reader.place(clause, match, claim)


def _names(reader: ClaimReader, clause: Clause) -> Iterator[PlacedClaim]:
    for match in _NAME.finditer(clause.text):
        if (match.group("what") or match.group("called") or "").lower() in MANY:
            continue
        if match.group("own"):
            claim = Claim(
                "current_state", reader.speaker, "name", nfc_lower(match.group("own_value"))
            )
        elif match.group("called"):
            claim = Claim(
                "current_state",
                reader.speaker,
                f"name of {nfc_lower(match.group('called'))}",
                nfc_lower(match.group("called_value")),
            )
        else:
            claim = Claim(
                "current_state",
                reader.speaker,
                f"name of {nfc_lower(match.group('what'))}",
                nfc_lower(match.group("value")),
                negated=bool(match.group("neg")),
            )
        yield reader.place(clause, match, claim)


def _roles(reader: ClaimReader, clause: Clause) -> Iterator[PlacedClaim]:
    for match in _ROLE.finditer(clause.text):
        # "My manager is OOO" names nobody.
        named = match.group("value")
        if reader.is_person(clause.start + match.start("value"), clause.end):
            identity = f"name of {nfc_lower(match.group('role'))}"
            claim = Claim("current_state", reader.speaker, identity, nfc_lower(named))
            yield reader.place(clause, match, claim)


def _diet(reader: ClaimReader, clause: Clause) -> Iterator[PlacedClaim]:
    for match in _DIET.finditer(clause.text):
        subject = reader.subject(match, clause.start)
        if subject:
            place = _AT_TIMES.match(clause.text, match.end())
            limit = part_time(clause) or (place.group().strip().lower() if place else "")
            claim = Claim(
                kind_of(match, clause),
                subject,
                limited("diet", limit),
                nfc_lower(match.group("diet")),
                negated=ended(clause, match),
            )
            yield reader.place(clause, match, claim)
    for match in _EATS_MEAT.finditer(clause.text):
        subject = reader.subject(match, clause.start)
        if subject:
            topic = limited("diet", part_time(clause))
            yield reader.place(clause, match, Claim("current_state", subject, topic, "meat"))
    end = clause.start + len(clause.text)
    for match in _ALLERGY.finditer(clause.text):
        subject = reader.subject(match, clause.start)
        for thing in object_phrases(reader.doc, clause.start + match.end(), end, things=True):
            if subject:
                yield reader.place(clause, match, _allergy(subject, thing, ended(clause, match)))
    for match in _INTOLERANT.finditer(clause.text):
        subject = reader.subject(match, clause.start)
        if subject:
            what = nfc_lower(match.group("what"))
            yield reader.place(clause, match, _allergy(subject, what, ended(clause, match)))


def _allergy(subject: str, thing: str, denied: bool) -> Claim:
    value = "not allergic" if denied else "allergic"
    return Claim("current_state", subject, f"allergy:{thing}", value)
