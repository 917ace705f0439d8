"""The object of a card: a short surface phrase, cut where it stops being one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ebbtide.analysis.cards.lexicon import EMPTY_OBJECTS, words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from spacy.tokens import Token

__all__ = ["MAX_OBJECT_TOKENS", "is_time", "phrase", "phrase_of"]

MAX_OBJECT_TOKENS = 12

_CUT = frozenset({"relcl", "advcl", "ccomp", "parataxis", "punct_end", "intj", "mark"})
_VAGUE_OPENERS = words(
    "this that these those such your his her their its it you what whatever how all so too both"
)
_QUOTES = str.maketrans("", "", '"“”')
_VAGUE_ENDS = words(
    "it that this them him her something things one me us these those any some more others"
)
_TRAILERS = frozenset({"too", "also", "though", "either", "anyway", "already", "now", "right"})
_TIME_ENTITIES = frozenset({"DATE", "TIME"})
_TIME_NOUNS = words(
    "today yesterday tomorrow tonight morning afternoon evening night week weekend month year "
    "summer winter spring autumn fall lately recently while moment minute hour days weeks "
    "months years ago monday tuesday wednesday thursday friday saturday sunday"
)


def is_time(token: Token) -> bool:
    """Tell whether a phrase head is a time ("last week", "in May")."""
    if token.dep_ == "prep":
        return any(is_time(child) for child in token.children if child.dep_ == "pobj")
    return token.ent_type_ in _TIME_ENTITIES or (
        token.lower_ in _TIME_NOUNS and token.dep_ in {"npadvmod", "pobj", "advmod"}
    )


def phrase_of(heads: Iterable[Token], *, pointing: bool = False, timed: bool = False) -> str | None:
    """Render the phrase under some heads, first one first.

    Args:
        heads: The object's head, then prepositions or particles that follow it
            on the same verb; only those that keep the phrase short are used.
        timed: Keep times: a rule's "on Fridays" is part of the rule.
        pointing: Accept "this cute pup" (a described thing, if not "this pup").

    Returns:
        The surface text without times, relative clauses and end punctuation,
        at most 12 tokens; None when it is empty or names nothing.
    """
    main, *rest = list(heads)
    tokens = _kept(main, clip=0, timed=timed)
    for clip in (1, 2):
        if len(tokens) > MAX_OBJECT_TOKENS:
            tokens, rest = _kept(main, clip=clip), []
    if (
        not tokens
        or len(tokens) > MAX_OBJECT_TOKENS
        or not _names_something(main, tokens, pointing)
    ):
        return None
    if _cut_short(tokens):
        return None
    for extra in rest:
        more = _kept(extra, clip=0)
        last = tokens[-1].i
        gap = [t for t in main.doc[last + 1 : extra.i] if not _skippable(t)]
        if gap or len(more) < 2 or len(tokens) + len(more) > MAX_OBJECT_TOKENS:
            break
        if any(token.lower_ in {"you", "your", "it", "that", "this"} for token in more):
            break
        tokens = tokens + more
    text = phrase(tokens)
    # "CS" and "42" name something; "de" is what a hyphen left over.
    return text if len(text) > 2 or not text.islower() else None


def phrase(tokens: list[Token]) -> str:
    """Join tokens as they stand in the text, with one space where some are left out."""
    parts: list[str] = []
    for index, token in enumerate(tokens):
        follows = index + 1 < len(tokens) and tokens[index + 1].i == token.i + 1
        parts.append(token.text_with_ws if follows else token.text + " ")
    text = "".join(parts).translate(_QUOTES)
    return " ".join(text.split()).strip(" ,;:-–—.!'*_")


def _is_dash(token: Token) -> bool:
    return token.text in {"-", "–", "—", "--"} and token.whitespace_ != ""


def _skippable(token: Token) -> bool:
    root = token
    while root.dep_ in {"det", "amod", "nummod", "compound", "advmod", "poss", "case"}:
        root = root.head
    return is_time(root) or token.is_space


def _kept(head: Token, *, clip: int, timed: bool = False) -> list[Token]:
    """Collect the head's phrase up to the first word that breaks it.

    ``clip`` 1 leaves out appositions and participles, 2 coordinations as well.
    """
    stack = [head]
    kept: list[Token] = []
    while stack:
        node = stack.pop()
        kept.append(node)
        for child in node.children:
            if _breaks(child, node, head, clip=clip) and not (timed and is_time(child)):
                continue
            stack.append(child)
    kept.sort(key=lambda token: token.i)
    start = kept.index(head)
    result = kept[: start + 1]
    if any(_is_dash(head.doc[i]) for i in range(result[0].i, head.i)):
        # The parser read across a break: the head is not the object's head.
        return []
    for place in range(start, 0, -1):
        between = range(result[place - 1].i + 1, result[place].i)
        if any(not _skippable(head.doc[i]) for i in between):
            # Words left out before the head ("tea and iced coffee" cut to "iced coffee").
            result = result[place:]
            break
    for token in kept[start + 1 :]:
        between = range(result[-1].i + 1, token.i)
        if any(not _skippable(head.doc[i]) for i in between):
            break
        result.append(token)
    denial = next((i for i, t in enumerate(result) if i > 1 and t.lower_ == "not"), None)
    if denial is not None and result[denial - 1].text == ",":
        # "8080, not 3000": the value that is denied is not part of the object.
        result = result[: denial - 1]
    while result and (
        result[-1].is_punct
        or result[-1].is_space
        or result[-1].dep_ in {"cc", "prep", "mark"}
        or (result[-1].pos_ == "ADV" and result[-1].lower_ in _TRAILERS and len(result) > 1)
        or (result[-1].pos_ in {"CCONJ", "ADP", "SCONJ"} and result[-1].dep_ != "prt")
    ):
        result.pop()
    while result and (result[0].is_punct or result[0].is_space):
        result.pop(0)
    return result


def _breaks(child: Token, node: Token, head: Token, *, clip: int) -> bool:
    if child.dep_ in _CUT or child.text in {"!", "?", ".", ";", ":", "(", ")", "-", "–", "—"}:
        return not (child.text in {"-", ":"} and child.whitespace_ == "")
    if (
        child.i > head.i
        and is_time(child)
        and child.dep_ in {"npadvmod", "prep", "advmod", "appos"}
    ):
        return True
    if child.dep_ == "pcomp" and any(c.dep_ in {"nsubj", "mark"} for c in child.children):
        return True
    if child.dep_ == "acl":
        return child.tag_ not in {"VBN", "VBG"} or clip > 0
    if child.dep_ == "conj":
        clausal = child.pos_ in {"VERB", "AUX"} and any(
            grandchild.dep_ in {"nsubj", "nsubjpass"} for grandchild in child.children
        )
        finite = child.tag_ in {"VBD", "VBZ", "VBP"} and node.tag_ in {"VB", "VBG"}
        return clausal or clip > 1 or finite or _other_clause(child, node)
    if child.dep_ == "cc":
        conjuncts = [sibling for sibling in node.children if sibling.dep_ == "conj"]
        return (
            not conjuncts
            or clip > 1
            or any(_breaks(sibling, node, head, clip=clip) for sibling in conjuncts)
        )
    return clip > 0 and child.dep_ == "appos"


def _cut_short(tokens: list[Token]) -> bool:
    """Refuse "watching" of "watching them play" and "a safe" of "a safe, warm home"."""
    places = {token.i for token in tokens}
    for token in tokens:
        if any(
            child.dep_ in {"ccomp", "oprd"} and child.i > token.i and child.i not in places
            for child in token.children
        ):
            return True
    last = tokens[-1]
    if last.lower_ in _VAGUE_ENDS:
        return True
    if last.pos_ in {"DET", "AUX"} or last.tag_ in {"PRP$", "WDT", "WP", "TO"}:
        return True
    return (
        last.pos_ == "ADJ"
        and len(tokens) > 1
        and any(t.tag_ in {"DT", "PRP$"} and t.head is last for t in tokens)
    )


def _other_clause(conjunct: Token, node: Token) -> bool:
    """Tell "tea and she left" from "tea and cake"; "and things" adds nothing either way."""
    if conjunct.lower_ in EMPTY_OBJECTS:
        return True
    if _is_verb(conjunct) and not _is_verb(node):
        # "a safe and loving home" and "warmth, love and care" are tagged as verbs too.
        bare = not any(child.dep_ in {"dobj", "prep", "aux"} for child in conjunct.children)
        return not (bare and conjunct.tag_ in {"VBG", "VB", "VBN"})
    if _is_verb(node) and not _is_verb(conjunct):
        return True
    after = max(token.i for token in conjunct.subtree) + 1
    finite = after < len(node.doc) and node.doc[after].tag_ in {"VBZ", "VBP", "VBD", "MD"}
    return finite and not _is_verb(conjunct)


def _is_verb(token: Token) -> bool:
    return token.pos_ in {"VERB", "AUX"}


def _names_something(main: Token, tokens: list[Token], pointing: bool) -> bool:
    first = tokens[0].lower_
    described = main.pos_ == "NOUN" and any(
        child.dep_ in {"amod", "compound"} and child.i < main.i for child in main.children
    )
    pointed = pointing and described and first in {"this", "that", "these", "those"}
    if (first in _VAGUE_OPENERS and not pointed) or any(
        t.lower_ in {"you", "your", "yours"} for t in tokens
    ):
        return False
    if main.pos_ in {"PRON", "DET", "INTJ", "PUNCT", "SYM", "X"} and main.pos_ != "X":
        return False
    if main.lower_ in EMPTY_OBJECTS or str(main.lemma_).lower() in EMPTY_OBJECTS:
        return _complement_names(main, tokens)
    if main.pos_ == "VERB":
        return _verb_phrase_names(main, tokens)
    return any(token.pos_ in {"NOUN", "PROPN", "NUM", "ADJ", "VERB", "X"} for token in tokens)


def _complement_names(main: Token, tokens: list[Token]) -> bool:
    """Accept "a lot of paintings", refuse "a lot"."""
    if main.lower_ not in {
        "lot",
        "lots",
        "ton",
        "tons",
        "bunch",
        "piece",
        "some",
        "one",
        "part",
        "couple",
        "plenty",
        "few",
        "many",
        "half",
        "kinds",
        "people",
    }:
        return False
    for child in main.children:
        if child.lower_ == "of" and child in tokens:
            inner = [g for g in child.children if g.dep_ == "pobj"]
            return (
                bool(inner)
                and inner[0].pos_ in {"NOUN", "PROPN"}
                and (inner[0].lower_ not in EMPTY_OBJECTS)
            )
    return False


def _verb_phrase_names(main: Token, tokens: list[Token]) -> bool:
    """Refuse "doing it" and "to do": a verb whose own object is a pronoun."""
    if str(main.lemma_).lower() in {"do", "be", "have", "see", "hear", "say", "let", "know"}:
        inner = [child for child in main.children if child.dep_ in {"dobj", "attr"}]
        return any(c.pos_ in {"NOUN", "PROPN"} and c.lower_ not in EMPTY_OBJECTS for c in inner)
    objects = [child for child in main.children if child.dep_ in {"dobj", "pobj"}]
    if any(c.lower_ in EMPTY_OBJECTS and not _complement_names(c, tokens) for c in objects):
        return False
    objects += [g for c in main.children if c.dep_ == "prep" for g in c.children]
    vague = {"it", "that", "this", "them", "him", "her", "something", "things"}
    return not any(child.lower_ in vague for child in objects)
