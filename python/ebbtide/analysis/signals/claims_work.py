"""Claims about work: job, employer, and whether there is any."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ebbtide.analysis.facts import Claim
from ebbtide.analysis.normalise import nfc_lower, word_set
from ebbtide.analysis.patterns import AnyOf, guarded, lazy
from ebbtide.analysis.signals.claim_limits import limited, part_time
from ebbtide.analysis.signals.claim_parts import ADVERBS, SUBJECT, ClaimReader, PlacedClaim
from ebbtide.analysis.signals.claim_tenses import BE, HAVE, LONG_PAST, NOT, ended, is_past, kind_of
from ebbtide.analysis.signals.text import Clause
from ebbtide.analysis.signals.values import object_phrases, place_name

__all__ = ["work_claims"]

_JOB = guarded(
    SUBJECT + rf"(?i:(?:{BE} |{HAVE} )?(?:been )?{ADVERBS}{NOT}{ADVERBS}"
    "(?P<verb>works?|working|worked|got a (?:new )?job|started (?:a new job"
    r"|working))\s+(?:full[- ]time |part[- ]time |now )?as\s+(?:an?|the)\s+)"
)
_EMPLOYER = guarded(
    SUBJECT + f"(?i:(?:{BE} |{HAVE} )?(?:been )?{ADVERBS}{NOT}{ADVERBS}(?P<verb>works?|working"
    r"|worked)\s+"
    r"(?:full[- ]time |part[- ]time |now )?(?:at|for)\s+)"
)
_USED = guarded(SUBJECT + r"(?i:used to work\s+(?P<p>in|at|for|as)\s+(?:an? )?)")
_LEFT = guarded(
    SUBJECT + rf"(?i:(?:{HAVE} )?{ADVERBS}(?:(?:left|quit) (?:my |his |her |their )?job at|left"
    r"|quit|resigned from)\s+)"
)
# "I left Google at five" is for the day.
_FOR_GOOD = lazy(
    r"\W*(?:$|(?:in|for|after|because|to|last (?:week|month|year)|this (?:week|month|year)"
    r"|(?:an?|two|three|\d+|a few|a couple of) (?:weeks?|months?|years?) ago)\b)",
    re.IGNORECASE,
)
_NEW_JOB = guarded(
    SUBJECT + rf"(?i:{ADVERBS}(?:{HAVE} )?{ADVERBS}(?:got|started|accepted|landed|found|took) "
    r"(?:a |my )?(?:new )?(?:job|position|role) (?:at|with)\s+)"
)
# "I joined Duolingo" is no work yet.
_JOINED = guarded(
    SUBJECT + rf"(?i:(?:{HAVE} )?{ADVERBS}joined\s+)"
    r"(?=[A-Z][\w&.'-]*(?: [A-Z][\w&.'-]*){0,3} as (?:an?|the|their)\b)"
)
_OCCUPATION = guarded(
    SUBJECT
    + rf"(?i:(?P<be>{BE}|was|were) {ADVERBS}{NOT}{ADVERBS}an?\s+(?P<job>(?:[\w-]+ )?(?:[\w-]*"
    "(?:ologist|therapist|dentist|teacher|engineer|developer|designer|programmer|lawyer"
    "|accountant|writer"
    "|nurse|doctor|surgeon|pharmacist|journalist|photographer|musician|electrician|plumber"
    "|carpenter"
    "|chef|baker|barista|waiter|waitress|manager|scientist|researcher|professor|librarian"
    "|pilot|farmer"
    r"|architect|consultant|analyst|counselor|counsellor|firefighter|mechanic|paramedic|economist"
    r"|student)))\b)"
)
# A good baker bakes well, a trained nurse may be a cook.
_NO_LIVING = word_set(
    """good great bad terrible decent avid keen passionate natural born trained qualified certified
    licensed volunteer amateur hobby part-time aspiring former ex future frustrated"""
)
_WITHOUT = SUBJECT + (
    rf"(?i:(?:(?:{HAVE} )?{ADVERBS}(?:lost|quit) (?:my|his|her|their) job\b"
    rf"|(?:got|was|were|{HAVE} been) {ADVERBS}(?:fired(?! up)|laid off|let go|made redundant)\b"
    rf"|{BE} {ADVERBS}(?:unemployed|jobless|out of (?:work|a job)|between jobs)\b))"
    r"|(?:^\W*|\b(?i:and|just|so)\s+)(?i:lost|quit) (?i:my job)\b"
)
# "I retired the old server" is of the server, "from the match" of the match.
_RETIRED = SUBJECT + (
    rf"(?i:(?:{HAVE} |{BE} |{HAVE} been )?{ADVERBS}retired\b"
    r"(?=\s*(?:[.,;!)]|$|(?:in|last|this|from (?!the\b)|after|early|now|recently|yesterday|since"
    r"|and|but|because|when|(?:an?|two|three|\d+) \w+ ago)\b)))"
)
_OWN = SUBJECT + (
    rf"(?i:(?:{HAVE} )?{ADVERBS}(?:started|opened|launched) "
    r"(?:my own|an? (?:[\w-]+ ){0,2}(?:business|store|shop|studio|company|startup))\b)"
)
_NEW = (
    r"\b(?:got|started|found|landed|enjoying|enjoy|love|loving) (?:a|my) new job\b"
    r"|\bI (?:just )?got promoted\b|\bI(?:'ve| have)? (?:just )?signed with\b"
)
# One replaces the other. Who is out of work has no employer, who retired no job either.
_EMPLOYMENT = (
    ("out of work", ("employment", "employer"), guarded(_WITHOUT)),
    ("retired", ("employment", "employer", "job"), guarded(_RETIRED)),
    ("self-employed", ("employment",), guarded(_OWN)),
    ("employed", ("employment",), guarded(_NEW, re.IGNORECASE)),
)
# "Since I lost my job" looks back; it does not say how things stand.
_LOOKS_BACK = guarded(r"\b(?:since|after|before|because|cause|when|if)\b", re.IGNORECASE)
_STATED = AnyOf(
    *(_JOB, _EMPLOYER, _USED, _LEFT, _NEW_JOB, _JOINED, _OCCUPATION),
    *(pattern for *_, pattern in _EMPLOYMENT),
)


def work_claims(reader: ClaimReader, clause: Clause) -> Iterator[PlacedClaim]:
    """Claims about the work of the speaker, a relative or a named person."""
    if not _STATED.may_match(clause.text):
        return
    yield from _jobs(reader, clause)
    yield from _employers(reader, clause)
    yield from _employment(reader, clause)


def _jobs(reader: ClaimReader, clause: Clause) -> Iterator[PlacedClaim]:
    for match in _JOB.finditer(clause.text):
        jobs = object_phrases(reader.doc, clause.start + match.end(), clause.end)
        subject = reader.subject(match, clause.start)
        if subject and jobs:
            kind = "past_state" if is_past(match, clause) else "current_state"
            begun = match.group("verb").lower().startswith(("got", "started"))
            identity = limited("job", "" if begun else part_time(clause))
            claim = Claim(kind, subject, identity, jobs[0], negated=ended(clause, match))
            yield reader.place(clause, match, claim)
    for match in _OCCUPATION.finditer(clause.text):
        subject = reader.subject(match, clause.start)
        if subject:
            value = nfc_lower(match.group("job"))
            first = value.split()[0]
            limit = part_time(clause) or (first if first in _NO_LIVING else "")
            kind, denied = kind_of(match, clause), ended(clause, match)
            claim = Claim(kind, subject, limited("job", limit), value, negated=denied)
            yield reader.place(clause, match, claim)


def _employers(reader: ClaimReader, clause: Clause) -> Iterator[PlacedClaim]:
    end, lower_case = clause.end, reader.text == reader.text.lower()
    for pattern in (_EMPLOYER, _LEFT, _NEW_JOB, _JOINED, _USED):
        for match in pattern.finditer(clause.text):
            first = clause.start + match.end()
            subject = reader.subject(match, clause.start)
            if subject is None:
                continue
            if pattern is _USED and match.group("p").lower() == "as":
                jobs = object_phrases(reader.doc, first, end)
                if jobs:
                    claim = Claim("past_state", subject, "job", jobs[0])
                    yield reader.place(clause, match, claim)
                continue
            employer = place_name(reader.doc, reader.text, first, end)
            if employer is None or (lower_case and pattern is not _USED):
                continue
            claim = Claim("current_state", subject, "employer", employer)
            if pattern is _EMPLOYER:
                if match.group().rstrip().endswith("for") and reader.is_person(first, end):
                    # Whom somebody works for is beside any firm.
                    continue
                kind = "past_state" if is_past(match, clause) else "current_state"
                identity = limited("employer", part_time(clause))
                claim = Claim(kind, subject, identity, employer, negated=ended(clause, match))
            elif pattern is _LEFT:
                rest = reader.text[first:end].lower().partition(employer)[2]
                if not _FOR_GOOD.match(rest):
                    continue
                claim = Claim("current_state", subject, "employer", employer, negated=True)
            elif pattern is _USED:
                claim = Claim("past_state", subject, "employer", employer)
            yield reader.place(clause, match, claim)


def _employment(reader: ClaimReader, clause: Clause) -> Iterator[PlacedClaim]:
    for value, topics, pattern in _EMPLOYMENT:
        match = pattern.search(clause.text)
        if match is None or LONG_PAST.search(clause.text):
            continue
        subject = reader.subject(match, clause.start)
        if subject and not _LOOKS_BACK.search(clause.text[: match.end()]):
            for topic in topics:
                yield reader.place(clause, match, Claim("current_state", subject, topic, value))
