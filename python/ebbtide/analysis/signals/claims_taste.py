"""Preference claims: likes and dislikes, choices, favourites."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ebbtide.analysis.facts import Claim
from ebbtide.analysis.normalise import word_set
from ebbtide.analysis.patterns import AnyOf, guarded
from ebbtide.analysis.signals.claim_limits import limited, limits
from ebbtide.analysis.signals.claim_parts import ADVERBS, SUBJECT, ClaimReader, PlacedClaim
from ebbtide.analysis.signals.cues_preference import PREFERENCE_NOT
from ebbtide.analysis.signals.people import NAMES
from ebbtide.analysis.signals.text import Clause
from ebbtide.analysis.signals.values import object_list, object_phrases

__all__ = ["taste_claims"]

_LIKES = r"(?:love|like|enjoy|adore)s?"
_DISLIKES = r"(?:hate|dislike|loathe|despise|detest)s?"
_DENIAL = r"(?P<neg>(?:don'?t|do not|doesn'?t|does not|never|no longer|didn'?t)\s+)?"
_LIKE = guarded(
    SUBJECT + rf"(?i:{ADVERBS}{_DENIAL}{ADVERBS}(?P<used>used to )?"
    rf"(?:(?:have |has |'ve |'s )?{ADVERBS}(?:come|came|grown|grew|learn(?:ed|t)|start(?:ed)?"
    rf"|beg[au]n) to )?(?P<verb>{_LIKES}|{_DISLIKES}"
    rf"|(?:can'?t|cannot|can not) stand|(?:'?m|am|is|'s|are|'re) {ADVERBS}(?P<neg2>not )?{ADVERBS}"
    "(?:(?:a )?(?:big |huge )?fans? of|into|fond of|passionate about|keen on|obsessed with"
    "|crazy about))"
    r"\s+(?:to )?)"
)
_CHOICE = guarded(SUBJECT + rf"(?i:{ADVERBS}{_DENIAL}{ADVERBS}(?:would |'d )?prefers?\s+)")
_NOW = guarded(
    r"\b(?:now|these days|nowadays|instead|from now on|only|lately|switched)\b", re.IGNORECASE
)
_ANYMORE = guarded(r"\b(?:any ?more|any longer)\b", re.IGNORECASE)
_OVER = guarded(r"\s+(?:over|to|rather than|instead of)\s+", re.IGNORECASE)
_FOR = guarded(r"\s+(?:for|when it comes to)\s+(?!me\b|us\b|now\b|the moment)", re.IGNORECASE)
_FAVOURITE = guarded(
    rf"(?P<whose>\b[Mm]y|\b{NAMES}'s)\s+(?i:(?:new |all[- ]time "
    r"|absolute )?(?:favou?rite|fave?)\s+"
    r"(?P<kind>[\w-]+(?: [\w-]+)?)\s+(?P<be>is|are|was|were|'s)\s+(?P<neg>not )?(?:still "
    "|now |definitely |the )*)"
)
_IS_FAVOURITE = guarded(
    r"(?P<value>[\w'-]+(?: [\w'-]+){0,3})\s+(?i:is|are)\s+(?i:now |still |definitely |probably )*"
    rf"(?P<whose>[Mm]y|{NAMES}'s)\s+(?i:(?:all[- ]time |absolute )?(?:favou?rite"
    r"|fave?)\s+(?P<kind>[\w-]+))"
)

_SWITCHED = guarded(
    SUBJECT
    + rf"(?i:(?:(?:have|has|'ve|'s) )?{ADVERBS}(?:switched|gone over|gone back|changed|converted)"
    r"(?: over| back)?(?: from (?P<old>[\w' -]{2,30}?))? to\s+)"
)
_HABIT = guarded(SUBJECT + rf"(?i:{ADVERBS}(?P<neg>(?:don'?t|do not|never|no longer) )?drinks?\s+)")
_PERSON = guarded(
    r"(?P<whose>\b[Ii])(?:'m| am)\s+(?i:(?:now |still |more of )?an? (?P<value>[\w-]+) person)\b"
)
_STATED = AnyOf(_LIKE, _CHOICE, _FAVOURITE, _IS_FAVOURITE, _SWITCHED, _HABIT, _PERSON)

# "I like the pirate idea" praises what was said; it is no lasting taste.
_REMARKS = word_set(
    "idea suggestion photo picture pic plan sound look way thought question answer quote"
)

# Closed categories, where one choice replaces another whatever the wording.
_CATEGORY = {
    word: category
    for category, words in {
        "drink": "tea coffee decaf water juice beer wine espresso cappuccino latte soda drink",
        "theme": "dark light theme dark-mode light-mode",
        "seat": "aisle window seat",
        "contact": "email e-mail phone sms text texting call calling slack whatsapp",
        "units": "metric imperial unit",
        "temperature": "celsius fahrenheit",
        "distance": "kilometer mile",
        "colour": "red blue green yellow purple orange black white pink grey gray color colour",
        "editor": "vim neovim emacs vscode nano editor",
        "indentation": "tab space indentation",
    }.items()
    for word in words.split()
}
# Nouns that name a whole category.
_GENERIC = word_set("drink theme seat color colour editor")
# Nouns that leave it to the word before them what they are.
_CARRIERS = word_set("mode theme seat color colour unit system editor message")


def taste_claims(reader: ClaimReader, clause: Clause) -> Iterator[PlacedClaim]:
    """Preference claims of one asserted clause."""
    if not _STATED.may_match(clause.text):
        return
    found = [
        *_likes(reader, clause),
        *_choices(reader, clause),
        *_favourites(reader, clause),
        *_habits(reader, clause),
    ]
    if found and not PREFERENCE_NOT.search(clause.text):
        yield from found


def _likes(reader: ClaimReader, clause: Clause) -> Iterator[PlacedClaim]:
    for match in _LIKE.finditer(clause.text):
        subject = reader.subject(match, clause.start)
        if subject is None:
            continue
        verb = match.group("verb").lower()
        disliked = bool(re.match(rf"(?:{_DISLIKES}|(?:can'?t|cannot|can not) stand)$", verb))
        denied = bool(match.group("neg") or match.group("neg2"))
        if disliked and denied:
            continue
        value = "dislike" if disliked or denied else "like"
        kind = "past_state" if match.group("used") else "preference"
        things, last = object_list(reader.doc, clause.start + match.end(), clause.end)
        limit = limits(reader, last, clause.end)
        for thing in things:
            if thing.split()[-1] in _REMARKS:
                break
            claim = Claim(kind, subject, limited(f"preference:{thing}", limit), value)
            yield reader.place(clause, match, claim)


def _category(phrase: str) -> str | None:
    """By the noun that the phrase is about: dark chocolate is no theme, orange juice no colour."""
    *before, head = phrase.split()
    if head in _CARRIERS:
        return next((_CATEGORY[word] for word in before if word in _CATEGORY), _CATEGORY.get(head))
    return _CATEGORY.get(head)


def _choices(reader: ClaimReader, clause: Clause) -> Iterator[PlacedClaim]:
    for match in _CHOICE.finditer(clause.text):
        subject = reader.subject(match, clause.start)
        if subject is None:
            continue
        rest, base = clause.text[match.end() :], clause.start + match.end()
        over, topic = _OVER.search(rest), _FOR.search(rest)
        stop = min([cut.start() for cut in (over, topic) if cut], default=len(rest))
        chosen, last = object_list(reader.doc, base, base + stop)
        if not chosen:
            continue
        other: list[str] = []
        if over:
            until = topic.start() if topic and topic.start() > over.end() else len(rest)
            other, last = object_list(reader.doc, base + over.end(), base + until)
        named: list[str] = []
        if topic:
            named = object_phrases(reader.doc, base + topic.end(), base + len(rest))
        claim = _choice(subject, chosen[0], other, named, bool(match.group("neg")))
        limit = "" if topic else limits(reader, last, clause.end)
        claim = replace(claim, identity=limited(claim.identity, limit))
        yield reader.place(clause, match, claim)


def _habits(reader: ClaimReader, clause: Clause) -> Iterator[PlacedClaim]:
    """What somebody takes now, where the category is closed: another choice replaces it."""
    for pattern in (_SWITCHED, _HABIT):
        for match in pattern.finditer(clause.text):
            subject = reader.subject(match, clause.start)
            things, last = object_list(reader.doc, clause.start + match.end(), clause.end)
            category = _category(things[0]) if things else None
            if subject is None or category is None:
                continue
            denied = pattern is _HABIT and bool(match.group("neg") or _ANYMORE.search(clause.text))
            old = match.group("old") if pattern is _SWITCHED else None
            claim = Claim(
                "preference",
                subject,
                limited(f"preference:{category}", limits(reader, last, clause.end)),
                things[0],
                old.lower() if old else None,
                denied,
            )
            # One drinks several things, unless it is said that something changed.
            among = replace(claim, identity=f"{claim.identity} also {things[0]}")
            if pattern is _HABIT and not (denied or _NOW.search(clause.text)):
                yield reader.place(clause, match, among)
                continue
            yield reader.place(clause, match, claim)
            if denied:
                yield reader.place(clause, match, among)
    for match in _PERSON.finditer(clause.text):
        value = match.group("value").lower()
        category = _category(value)
        if category is not None:
            claim = Claim("preference", reader.speaker, f"preference:{category}", value)
            yield reader.place(clause, match, claim)


def _choice(subject: str, chosen: str, other: list[str], topic: list[str], denied: bool) -> Claim:
    category = topic[0] if topic else _category(chosen) or (_category(other[0]) if other else None)
    if category is None and other:
        category = "|".join(sorted({chosen, other[0]}))
    if category is None:
        return Claim("preference", subject, f"preference:{chosen}", "dislike" if denied else "like")
    return Claim("preference", subject, f"preference:{category}", chosen, negated=denied)


def _favourites(reader: ClaimReader, clause: Clause) -> Iterator[PlacedClaim]:
    for match in _FAVOURITE.finditer(clause.text):
        base = clause.start + match.end()
        values, last = object_list(reader.doc, base, clause.end)
        if values:
            kind = "past_state" if match.group("be").lower() in ("was", "were") else "preference"
            limit = limits(reader, last, clause.end)
            yield from _favourite(reader, clause, match, kind, values[0], limit)
    for match in _IS_FAVOURITE.finditer(clause.text):
        base = clause.start + match.start("value")
        values = object_phrases(reader.doc, base, clause.start + match.end("value"))
        if values:
            yield from _favourite(reader, clause, match, "preference", values[0])


def _favourite(
    reader: ClaimReader,
    clause: Clause,
    match: re.Match[str],
    kind: str,
    value: str,
    limit: str = "",
) -> Iterator[PlacedClaim]:
    subject = _whose(reader, clause, match)
    thing = match.group("kind").lower()
    if thing in ("part", "thing", "memory", "moment", "time", "is", "of"):
        return
    # A favourite tea is no choice among drinks, nor is a favourite hot drink.
    category = _CATEGORY[thing] if thing in _GENERIC else f"favourite {thing}"
    identity = limited(f"preference:{category}", limit)
    denied = "neg" in match.re.groupindex and bool(match.group("neg"))
    yield reader.place(clause, match, Claim(kind, subject, identity, value, negated=denied))


def _whose(reader: ClaimReader, clause: Clause, match: re.Match[str]) -> str:
    whose = match.group("whose")
    if whose.lower() == "my":
        return reader.speaker
    name, start = whose.removesuffix("'s"), clause.start + match.start("whose")
    return reader.named(start, start + len(name)) or name.split()[-1].lower()
