"""Current state: narrow syntactic rules for present facts about a speaker's life."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ebbtide.analysis.normalise import word_set
from ebbtide.analysis.patterns import guarded
from ebbtide.analysis.signals.text import Clause

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

__all__ = ["current_state_cues"]

# Verbs of opinion, feeling, wish, courtesy: what they say is not how things are.
_NOT_STATE = word_set(
    """
    think believe guess hope know mean see understand agree love like enjoy hate prefer dislike
    want wish need appreciate promise bet admire remember forget suppose wonder imagine recommend
    suggest thank hear say tell look feel get swear doubt care miss value wanna wan gon gonna gotta
    got reccomend rock root apologize congratulate expect
    mind let recall realize notice figure assume dream picture adore trust respect cherish salute
    """
)
_FEELING = word_set(
    """
    happy excited glad proud thankful grateful thrilled stoked pumped sorry sure curious amazed
    impressed inspired determined confident surprised honored honoured blessed lucky relieved
    nervous scared afraid worried anxious psyched hopeful eager ready certain okay ok good fine
    great well alright positive optimistic passionate fond keen interested obsessed fan jealous
    delighted pleased touched moved down welcome able unsure here there aware right wrong late
    bummed sad upset shocked speechless motivated fulfilled hyped convinced committed flattered
    awesome amazing supportive important special cute sweet rewarding essential priceless true
    fortunate so impressive incredible wonderful inspiring all game into up
    """
)
_PRAISE = word_set(
    """
    awesome amazing supportive important special cute sweet rewarding essential priceless true great
    impressive incredible wonderful inspiring fantastic best everything rock key beautiful lovely
    perfect cool nice adorable fun meaningful exciting precious crucial real huge why
    """
)
_NOT_PROGRESSIVE = word_set(
    """
    go look hope hop kid joke wonder love enjoy like hate say tell feel send root wish beg be get
    hear dream miss guess cheer count rock kill nail check push keep head
    """
)
_ONGOING = word_set(
    """
    work plan think prepare prep try train study learn live look search organize save consider
    apply research practice read write build explore start
    """
)
_FUTURE = guarded(
    r"\b(?:tomorrow|tonight|next (?:week|month|year|weekend|summer|spring|fall|winter|time|\w+day)"
    r"|then|this (?:weekend|\w+day|evening)|soon|later|in (?:a|an|two|three|\d+) (?:few )?"
    r"(?:days?|weeks?|months?|hours?))\b",
    re.IGNORECASE,
)
_LONG_AGO = guarded(
    r"\b(?:(?:years?|decades|ages) ago|when (?:I|we) was|back (?:in|then)|as a (?:kid|child|teen)"
    r"|in (?:19|20)\d\d|growing up|used to|at first|originally)\b",
    re.IGNORECASE,
)
_CHANGE = guarded(
    r"\b(?:I|we|I've|we've|have|had|just|recently|finally|also|and|even"
    r"|actually)\s+(?:(?:just|recently|finally|also"
    r"|actually|officially|even)\s+)*"
    r"(?:moved (?:to|in|into|out|back|from)|relocated|joined\b(?! (?:in|him|her|them|us|me)\b)"
    "|started (?:a|an|my|working|on|learning|taking|volunteering|doing|going|teaching"
    r"|writing|\w+ing)\b"
    "|adopted|became|signed (?:up|with)|enrolled|retired|switched|got (?:a|another"
    "|my) (?:new |second |third |first )?"
    r"(?:job|dog|cat|puppy|pup|kitten|pet|promotion|apartment|house|place|turtle|car|role|position)"
    r"|got (?:another|promoted|married|engaged|divorced|hired|laid off|fired)"
    "|bought (?:a|an|our|my) (?:new |first )?(?:house|home|apartment|flat|car)|opened (?:a"
    "|an|my|our)"
    r"|acquired|gave up)\b",
    re.IGNORECASE,
)
_MARKER = guarded(
    r"\b(?:currently|at the moment|these days|nowadays|right now|at present|for now"
    "|as of (?:now|today)"
    r"|presently|part of my (?:daily )?(?:routine|life))\b",
    re.IGNORECASE,
)
_ELIDED = guarded(
    r"^\W*(?:(?:yeah|yes|yep|also|and|but|well|just|so)\W+)*"
    r"(?:been\s+(?:super |so |really |pretty |crazy |a )?(?:busy|\w+ing|swamped|sick|tired)"
    r"|still\s+\w+ing|currently\s+\w+ing"
    r"|working (?:on|as|at|hard)|having some|trying to|studying|training)\b",
    re.IGNORECASE,
)
_CONDITION = guarded(
    r"\b(?:been|life's been|things (?:are|have been)|it's been)\s+(?:a\s+|quite\s+|super\s+"
    r"|so\s+|really\s+|pretty\s+|an?\s+)*"
    r"(?:busy|hectic|rough|swamped|crazy|tough lately|tough with|stressful|chaotic)\b"
    r"|\b(?:things are going|there(?:'ve| have) been some)\b",
    re.IGNORECASE,
)
_FAVOURITE = re.compile(r"\bfav(?:ou?rite)?s?\b")
_SMALL_TALK = word_set("blast time ok okay well good great fine alright positive strong")
_PERSON_NOUN = frozenset(["I", "we", "i", "We"])


def current_state_cues(doc: Doc, clause: Clause) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, rule) for the present facts in one asserted clause."""
    for rule, pattern in (
        ("marker", _MARKER),
        ("elided", _ELIDED),
        ("condition", _CONDITION),
        ("change", _CHANGE),
    ):
        match = pattern.search(clause.text)
        if match and not (rule == "change" and _LONG_AGO.search(clause.text)):
            yield clause.start + match.start(), clause.start + match.end(), rule
    span = doc.char_span(clause.start, clause.end, alignment_mode="expand")
    if span is None:
        return
    for token in span:
        if token.dep_ in ("nsubj", "nsubjpass") and token.head.i < span.end:
            rule_name = _subject_rule(token, clause.text)
            if rule_name:
                first, last = min(token.i, token.head.i), max(token.i, token.head.i)
                end = doc[last]
                yield doc[first].idx, end.idx + len(end.text), rule_name


