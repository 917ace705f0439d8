"""Cues of lasting likes, dislikes, choices and favourites.

Praise of the listener's things ("love your photo") and wishes ("I'd love to hear")
are left out.
"""

from __future__ import annotations

import re

from ebbtide.analysis.patterns import guarded
from ebbtide.analysis.signals.cue_rule import FIRST_PERSON, rules

__all__ = ["PREFERENCE", "PREFERENCE_NOT"]

_ADVERB = (
    "(?:(?:really|truly|just|also|still|always|absolutely|totally|actually|do|definitely"
    "|especially|so|particularly|both|all|simply|kind of|kinda|generally|usually|mostly"
    r"|only|too|very|quite|super|pretty|much|deeply|honestly)\s+)*"
)
_OTHER = r"(?:he|she|they|[A-Z][a-z]+|(?:my|our|his|her|their) [\w'-]+(?: [\w'-]+)?)"
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
PREFERENCE = rules(
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
            rf"\b{FIRST_PERSON}\s+{_ADVERB}{_LIKE}{_YOURS}{_WISH}\s+(?!(?:was|is|were"
            r"|are)\b)(?!it\b(?!\W*$|[!.]| (?:when|because|that|so))|this\b|that idea"
            r"|this idea)[\w\"'#]+"
        ),
    ),
    (
        "like-it",
        rf"\b{FIRST_PERSON}\s+{_ADVERB}(?:love|adore|hate)\s+(?:it|them|this)\s*(?=[!.,]|$|and\b|but\b)",
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
            rf"\b{FIRST_PERSON}\s+(?:really\s+|still\s+|also\s+)?(?:don't|do not|never"
            r"|no longer)\s+(?:really\s+|much\s+)?(?:like|enjoy|love|care for"
            r"|want)\b(?!\s+(?:to\b|it if|how|that\b|you\b))"
        ),
    ),
    (
        "cannot-stand",
        (
            rf"\b(?:{FIRST_PERSON}|{_OTHER})\s+(?:really\s+)?(?:can't|cannot|can not) (?:stand|bear"
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
            rf"\b{FIRST_PERSON}\s+{_ADVERB}(?:like|love|hate|prefer)\s+to\s+(?!see|hear|know|check"
            r"|think|say|thank|hear)\w+"
        ),
    ),
)
PREFERENCE_NOT = guarded(
    r"\b(?:I|we|she|he|they)(?:'d| would|'ll| will)(?: really| absolutely| also"
    r"| totally)? (?:love|like|enjoy|hate)\b(?!.*\b(?:rather|prefer)\b)"
    r"|\byou(?:'ll|'d| would| will| must| really| clearly)* (?:love|like|enjoy|prefer)\b"
    r"|^\W*(?:would|I'd|we'd) (?:love|like|hate)\b"
    r"|\bhope (?:you|they|he|she|it|I)\b",
    re.IGNORECASE,
)
