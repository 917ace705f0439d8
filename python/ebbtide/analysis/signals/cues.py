"""Cues of corrections, replacements and past states.

Corrections and replacements are read in whole sentences, past states in clauses.
"""

from __future__ import annotations

import re

from ebbtide.analysis.patterns import guarded
from ebbtide.analysis.signals.cue_rule import rules
from ebbtide.analysis.signals.setting_values import VALUE

__all__ = ["CORRECTION", "CORRECTION_NOT", "PAST_STATE", "REPLACEMENT", "REPLACEMENT_NOT"]

_VALUE = r"(?:[\"']?[\w$€£#@./:+-]+[\"']?)"
CORRECTION = rules(
    (
        "actually-value",
        (
            r"^\W*(?:(?:oh|no|wait|hmm|sorry|well|ah|oops"
            r"|hang on)\b[\s,.!]*)*actually[,:]?\s+(?:no\b|not\b|it's (?!been|so|a lot|pretty"
            "|really|kind|very|quite|great|nice|cool|good|fun|my|our|easy|hard|just|such)"
            r"|it is|it was (?:on|at|in|the)\b|that's (?:not|wrong|in)|I meant|make (?:that|it)"
            r"|(?:the|my|our|his|her|its) [\w' -]{1,40}? (?:is|was|are|'s|were)\b|(?:he|she"
            r"|they) (?:is|are|was)\b|let's|scratch)"
        ),
    ),
    (
        "actually-contrast",
        (
            r"\bactually\b.{2,80},?\s+not\s+(?!sure|really|only|just|too|so|bad|even|much|that"
            r"|very|a lot|been|always|many|all|yet|far)(?:an?\s+|the\s+|my\s+|our\s+|on\s+"
            r"|in\s+|at\s+)?[\w.$-]+(?:\s+[\w.$-]+){0,4}\W*$"
        ),
    ),
    (
        "value-not-old",
        (
            r"\b(?:is|are|was|'s|said|meant|on|at|in|to|for|means|called|named"
            r"|becomes)\s+(?:the\s+|an?\s+|on\s+|in\s+"
            rf"|at\s+)*{_VALUE}(?:\s+{_VALUE}){{0,3}},\s+(?:and\s+)?not\s+(?:the\s+|on\s+|in\s+"
            r"|at\s+|an?\s+)*(?!sure|really|only|just|too|so|bad|even|much|that|very|to|always"
            rf"|all|yet|far|because|when|my\b){_VALUE}"
        ),
    ),
    (
        "not-x-but-y",
        (
            r"\b(?:it's|it is|it was|that's|is|was|are|'s) not (?:the|an?|on|in|at|my"
            r"|our)?\s*[\w$.'-]+(?: [\w$.'-]+){0,2},? but (?:rather )?(?:the|an?|on|in|at|my"
            r"|our)\s+[\w$.'-]+"
        ),
    ),
    (
        "meant",
        (
            r"\b(?:I|we) (?:meant(?: to (?:say|write|type))?|should have said|misspoke"
            "|mis-spoke|mistyped|misremembered|got (?:that|it|this) wrong"
            r"|stand corrected)\b(?!\s+(?:it|every word|to (?!say|write|type)\w+|a lot|so much"
            "|well|no harm))"
        ),
    ),
    (
        "scratch-that",
        (
            r"\b(?:scratch|strike|belay|disregard|ignore) (?:that|my last|what I said|the last"
            r"|my previous)\b"
        ),
    ),
    (
        "named-correction",
        (
            r"^\W*(?:correction|edit|erratum|typo)\b\s*[:,-]|\blet me (?:correct|rephrase"
            r"|fix)\b|\b(?:small|quick|one) correction\b|\bto correct (?:myself|that)\b"
        ),
    ),
    (
        "my-mistake",
        (
            r"\bmy (?:mistake|bad|error)\b[,:;.]?(?=.*\w)|^\W*(?:oops|whoops"
            r"|oh)\b[\s,!]*(?:I meant|it's|wrong|I made)|\bI made (?:a mistake|an error)\b"
        ),
    ),
    ("i-was-wrong", r"\bI was (?:wrong|mistaken|incorrect)\b(?!\s+to\b)(?=\W|\s+about\b)"),
    (
        "that-is-wrong",
        (
            r"\b(?:that's|that is|this is|it's|you're|which is) (?:wrong|incorrect|not (?:right"
            "|correct|true|accurate|what I (?:said|meant|asked|wanted))|inaccurate|a mistake"
            r"|mistaken)\b(?! (?:that|to|for|how)\b)|\bare all (?:invalid|wrong)\b"
        ),
    ),
    (
        "no-value",
        (
            r"^\W*(?:no|nope|nah|wait|hang on|hold on)[,.!]+\s*(?:no[,.!]*\s*)?(?:it's (?!been"
            r"|ok|okay|fine|not|all|great|good|so|my|a)|it is|it was\b|it wasn't|that's not"
            r"|that was not|the \w+ (?:is|was)\b|my \w+ (?:is|was)\b|her name|his name"
            r"|I (?:said|meant|asked|live|moved|work|need|want|told)\b|not\b(?! (?:really|yet"
            r"|at all|much|sure|exactly|anymore|always)\b)|this (?:has|is|isn't)|these are"
            "|they are|actually|make (?:it|that)|we (?:said|meant|live|agreed))"
        ),
    ),
    # "Wait, no, at 4." and "*402" right behind what they correct
    (
        "value-alone",
        (
            r"^\W*(?:wait|oops|whoops|sorry|hang on|hold on)[,.!:;]+\s*(?:no[,.!]*\s*)?"
            rf"(?:(?:at|on|in|to|the|it's|make (?:it|that))\s+)*(?:{VALUE}\W*$"
            r"|[\w'. -]{1,30}?, not [\w'. -]{1,30}\W*$)|^\s*\*[^\s*][^*\n]{0,40}$"
        ),
    ),
    (
        "sorry-value",
        (
            r"^\W*(?:oh\W+|ah\W+)?sorry[,:;.]\s*(?:it's (?!been|taken|so|late|ok)|it is|it was"
            r"|I meant|I mean\b|that should|the \w+ is|not\b|make (?:it|that)|wrong)"
        ),
    ),
    (
        "should-be",
        (
            r"\b(?:that|it|this) should (?:be|read|say|have been) (?!a (?:fun|great|good)|fun"
            "|great|good|fine|interesting|easy|ok|okay|enough|amazing|awesome"
            r"|nice)(?:\"?[\w$'.-]+)(?:.{0,20}\bnot\b|\W*$)"
        ),
    ),
    ("second-thought", r"\bon second thoughts?\b|\bI take that back\b|\bchanged my mind\b"),
)
CORRECTION_NOT = guarded(
    r"\bsorry (?:to hear|for|about|I missed|that|you)\b|\bno (?:problem|worries)\b"
    r"|\bnot (?:only|just)\b",
    re.IGNORECASE,
)