def _subject_rule(subject: Token, text: str) -> str | None:
    """The rule by which a subject and its verb state a present fact, if any."""
    own = subject.text in _PERSON_NOUN
    if not own and not _is_mine(subject):
        return None
    if _FAVOURITE.search(" ".join([token.lower_ for token in subject.subtree])):
        return None
    if subject.lower_ == "we" and subject.head.lemma_ in ("learn", "grow", "become", "can", "need"):
        return None
    if subject.lower_ == "we" and re.search(r"\bwe (?:all|both)\b", text, re.IGNORECASE):
        return None
    verb = subject.head
    helpers = [
        child for child in verb.children if child.dep_ in ("aux", "auxpass") and child.i < verb.i
    ]
    if any(helper.tag_ == "MD" or helper.lower_ in ("'ll", "'d", "gonna") for helper in helpers):
        return None
    if _FUTURE.search(text) and verb.lemma_ not in _ONGOING:
        return None
    if verb.lemma_ == "be" or verb.tag_ in ("JJ", "NN", "NNS", "RB", "IN"):
        return _copula_rule(verb, helpers, own)
    return _verb_rule(verb, helpers, own)


def _is_mine(subject: Token) -> bool:
    """Whether it is something of the speaker's: "my sister", "the end of my week"."""
    return any(
        token.lower_ in ("my", "our") and (token.dep_ == "poss" or token.head == subject)
        for token in subject.subtree
    )


def _copula_rule(verb: Token, helpers: list[Token], own: bool) -> str | None:
    perfect = any(
        helper.lemma_ == "have" or helper.lower_ in ("'ve", "has", "have") for helper in helpers
    )
    if verb.lemma_ == "be" and verb.tag_ not in ("VBP", "VBZ", "VB") and not perfect:
        return None
    if verb.lemma_ == "be" and verb.tag_ == "VBD":
        return None
    complements = [
        child
        for child in verb.children
        if child.i > verb.i and child.dep_ in ("attr", "acomp", "prep", "advmod", "oprd")
    ]
    words = {word.lower_ for child in complements for word in [child, *child.conjuncts]}
    if not complements or (own and words & _FEELING) or (not perfect and words & _PRAISE):
        return None
    first = complements[0]
    if first.dep_ == "advmod":
        return None
    return "perfect-copula" if perfect else "copula"


def _verb_rule(verb: Token, helpers: list[Token], own: bool) -> str | None:
    lemma = verb.lemma_.lower()
    auxiliaries = {helper.lower_ for helper in helpers}
    if verb.tag_ == "VBG":
        if lemma in _NOT_PROGRESSIVE and not (
            lemma == "look"
            and any(child.lower_ in ("for", "into", "after", "at") for child in verb.children)
        ):
            return None
        words = {child.lower_ for child in verb.children}
        if lemma in ("have", "do", "stay") and words & _SMALL_TALK:
            return None
        perfect = bool(auxiliaries & {"been"})
        present = bool(auxiliaries & {"am", "'m", "are", "'re", "is", "'s", "m"})
        if perfect:
            return "perfect-progressive"
        return "progressive" if present else None
    if verb.tag_ in ("VBP", "VBZ", "VB") and not auxiliaries & {"did", "to", "didn't"}:
        return _present_rule(verb, lemma, own) if _main_verb(verb) else None
    if verb.tag_ in ("VBN", "VBD") and auxiliaries & {"'ve", "have", "has"} and own:
        return "perfect-got" if lemma == "get" else None
    return None


def _main_verb(verb: Token) -> bool:
    # "the change we desire" and "how we have ..." are about something else; only
    # "the shelter I volunteer at" states the speaker's habit on the side.
    if verb.dep_ == "relcl":
        return any(child.dep_ == "prep" for child in verb.children)
    while verb.dep_ == "conj":
        verb = verb.head
    if verb.dep_ == "ccomp" and verb.head.dep_ == "ROOT" and verb.i < verb.head.i:
        return True
    return verb.dep_ in ("ROOT", "advcl", "parataxis") and not (
        verb.dep_ == "advcl" and any(child.dep_ == "mark" for child in verb.children)
    )


def _present_rule(verb: Token, lemma: str, own: bool) -> str | None:
    if lemma in _NOT_STATE:
        return None
    if verb.tag_ == "VB" and not any(
        child.lower_ in ("do", "does", "n't", "not") for child in verb.children
    ):
        return None
    if lemma in ("have", "'ve"):
        objects = [child for child in verb.children if child.dep_ in ("dobj", "obj", "attr")]
        if not objects or any(
            item.lemma_ in ("fun", "blast", "question", "doubt", "clue", "idea", "time", "faith")
            for item in objects
        ):
            return None
        return "possession"
    if (
        lemma in ("mean", "matter", "rock", "inspire", "remind", "motivate", "deserve", "help")
        and not own
    ):
        return None
    if lemma in ("can", "will", "ca", "wo", "be", "do", "go"):
        return "habit" if lemma == "go" and own else None
    return "habit" if own or verb.tag_ == "VBZ" else "own-thing"
