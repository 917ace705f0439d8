"""Claims about a person's life: residence, work, relationship, names, counts, diet."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ebbtide.analysis.facts import Claim
from ebbtide.analysis.normalise import nfc_lower, word_set
from ebbtide.analysis.patterns import AnyOf, guarded, lazy
from ebbtide.analysis.signals.claim_limits import (
    FOR_LONG,
    for_a_time,
    limited,
    limits,
    part_time,
)
from ebbtide.analysis.signals.claim_parts import (
    ADVERBS,
    MANY,
    SUBJECT,
    ClaimReader,
    PlacedClaim,
)
from ebbtide.analysis.signals.countries import COUNTRIES
from ebbtide.analysis.signals.text import Clause
from ebbtide.analysis.signals.values import (
    NUMBER_WORDS,
    object_list,
    object_phrases,
    place_name,
    tokens_from,
)

__all__ = ["life_claims"]

_BE = r"(?:am|'?m|is|'s|are|'re)"
_HAVE = r"(?:have|has|'?ve|'s)"
_NOT = (
    r"(?P<neg>(?:don'?t|do not|doesn'?t|does not|no longer|not|never|am not|'?m not|isn'?t"
    r"|aren'?t)\s+)?"
)
_LIVES = guarded(
    SUBJECT + rf"(?i:{ADVERBS}(?:{_BE} )?{ADVERBS}{_NOT}{ADVERBS}(?:{_HAVE} )?(?:been )?{ADVERBS}"
    "(?P<verb>lives?|living|lived|based|resides?|reside|residing"
    r"|resided)\s+(?:right )?(?:in|at)\s+)"
)
_USED = guarded(
    SUBJECT + r"(?i:used to (?P<verb>live|work|reside|stay)\s+(?P<p>in|at|for|as)\s+(?:an? )?)"
)
_MOVED = guarded(
    SUBJECT
    + rf"(?i:(?:{_HAVE} )?{ADVERBS}(?:moved|relocated)\s+(?:back |over |down |out |up |away "
    "|here )?"
    r"(?:with [\w ]{2,20}? )?(?:from (?P<old>[\w' .-]{2,30}?) )?(?:to|into (?:an?|our|my|the) "
    r"(?:[\w-]+ ){0,2}?(?:flat|house|apartment|place|home|condo|studio) in)\s+)"
)
_FROM = guarded(SUBJECT + rf"(?i:{_BE} {ADVERBS}(?:originally )?from\s+)")
_GREW = guarded(SUBJECT + r"(?i:grew up in\s+)")
_JOB = guarded(
    SUBJECT + rf"(?i:(?:{_BE} |{_HAVE} )?(?:been )?{ADVERBS}{_NOT}{ADVERBS}"
    "(?P<verb>works?|working|worked|got a (?:new )?job|started (?:a new job"
    r"|working))\s+(?:full[- ]time |part[- ]time |now )?as\s+(?:an?|the)\s+)"
)
_LEFT = guarded(
    SUBJECT + rf"(?i:(?:{_HAVE} )?{ADVERBS}(?:(?:left|quit) (?:my |his |her |their )?job at|left"
    r"|quit|resigned from)\s+)"
)
# "I left Google at five" is for the day.
_FOR_GOOD = lazy(
    r"\W*(?:$|(?:in|for|after|because|to|last (?:week|month|year)|this (?:week|month|year)"
    r"|(?:an?|two|three|\d+|a few|a couple of) (?:weeks?|months?|years?) ago)\b)",
    re.IGNORECASE,
)
_JUST_MOVED = guarded(r"^\W*(?i:(?:just|finally|recently)\s+(?:moved|relocated)\s+to\s+)(?P<s>)")
_EMPLOYER = guarded(
    SUBJECT + f"(?i:(?:{_BE} |{_HAVE} )?(?:been )?{ADVERBS}{_NOT}{ADVERBS}(?P<verb>works?|working"
    r"|worked)\s+"
    r"(?:full[- ]time |part[- ]time |now )?(?:at|for)\s+)"
)
_NEW_JOB = guarded(
    SUBJECT + rf"(?i:{ADVERBS}(?:{_HAVE} )?{ADVERBS}(?:got|started|accepted|landed|found|took) "
    r"(?:a |my )?(?:new )?(?:job|position|role) (?:at|with)\s+)"
)
# "I joined Duolingo" is no work yet.
_JOINED = guarded(
    SUBJECT + rf"(?i:(?:{_HAVE} )?{ADVERBS}joined\s+)"
    r"(?=[A-Z][\w&.'-]*(?: [A-Z][\w&.'-]*){0,3} as (?:an?|the|their)\b)"
)
# Out of work, at work, one's own business: one replaces the other.
_EMPLOYMENT = (
    (
        "out of work",
        guarded(
            r"\b(?:lost|quit) my job\b|\bI (?:just |recently )?(?:got|was|'ve been|have been) "
            r"(?:fired|laid off)\b",
            re.IGNORECASE,
        ),
    ),
    (
        "self-employed",
        guarded(
            r"\bI(?:'ve| have)? (?:just |finally |officially |recently )*"
            r"(?:started|opened|launched) "
            r"(?:my own|an? (?:[\w-]+ ){0,2}(?:business|store|shop|studio|company|startup))\b",
            re.IGNORECASE,
        ),
    ),
    (
        "employed",
        guarded(
            r"\b(?:got|started|found|landed|enjoying|enjoy|love|loving) (?:a|my) new job\b"
            r"|\bI (?:just )?got promoted\b|\bI(?:'ve| have)? (?:just )?signed with\b",
            re.IGNORECASE,
        ),
    ),
)
# "Since I lost my job" looks back; it does not say how things stand.
_LOOKS_BACK = guarded(r"\b(?:since|after|before|because|cause|when|if)\b", re.IGNORECASE)
_OCCUPATION = guarded(
    SUBJECT
    + rf"(?i:(?P<be>{_BE}|was|were) {ADVERBS}{_NOT}{ADVERBS}an?\s+(?P<job>(?:[\w-]+ )?(?:[\w-]*"
    "(?:ologist|therapist|dentist|teacher|engineer|developer|designer|programmer|lawyer"
    "|accountant|writer"
    "|nurse|doctor|surgeon|pharmacist|journalist|photographer|musician|electrician|plumber"
    "|carpenter"
    "|chef|baker|barista|waiter|waitress|manager|scientist|researcher|professor|librarian"
    "|pilot|farmer"
    r"|architect|consultant|analyst|counselor|counsellor|firefighter|mechanic|paramedic|economist"
    r"|student)))\b)"
)
_STATUS = guarded(
    SUBJECT
    + rf"(?i:(?P<be>{_BE}|was|were|got|{_HAVE} been|just got) {ADVERBS}(?:newly )?{_NOT}{ADVERBS}"
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
    r"\b[Mm]y (?i:new |current )?(?P<role>(?i:boss|manager|supervisor|landlord|landlady|dentist"
    r"|doctor|GP|therapist|accountant|husband|wife|boyfriend|girlfriend|fianc[eé]e?)) "
    rf"(?i:is|'s) {_NOW}(?i:(?:called|named) )?(?P<value>[A-Z][\w'-]*(?: [A-Z][\w'-]*)?)"
    r"(?=\s*(?:[.,;!)]|$))"
)
_COUNT = guarded(
    SUBJECT
    + rf"(?i:{ADVERBS}(?:have|has|'ve got|have got|own|owns)\s+(?P<number>\d{{1,4}}|"
    + "|".join(NUMBER_WORDS)
    + r")\s+)"
)
_AGE = guarded(
    SUBJECT + rf"(?i:(?:{_BE} {ADVERBS}(?:turning )?|{ADVERBS}turned )(?P<age>\d{{1,3}})"
    r"(?: years?[- ]old\b|\s*[.!,]|\s*$| (?:yesterday|today|last (?:week|month|\w+day)"
    r"|this (?:week|month|year)|recently)\b))"
)
_DIET = guarded(
    SUBJECT + f"(?i:(?P<be>{_BE}|was|were|went|became|turned"
    f"|{_HAVE} (?:been|gone|become|turned)) {ADVERBS}{_NOT}{ADVERBS}(?:an? )?(?:strict )?"
    r"(?P<diet>vegan|vegetarian|pescatarian|omnivore)\b(?!\s+(?:food|recipes?|dish"
    "|restaurant|ice)))"
)
# "Vegan at home"; "not a vegan who preaches" is one.
_AT_TIMES = lazy(r"\s+(?:at|who|that)\b[\w ]{1,30}", re.IGNORECASE)
_ALLERGY = guarded(
    SUBJECT + rf"(?i:{_BE} {ADVERBS}{_NOT}{ADVERBS}(?:severely |very )?allergic to\s+)"
)
_INTOLERANT = guarded(
    SUBJECT + rf"(?i:{_BE} {ADVERBS}{_NOT}{ADVERBS}(?P<what>lactose|gluten)[ -]intolerant\b)"
)
_OVER = guarded(r"\b(?:any ?more|any longer|no longer)\b", re.IGNORECASE)
_UNCOUNTED = word_set(
    """hour minute day week month year second time thing idea question option more reason way point
    choice other to of"""
)
_STATED = AnyOf(
    *(_LIVES, _USED, _MOVED, _JUST_MOVED, _FROM, _GREW),
    *(_JOB, _EMPLOYER, _LEFT, _NEW_JOB, _JOINED, *(pattern for _, pattern in _EMPLOYMENT)),
    *(_OCCUPATION, _STATUS, _AGE, _COUNT, _NAME, _ROLE),
    *(_DIET, _ALLERGY, _INTOLERANT),
)
_LASTING = guarded(
    rf"\bsince\b|\b{FOR_LONG}\b"
    r"|\ball (?:my|his|her) life\b|\balways\b|\blately\b|\b(?:until|till) now\b|\bso far\b",
    re.IGNORECASE,
)
_BEFORE = guarded(r"\bbefore\b", re.IGNORECASE)
_NOW_SO = guarded(r"\b(?:now|these days|nowadays|recently|no longer)\b", re.IGNORECASE)
_LONG_PAST = guarded(
    r"\b(?:when (?:I|we) (?:was|were)|years ago|as a (?:kid|child)|back (?:then|in)"
    r"|in (?:19|20)\d\d)\b",
    re.IGNORECASE,
)


def life_claims(reader: ClaimReader, clause: Clause) -> Iterator[PlacedClaim]:
    """Claims about the life of the speaker, a relative or a named person."""
    if not _STATED.may_match(clause.text):
        return
    yield from _residence(reader, clause)
    yield from _work(reader, clause)
    yield from _attributes(reader, clause)
    yield from _names(reader, clause)
    yield from _roles(reader, clause)
    yield from _diet(reader, clause)


def _ended(clause: Clause, match: re.Match[str]) -> bool:
    return bool(match.group("neg")) or bool(_OVER.search(clause.text))


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
            if pattern is _USED and match.group("verb").lower() not in ("live", "reside"):
                continue
            subject = reader.subject(match, clause.start) if match.group("s") else reader.speaker
            first = clause.start + match.end()
            value = place_name(reader.doc, reader.text, first, end, within=True)
            if subject is None or value is None:
                continue
            moved = pattern in (_MOVED, _JUST_MOVED)
            if moved and not _is_place(reader, match, first):
                continue
            past = pattern is _LIVES and _is_past(match, clause)
            past = past or (pattern is _MOVED and bool(_LONG_PAST.search(clause.text)))
            denied = pattern is _LIVES and _ended(clause, match)
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


def _is_past(match: re.Match[str], clause: Clause) -> bool:
    """Whether a state told in the past or the perfect tense has ended, as far as is said.

    "I have lived in Rome" tells of the past; "for three years" or "since May" makes it last.
    """
    verb = match.groupdict().get("verb")
    if verb is not None and verb.lower() not in ("lived", "resided", "worked"):
        return False
    words = match.group().lower()
    perfect = re.search(r"\b(?:have|has|i'?ve)\b|'(?:ve|s)\b", words)
    return not (perfect and _LASTING.search(clause.text)) or bool(_BEFORE.search(clause.text))


def _work(reader: ClaimReader, clause: Clause) -> Iterator[PlacedClaim]:
    end = clause.start + len(clause.text)
    for match in _JOB.finditer(clause.text):
        jobs = object_phrases(reader.doc, clause.start + match.end(), end)
        subject = reader.subject(match, clause.start)
        if subject and jobs:
            kind = "past_state" if _is_past(match, clause) else "current_state"
            begun = match.group("verb").lower().startswith(("got", "started"))
            identity = limited("job", "" if begun else part_time(clause))
            claim = Claim(kind, subject, identity, jobs[0], negated=_ended(clause, match))
            yield reader.place(clause, match, claim)
    for match in _EMPLOYER.finditer(clause.text):
        employer = place_name(reader.doc, reader.text, clause.start + match.end(), end)
        subject = reader.subject(match, clause.start)
        if subject and employer and reader.text != reader.text.lower():
            if _is_boss(reader, match, clause):
                continue
            kind = "past_state" if _is_past(match, clause) else "current_state"
            identity = limited("employer", part_time(clause))
            claim = Claim(kind, subject, identity, employer, negated=_ended(clause, match))
            yield reader.place(clause, match, claim)
    yield from _employment(reader, clause)
    for match in _LEFT.finditer(clause.text):
        first = clause.start + match.end()
        employer = place_name(reader.doc, reader.text, first, end)
        subject = reader.subject(match, clause.start)
        if subject and employer and reader.text != reader.text.lower():
            rest = reader.text[first:end].lower().partition(employer)[2]
            if _FOR_GOOD.match(rest):
                claim = Claim("current_state", subject, "employer", employer, negated=True)
                yield reader.place(clause, match, claim)
    for match in (*_NEW_JOB.finditer(clause.text), *_JOINED.finditer(clause.text)):
        employer = place_name(reader.doc, reader.text, clause.start + match.end(), end)
        subject = reader.subject(match, clause.start)
        if subject and employer and reader.text != reader.text.lower():
            yield reader.place(clause, match, Claim("current_state", subject, "employer", employer))
    for match in _USED.finditer(clause.text):
        subject = reader.subject(match, clause.start)
        if subject is None or match.group("verb").lower() != "work":
            continue
        if match.group("p").lower() == "as":
            jobs = object_phrases(reader.doc, clause.start + match.end(), end)
            identity, value = "job", jobs[0] if jobs else None
        else:
            identity = "employer"
            value = place_name(reader.doc, reader.text, clause.start + match.end(), end)
        if value:
            yield reader.place(clause, match, Claim("past_state", subject, identity, value))


def _is_boss(reader: ClaimReader, match: re.Match[str], clause: Clause) -> bool:
    """Whether it is a person whom somebody works for, beside any firm."""
    first = clause.start + match.end()
    return match.group().rstrip().endswith("for") and _is_person(reader, first, clause.end)


def _is_person(reader: ClaimReader, start: int, end: int) -> bool:
    named = tokens_from(reader.doc, start, min(start + 40, end))
    return bool(named and named[0].ent_type_ == "PERSON")


def _kind(match: re.Match[str], clause: Clause) -> str:
    be = match.group("be").lower()
    past = be in ("was", "were") or (be.endswith("been") and _is_past(match, clause))
    return "past_state" if past else "current_state"


def _employment(reader: ClaimReader, clause: Clause) -> Iterator[PlacedClaim]:
    for value, pattern in _EMPLOYMENT:
        match = pattern.search(clause.text)
        if match and _LONG_PAST.search(clause.text):
            continue
        if match and not _LOOKS_BACK.search(clause.text[: match.end()]):
            claim = Claim("current_state", reader.speaker, "employment", value)
            yield reader.place(clause, match, claim)


# A good baker bakes well, a trained nurse may be a cook.
_NO_LIVING = word_set(
    """good great bad terrible decent avid keen passionate natural born trained qualified certified
    licensed volunteer amateur hobby part-time aspiring former ex future frustrated"""
)


def _attributes(reader: ClaimReader, clause: Clause) -> Iterator[PlacedClaim]:
    for pattern, identity, group in (
        (_OCCUPATION, "job", "job"),
        (_STATUS, "relationship status", "status"),
    ):
        for match in pattern.finditer(clause.text):
            subject = reader.subject(match, clause.start)
            if subject:
                kind = _kind(match, clause)
                value = nfc_lower(match.group(group))
                limit = ""
                if pattern is _OCCUPATION:
                    first = value.split()[0]
                    limit = part_time(clause) or (first if first in _NO_LIVING else "")
                topic = limited(identity, limit)
                claim = Claim(kind, subject, topic, value, negated=_ended(clause, match))
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
        if _is_person(reader, clause.start + match.start("value"), clause.end):
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
                _kind(match, clause),
                subject,
                limited("diet", limit),
                nfc_lower(match.group("diet")),
                negated=_ended(clause, match),
            )
            yield reader.place(clause, match, claim)
    end = clause.start + len(clause.text)
    for match in _ALLERGY.finditer(clause.text):
        subject = reader.subject(match, clause.start)
        for thing in object_phrases(reader.doc, clause.start + match.end(), end):
            if subject:
                yield reader.place(clause, match, _allergy(subject, thing, _ended(clause, match)))
    for match in _INTOLERANT.finditer(clause.text):
        subject = reader.subject(match, clause.start)
        if subject:
            what = nfc_lower(match.group("what"))
            yield reader.place(clause, match, _allergy(subject, what, _ended(clause, match)))


def _allergy(subject: str, thing: str, denied: bool) -> Claim:
    value = "not allergic" if denied else "allergic"
    return Claim("current_state", subject, f"allergy:{thing}", value)
