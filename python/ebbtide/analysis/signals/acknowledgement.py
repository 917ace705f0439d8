"""Acknowledgement-like turns, and the social test of the social floor."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ebbtide.analysis.normalise import word_set
from ebbtide.analysis.patterns import guarded
from ebbtide.analysis.signals.text import Sentence

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

__all__ = ["SOCIAL_KEYWORDS", "acknowledgement_span", "is_social"]

SOCIAL_KEYWORDS = word_set(
    """
    thanks thank thx ty cheers appreciated gracias
    hi hello hey hiya howdy greetings morning bye goodbye cya night
    ok okay k kk noted understood roger gotcha alright right
    yes yeah yep yup sure absolutely definitely exactly indeed certainly
    great awesome cool nice perfect amazing wonderful excellent fantastic brilliant lovely super
    congrats congratulations bravo wow yay woohoo
    sorry apologies oops pardon
    welcome please cheers
    """
)
"""K_social of eq. 28: thanks, greetings, acknowledgements, affirmations, praise,
apologies, courtesy."""

_SOCIAL_PHRASES = re.compile(
    r"\b(?:got it|take care|see (?:you|ya)|no (?:problem|worries)|well done|good (?:job|luck|one)"
    r"|my pleasure|of course|will do|sounds good|makes sense|good night)\b"
)
_EDGE = "\"'.,!?;:()[]{}~*-_…"


def is_social(text: str) -> bool:
    """Whether a (matching) text is phatic: eq. 28.

    At most six words between white space, at least one of them a keyword (or a
    set phrase such as "got it"), edge punctuation stripped.
    """
    words = text.lower().split()
    if not words or len(words) > 6:
        return False
    stripped = [word.strip(_EDGE) for word in words]
    if any(word in SOCIAL_KEYWORDS for word in stripped):
        return True
    return bool(_SOCIAL_PHRASES.search(" ".join(stripped)))


_ACK = re.compile(
    r"^\W*(?:(?:oh|aw+|ah|hey|haha|ha|and|but|so|well|yeah|yes)\W+)*"
    "(?:thanks?|thx|ty|thank you|wow|wo+ah?|whoa|woo-?hoo|yay|cool|awesome|amazing|great"
    "|nice|sweet|neat|lovely|perfect"
    "|fantastic|incredible|brilliant|wonderful|excellent|super|congrats|congratulations"
    "|kudos|bravo|way to go|well done"
    "|good (?:job|luck|one|idea|for you|to)|ok|okay|sure|absolutely|definitely|exactly"
    "|totally|certainly|of course"
    "|for sure|yes|yeah|yep|yup|yea|yess+|right|true|agreed|indeed|got it|gotcha|i see"
    r"|i get it|i hear you|no (?:worries|prob\w*)|anytime"
    "|hi|hello|hey|hiya|bye|goodbye|see (?:you|ya)|take care|cheers|sounds|glad"
    "|happy (?:to|for)|sorry|so sorry|that's|that is|those are|that was|that sounds"
    "|these are|they look|it sounds"
    "|that looks|that must|it must|must (?:be|have|feel|'ve)|you're|you are|you've got"
    "|you got|you look|you all look|you will|you'll|you've|your|i(?:'m| am) (?:so |really "
    "|also |super )*(?:happy|glad|proud|sorry|excited|stoked|pumped|here) (?:for|to|of"
    "|that|you)"
    "|appreciate|i (?:really )?appreciate|can't wait|i can't wait|keep (?:it|up|going"
    "|pushing|doing|your|being|believing|on|at|that|those|reaching|us|working|following"
    "|chasing|shining|smiling|making|me posted|the)|love (?:that|your|the|this|how|it)"
    "|i love (?:that|your|the|how|it)|looks|what an?|how (?:nice|cool|sweet|lovely"
    "|exciting|wonderful)|so (?:cute|cool|sweet|proud|true|glad|happy|nice|exciting|great)"
    "|best of luck|rock on|then I have no doubt|never mind|don't worry|have (?:fun"
    "|a (?:great|good|nice|safe))|talk (?:to you )?soon|till|until|stay safe|same here"
    r"|me too|aw+|ha(?:ha)+|lol|ahh\w*|oh|ooh|hmm|[:;]-?[)D(]|welcome|no need|long time no"
    r"|impress\w+|i (?:totally |completely |couldn't )?agree(?: more)?|couldn't agree"
    "|i understand|i (?:bet|can imagine|can tell)|woot|fair enough|noted|understood|bummer"
    "|nice one|will do|believe in|it(?:'s|'ll| is| was)? (?:so |really |truly |always "
    "|very )*(?:great|awesome|amazing|wonderful|good|nice|cool|incredible|inspiring"
    "|important|normal|lovely|a good|hard|tough|impressive|sweet|takes|sad|wild"
    r"|beautiful))\b(?!-)"
    r"|^\W*[:;]-?[)D(pP]|\b(?:mean(?:s)? (?:a lot|so much|the world|everything)"
    r"|keep (?:it up|going|up|at it|pushing|doing)|can't wait)\b|\b(?:thanks"
    r"|thank you)\W*(?:\w+\W*)?$",
    re.IGNORECASE,
)
_FORMULA = guarded(
    r"\b(?:i(?:'m| am|'ll be)?\s+(?:so |really |super |always |also |very |totally |just "
    "|truly |completely |sure |100% )*"
    "(?:glad|happy|proud|sorry|excited|here|agree|appreciate|love (?:that|your|the|how|it"
    "|this)|can't wait|cannot wait|hope|bet|know you|believe in|hear you|get it|understand"
    "|see|think you|sure you|can (?:tell|imagine|see|totally)|totally get|admire|saw"
    "|stoked|pumped|psyched|thrilled|grateful|thankful|wish|behind you|rooting|impressed"
    "|have no doubt|have faith|will|won't|promise|couldn't|could not|curious|can only"
    "|definitely|never knew|honored|touched|amazed|thank|owe|had no idea|lucky|like (?:it"
    "|that)|feel (?:the same|you)|look forward|looking forward|guess|too|with you"
    "|there for you|not surprised|interested to hear|'d love to|would love to|got you"
    r"|told you|know (?:what|how|it|that|exactly))\b"
    "|i(?:'d| would) (?:really )?(?:love|like) to|i'll (?:definitely |totally |be |try"
    "|check|keep|make sure|do|have to|remember)|we (?:can|should|all|got|could)|we(?:'re"
    "| are) (?:all|in this)|we've (?:gotta|got to)|let's|we'll|gonna|let me know|i won't"
    "|(?:i'm|i am) (?:gonna|going to) (?:keep|make|never|not)|i'm (?:staying|pushing"
    "|not giving)|i'll (?:never|always|ask|see)|i (?:can|could) (?:help|write|send|show"
    r"|give|bring)|you(?:'re|'ve| are| have) (?:[\w'-]+ ){1,5}?to me\b|i value|i'm gonna"
    "|couldn't agree|my pleasure"
    "|thank you|thanks|congrat|mean(?:s)? (?:a lot|so much|the world|everything) to me"
    r"|(?:boost|help)s? (?:for )?me|for me\b|(?:keeps?|gets?|drives?|pushes) me (?:going"
    "|motivated|through)|my (?:dreams?|goals?|corner|pleasure)|makes? me (?:smile|happy"
    "|so happy))",
    re.IGNORECASE,
)
_NEWS = guarded(
    r"\b(?:here(?:'s| is| are) (?:a|an|my|some|one|the|our)|check (?:out|this)|take a look"
    "|look at (?:this|what)|guess what|by the way|btw"
    r"|yesterday|last (?:week|month|year|night|summer|weekend|\w+day)|ago|tomorrow"
    "|next (?:week|month|year)|recently|lately|since (?:we|our|the last)|used to"
    "|just (?:got|finished|joined|had|started|bought|moved)|make sure (?!you keep)|be sure"
    "|don't forget|my advice"
    "|this is (?:my|what|the)|try (?:to|it|the|using)|you should|i'd (?:suggest|recommend)"
    r"|recommend)\b",
    re.IGNORECASE,
)
_OWN = guarded(
    r"\b(?:I|I'm|I've|I'd|I'll|my|mine|me)\b"
    r"|\b[Ww]e (?:\w+ed|went|had|did|got|made|were|took|ate|saw|met|won|ran)\b"
    r"|\b[Ww]e're (?:\w+ing)\b"
)


def acknowledgement_span(doc: Doc, sentences: tuple[Sentence, ...]) -> tuple[int, int] | None:
    """The first acknowledging sentence of a turn that only reacts.

    Beyond acknowledging formulas such a turn has only questions and commonplaces:
    no news of the speaker's own, no advice, nothing past about a third person.

    Returns:
        Its span, or None where the turn acknowledges nothing or tells something.
    """
    found: tuple[int, int] | None = None
    for sentence in sentences:
        acknowledges = bool(_ACK.search(sentence.text))
        if acknowledges and found is None:
            found = (sentence.start, sentence.end)
        if _tells(doc, sentence, acknowledges):
            return None
    return found


def _tells(doc: Doc, sentence: Sentence, acknowledges: bool) -> bool:
    """Whether a sentence carries something new."""
    assertion = " ".join(clause.text for clause in sentence.clauses if not clause.asks)
    if not assertion.strip():
        return False
    if _NEWS.search(assertion):
        return True
    without = _FORMULA.sub(" ", assertion)
    if _OWN.search(without):
        return True
    if acknowledges:
        return False
    span = doc.char_span(sentence.start, sentence.end, alignment_mode="expand")
    if span is None:
        return False
    # Without any formula: a finished event, a third person or a number is content.
    return any(
        (token.tag_ == "VBD" and not _yours(token))
        or token.lower_ in ("he", "she", "his")
        or (token.pos_ == "NUM" and token.lower_ != "one")
        for token in span
    )


def _yours(verb: Token) -> bool:
    return any(
        child.dep_ == "nsubj" and child.lower_ in ("you", "that", "it") for child in verb.children
    )
