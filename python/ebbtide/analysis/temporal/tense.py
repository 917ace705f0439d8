"""Whether a sentence speaks of the past or the future, from surface words.

"On Tuesday" and "in May" name a day or month without saying which one. The
nearest tense word of the same sentence decides; a tagger is not needed for that
and would cost more than everything else here. Where there is none, words of the
present tense that speak of a plan do ("my flight leaves on Sunday", "call me on
Friday"): they are nouns or tell of feelings too often to be weighed against a
word of the past. What was put off to Friday, or agreed to happen then, is still to come.
"""

from __future__ import annotations

import re

from ebbtide.analysis.patterns import lazy

__all__ = ["PUT_OFF", "is_perfect", "is_reply", "tense_near"]

# What is entered in a calendar: "I have an exam on Monday".
_EVENT = (
    r"appointments?|meetings?|exams?|tests?|class(?:es)?|lessons?|flights?|interviews?|calls?|"
    r"dates?|deadlines?|dinner|lunch|breakfast|brunch|party|parties|reservations?|bookings?|"
    r"rehearsals?|practice|sessions?|check-?ups?|surgery|visits?|concerts?|gigs?|shows?|games?|"
    r"match(?:es)?|races?|trips?|tickets?|plans?|events?|shifts?|presentations?|workshops?|"
    r"conferences?|weddings?|trains?|bus(?:es)?|days? off"
)
_ITS = r"(?:an?|my|our|his|her|their|the|another|this|that|two|three|some|any|no)"
_SET = r"(?:closed|booked|scheduled|planned|reserved|expected|invited)"
_DATE = (
    r"(?=(?:the )?\d|mon|tue|wed|thu|fri|sat|sun|"
    r"jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
)
_NAMED_DAY = (
    r"(?=(?:this |next )?(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|"
    r"april|may|june|july|august|september|october|november|december)\b)"
)
# "Will be closed" has a participle nearer to the day than its "will".
_DONE = (
    r"(?:[a-z]+ly )?(?:[a-z]{2,}ed|done|gone|made|held|sent|sold|built|paid|taken|given|read|put)"
)
_FUTURE = (
    rf"(?:will|won['’]t|shall|should|must|can|gonna|(?:has|have|needs?|is|are) to) "
    rf"(?:not |also |all |still |never )?(?:be|get|have(?: been)?) {_DONE}|"
    rf"(?:am|are|is) (?:getting|being) {_DONE}|"
    r"will|won't|won’t|shall|gonna|wanna|going to|plan(?:s|ning)?|hop(?:e|es|ing) to|"
    r"look(?:ing)? forward|can't wait|can’t wait|upcoming|want(?:s)? to|let's|let’s|see you|"
    r"should|due (?!to\b)|deadline|scheduled for|appointment is|tomorrow|starts?|begins?|"
    rf"is (?:on|in|at)|are (?:on|in|at)|(?:am|are|is) {_SET}|"
    rf"(?:is|are|(?:is|are)n['’]?t|make it|make that) (?:it |that |not )?{_NAMED_DAY}|"
    r"(?:am|is|are) (?:[a-z]+ly |still |all |not )?(?:[a-z]{2,}ed|taken|given|held|needed|sold)|"
    r"(?:am|are|is) (?!been|having|being|feeling|loving|doing)(?:[a-z]+ )?[a-z]+ing|"
    rf"(?:have|has|(?:i|we|they|you)['’]ve|s?he['’]s)(?: got)?"
    rf"(?: {_ITS}(?: (?!of\b|from\b|about\b|after\b)[\w'’-]+){{0,3}}?)? (?:{_EVENT})"
)
_FUTURE_CLITIC = (
    rf"['’]ll (?:not |also |all |still |never )?(?:be|get|have(?: been)?) {_DONE}\b|"
    rf"['’](?:m|re|s) (?:getting|being) {_DONE}\b|['’]ll\b|"
    rf"(?:\bit|\bthat)['’]s (?:not )?{_NAMED_DAY}|['’](?:m|re|s) {_SET}\b|"
    rf"['’]s (?:on|in|at) {_DATE}|"
    r"['’](?:m|re|s) (?!been|having|being|feeling|loving|doing)"
    r"(?:(?:also|just|really|all|actually|still) )?[a-z]+ing\b"
)
_PAST = (
    r"earlier in|"
    r"was|were|wasn't|weren't|did|didn't|had|went|got|took|made|saw|came|met|bought|found|told|"
    r"said|gave|left|ran|won|ate|drove|flew|spent|began|wrote|been|gone|done|seen|thought|"
    r"taught|felt|kept|lost|sold|paid|sent|became|brought|held|heard|broke|chose|fell|grew|"
    r"knew|led|rode|sang|swam|threw|woke|wore|hit|put|read|built|caught|drew|slept|spoke|"
    r"(?!need|feed|speed|indeed|breed|seed|bleed|excited|interested|stoked|tired|united|"
    r"scared|hundred|sacred|wicked|naked|succeed|proceed|exceed|supposed|embed)[a-z]{2,}ed"
)
PUT_OFF = (
    r"(?:moved|changed|pushed|rescheduled|postponed|shifted|delayed|deferred|extended|bumped|"
    r"switched|brought|put)"
)
"""Verbs of giving something another day."""
# "Our call was moved to Friday", "they said Friday": of the verb's past the day is none.
_AIM = lazy(
    rf"\b{PUT_OFF}\b[^.!?;,\n]{{0,48}}?\b(?:to|until|till)\s+(?:the\s+)?$"
    rf"|\b{PUT_OFF}\b[^.!?;,\n]{{0,48}}?\bfrom\s+(?:the\s+)?$"
    r"|(?<!\bas\s)\b\w+\s+(?:said|meant)\s+(?:the\s+)?$|\bsettled\s+on\s+(?:the\s+)?$",
    re.IGNORECASE,
)
# "Added: Thursday", "we booked Rome: April 10": when that was done is not said.
_ARRANGED = lazy(
    r"(?:booked|scheduled|reserved|added|updated|noted|arranged|confirmed|registered|planned|saved|"
    r"set|put|created|logged)\b",
    re.IGNORECASE,
)
# "We agreed to meet on Friday", "she told me to come on Friday".
_TO_DO = lazy(
    r"(?:agreed|decided|promised|arranged|offered|"
    r"(?:told|asked|invited|reminded|advised|ordered)(?:\s+[\w'’-]+){0,2}?)\s+"
    r"(?:not\s+)?to\s+(?!(?:have|the|an?|my|your|his|her|our|their|its|this|that|it|him|them|me|us"
    r"|you)\b)[a-z]+\b(?![^.!?;,\n]*,)",
    re.IGNORECASE,
)
# With the participles that are no cue of the past by themselves.
_ON = lazy(r"\b(?:on\s+(?:the\s+)?|it\s+|them\s+)$", re.IGNORECASE)
_PERFECT = lazy(
    r"(?:\b(?:have|has|haven['’]?t|hasn['’]?t)|['’](?:ve|s))\s+"
    r"(?:(?:not|never|always|already|only|now|also|really|just)\s+)*"
    r"(?:known|given|taken|written|driven|eaten|spoken|broken|chosen|grown|worn|drawn|shown|"
    r"forgotten|gotten|hidden|ridden|woken|flown|thrown|become|come|run|begun|hung|stuck|"
    r"stood|understood)\b",
    re.IGNORECASE,
)
_CUE = lazy(
    r"\b(?P<past>(?:was|were|did|had) (?:planning|going to|supposed|scheduled)|"
    r"did(?:n['’]t)? (?:\w+ )?have)\b"
    rf"|\b(?P<future>{_FUTURE})\b|(?P<clitic>{_FUTURE_CLITIC})|\b(?P<past2>{_PAST})\b",
    re.IGNORECASE,
)

