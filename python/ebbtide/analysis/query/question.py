"""Where the question is in a text, and what kind of answer it wants."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ebbtide.analysis.patterns import guarded
from ebbtide.analysis.query.lexicon import (
    AUXILIARIES,
    FILLERS,
    PERSON_NOUNS,
    PLACE_NOUNS,
    QUANTITY_ADJECTIVES,
    QUANTITY_NOUNS,
    REASON_VERBS,
    TIME_NOUNS,
    WH_WORDS,
)

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span, Token

__all__ = ["ANSWER_TYPES", "Question", "answer_type", "core_question", "with_apostrophes"]

ANSWER_TYPES = (
    "person", "place", "time", "quantity", "reason", "list", "boolean", "fact", "unknown",
)  # fmt: skip

_ASKING = guarded(
    r"\b(?:remind(?:ing)?\s+me|tell\s+me|let\s+me\s+know|refresh\s+my\s+memory|do\s+you\s+"
    r"(?:remember|recall|know)|can\s+you\s+(?:recall|remember|confirm|clarify|provide|share|list)|"
    r"could\s+you\s+(?:recall|remember|confirm|clarify|provide|share|list)|i\s+(?:was\s+)?"
    r"(?:wonder(?:ing)?|want\s+to\s+know|forgot|would\s+like\s+to\s+know|need\s+to\s+know))\b",
    re.IGNORECASE,
)
_LISTING = guarded(
    r"\b(?:list|name|enumerate)\s+(?:all|the|every|some|my|three|two|a few)\b", re.IGNORECASE
)
_ANY_TIPS = guarded(
    r"\bany\s+(?:\w+\s+)?(?:tips|advice|suggestions|recommendations|ideas)\b", re.IGNORECASE
)
_REQUEST = guarded(
    r"\b(?:recommend|suggest|any)\b|\b(?:tips|advice|suggestions|recommendations|ideas)\b",
    re.IGNORECASE,
)
_COMMON = guarded(
    r"\b(?:in common|all the|what all|what else|types? of|kinds? of)\b", re.IGNORECASE
)


# "Whats my number" has a word "s" to a parser, and no verb.
_LEFT_OUT = re.compile(r"\b(what|where|who|when|how)s(?=\s+(?!and\b)\w)", re.IGNORECASE)


def with_apostrophes(text: str) -> str:
    """A question with the apostrophes of "whats", "wheres" and "whos" put in."""
    return _LEFT_OUT.sub(r"\1's", text)


_CAN_YOU = re.compile(r"\W*(?:\w+,\s+)?(?:can|could|would|will)\s+you\b", re.IGNORECASE)
_DO_YOU = re.compile(r"\W*(?:do|have|would)\s+you\b", re.IGNORECASE)
_WHAT_MOVES = guarded(
    r"\bwhat (?:inspires?|motivates?|prompts?|drives?|causes?|leads)\b(?! (?:do|has))"
)
_REASON = guarded(
    r"\breasons?\b|\bwhat (?:do|does|did)\b[^?]*\bfor\?$|\bmotivation (?:for|behind)\b"
)


@dataclass(frozen=True, slots=True)
class Question:
    """The part of a text that asks.

    Attributes:
        span: The sentence.
        text: Its text, which spaCy puts together anew each time that it is asked.
        wh: Its question word, None for a yes/no question or a request.
        noun: The noun that a "what" or "which" asks for ("what color": color).
        yes_no: Whether it opens with an auxiliary and asks nothing else.
        asks: Whether it is a question or a request for an answer at all.
    """

    span: Span
    text: str
    wh: Token | None
    noun: Token | None
    yes_no: bool
    asks: bool


def core_question(doc: Doc) -> Question:
    """The question of a text with a word in it: its last asking sentence, else its last.

    "Can you remind me what color it was?" is a question for a color, not one
    for yes or no. A relative "who" or a subordinate "when" is no question word.
    """
    told = [(sentence, sentence.text) for sentence in doc.sents]
    sentences = [(sentence, text) for sentence, text in told if text.strip()]
    asking = [s for s, text in sentences if text.rstrip().rstrip("\"'”)").endswith("?")]
    sentence = _widest(asking) if asking else [doc[:], *(s for s, _ in sentences)][-1]
    text = sentence.text
    opener = _opener(sentence)
    embedded = _ASKING.search(text)
    wh = None
    if embedded is not None:
        wh = _first_wh(sentence, sentence.start_char + embedded.end())
    if wh is None and (opener is None or opener.lower_ not in AUXILIARIES):
        wh = _first_wh(sentence, sentence.start_char)
    request = embedded is not None or _LISTING.search(text) or _REQUEST.search(text)
    if _ANY_TIPS.search(text):
        wh = None
    is_aux = opener is not None and opener.lower_ in AUXILIARIES and opener.tag_ != "VBG"
    yes_no = wh is None and is_aux and not _is_request(text)
    asks = bool(asking or wh is not None or yes_no or request)
    return Question(sentence, text, wh, _asked_noun(wh), yes_no, asks)


def _widest(asking: list[Span]) -> Span:
    """The last asking sentence, but not a mere tag ("Right?")."""
    for sentence in reversed(asking):
        if sum(token.is_alpha for token in sentence) > 2:
            return sentence
    return asking[-1]


def _opener(sentence: Span) -> Token | None:
    """The first word that matters: past interjections, "and", "so", names in address."""
    for token in sentence:
        if token.is_punct or token.is_space or token.lower_ in FILLERS:
            continue
        return token
    return None


def _first_wh(sentence: Span, start: int) -> Token | None:
    for token in sentence:
        if token.idx < start or token.lower_ not in WH_WORDS:
            continue
        if _is_relative(token, sentence, start):
            continue
        return token
    return None


def _is_relative(token: Token, sentence: Span, start: int) -> bool:
    """A who/which/when/where that hangs on the noun or clause before it."""
    if token.i == sentence.start or token.i == 0:
        return False
    before = token.nbor(-1)
    if before.idx < start or before.lower_ in FILLERS:
        return False
    if token.lower_ in {"when", "where", "while"} and token.i + 1 < sentence.end:
        after = token.nbor(1)
        inverted = after.lower_ in AUXILIARIES or after.lower_ in {"and", "?", "or"}
        return not (inverted or token.i + 1 == sentence.end - 1)
    if token.lower_ in {"who", "which", "whose", "whom"}:
        return before.pos_ in {"NOUN", "PROPN", "PRON"} and token.i + 1 < sentence.end - 1
    return False


_IN_NOUN_PHRASE = frozenset(["ADJ", "DET", "ADP", "NUM", "ADV", "PART", "CCONJ"])
_HELPERS = frozenset(["do", "does", "did", "has", "have", "had"])


def _opens_noun(token: Token, noun: Token | None, wh: Token) -> bool:
    """Whether a token may stand between the question word and its noun."""
    if noun is not None or token.pos_ not in _IN_NOUN_PHRASE:
        return False
    first = token.i == wh.i + 1
    return not (wh.lower_ == "how" and first and token.lower_ not in QUANTITY_ADJECTIVES)


def _asked_noun(wh: Token | None) -> Token | None:
    """The noun of "what color", "which of the two cities", "how many turtles"."""
    if wh is None or wh.lower_ not in {"what", "which", "whose", "how"}:
        return None
    doc = wh.doc
    index = wh.i + 1
    if index < len(doc) and doc[index].lower_ in {"kind", "type", "sort", "kinds", "types"}:
        index += 1
    limit = min(len(doc), index + 6)
    noun = None
    while index < limit:
        token = doc[index]
        if token.text == "-":
            # "dairy-free dessert": what stood before the hyphen is no head.
            noun = None
        elif token.pos_ in {"NOUN", "PROPN"} or token.tag_ in {"NN", "NNS"}:
            noun = token
        elif index == wh.i + 1 and index + 1 < len(doc) and doc[index + 1].lower_ in _HELPERS:
            # "What causes does John support": a noun by its place, whatever its tag.
            noun = token if wh.lower_ in {"what", "which"} and token.is_alpha else None
        elif not token.is_space and not _opens_noun(token, noun, wh):
            break
        index += 1
    return noun


def _is_request(text: str) -> bool:
    wants = _REQUEST.search(text) is not None
    if _CAN_YOU.match(text):
        return wants or _ASKING.search(text) is not None
    return wants and bool(_DO_YOU.match(text) and re.search(r"\bany\b[^?]*\?$", text))


def answer_type(question: Question) -> str:
    """One of :data:`ANSWER_TYPES`.

    Example:
        ``Which city did Ana move to?`` place; ``How long ago ...?`` time;
        ``What books has Melanie read?`` list; ``What inspired ...?`` reason.
    """
    if not question.asks:
        return "unknown"
    text = question.text
    if question.wh is None:
        return _without_wh(question, text)
    word = question.wh.lower_
    if word == "where":
        return "place"
    if word == "when":
        return "time"
    if word == "why":
        return "reason"
    if word in {"who", "whom"}:
        return "person"
    if word == "whose":
        return "person" if question.noun is not None else "fact"
    if word == "how":
        return _how(question)
    return _what(question, text)


def _without_wh(question: Question, text: str) -> str:
    if question.yes_no:
        alternative = re.search(r"\bor\b(?!\s+not\b)", text) and re.match(
            r"\W*(?:is|are|was|were|do|does|did)\b", text, re.IGNORECASE
        )
        return "fact" if alternative and re.search(r"\w, \w.* or ", text) else "boolean"
    if _LISTING.search(text):
        return "list"
    plural = any(
        token.tag_ in {"NNS", "NNPS"}
        and token.head.lemma_ in {"recommend", "suggest", "list", "name"}
        for token in question.span
    )
    wants_many = plural or re.search(
        r"\b(?:tips|advice|suggestions|recommendations|ideas)\b", text, re.IGNORECASE
    )
    return "list" if wants_many else "fact"


def _how(question: Question) -> str:
    assert question.wh is not None
    if question.wh.i + 1 >= len(question.wh.doc):
        return "fact"
    after = question.wh.nbor(1).lower_
    tail = question.text.lower()
    if after == "come":
        return "reason"
    if after == "long" and re.search(r"\bhow long ago\b", tail):
        return "time"
    if after in QUANTITY_ADJECTIVES:
        return "quantity"
    return "fact"


def _what(question: Question, text: str) -> str:
    assert question.wh is not None
    noun = question.noun
    lowered = text.lower()
    if noun is not None:
        between = question.wh.doc[question.wh.i + 1 : noun.i]
        if any(token.lemma_.lower() in QUANTITY_NOUNS for token in between):
            return "quantity"
        if re.search(r"\b(?:types|kinds|sorts)\s+of\b", between.text, re.IGNORECASE):
            return "list"
        return _by_noun(noun, question.wh)
    head = question.wh.head
    if question.wh.dep_ in {"nsubj", "nsubjpass"} and head.lemma_.lower() in REASON_VERBS:
        return "reason"
    if _WHAT_MOVES.search(lowered):
        return "reason"
    if _REASON.search(lowered):
        return "reason"
    return _by_complement(question, lowered)


def _by_noun(noun: Token, wh: Token) -> str:
    lemma = noun.lemma_.lower()
    plural = noun.tag_ in {"NNS", "NNPS", "VBZ"}
    if lemma == "reason":
        return "reason"
    if lemma in TIME_NOUNS and not plural:
        return "time"
    if lemma in QUANTITY_NOUNS and not plural:
        return "quantity"
    if plural:
        return "list"
    kind = wh.i + 1 < noun.i and wh.nbor(1).lower_ in {"kind", "type", "sort"}
    if lemma in PLACE_NOUNS and not kind:
        return "place"
    return "person" if lemma in PERSON_NOUNS else "fact"


def _by_complement(question: Question, text: str) -> str:
    """Of "what is X" or "what are X" the type is that of the head noun of X."""
    if _COMMON.search(text) and re.search(r"\b(?:in common|what all|what else)\b", text):
        return "list"
    heads = [
        token
        for token in question.span
        if token.dep_ in {"nsubj", "attr"} and token.head.lemma_ == "be" and token.pos_ == "NOUN"
        and token.i > (question.wh.i if question.wh is not None else 0)
    ]  # fmt: skip
    heads = [
        token for token in heads if not any(t.is_quote and t.tag_ != "POS" for t in token.subtree)
    ]
    if not heads or question.wh is None or question.wh.head.lemma_ != "be":
        return "fact"
    head = heads[0]
    lemma = head.lemma_.lower()
    if lemma in QUANTITY_NOUNS:
        return "quantity"
    if lemma in {"date", "day", "birthday", "anniversary", "deadline"}:
        return "time"
    named = any(token.lower_ in {"called", "named"} for token in question.span)
    if lemma in PLACE_NOUNS and not named and head.tag_ not in {"NNS", "NNPS"}:
        return "place"
    if lemma == "order":
        return "list"
    return "list" if head.tag_ in {"NNS", "NNPS"} else "fact"
