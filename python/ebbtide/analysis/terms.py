"""Index terms: the content words of a text, in a form that two wordings share."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from ebbtide.analysis.normalise import nfc_lower, word_set

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

__all__ = ["STOP_WORDS", "terms", "token_terms"]

STOP_WORDS = word_set(
    """
    a an the this that these those
    i me my mine myself we us our ours ourselves you your yours yourself yourselves
    he him his himself she her hers herself it its itself they them their theirs themselves
    who whom whose which what where when why how whoever whatever whichever
    and or but nor so yet if unless because since although though while whereas whether as than then
    of in on at by for to from with about into onto upon over under between among through during
    within without across along around behind beside besides beyond toward towards off out up down
    via per
    be am is are was were been being
    do does did doing done have has had having
    will would shall should can could may might must ought
    'm 're 's 've 'd 'll ca wo gonna wanna gotta
    there here some any each every either neither both all such same other another
    just very too also even still quite rather really ever again once only
    oh hey hi hello yeah yes ok okay well um uh please thanks
    etc
    """
)
"""English function words. ``not``, ``no`` and ``never`` are no stop words."""

_NEGATIONS = {"n't": "not", "nt": "not", "n’t": "not"}
_CONTENT = frozenset(["PROPN", "NUM"])
# An e-mail address begins where its characters do, or right behind another address. Looking
# for one inside every word again would take the square of the time for a text without spaces.
_URL = re.compile(
    r"(?:https?://|www\.)[^\s<>\"]+"
    r"|(?:(?<![\w.+-])|(?<=[\w.])(?=[+-]))[\w.+-]+@[\w-]+\.[\w.]+",
    re.IGNORECASE,
)
_PART = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_MIXED = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]")
# spaCy cuts "state-of-the-art" and "foo/bar"; these put the pieces together again.
_COMPOUND = re.compile(r"(?<![^\W_])[^\W_]+(?:[-._/:@+]+[^\W_]+)+")
# Every one of them, and every address, has one of these before its end.
_JOINED = re.compile(r"[-._/:@+][^\s<>\"]")

_KNOWN: dict[tuple[int, int, int], tuple[str, ...]] = {}
_MOST = 50_000
"""Tokens whose terms are remembered before all of them are let go."""


def terms(doc: Doc) -> tuple[str, ...]:
    """Normalised content terms of a parse, in text order, repetitions kept.

    A term is the lower-case NFC lemma of a token that is neither a stop word,
    punctuation nor space; proper nouns and numbers always count. A compound (a URL,
    ``snake_case``, ``CamelCase``, ``2024-05-01``, ``state-of-the-art``) stays whole
    and is followed by its alphanumeric parts.

    Args:
        doc: A spaCy parse; the query's terms are made the same way.
    """
    result: list[str] = []
    covered = 0
    text = doc.text
    compounds = _compounds(text)
    for token in doc:
        if compounds:
            if token.idx < covered:
                continue
            end = compounds.get(token.idx)
            if end is not None:
                covered = end
                result.extend(_compound_terms(text[token.idx : end]))
                continue
        result.extend(_word_terms(token))
    return tuple(result)


def token_terms(token: Token) -> tuple[str, ...]:
    """The terms of one token read by itself, whatever compound it stands in.

    Args:
        token: A token of a spaCy parse; its lemma and part of speech are those of
            the whole sentence.
    """
    end = _compounds(token.text).get(0)
    return _word_terms(token) if end is None else tuple(_compound_terms(token.text[:end]))


def _compounds(text: str) -> dict[int, int]:
    spans: dict[int, int] = {}
    if _JOINED.search(text) is None:
        return spans
    covered = 0
    matches = [*_URL.finditer(text), *_COMPOUND.finditer(text)]
    for match in sorted(matches, key=lambda item: (item.start(), -item.end())):
        end = match.start() + len(match.group().rstrip(".,!?;:)]}'\"-_/"))
        if match.start() >= covered and end > match.start():
            spans[match.start()] = end
            covered = end
    return spans


def _compound_terms(surface: str) -> list[str]:
    whole = nfc_lower(surface)
    parts = [nfc_lower(part) for piece in _PART.findall(surface) for part in _split_case(piece)]
    kept = [part for part in parts if part != whole and part not in STOP_WORDS]
    return [whole, *kept] if len(parts) > 1 else [whole]


def _split_case(piece: str) -> list[str]:
    if piece[1:].islower():
        return [piece]
    parts = _CAMEL.findall(piece)
    mixed = len(parts) > 1 and "".join(parts) == piece and _MIXED.search(piece)
    return [piece, *parts] if mixed else [piece]


def _word_terms(token: Token) -> tuple[str, ...]:
    """The terms of a token that is in no compound, looked up where they are known."""
    # spaCy's numbers of strings are made of the strings: the same in every vocabulary.
    key = token.orth, token.pos, token.lemma
    found = _KNOWN.get(key)
    if found is None:
        if len(_KNOWN) >= _MOST:
            _KNOWN.clear()
        found = _KNOWN[key] = tuple(_read_word(token))
    return found


def _read_word(token: Token) -> list[str]:
    surface = token.text.strip()
    # Nearly every token is all letters or all punctuation; the loop is for the rest.
    if not surface.isalnum() and not any(map(str.isalnum, surface)):
        return []
    lower = nfc_lower(surface)
    if lower in _NEGATIONS:
        return [_NEGATIONS[lower]]
    if lower in STOP_WORDS and token.pos_ not in _CONTENT:
        return []
    if (
        token.pos_ in _CONTENT
        and lower in STOP_WORDS
        and len(lower) <= 3
        and not surface[:1].isupper()
    ):
        return []
    parts = _split_case(surface)
    if len(parts) > 1:
        return [nfc_lower(part) for part in parts]
    lemma = nfc_lower(token.lemma_.strip()) or lower
    if lemma in STOP_WORDS and token.pos_ not in _CONTENT:
        return []
    return [unicodedata.normalize("NFC", lemma)]
