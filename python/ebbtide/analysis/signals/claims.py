"""Topic identity and value: what supersession compares (paper, section 4.5).

Claims are conservative. A question, a condition, a wish, another's words, a pronoun
that may mean two, and everything said to or about the listener claim nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ebbtide.analysis.facts import REST, Claim
from ebbtide.analysis.patterns import lazy
from ebbtide.analysis.signals.claim_limits import (
    adds,
    beside_others,
    denies_in_part,
    fronted,
    limited,
)
from ebbtide.analysis.signals.claim_parts import (
    UNSPECIFIED,
    ClaimReader,
    PlacedClaim,
    speaker_of,
)
from ebbtide.analysis.signals.claims_events import event_claims
from ebbtide.analysis.signals.claims_holdings import holding_claims
from ebbtide.analysis.signals.claims_keys import key_claims
from ebbtide.analysis.signals.claims_life import life_claims
from ebbtide.analysis.signals.claims_renewed import renewal_claims
from ebbtide.analysis.signals.claims_rules import constraint_claims
from ebbtide.analysis.signals.claims_settings import (
    line_claims,
    replacement_claims,
    setting_claims,
)
from ebbtide.analysis.signals.claims_taste import taste_claims
from ebbtide.analysis.signals.claims_work import work_claims
from ebbtide.analysis.signals.setting_values import VALUE, normal, sort_of
from ebbtide.analysis.signals.values import tokens_from

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

    from ebbtide.analysis.facts import TurnText
    from ebbtide.analysis.signals.text import Clause, Sentence

__all__ = ["read_claims"]


def read_claims(
    doc: Doc, turn: TurnText, text: str, sentences: tuple[Sentence, ...]
) -> tuple[PlacedClaim, ...]:
    """The claims of one turn, in text order, each once.

    Where the turn says more than they do, one of the kind ``rest`` follows, on no topic.

    Args:
        doc: Parse of the turn's matching text.
        turn: The turn.
        text: Its matching text, with code, logs and quoted speech blanked.
        sentences: The sentences of that text.
    """
    reader = ClaimReader(doc, text, speaker_of(turn), turn.role == "assistant")
    found: list[PlacedClaim] = []
    for sentence in sentences:
        found.extend(_sentence_claims(reader, sentence))
    if len(sentences) == 1:
        found.extend(line_claims(reader, sentences[0]))
    found.sort(key=lambda item: (item.start, item.end))
    seen: set[object] = set()
    unique: list[PlacedClaim] = []
    for item in found:
        if item.claim not in seen:
            seen.add(item.claim)
            unique.append(item)
    return (*unique, *_rest(reader, sentences, unique))


# Content words from which on a part of a turn says something of its own.
_OF_ITS_OWN = 4
_CONTENT = frozenset(["NOUN", "PROPN", "VERB", "ADJ", "NUM"])
_THINGS = frozenset(["NOUN", "PROPN", "NUM"])
_WHEN = frozenset(["DATE", "TIME"])
_PLACES = frozenset(["GPE", "LOC", "NORP"])
_HELD = frozenset(["dobj", "obj", "attr", "oprd"])
# "The code of the office is 7731, at home 2049": a value of something else.
_ANOTHER = lazy(
    r"(?:[,;]|\b(?:and|but|while|whereas)\b)\s+(?!(?:and )?not\b)(?:[a-z][\w'-]*:?\s+){1,5}?"
    rf"(?P<value>{VALUE})",
    re.IGNORECASE,
)
# What only goes on with the clause before it: a reason, a time, an aside.
_GOES_ON = lazy(
    r"\W*(?:because|since|as|so|which|who|while|when|where|although|though)\b",
    re.IGNORECASE,
)


def _rest(
    reader: ClaimReader, sentences: tuple[Sentence, ...], claims: list[PlacedClaim]
) -> Iterator[PlacedClaim]:
    """That a turn says more than its claims do, and so is not replaced with them.

    A sentence without a claim says more where it states or asks for something in enough
    content words or of something, a clause of a sentence with one likewise. So does a verb
    beside that of a claim ("I live in Rome and study law"), and who is with one.
    """
    if not claims:
        return
    named = _named(claims)
    for sentence in sentences:
        within = [c for c in claims if sentence.start <= c.start < sentence.end]
        parts = [sentence] if not within else _unclaimed(sentence, within)
        for part in parts:
            tokens = tokens_from(reader.doc, part.start, part.end)
            words = [t for t in tokens if t.pos_ in _CONTENT and not t.is_stop]
            more = len(words) >= _OF_ITS_OWN or any(_tells(t, named) for t in tokens)
            if more and not part.asks:
                claim = Claim(REST, reader.speaker, UNSPECIFIED, "")
                yield PlacedClaim(claim, part.start, part.end)
                return
        if within and not sentence.asks:
            first = min(c.start for c in within)
            for token in tokens_from(reader.doc, first, sentence.end):
                beside = token.dep_ == "conj" and _tells(token, named)
                if beside or _is_company(token, named):
                    claim = Claim(REST, reader.speaker, UNSPECIFIED, "")
                    yield PlacedClaim(claim, token.idx, token.idx + len(token))
                    return
            values = {value for c in claims for value in (c.claim.value, c.claim.old_value)}
            for match in _ANOTHER.finditer(reader.text, first, sentence.end):
                value = normal(match.group("value"))
                if sort_of(value) in ("money", "number", "other") and value not in values:
                    claim = Claim(REST, reader.speaker, UNSPECIFIED, "")
                    yield PlacedClaim(claim, *match.span("value"))
                    return


def _named(claims: list[PlacedClaim]) -> frozenset[str]:
    """The words that the claims hold."""
    said = (f"{c.claim.subject} {c.claim.identity} {c.claim.value}" for c in claims)
    return frozenset(word for text in said for word in re.findall(r"\w+", text))


def _tells(token: Token, named: frozenset[str]) -> bool:
    """Whether it is a verb that tells of something which the claims do not hold."""
    if token.lemma_ == "be":
        # "My boss is Rita" gives a name, "it's a big firm" an opinion.
        named_so = [c for c in token.children if c.dep_ == "attr" and c.pos_ == "PROPN"]
        return any(_is_new(thing, named) for thing in named_so)
    if token.pos_ != "VERB" or token.is_stop:
        return False
    held = [child for child in token.children if child.dep_ in _HELD]
    for child in token.children:
        if child.dep_ == "prep" and child.lower_ in ("as", "at", "for", "in", "on", "with"):
            held.extend(grandchild for grandchild in child.children if grandchild.dep_ == "pobj")
    return any(_is_new(thing, named) for thing in held)


def _is_new(token: Token, named: frozenset[str]) -> bool:
    known = token.lower_ in named or token.lemma_.lower() in named
    return (
        token.pos_ in _THINGS and not token.is_stop and not known and token.ent_type_ not in _WHEN
    )


def _is_company(token: Token, named: frozenset[str]) -> bool:
    """Whether it is the "Rex" of "I live in Rome with my dog Rex"."""
    if token.pos_ != "PROPN" or token.ent_type_ in _PLACES or not _is_new(token, named):
        return False
    head = token if token.dep_ == "pobj" else token.head
    return head.dep_ == "pobj" and head.head.lower_ == "with"


def _unclaimed(sentence: Sentence, claims: list[PlacedClaim]) -> list[Clause]:
    return [
        clause
        for clause in sentence.clauses
        if not any(c.start < clause.end and clause.start < c.end for c in claims)
        and not _GOES_ON.match(clause.text)
    ]


def _sentence_claims(reader: ClaimReader, sentence: Sentence) -> Iterator[PlacedClaim]:
    asserted = [clause for clause in sentence.clauses if not clause.asks and not clause.unreal]
    replaced: list[PlacedClaim] = []
    if asserted and len(asserted) == len(sentence.clauses):
        replaced = [*replacement_claims(reader, sentence), *renewal_claims(reader, sentence)]
    yield from replaced
    settled = {item.claim.identity for item in replaced}
    for clause in asserted:
        found = [c for c in _clause_claims(reader, clause) if not denies_in_part(reader.text, c)]
        if not found:
            continue
        front = _front(sentence, clause)
        if front:
            found = [replace(item, claim=_at(item.claim, front)) for item in found]
        if adds(clause):
            found = [replace(item, claim=beside_others(item.claim)) for item in found]
        yield from (item for item in found if item.claim.identity not in settled)


def _front(sentence: Sentence, clause: Clause) -> str:
    """What limits a clause from before it: "on weekends, I prefer tea" has a comma between."""
    before = [c.start for c in sentence.clauses if c.start < clause.start]
    for start in [clause.start, *before[-1:]]:
        text = sentence.text[start - sentence.start : clause.end - sentence.start]
        limit, end = fronted(text)
        if limit and (start == clause.start or start + end == clause.start):
            return limit
    return ""


def _at(claim: Claim, limit: str) -> Claim:
    """A taste or a rule that holds only there; what happened is what it is."""
    if claim.kind not in ("preference", "constraint"):
        return claim
    return replace(claim, identity=limited(claim.identity, limit))


def _clause_claims(reader: ClaimReader, clause: Clause) -> Iterator[PlacedClaim]:
    yield from life_claims(reader, clause)
    yield from work_claims(reader, clause)
    yield from holding_claims(reader, clause)
    yield from taste_claims(reader, clause)
    yield from constraint_claims(reader, clause)
    yield from setting_claims(reader, clause)
    yield from key_claims(reader, clause)
    yield from event_claims(reader, clause)
