"""Cues of rules, prohibitions, obligations and lasting limits.

``CONSTRAINT_NOT`` vetoes what only sounds like one: "can't wait", "it must be hard",
"a must-see", "no problem".
"""

from __future__ import annotations

import re

from ebbtide.analysis.patterns import guarded
from ebbtide.analysis.signals.cue_rule import FIRST_PERSON, rules

__all__ = ["CONSTRAINT", "CONSTRAINT_NOT"]

_LEAD = (
    r"^\W*(?:(?:please|and|but|so|also|ok|okay|well|just|remember|note|hey|yes|actually"
    r"|now)\b[\s,:]*)*"
    r"(?:(?:on|in|for|at|with|during) [\w' -]{1,30}, *)?"
)
# "Don't worry", "don't give up": comfort and encouragement forbid nothing.
_COMFORT = (
    "(?:worry|stress|panic|mind|mention|be (?:afraid|shy|sad|scared|sorry|silly|too|so"
    "|hard|discouraged|nervous)"
    "|give up|quit|hesitate|sweat|get me wrong|get (?:discouraged|down)|lose (?:hope|heart"
    "|sight)|feel|think|know|you|care"
    r"|even|ever|let the [\w ]{1,20}?(?:bring|get|stop|keep|hold)|let (?:it|that|them|this"
    "|anyone|anything|fear|setbacks)|sell yourself|stop|miss|wanna|want|hold back"
    "|beat yourself|fret|bother"
    r"|look back|rush|doubt|underestimate|look now|tell me|say|judge|lie|expect)\b"
)
# After a left-out subject ("never been there", "never gets old") nothing is forbidden.
_NOT_BASE = (
    "(?:been|had|seen|done|thought|tried|heard|knew|know|in|mind|(?!miss|pass|access"
    r"|discuss|process|press|express|cross)\w+s|\w+ed|ever|saw|came|got|met|went|felt|took"
    r"|made|let (?:us|me))\b"
)
CONSTRAINT = rules(
    (
        "prohibition",
        _LEAD + rf"(?:do not|don't|dont|never)\s+(?:ever\s+)?(?!{_COMFORT}|forget\b"
        rf"|{_NOT_BASE})[a-z]+\b(?!\s*$|\s*,)",
    ),
    (
        "reminder",
        _LEAD + r"(?:do not|don't|never)\s+forget\s+to\s+(?!stay|be\b|keep|have|enjoy|take care"
        "|smile|love|believe|breathe|celebrate|appreciate|check|look|watch|try)[a-z]+",
    ),
    ("avoid", _LEAD + r"avoid\s+\w+"),
    (
        "always",
        _LEAD + r"always\s+(?!full|busy|open|worth|easy|hard|more|amazing|on\b|ready|willing|be\b"
        r"|stay|remember|here|been|there|up\b|love|happy|great|good|nice|so\b|in\b|keeping"
        r"|a\b|the\b)(?!\w+(?:ed|ing)\b)[a-z]+\s+\w+",
    ),
    (
        "only",
        _LEAD + r"only\s+(?:use|answer|reply|respond|write|call|send|speak|include|show|give|deploy"
        r"|accept|allow|return|buy|book|contact|email|run)\b",
    ),
    ("instruction", _LEAD + r"use\s+(?:(?:the|an?|only)\s+\w+|(?-i:[A-Z])\w+|[\w-]+ instead\b)"),
    (
        "keep-limit",
        r"\bkeep\b.{1,40}\b(?:under|below|within|shorter than|less than|secret|confidential)\b",
    ),
    (
        "must",
        (
            r"\b(?:must(?:n't| not)?|shall not|may not)\s+(?!have\b(?:\s+(?:been|felt|had"
            r"|become|gone|done|made|got|\w+en|\w+ed))|be (?:quite|so|such|a|an|the|very"
            "|really|pretty|amazing|exciting|awesome|nice|great|hard|tough|proud|fun"
            r"|incredible|\w+ing)\b|say\b|admit\b|'ve|feel|love|see|try|mean|confess)\w+"
        ),
    ),
    (
        "permission",
        (
            r"\b(?:is|are|was|be|isn't|aren't|am|'s|'re|'m)\s+(?:now\s+|strictly\s+"
            r"|no longer\s+|still\s+|not\s+|also\s+)*(?:allowed|permitted|forbidden|prohibited"
            r"|banned|mandatory|compulsory|required|off limits|off-limits)\b"
        ),
    ),
    (
        "deontic-have",
        (
            r"\b(?:has|have) to (?:be (?:done|finished|ready|submitted|signed|under|below"
            r"|at least|approved|encrypted|tested|in)|stay (?:under|below|within))\b"
        ),
    ),
    (
        "need-form",
        (
            r"\b(?:need|needs) to (?:be (?:under|below|at least|at most|in|done|finished"
            r"|approved)|sign in|stay (?:under|below|within))\b"
        ),
    ),
    ("need-only", r"\b(?:need|want|only) only (?:the|those|a|one)\b"),
    (
        "incapacity",
        (
            rf"\b{FIRST_PERSON}\s+(?:really\s+|just\s+|absolutely\s+)?(?:can't|cannot|can not"
            r"|mustn't|must not|am unable to|'m unable to|don't|do not)\s+(?:eat|(?<=can't )have"
            "|(?<=cannot )have|(?<=not )have(?= dairy)|drink|tolerate|digest"
            r"|consume)\s+(?!a (?:clue|favou?rite|problem|plan|job|car|lot|kid)"
            r"|any (?:questions?|plans?|pets?|kids?|idea|siblings|time)|time|to\b|that\b|it\b"
            r"|much\b|enough|kids|pets|the (?:time|money|energy)|one\b|anything|an?\b)\w+"
        ),
    ),
    (
        "unavailable",
        (
            rf"\b{FIRST_PERSON}\s+(?:can't|cannot|can not)\s+(?:work|do|make|take|spend|use|pay"
            r"|travel|fly|drive|attend|meet|afford|exceed|share|keep|own|be around)\s+(?!it\b"
            r"|that\b|this\b|without\b|enough\b|sense\b|up\b)[\w']+"
        ),
    ),
    (
        "health-limit",
        (
            r"\b(?:allerg(?:ic|y|ies)|(?:lactose|gluten)[ -]intolerant|intoleran(?:t|ce)|celiac"
            r"|coeliac)\b"
        ),
    ),
    ("is-a-must", r"\b(?:is|are|'s) an? (?:absolute |real )?must for (?:me|us)\b"),
    (
        "diet-limit",
        (
            r"\b(?:has|have|needs?) to be (?:vegan|vegetarian|halal|kosher|gluten[- ]free"
            r"|dairy[- ]free|nut[- ]free)\b"
        ),
    ),
    (
        "limit",
        (
            r"\b(?:at most|no more than|not more than|no longer than|no later than|maximum of"
            r"|max\.? of|up to a maximum|under no circumstances|not exceed|at the latest"
            r"|or less)\b"
        ),
    ),
    (
        "budget",
        (
            r"\b(?:(?:my|our|the|a) (?:\w+ )?(?:budget|limit|cap)\b.{0,20}(?:is|of|around"
            r"|'s)\s*(?:\w+\s+){0,2}[$€£]?\d|comfortable spending (?:around |up to )?[$€£]?\d)"
        ),
    ),
    (
        "nothing-with",
        r"\b(?:nothing with|anything without|without any|no) [a-z]+(?: [\w']+){0,4},? please\b",
    ),
    (
        "make-sure",
        _LEAD + r"(?:make sure|ensure)(?: that)? (?:(?:the|all|every|no|each)\b).{0,40}\b(?:never"
        r"|always|only|is|are|has|have|no)\b",
    ),
    (
        "not-allow",
        rf"\b{FIRST_PERSON} (?:don't|do not|never|cannot|can't) (?:allow|permit|accept)\b",
    ),
    (
        "permitted-now",
        (
            r"\byou (?:may|can) (?:now|again|only)\b|\b(?:you|we) (?:may|can) (?!\w+ (?:it|this"
            r"|that)\b)\w+ [\w' -]{2,30}\b(?:now|again|from now on)\b"
        ),
    ),
)
CONSTRAINT_NOT = guarded(
    r"\bmust(?:'ve| be)? (?:it|that|you)\b|\byou(?:'re| are| were)? allergic\b"
    # Epistemic "must": a guess about how something was or felt.
    r"|(?:^|\b(?:it|that|this|these|those|you|he|she|they|there|which))\W*(?:all |both "
    "|really )?must(?: really| surely| definitely)?(?:'ve| have| not have| be| feel| love"
    r"| mean| look| bring| enjoy| know| miss| want)\b"
    r"(?! (?:be )?(?:under|below|at (?:least|most)|no more|\d|encrypted|signed|approved"
    "|done|kept|keep))"
    r"|^\W*[A-Z][a-z]+ must (?:be|have|feel)\b"
    r"|\b(?:can't|cannot|can not) (?:wait|believe|help|imagine|stand|complain|thank|agree"
    r"|get enough|stop|picture|deny)\b"
    r"|\bmust[- ](?:see|read|visit|have|try|watch|ride|do|buy)s?\b|\ba must\b(?! for (?:me"
    r"|us)\b)|\b(?:it|that|this) must (?!not\b|never\b|be\b|stay|remain)"
    r"|\bno (?:problem|worries|need|prob|doubt|way|idea|wonder|one|rush|thanks)\b",
    re.IGNORECASE,
)