_THING = r"[\w$€£#@.+/'-]+(?: [\w$€£#@.+/'-]+){0,4}"
REPLACEMENT = rules(
    (
        "not-x-but-y",
        (
            r"\bnot (?:the|an?|on|in|at|my|our|to|for|by"
            r"|with)?\s*[\w$.'-]+(?: [\w$.'-]+){0,2},? but (?:rather |instead )?(?:the|an?|on"
            r"|in|at|my|our|to|for|by|with)\s+[\w$.'-]+"
        ),
    ),
    (
        "y-not-x",
        (
            r"\b(?:is|are|was|'s|said|meant|means|called|named|to|with|on|at|thinking of"
            rf"|planning|becomes)\b\s*[^,.;]{{1,70}}?,\s+(?:and\s+)?not\s+(?:the\s+|on\s+|in\s+"
            r"|at\s+|an?\s+|my\s+|our\s+)*(?!sure|really|only|just|too|so|bad|even|much|that"
            f"|very|to|always|all|yet|far|because|when|if|gonna|going|as){_VALUE}"
        ),
    ),
    (
        "instead-of",
        rf"\b{_THING} instead of (?!worrying|just\b|being|feeling|giving|letting|dwelling){_THING}",
    ),
    (
        "instead",
        (
            r"\b(?:use|using|try|trying|take|taking|do|be|make|go|meet|meeting|have|write|send"
            r"|call|put|drink|eat|cycle|play|choose|buy|book|let's)\b.{2,50}\binstead\b\W*$"
        ),
    ),
    (
        "rather-than",
        (
            r"\b(?:use|put|take|write|call|send|make|add|with|in|choose|pick|book|buy"
            rf"|go)\b.{{1,40}}\brather than {_THING}"
        ),
    ),
    ("replace-with", r"\breplac(?:e|ed|es|ing)\b.{1,60}\b(?:with|by)\b"),
    (
        "swap-for",
        (
            r"\b(?:swap|swapped|exchange|exchanged|trade|traded|substitut(?:e"
            r"|ed))\b.{1,50}\b(?:for|with)\b"
        ),
    ),
    (
        "switch-to",
        (
            r"\b(?:switch(?:ed|ing)?|migrat(?:e|ed|ing)|convert(?:ed)?|upgrade[d]?"
            r"|transition(?:ed)?)\b(?!\s+(?:out|up|off|on)\b).{0,50}\bto\b(?!\s+(?:be|get|see"
            r"|make)\b)"
        ),
    ),
    (
        "from-x-to-y",
        (
            r"\b(?:chang(?:e|ed|ing)|mov(?:e|ed|ing)|renam(?:e|ed)|postponed|rescheduled"
            r"|shifted|went)\b.{0,40}\bfrom\b.{1,40}\bto\b"
        ),
    ),
    (
        "change-to",
        (
            r"\b(?:chang(?:e|ed)|set|updated?|rename[d]?|resched\w+) (?:the|my|our|that"
            r"|it)\b.{0,40}\bto\b(?!\s+(?:be|make|get|see|help|suit)\b)"
        ),
    ),
    (
        "no-longer-now",
        (
            r"\b(?:no longer|not|n't|gave up|stopped|quit)\b.{1,50}\b(?:now"
            r"|instead)\b(?!\s+that)|,\s*no longer\b.{1,40}$"
        ),
    ),
)
REPLACEMENT_NOT = guarded(
    r"\bnot (?:only|just|sure|easy|much|cheap|simply|always|long)\b.{0,40}\bbut\b"
    r"|\bprefer\b.{0,60}\binstead of\b"
    r"|\bmoved? from (?:place|strength)\b",
    re.IGNORECASE,
)

