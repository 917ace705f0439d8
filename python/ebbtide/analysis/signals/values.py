"""Normal forms of the phrases that identities and values are made of."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ebbtide.analysis.normalise import nfc_lower, word_set

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

__all__ = [
    "NUMBER_WORDS",
    "action_phrase",
    "noun_lemma",
    "object_list",
    "object_phrases",
    "place_name",
    "tokens_from",
]

NUMBER_WORDS = {
    "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7",
    "eight": "8", "nine": "9", "ten": "10", "eleven": "11", "twelve": "12",
}  # fmt: skip

_OBJECT_POS = frozenset(["NOUN", "PROPN", "ADJ", "NUM", "X", "SYM", "VERB", "INTJ"])
_LEADING = frozenset(["DET", "PRON", "ADV", "PART", "ADP"])
# Words too general to be the thing liked or ruled on their own.
_EMPTY = word_set(
    """
    be do have get make go see take spend thing way one everything anything something nothing lot
    time bit kind sort much more most many day stuff hear know feel say give part fact other same
    new good great able look
    being doing having getting making going seeing taking spending hearing knowing feeling saying
    giving looking
    """
)
# In "I like tea and prefer coffee" the second verb opens a clause of its own. "Love" may be
# a noun there ("and love songs").
_TASTE_VERBS = word_set("enjoy adore hate dislike loathe despise detest prefer")
_ACTION_STOP = re.compile(
    "^(?:because|instead|rather|unless|anymore|again|now|please|but|so|until|if|when|while"
    r"|since|then|too|either|,|;|\.|!|\?|-|:|\()$",
    re.IGNORECASE,
)
_WHEN = word_set(
    "today tomorrow yesterday tonight now lately anymore again last next this week right"
)
_ACTION_DROP = frozenset(["DET", "ADV", "PUNCT", "SPACE"])
_PLACE_STOP = word_set(
    """january february march april may june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday i"""
)


def tokens_from(doc: Doc, start: int, end: int) -> list[Token]:
    """The tokens that begin inside ``[start, end)`` characters."""
    span = doc.char_span(start, end, alignment_mode="expand") if start < end else None
    return [token for token in span if token.idx >= start] if span is not None else []


def noun_lemma(token: Token) -> str:
    """Lower-case lemma; plural proper nouns, which spaCy leaves whole, lose their s."""
    lemma = nfc_lower(token.lemma_)
    plural = token.tag_ in ("NNS", "NNPS") or lemma in _WEEKDAYS
    if plural and lemma == token.lower_ and lemma.endswith("s") and not lemma.endswith("ss"):
        return lemma[:-1]
    return lemma


_WEEKDAYS = frozenset(
    ["mondays", "tuesdays", "wednesdays", "thursdays", "fridays", "saturdays", "sundays"]
)


def object_phrases(doc: Doc, start: int, end: int, *, things: bool = False) -> list[str]:
    """The noun or verb phrases that a verb's object lists, as lemmas.

    "running and my old bikes" gives ``["run", "old bike"]``. Pronouns, clauses and
    phrases of empty words ("spending time") give nothing. With ``things`` the "shellfish"
    of "allergic to shellfish" is no deed, whatever its tag.
    """
    return object_list(doc, start, end, things=things)[0]


def object_list(doc: Doc, start: int, end: int, *, things: bool = False) -> tuple[list[str], int]:
    """As :func:`object_phrases`, and the character at which the list ends."""
    phrases: list[str] = []
    comma = conjunction = False
    last = start
    after_comma: list[bool] = []
    remaining = tokens_from(doc, start, end)
    while remaining:
        if phrases and remaining[0].lower_ in _TASTE_VERBS:
            break
        words, remaining = _phrase(remaining, things=things)
        if not words:
            break
        phrases.append(" ".join(words))
        said = tokens_from(doc, start, remaining[0].idx if remaining else end)
        last = said[-1].idx + len(said[-1])
        after_comma.append(comma)
        separator = remaining[0].lower_ if remaining else ""
        if separator not in ("and", "or", ",", "&"):
            break
        comma = separator == ","
        remaining = remaining[1:]
        if comma and remaining and remaining[0].lower_ in ("and", "or"):
            remaining = remaining[1:]
            conjunction = True
        conjunction = conjunction or not comma
    # "I love pizza, Nate": a comma goes on with the list only where "and" closes it.
    kept = [
        phrase
        for phrase, listed in zip(phrases, after_comma, strict=True)
        if conjunction or not listed
    ]
    return [phrase for phrase in kept if not all(word in _EMPTY for word in phrase.split())], last


def _phrase(tokens: list[Token], *, things: bool) -> tuple[list[str], list[Token]]:
    """The first phrase of some tokens, and the tokens after it."""
    words: list[str] = []
    previous = ""
    for index, token in enumerate(tokens):
        if token.lower_ in _WHEN or token.lower_ in ("and", "or", ",", "&"):
            return words, tokens[index:]
        if token.text in ('"', "'", "-", "#") or (words and token.tag_ == "POS"):
            continue
        if not words and token.pos_ in _LEADING:
            if token.lower_ in _POINTING:
                return [], tokens[index:]
            follows = tokens[index + 1] if index + 1 < len(tokens) else None
            if token.lower_ in _VERY and follows is not None and follows.pos_ in ("ADJ", "ADV"):
                # Who dislikes very spicy food may like spicy food.
                words.append(token.lower_)
        elif previous == "VERB" and (token.pos_ == "DET" or token.tag_ == "PRP$"):
            continue
        elif previous == "VERB" and token.pos_ in ("PRON", "SCONJ", "PART"):
            # "seeing how they grow": what is liked is a clause, not a thing.
            return [], tokens[index:]
        elif previous == "NOUN" and token.ent_type_ == "PERSON":
            return words, tokens[index:]
        elif token.pos_ in _OBJECT_POS and len(words) < 5 and token.tag_ not in _FINITE:
            deed = "" if words or things else _doing(token)
            words.append(deed or noun_lemma(token))
            previous = token.pos_
        else:
            return words, tokens[index:]
    return words, []


def _doing(token: Token) -> str:
    """``fishing`` of "fishing" and of "to fish", which is not fish; else empty."""
    before = token.nbor(-1).lower_ if token.i else ""
    if token.pos_ != "VERB" or not (token.tag_ == "VBG" or (token.tag_ == "VB" and before == "to")):
        return ""
    verb = nfc_lower(token.lemma_)
    if not verb.isascii() or (token.tag_ == "VBG" and verb == token.lower_):
        return verb
    if verb.endswith("ie"):
        return f"{verb[:-2]}ying"
    if verb.endswith("e") and not verb.endswith(("ee", "oe", "ye")):
        return f"{verb[:-1]}ing"
    return f"{verb}{verb[-1]}ing" if _DOUBLES.fullmatch(verb) else f"{verb}ing"


# "Swim" and "jog", not "play", "read" or "visit".
_DOUBLES = re.compile(r"(?:[^aeiou]|qu)*[aeiou][^aeiouwxy]")


_FINITE = frozenset(["VBD", "VBZ", "VBP", "MD"])
_VERY = word_set("very too extremely really super overly so quite fairly slightly")
_POINTING = word_set("it them this that you your how what when him why where who")


def action_phrase(doc: Doc, start: int, end: int) -> str:
    """The action and its object of a rule, as lemmas without determiners.

    "deploying to the servers on Fridays" and "deploy to servers on Friday" give the
    same phrase. Ends at a comma or a word that opens another thought; empty where the
    object is a pronoun or the phrase is longer than eight words.
    """
    words: list[str] = []
    for token in tokens_from(doc, start, end):
        if _is_hyphen(token):
            continue
        if _ACTION_STOP.match(token.text) and words:
            break
        if token.pos_ in _ACTION_DROP or token.tag_ == "PRP$" or not token.text.strip():
            continue
        if token.lower_ in ("any", "every", "all", "ever", "please", "to") and (
            token.lower_ != "to" or not words
        ):
            continue
        if token.lower_ in ("it", "them", "they", "this", "that") or len(words) == 8:
            # A rule about "them", or one this long, has no stable normal form.
            return ""
        words.append(noun_lemma(token))
    while words and words[-1] in ("on", "in", "to", "for", "with", "at", "of", "and", "or"):
        words.pop()
    return " ".join(words)


def _is_hyphen(token: Token) -> bool:
    """The one of "gluten-free", not a dash."""
    before = token.nbor(-1) if token.i else token
    return token.text == "-" and not token.whitespace_ and not before.whitespace_


def place_name(doc: Doc, text: str, start: int, end: int, *, within: bool = False) -> str | None:
    """A place name that begins at ``start``, lower case; None for "a small flat", "Rita's place".

    With ``within`` that of the place around it belongs to it: "Kreuzberg, Berlin".
    Names are capitalised, except in a text without any capital letter.
    """
    words: list[str] = []
    lower_case_text = text == text.lower()
    for token in tokens_from(doc, start, end):
        if token.lower_ == "the" and not words:
            continue
        if token.text == "," and words and within and _is_wider(token):
            within = False
            continue
        named = token.text[:1].isupper() or (
            lower_case_text and token.pos_ in ("PROPN", "NOUN") and len(words) < 2
        )
        if token.tag_ == "POS" and token.i + 1 < len(doc) and token.nbor().pos_ == "NOUN":
            return None
        if not named or token.lower_ in _PLACE_STOP:
            break
        words.append(nfc_lower(token.text))
    return " ".join(words) or None


def _is_wider(comma: Token) -> bool:
    """Whether it stands before the Berlin of "Kreuzberg, Berlin", not before a list's next."""
    doc, end = comma.doc, comma.i + 1
    while end < len(doc) and doc[end].ent_type_ == "GPE" and doc[end].text[:1].isupper():
        end += 1
    rest = [token.lower_ for token in doc[end : end + 1]]
    listed = rest == [","] and any(token.ent_type_ == "GPE" for token in doc[end : end + 3])
    return end > comma.i + 1 and not listed and rest not in (["and"], ["or"], ["&"])
