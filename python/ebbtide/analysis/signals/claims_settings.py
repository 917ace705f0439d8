"""Claims about things: settings and their values, corrections and replacements."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ebbtide.analysis.facts import Claim
from ebbtide.analysis.normalise import nfc_lower, word_set
from ebbtide.analysis.patterns import guarded
from ebbtide.analysis.signals.claim_parts import UNSPECIFIED, ClaimReader, PlacedClaim
from ebbtide.analysis.signals.text import Clause, Sentence

__all__ = ["replacement_claims", "setting_claims"]

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_DAY = r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day)"
_VALUE = (
    rf"(?:\d{{4}}-\d\d-\d\d|\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}(?:,? \d{{4}})?"
    rf"|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?|(?:next "
    f"|this )?{_DAY}(?: (?:morning|afternoon|evening|noon))?"
    r"|\d{1,2}(?:st|nd|rd|th)\b|\d{1,2}(?::\d\d)? ?(?:am|pm|o'clock)\b"
    r"|https?://[^\s,]+|[\w.+-]+@[\w.-]+\.\w+|v?\d+(?:\.\d+)+[\w-]*"
    r"|[$€£]?\d[\d,]*(?:[:.]\d+)?(?: ?(?:%|percent|ms|seconds?|minutes?|hours?|days?|weeks?"
    "|months?|years?"
    "|[kmgt]b|euros?|dollars?|usd|eur|pounds?|people|users?|words|characters|pages|kg|km"
    "|miles|degrees))?"
    rf"|noon|midnight|tomorrow|{_MONTH}\b)"
)
_NAMED = (
    r"(?:\"[^\"\n]{1,40}\"|[A-Z][\w.+#-]*(?: [A-Z\d][\w.+#-]*){0,3}|[a-z][\w]*[-_./\d][\w./-]*)"
)

# Nouns whose value is a number, date, time or version; and those whose value is a name.
_NUMERIC = word_set(
    """port version deadline budget limit timeout size price cost rent salary birthday anniversary
    appointment meeting flight interview exam launch release date time number code pin total quota
    threshold rate height weight distance duration password address extension score temperature
    interval retry count capacity fee wedding party checkup departure arrival checkin checkout due
    start end url email due-date"""
)
_NAMING = word_set(
    """name language database host hostname region branch environment framework editor provider url
    address email password username endpoint domain title codename city venue location destination
    airline currency timezone model repo repository owner contact supplier
    """
)
_LINK = (
    "(?P<be>is|are|was|were|'s|will be|=|has been (?:moved|changed|set|pushed) to|(?:is"
    "|was) (?:moved|changed|set|pushed) to"
    r"|moved to|changed to|runs on|ends on|starts (?:on|at)|leaves (?:on|at)|falls on)"
)
_SOFT = (
    "(?:(?:now|still|actually|currently|going to be|set (?:to|for|at|on)|scheduled for|due"
    r"|on|at|in|by|the|about|around|at most|up to|port|version)\s+)*"
)
_NP = r"(?P<np>(?:[\w.#/+-]+(?:'s)?\s+){0,7}?[\w.#/+-]+)"
_SETTING = guarded(
    r"(?i:(?:^|\b(?:the|our|my|its|this|and|actually"
    rf"|correction)\b)[\s,:]*){_NP}\s*(?i:\b{_LINK}(?:\s+|(?<==))(?P<neg>not )?{_SOFT})"
    rf"(?P<value>(?i:{_VALUE})|{_NAMED})(?P<tail>.*)$"
)
_IS_NOT = guarded(
    rf"(?i:(?:^|\b(?:the|our|my|its|this)\b)[\s,:]*){_NP}\s+(?i:(?P<be>is|are|was"
    rf"|were)(?:n't| not)\s+{_SOFT})"
    f"(?P<old>(?i:{_VALUE})|{_NAMED}),? (?i:but (?:rather )?{_SOFT})(?P<value>"
    f"(?i:{_VALUE})|{_NAMED})"
)
_ON_PORT = guarded(
    r"(?i:(?:^|\b(?:the|our|my|and)\s+)(?P<np>(?:[\w-]+ ){0,4}?)"
    "(?:now |currently |is |are |actually )*(?:deploys?|runs?|running|listens?|listening"
    "|serves?|starts?|exposed|hosted|deployed)"
    r" (?:now |up )?(?:on|at) port (?P<value>\d{1,5}))(?P<tail>.*)$"
)
_FROM_TO = guarded(
    rf"(?i:(?:^|\b(?:the|our|my)\b)\s*){_NP}\s+(?i:(?:has |have |was |were |is "
    "|been )*(?:changed|moved|switched|went|rescheduled|postponed|shifted)"
    f" from {_SOFT})(?P<old>(?i:{_VALUE})|{_NAMED})(?i: to {_SOFT})(?P<value>(?i:{_VALUE})"
    f"|{_NAMED})"
)
_NOT_OLD = re.compile(
    r"^\s*,?\s*(?i:(?:and )?not|instead of|rather than"
    rf"|no longer)\s+{_SOFT}(?P<old>(?i:{_VALUE})|{_NAMED})"
)
_TERM = r"[\w$€£.+#/-]+(?: [A-Z\d][\w.+#-]*){0,3}"
_USE_INSTEAD = guarded(
    r"(?i:\b(?:use|using|take|choose|pick|buy|book|call (?:him|her|it|me)|put) (?:the "
    f"|an? )?)(?P<value>{_TERM}(?: [a-z]+)?)"
    rf"(?i: instead of | rather than | in place of )(?i:the |an? )?(?P<old>{_TERM})"
)
_SWITCHED = guarded(
    r"(?i:\b(?:switch(?:ed)?|migrat(?:ed?|ing)|chang(?:ed|e)|converted"
    f"|moved) (?:over )?from (?:the |an? )?)(?P<old>{_TERM})"
    rf"(?i: to (?:the |an? )?)(?P<value>{_TERM})"
)
_REPLACED = guarded(
    r"(?i:\breplac(?:e|ed) (?:the |an? |our "
    f"|my )?)(?P<old>{_TERM}(?: [a-z]+)?)(?i: with (?:the |an? )?)(?P<value>{_TERM})"
)
_MEANT = guarded(
    r"(?i:\b(?:I|we) (?:meant|said) (?:the |an? |on "
    f"|in )*)(?P<value>{_TERM})(?i:,? not (?:the |an? |on |in )*)(?P<old>{_TERM})"
)
_PREPOSITION = re.compile(r"\s+(?:for|of|on|in|to|at)\s+(?:the |our |my |an? )?", re.IGNORECASE)
_EMPTY_OWNER = word_set("it this that we they server app application service system api i")


def _normal(value: str) -> str:
    value = nfc_lower(value.strip().strip("\"'").rstrip(".,!?;:"))
    return re.sub(r"^(?:the|an?|our|my|on|at) ", "", value)


def _identity(phrase: str) -> str | None:
    """``port for staging`` of "staging port" and of "port for the staging"."""
    phrase = re.split(r"\b(?:and|actually)\b|,", nfc_lower(phrase))[-1]
    words = _PREPOSITION.split(phrase.strip(), maxsplit=1)
    head = re.sub(r"^(?:the|our|my|its|this|new|current|actual|correct|right|an?)\s+", "", words[0])
    head = re.sub(r"^(?:new|current|actual|correct|right|final)\s+", "", head)
    parts = head.replace("'s ", " ").split()
    if not parts:
        return None
    noun = parts[-1]
    singular = noun[:-1] if noun.endswith("s") and not noun.endswith("ss") else noun
    if singular not in _NUMERIC and singular not in _NAMING:
        return None
    owner = [*parts[:-1]]
    # "phone number" and "due date" are one noun; their first word says which kind.
    if singular in ("date", "time", "number", "code", "name", "address", "count"):
        singular = " ".join([*owner[-1:], singular])
        owner = owner[:-1]
    if singular.endswith(" name"):
        return f"name of {singular[:-5]}"
    qualifier = " ".join([*owner, *(word for word in words[1:] if word)])
    qualifier = re.sub(r"\b(?:the|our|my)\s+", "", qualifier).strip()
    return f"{singular} for {qualifier}" if qualifier else singular


def _suits(identity: str, value: str) -> bool:
    """A name is a value only of a noun that takes names."""
    if re.fullmatch(rf"(?i:{_VALUE})", value.strip()):
        return True
    noun = identity.split(" for ", maxsplit=1)[0].split()[-1]
    return noun in _NAMING


def setting_claims(reader: ClaimReader, clause: Clause) -> Iterator[PlacedClaim]:
    """Values of named settings, with the value they replace where the clause names it."""
    match = _SETTING.search(clause.text)
    if match:
        identity = _identity(match.group("np"))
        if identity and _suits(identity, match.group("value")):
            yield from _setting(reader, clause, match, identity)
    match = _ON_PORT.search(clause.text)
    if match:
        owner = re.sub(
            r"\b(?:the|our|my|is|are|now|actually)\b\s*", "", nfc_lower(match.group("np"))
        ).strip(" ,")
        plain = not owner or owner in _EMPTY_OWNER
        yield from _setting(reader, clause, match, "port" if plain else f"port for {owner}")


def _setting(
    reader: ClaimReader, clause: Clause, match: re.Match[str], identity: str
) -> Iterator[PlacedClaim]:
    groups = match.groupdict()
    value = _normal(match.group("value"))
    replaced = _NOT_OLD.match(match.group("tail"))
    old = _normal(replaced.group("old")) if replaced else None
    past = (groups.get("be") or "").lower() in ("was", "were") and old is None
    kind = "past_state" if past else "current_state"
    claim = Claim(kind, reader.speaker, identity, value, old, bool(groups.get("neg")))
    yield reader.place(clause, match, claim)
    if old:
        yield reader.place(clause, match, Claim("correction", reader.speaker, identity, value, old))


def replacement_claims(reader: ClaimReader, sentence: Sentence) -> Iterator[PlacedClaim]:
    """Corrections and replacements that name both values, in one whole sentence."""
    for pattern in (_IS_NOT, _FROM_TO):
        match = pattern.search(sentence.text)
        identity = _identity(match.group("np")) if match else None
        if match and identity:
            value, old = _normal(match.group("value")), _normal(match.group("old"))
            for kind in ("current_state", "correction"):
                claim = Claim(kind, reader.speaker, identity, value, old)
                yield reader.place(sentence, match, claim)
    for pattern in (_USE_INSTEAD, _SWITCHED, _REPLACED, _MEANT):
        match = pattern.search(sentence.text)
        if match is None or re.search(
            r"\b(?:from|of) (?:time|place|day)\b", match.group(), re.IGNORECASE
        ):
            continue
        value, old = _normal(match.group("value")), _normal(match.group("old"))
        named = pattern is _SWITCHED and _FROM_TO.search(sentence.text)
        if value != old and not (named and _identity(named.group("np"))):
            claim = Claim("correction", reader.speaker, UNSPECIFIED, value, old)
            yield reader.place(sentence, match, claim)