_WHO = r"(?:i|we|you|he|she|they|it|everyone|everybody|anyone|(?:the|my|our|his|her|your) \w+)"
_FREE = (
    r"(?:not |also |all |still |fully )?(?:free|off|busy|away|closed|open|available|fine|ok|okay|"
    r"good|perfect|best|better|on (?:vacation|holiday|leave|duty|call)|out of (?:town|office))"
)
_GO = (
    r"(?:go|fly|leave|arrive|depart|travel|return|head|move|drive|sail|land|meet|play|perform|"
    r"present|work|train|race|compete|stay|start|finish|host|celebrate|run|swim|sing|cook|eat|"
    r"check (?:in|out)|get (?:back|home|paid|married)|come back|"
    r"turn \d+)"
)
_GOES = (
    r"(?:goes|flies|leaves|arrives|departs|travels|returns|moves|lands|opens|closes|ends|expires|"
    r"renews|finishes|resumes|launches|visits|plays|meets|works|takes place|"
    r"comes|gets (?:back|home|married))"
)
_DO = (
    r"(?:call|text|email|phone|ring|message|meet|join|visit|book|reserve|schedule|cancel|bring|"
    r"send|buy|order|pick|drop|come|stop|swing|return|submit|pay|prepare|set|add|wake|wait|"
    r"remind (?:me|us|him|her|them)(?! (?:of|about|what|who|whom|where|when|why|how|which)\b))"
)
_PRESENT = lazy(
    r"\b(?:needs? to|(?:have|has) (?:got )?to (?!say|admit|tell|confess|share|ask)|must (?!have\b)|"
    rf"(?:can|could|would) {_WHO} (?!have\b|remember|recall|tell|believe|imagine|explain|see\b)|"
    r"(?:i|we|they|he|she|you) can (?!(?:\w+ )?(?:see|hear|feel|tell|imagine|relate)\b)|"
    r"(?:cannot|can['’]t) (?!believe|imagine|stop|help|get over)|"
    rf"(?:am|is|are|isn['’]t|aren['’]t) (?:{_WHO} )?{_FREE}\b|"
    rf"(?:do|does|don['’]t|doesn['’]t) {_WHO} (?:have|need|{_GO})\b|"
    rf"{_WHO} (?:don['’]?t|doesn['’]?t|do not|does not) (?:have|need|{_GO})\b|"
    r"(?:i|we) (?:hope|wish|want|need)\b|(?:i|we)['’]d like\b|(?:if|unless|in case)\b|"
    r"good luck\b|have (?:fun|an? (?:good|great|nice|safe|lovely))\b|"
    rf"(?:i|we|they|you) (?:also )?{_GO}\b|{_GOES}\b|"
    rf"(?:how|what) about (?:on )?{_DATE}|(?:appointment|reservation)\b)"
    rf"|['’](?:s|m|re) {_FREE}\b"
    rf"|(?:^\W*|[:,]\s+|\b(?:and|then|so|also|just|or|please)\s+){_DO}\b",
    re.IGNORECASE,
)
_FRAME = lazy(
    r"(?:\W|\b(?:no|nope|not|yes|yeah|yep|ok|okay|sure|maybe|perhaps|probably|then|please|thanks|"
    r"on|or|and|the|at|around|about|early|late|next|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|morning|afternoon|evening|night|noon)\b)*",
    re.IGNORECASE,
)
_SENTENCE_END = lazy(r"[.!?;](?=\s)|\n")


