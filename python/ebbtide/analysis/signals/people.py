"""The people of a turn: relatives by what they are, and whom "he" and "she" stand for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ebbtide.analysis.normalise import nfc_lower, word_set

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

__all__ = ["MANY", "NAMES", "PRONOUNS", "RELATIVE", "meant", "relative"]

RELATIVE = (
    r"(?:(?:older|younger|little|big|best|twin|elder|step)[- ])?"
    "(?:sister|brother|mom|mum|mother|dad|father|wife|husband|son|daughter|partner"
    "|girlfriend|boyfriend"
    r"|fianc[eé]e?|friend|boss|aunt|uncle|cousin|grandma|grandpa|grandmother|grandfather|roommate"
    r"|flatmate|neighbou?r|colleague|manager|niece|nephew|dog|cat)"
)
NAMES = r"[A-Z][\w-]+(?: [A-Z][\w-]+){0,2}"
_SINGLE = word_set(
    """mom mum mother dad father wife husband partner girlfriend boyfriend fiance fiancé fiancee
    fiancée boss"""
)
MANY = word_set("friend colleague cousin aunt uncle niece nephew neighbor neighbour")
"""Of these one has several: without a name, nobody knows which one is meant."""
PRONOUNS = word_set("he she")
"""Those that stand for one person."""

_WOMEN = word_set(
    """sister mom mum mother wife daughter girlfriend fiancee fiancée aunt grandma grandmother niece
    woman girl lady"""
)
_MEN = word_set(
    """brother dad father husband son boyfriend uncle grandpa grandfather nephew man guy boy bloke
    dude"""
)
_ANYBODY = word_set(
    """partner fiance fiancé friend boss cousin roommate flatmate neighbor neighbour colleague
    manager dog cat puppy kitten child kid baby person parent doctor dentist teacher coach student
    professor lawyer nurse landlord landlady supervisor coworker co-worker client customer guest
    artist author singer actor player character someone somebody therapist instructor mate buddy
    sibling twin toddler teenager stranger host owner tenant trainer vet director ceo founder
    president chef driver agent officer engineer"""
)
_PEOPLE = _WOMEN | _MEN | _ANYBODY

_OWN = re.compile(rf"\b[Mm]y (?P<who>{RELATIVE})\b(?: {NAMES})?")
# Past so many characters too many were mentioned, and a story is told.
_FAR = 600
# Whoever a turn is addressed to is not who it tells of: "Thanks, Mel!", "Hey Mel,".
_GREETING = word_set("hey hi hello thanks thank dear oh yeah yes yep wow ok okay sure sorry , ! .")
_AFTER_NAME = frozenset([",", "!", ".", "-", "—"])


def relative(words: str, speaker: str) -> str | None:
    """The subject that "my sister" is, "my friend Tom"; None where several may be it.

    By name, for one has many friends and two sisters; those one has one of, as such.
    """
    found = re.match(rf"[Mm]y (?P<who>{RELATIVE})(?: (?P<name>.+))?", words)
    if found is None:
        return None
    who = nfc_lower(found.group("who"))
    if found.group("name") and who not in _SINGLE:
        return nfc_lower(found.group("name"))
    return None if who in MANY else f"{speaker}'s {who}"


def meant(doc: Doc, pronoun: str, start: int, speaker: str) -> str | None:
    """The one person of the turn so far whom a pronoun can mean.

    Where it may mean two, or somebody without a name, it means nobody: what is said of the
    wrong person would hide what holds.

    Args:
        doc: The turn.
        pronoun: One of :data:`PRONOUNS`.
        start: Where it stands.
        speaker: Whose relatives "my" are.
    """
    if start > _FAR:
        return None
    told = list(_OWN.finditer(doc.text, 0, start))
    own = {relative(m.group(), speaker) for m in told if _fits(pronoun, m.group("who"))}
    every = own.union(_others(doc, start, pronoun, [m.span() for m in told]))
    return every.pop() if len(every) == 1 else None


def _fits(pronoun: str, noun: str) -> bool:
    """Whether "he" or "she" may stand for a sister, a boss, a dog."""
    last = re.split(r"[ -]", nfc_lower(noun))[-1]
    return last not in (_MEN if pronoun == "she" else _WOMEN)


def _others(doc: Doc, end: int, pronoun: str, told: list[tuple[int, int]]) -> Iterator[str | None]:
    """Those before a pronoun whom it may mean but for those told, by name if they have one."""
    for token in doc:
        if token.idx >= end:
            return
        if any(first <= token.idx < last for first, last in told):
            continue
        if token.pos_ == "PROPN":
            if not _goes_on(token) and not _is_addressed(token):
                yield from _named(token)
        elif nfc_lower(token.lemma_) in _PEOPLE and _fits(pronoun, token.lemma_):
            yield None


def _goes_on(token: Token) -> bool:
    """Whether it is a further word of the name before it."""
    return token.i > 0 and token.nbor(-1).pos_ == "PROPN"


def _is_addressed(token: Token) -> bool:
    before = token.i == 0 or token.nbor(-1).lower_ in _GREETING
    last = token.i + 1 == len(token.doc)
    return before and (last or token.nbor().text in _AFTER_NAME)


def _named(token: Token) -> Iterator[str | None]:
    if token.ent_type_ == "PERSON":
        last = token
        while last.i + 1 < len(token.doc) and last.nbor().pos_ == "PROPN":
            last = last.nbor()
        yield nfc_lower(token.doc.text[token.idx : last.idx + len(last)])
    elif not token.ent_type_:
        # May be a person, may be a firm.
        yield None