_PAST_LIFE = (
    r"(?:kid|child|boy|girl|teen|teenager|student|baby|toddler|youngster|freshman|senior|undergrad)"
)
PAST_STATE = rules(
    (
        "used-to",
        (
            r"(?<!\bam )(?<!'m )(?<!\bis )(?<!\bare )(?<!'re )(?<!'s )(?<!\bget )(?<!\bgot )"
            r"(?<!\bgetting )(?<!\bbe )(?<!\bwas )(?<!\bbeen )(?<!\bbeing )(?<!\bjust )"
            r"(?<!\bwere )(?<!\bbecome )\bused to (?!it\b|that\b|this\b|the\b|being\b|\w+ing\b"
            "|cut|make sure)[a-z]+"
        ),
    ),
    (
        "when-i-was",
        (
            r"\b(?:when|while|before) (?:I|we) (?:was|were) (?:an? (?!bit)|in (?:the|high"
            "|middle|college|school|my)|at (?:school|college|university)|young|younger|little"
            r"|small|growing|living|working|studying|\d|(?:five|six|seven|eight|nine|ten"
            "|eleven|twelve|thirteen|fourteen|fifteen|sixteen))"
        ),
    ),
    (
        "when-younger",
        (
            r"\bwhen (?:I|we|he|she|they) (?:was|were) (?:younger|little|kids|young|small)\b"
            r"|\bin (?:my|our|his|her) (?:youth|childhood|twenties|teens|younger days"
            r"|school days|early \w+)\b"
        ),
    ),
    (
        "as-a-child",
        (
            rf"\bas (?:an? )?(?:little |young |small )?{_PAST_LIFE}s?\b(?! (?:would"
            r"|is)\b)(?!,? (?:I|my) (?:am|study))"
        ),
    ),
    (
        "back-then",
        (
            r"\b(?:back then|back in the day|in those days|in the old days|back when"
            r"|at that time in my life|those days)\b|\bback in (?:high school|college|school"
            r"|university|my)\b|\bin (?:college|high school|grade school"
            r"|middle school)\b(?=.*\b\w+ed\b)"
        ),
    ),
    (
        "grew-up",
        (
            r"\b(?:I|we|he|she|they) (?:grew up|was raised|were raised|was born|were born)\b"
            r"|\bgrowing up,?(?: in| on| with| I| we| my)\b|\bI had \w+ growing up\b"
        ),
    ),
    (
        "previously",
        (
            r"\b(?:I|we|he|she|they) (?:previously|formerly|originally|once) (?!again)\w+(?:ed"
            r"|t)?\b(?! upon)|\b(?:formerly|previously) (?:an?|the|known|worked|lived)\b"
        ),
    ),
    (
        "past-role",
        (
            r"\b(?:I|we|he|she|my (?:\w+)) (?:was|were) (?:once )?(?:an? (?!bit|little|few|lot"
            "|great|big|huge|good|blast|mess|total|complete|nervous|part of"
            r"|tad)(?:[\w-]+ ){0,2}?(?:\w+(?:er|or|ist|ian|ant|ent|man|woman|nurse|cook|chef"
            "|coach|clerk|vegetarian|vegan|teacher)|nurse|cook|chef|coach|clerk|vegan|smoker"
            r"|student|soldier|pilot)\b|married to|in the (?:navy|army|military|marines"
            "|air force|service|police)|single (?:back|then|for)|employed|self-employed"
            "|vegetarian|vegan)"
        ),
    ),
    (
        "past-residence",
        (
            r"\b(?:I|we|he|she|they|my [\w']+) (?:lived|resided|stayed for years|dwelt) (?:in"
            r"|at|on|with|near|there|abroad|next)\b"
        ),
    ),
    (
        "past-work",
        (
            r"\b(?:I|we|he|she|they|my [\w']+) (?:worked|served|taught) (?:as|at|for|in|with"
            r"|there|nights|part[- ]time)\b(?=.*\b(?:before|until|years|back|ago|then|when"
            r"|mines|previous|for|from|in the|at a|as an?)\b)(?!.*\b(?:last (?:week|night|month"
            r"|weekend)|yesterday|today|this morning)\b)"
        ),
    ),
    (
        "past-owner",
        (
            r"\b(?:I|we) had (?:an? |two |three |some )(?:\w+ )?(?:dog|cat|puppy|pet|horse"
            "|rabbit|hamster|car|motorbike|bike|house|apartment|flat|garden|stammer|job"
            r"|business|shop)s?\b(?! (?:accident|trip|ride|appointment|crash))"
        ),
    ),
    (
        "former",
        (
            r"\b(?:my|our|his|her) (?:old|former|ex|previous|last|first) (?:job|house|apartment"
            "|flat|school|boss|company|place|home|husband|wife|girlfriend|boyfriend|partner"
            r"|team|employer|landlord|neighbou?rhood)\b(?=.*\b(?:was|were|had|did|\w+ed)\b)"
        ),
    ),
    (
        "would-habit",
        (
            r"\b(?:I|we|he|she|they)(?:'d| would) (?:always|often|usually|all get"
            r"|spend (?:every|our|the)|go every|sit|never)\b(?!.*\b(?:if|love|like"
            r"|recommend)\b)"
        ),
    ),
    (
        "habit-d",
        r"\bwe'd (?:all )?(?:get|go|play|sit|make|watch|eat|spend|ride|walk|hang|cook|swim|sing)\b",
    ),
    (
        "not-anymore",
        (
            r"\b(?:don't|doesn't|do not|does not|no longer|isn't|aren't|am not"
            r"|'m not)\b(?! think).{1,50}\b(?:any ?more|any longer)\b|\b(?:I|we|he"
            r"|she) no longer \w+|\b(?:I|we) (?:gave up|quit|stopped) (?!on\b|worrying)(?:\w+)"
        ),
    ),
    (
        "since-my-time",
        r"\b(?:since|during|from|in) (?:my|our) (?:time|days|years) (?:in|at|as|with)\b",
    ),
    (
        "past-lasting",
        (
            r"\b(?:I|we|he|she|they) (?:was|were|had|played|lived|worked|studied|smoked|owned"
            r"|dated|taught|ran) .{0,50}\bfor (?:\w+ ){0,2}(?:years|decades"
            r"|ages)\b(?!.*\bnow\b)"
        ),
    ),
)