def tense_near(text: str, start: int, end: int) -> str:
    """``past``, ``future``, ``open`` or ``none``: the tense word nearest to a span.

    ``open`` is told of what was arranged, for a day that the words before it do not tie to
    the arranging.

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
    if _AIM.search(text[low:start]):
        return "future"
    best: tuple[int, str] | None = None
    for match in _CUE.finditer(text, low, high):
        if match.start() < end and match.end() > start:
            continue
        distance = start - match.end() if match.end() <= start else match.start() - end
        future: object = match.group("future") or match.group("clitic")
        if not future and match.end() <= start:
            future = _TO_DO.match(text, match.start(), start)
        kind = "future" if future else "past"
        if not future and match.end() <= start and _ARRANGED.match(text, match.start(), start):
            kind = "past" if _ON.search(text[low:start]) else "open"
        if best is None or distance < best[0]:
            best = distance, kind
    if best is not None:
        return best[1]
    return "future" if _PRESENT.search(text[low:high]) else "none"


def is_perfect(text: str, start: int) -> bool:
    """Whether what stands before a place in a sentence is told in the perfect tense."""
    low = max(0, start - 200)
    for match in _SENTENCE_END.finditer(text, low, start):
        low = match.end()
    return _PERFECT.search(text[low:start]) is not None


def is_reply(text: str, start: int, end: int) -> bool:
    """Whether a day is all that a sentence says: "Thursday morning", "no, on Friday please".

    Which Thursday depends on what was asked, and that the text does not tell.
    """
    low, high = max(0, start - 200), min(len(text), end + 120)
    for match in _SENTENCE_END.finditer(text, low, start):
        low = match.end()
    stop = _SENTENCE_END.search(text, end, high)
    high = stop.start() if stop else high
    return _FRAME.fullmatch(text[low:start]) is not None and bool(_FRAME.fullmatch(text[end:high]))
