"""The English cue lists: one named pattern a rule, matched inside one clause.

Each table is a tuple of (rule name, pattern). Patterns see the matching text
(ASCII apostrophes), never the stored one. Cues of one signal are tried in order;
every match is evidence, so the name says which rule to look at.
"""

from __future__ import annotations

import re

__all__ = [
    "CONSTRAINT",
    "CONSTRAINT_NOT",
    "CORRECTION",
    "CORRECTION_NOT",
    "PAST_STATE",
    "PREFERENCE",
    "PREFERENCE_NOT",
    "REPLACEMENT",
    "REPLACEMENT_NOT",
    "Rule",
]

Rule = tuple[str, re.Pattern[str]]


def _rules(*pairs: tuple[str, str]) -> tuple[Rule, ...]:
    return tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in pairs)


_LEAD = (
    r"^\W*(?:(?:please|and|but|so|also|ok|okay|well|just|remember|note|hey|yes|actually"
    r"|now)\b[\s,:]*)*"
    r"(?:(?:on|in|for|at|with|during) [\w' -]{1,30}, *)?"
)
_ADVERB = (
    "(?:(?:really|truly|just|also|still|always|absolutely|totally|actually|do|definitely"
    "|especially|so|particularly|both|all|simply|kind of|kinda|generally|usually|mostly"
    r"|only|too|very|quite|super|pretty|much|deeply|honestly)\s+)*"
)
_ONE = r"(?:I|we)"
_OTHER = r"(?:he|she|they|[A-Z][a-z]+|(?:my|our|his|her|their) [\w'-]+(?: [\w'-]+)?)"

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
CONSTRAINT = _rules(
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
            rf"\b{_ONE}\s+(?:really\s+|just\s+|absolutely\s+)?(?:can't|cannot|can not|mustn't"
            r"|must not|am unable to|'m unable to|don't|do not)\s+(?:eat|(?<=can't )have"
            "|(?<=cannot )have|(?<=not )have(?= dairy)|drink|tolerate|digest"
            r"|consume)\s+(?!a (?:clue|favou?rite|problem|plan|job|car|lot|kid)"
            r"|any (?:questions?|plans?|pets?|kids?|idea|siblings|time)|time|to\b|that\b|it\b"
            r"|much\b|enough|kids|pets|the (?:time|money|energy)|one\b|anything|an?\b)\w+"
        ),
    ),
    (
        "unavailable",
        (
            rf"\b{_ONE}\s+(?:can't|cannot|can not)\s+(?:work|do|make|take|spend|use|pay|travel"
            r"|fly|drive|attend|meet|afford|exceed|share|keep|own|be around)\s+(?!it\b|that\b"
            r"|this\b|without\b|enough\b|sense\b|up\b)[\w']+"
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
    ("not-allow", rf"\b{_ONE} (?:don't|do not|never|cannot|can't) (?:allow|permit|accept)\b"),
    (
        "permitted-now",
        (
            r"\byou (?:may|can) (?:now|again|only)\b|\b(?:you|we) (?:may|can) (?!\w+ (?:it|this"
            r"|that)\b)\w+ [\w' -]{2,30}\b(?:now|again|from now on)\b"
        ),
    ),
)
CONSTRAINT_NOT = re.compile(
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

_WISH = (
    r"(?!\s*(?:to (?:see|hear|know|check|read|watch|try|join|learn|come|help|visit|chat"
    r"|catch|meet|have|get|show)\b))"
)
_YOURS = (
    r"(?!\s+(?:all\s+)?(?:your|you\b|ya\b|u\b|to hear|hearing|seeing you|to see (?:you|it"
    "|that|how)|the way you|how (?:you|it|they|the|your|much|there|our|this)"
    "|that (?:you|photo|pic|picture|idea|for you|quote|one|attitude|shot|color|spirit)"
    "|this (?:photo|pic|picture|idea|shot)"
    "|having you|what you|seeing (?:your|it|that|how|the)|the (?:photo|pic|idea|way"
    "|colou?rs?|design|enthusiasm|sound of|look)"
    r"|it if|it when you|that(?:\W|$)|the [\w ]{1,20} idea\b))"
)
_LIKE = r"(?:love|like|enjoy|adore|hate|dislike|loathe|despise|detest|cherish|treasure)"
PREFERENCE = _rules(
    (
        "prefer",
        (
            r"\b(?:I|we|he|she|they|[A-Z]?[a-z]+) (?:\w+ly |would |'d |also |still |do "
            r"|don't )?prefer(?:s|red)?\b"
        ),
    ),
    ("prefer-d", r"\b(?:I|we|he|she|they)'d (?:rather|prefer|sooner)\b|\b(?:I|we) would rather\b"),
    (
        "like",
        (
            rf"\b{_ONE}\s+{_ADVERB}{_LIKE}{_YOURS}{_WISH}\s+(?!(?:was|is|were"
            r"|are)\b)(?!it\b(?!\W*$|[!.]| (?:when|because|that|so))|this\b|that idea"
            r"|this idea)[\w\"'#]+"
        ),
    ),
    (
        "like-it",
        rf"\b{_ONE}\s+{_ADVERB}(?:love|adore|hate)\s+(?:it|them|this)\s*(?=[!.,]|$|and\b|but\b)",
    ),
    (
        "like-progressive",
        (
            r"\b(?:I'm|I am|we're|we are|been|(?:I'm|I am|we're)\b.{1,60}\band)\s+(?:really\s+"
            r"|just\s+|also\s+|still\s+|so\s+|absolutely\s+|totally\s+)?(?:loving|enjoying"
            r"|liking|hating)\b(?!\s+(?:your|it here|the chat|our))"
        ),
    ),
    ("and-enjoy", r"\b(?:and|we) (?:just |really |all )?enjoy\b(?! (?:it|your)\b)"),
    (
        "like-elided",
        (
            r"^\W*(?:yeah\W+|yes\W+)?(?:love|hate|enjoy)\s+(?:spending|being|doing|playing"
            rf"|making|reading|\w+ing)\b{_YOURS}"
        ),
    ),
    (
        "dislike",
        (
            rf"\b{_ONE}\s+(?:really\s+|still\s+|also\s+)?(?:don't|do not|never"
            r"|no longer)\s+(?:really\s+|much\s+)?(?:like|enjoy|love|care for"
            r"|want)\b(?!\s+(?:to\b|it if|how|that\b|you\b))"
        ),
    ),
    (
        "cannot-stand",
        (
            rf"\b(?:{_ONE}|{_OTHER})\s+(?:really\s+)?(?:can't|cannot|can not) (?:stand|bear"
            "|live without|get enough of|picture (?:my )?life without"
            r"|imagine (?:my )?life without)\b"
        ),
    ),
    (
        "other-likes",
        (
            rf"\b{_OTHER}\s+{_ADVERB}(?:loves|likes|enjoys|adores|hates|dislikes"
            r"|prefers)\b(?!\s+(?:you|your)\b)"
        ),
    ),
    (
        "others-like",
        (
            r"\b(?:they|(?:my|our) (?:\w+ )?(?:kids|children|sons|daughters|parents|friends"
            "|family|cats|dogs|pets|pups|turtles|students|team|teammates|siblings|nieces"
            r"|nephews|girls|boys|kiddos|fam)|we all|they all|kids)\s+(?:both |all |really "
            "|also |just |absolutely |seem to |always )*(?:love|like|enjoy|hate"
            r"|adore)\b(?!\s+(?:you|your)\b)"
        ),
    ),
    ("seems-to-like", r"\bseems? to (?:really )?(?:like|love|enjoy|hate|prefer)\b"),
    (
        "favourite",
        (
            r"\b(?:my|our|his|her|their|'s|one of my|new|all-time)\s+(?:(?:all[- ]time|new"
            "|personal|absolute|current|own|most|very|second|daughter|son|wife|husband|kids?"
            r"|fam|fave)(?:'s?)?\s+)*(?:favou?rites?|faves?|favs?|go-to|top picks?|top choice"
            r"|preferred)\b(?! (?:memory|memories|moment|part))|\b(?:is|are|'s|one of) (?:a|my"
            r"|our|their|his|her) (?:\w+ )?(?:favou?rites?|faves?|favs?)\b"
        ),
    ),
    (
        "into",
        (
            r"\b(?:I'm|I am|we're|we are|I've been|I'm not|I've gotten|he's|she's|he is|she is"
            r"|we've been)\s+(?:not\s+|never\s+)?(?:really\s+|super\s+|very\s+|so\s+|all\s+"
            r"|also\s+|pretty\s+|still\s+|just\s+|totally\s+|big\s+|more\s+|quite\s+"
            r"|actually\s+|always\s+)*(?:into|passionate about|keen on|fond of|obsessed with"
            r"|obsessed|drawn to|crazy about|hooked on|partial to|addicted to|a (?:\w+ )*(?:fan"
            r"|lover) of|big fans of|huge fans of|fans of|in love with)\b(?!\s+(?:your|it all"
            r"|the idea|a\b|what you))"
        ),
    ),
    (
        "grown-fond",
        (
            r"\b(?:grown|become|been|as|so|more|being|all|both|why I'm so|am so) (?:really |so "
            r"|very )?(?:fond of|passionate about|passionate as I am|obsessed with|drawn to)\b"
        ),
    ),
    (
        "passion",
        (
            r"\b(?:my|our|his|her|their|a) (?:\w+ ){0,2}(?:passion|love|fondness|enthusiasm"
            r"|weakness|soft spot)s? (?:for|of|is|are)\b(?!\s+(?:my life))|\b(?:is|are"
            r"|'s) (?:my|our|her|his) (?:\w+ ){0,2}(?:passions?|thing|jam|happy place|escape"
            r"|therapy|first love)\b|\bare my thing\b"
        ),
    ),
    (
        "had-love",
        (
            r"\b(?:I|we)(?:'ve| have)(?: always| long)* (?:had a love|loved|liked|enjoyed"
            r"|been (?:into|a fan|passionate|fond|drawn|fascinated))\b"
        ),
    ),
    (
        "joy",
        (
            r"\b(?:brings?|gives?|bringing) (?:me|us)\b(?:\s+\w+){0,3}\s+(?:joy|happiness|peace"
            r"|pleasure)\b|\bbrings? (?:\w+ ){0,3}(?:joy|happiness)(?: and \w+)? to (?:my"
            r"|our) li(?:fe|ves)\b|\bmakes? (?:me|us) (?:so |really |very |feel "
            r"|incredibly )*happy\b"
        ),
    ),
    (
        "speaks-to-me",
        (
            r"\b(?:speaks to me|is just me\b|suits me best|works best for me|appeals to me"
            "|makes? me love)"
        ),
    ),
    (
        "like-to",
        (
            rf"\b{_ONE}\s+{_ADVERB}(?:like|love|hate|prefer)\s+to\s+(?!see|hear|know|check"
            r"|think|say|thank|hear)\w+"
        ),
    ),
)
PREFERENCE_NOT = re.compile(
    r"\b(?:I|we|she|he|they)(?:'d| would|'ll| will)(?: really| absolutely| also"
    r"| totally)? (?:love|like|enjoy|hate)\b(?!.*\b(?:rather|prefer)\b)"
    r"|\byou(?:'ll|'d| would| will| must| really| clearly)* (?:love|like|enjoy|prefer)\b"
    r"|^\W*(?:would|I'd|we'd) (?:love|like|hate)\b"
    r"|\bhope (?:you|they|he|she|it|I)\b",
    re.IGNORECASE,
)

_VALUE = r"(?:[\"']?[\w$€£#@./:+-]+[\"']?)"
CORRECTION = _rules(
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
CORRECTION_NOT = re.compile(
    r"\bsorry (?:to hear|for|about|I missed|that|you)\b|\bno (?:problem|worries)\b"
    r"|\bnot (?:only|just)\b",
    re.IGNORECASE,
)

_THING = r"[\w$€£#@.+/'-]+(?: [\w$€£#@.+/'-]+){0,4}"
REPLACEMENT = _rules(
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
REPLACEMENT_NOT = re.compile(
    r"\bnot (?:only|just|sure|easy|much|cheap|simply|always|long)\b.{0,40}\bbut\b"
    r"|\bprefer\b.{0,60}\binstead of\b"
    r"|\bmoved? from (?:place|strength)\b",
    re.IGNORECASE,
)

_PAST_LIFE = (
    r"(?:kid|child|boy|girl|teen|teenager|student|baby|toddler|youngster|freshman|senior|undergrad)"
)
PAST_STATE = _rules(
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
