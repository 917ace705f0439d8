"""Claims about things: settings and their values, corrections and replacements."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ebbtide.analysis.facts import Claim
from ebbtide.analysis.needs import bits_of, number
from ebbtide.analysis.normalise import nfc_lower, word_set
from ebbtide.analysis.patterns import guarded, lazy
from ebbtide.analysis.signals.claim_limits import fronted, limited, limits
from ebbtide.analysis.signals.claim_parts import UNSPECIFIED, ClaimReader, PlacedClaim
from ebbtide.analysis.signals.people import MANY
from ebbtide.analysis.signals.setting_values import (
    ANY,
    NAMED,
    VALUE,
    is_value,
    normal,
    sort_of,
)
from ebbtide.analysis.signals.text import Clause, Sentence
from ebbtide.analysis.signals.values import tokens_from

__all__ = [
    "MOVED",
    "SOFT",
    "happens",
    "identity_of",
    "limited_topic",
    "line_claims",
    "of_sort",
    "owned",
    "replacement_claims",
    "setting_claims",
    "value_claims",
]

# What happens: its value is a day unless something else is said, and "will be" tells it.
_TIMED = word_set(
    """deadline birthday anniversary appointment meeting flight interview exam launch release
    wedding party checkup departure arrival checkin checkout due start end date due-date trip
    concert conference workshop picnic surgery ceremony graduation funeral reunion webinar
    rehearsal delivery reservation booking alarm standup"""
)
# Nouns whose value is a number, date, time or version; and those whose value is a name.
_NUMERIC = _TIMED | word_set(
    """port version budget limit timeout size price cost rent salary time number code pin total
    quota threshold rate height weight distance duration password address extension score
    temperature interval retry count capacity fee url email"""
)
_NAMING = word_set(
    """name language database host hostname region branch environment framework editor provider url
    address email password username endpoint domain title codename city venue location destination
    airline currency timezone model repo repository owner contact supplier
    """
)
# Sorts of value that a noun has by itself; a value of another sort is another topic.
_SORTS = {
    noun: sorts
    for nouns, sorts in (
        (_TIMED, {"day"}),
        (word_set("time"), {"clock", "duration"}),
        (word_set("budget price cost rent salary fee total"), {"money", "number"}),
        (word_set("timeout interval duration"), {"duration", "number"}),
    )
    for noun in nouns
}
_OTHERS = frozenset({"number", "other"})
_SORT_NOUNS = {"day": "date", "money": "price", "duration": "duration"}
MOVED = (
    "(?:moved|changed|set|reset|pushed|rescheduled|postponed|shifted|delayed|extended|increased|raised"
    "|lowered|reduced|decreased|bumped|slipped|rose|risen|dropped|fell|fallen|jumped|climbed"
    "|(?:went|gone)(?= up| down))(?: back| forward| up| down| over| out)?"
)
_LINK = (
    "(?P<be>is|are|was|were|'s|will be|="
    f"|(?:(?:has|have|'s|'ve) (?:just |now )?(?:been )?|is |was |got )?{MOVED} (?:to|until)"
    r"|runs on|ends on|starts (?:on|at)|leaves (?:on|at)|falls on)"
)
SOFT = (
    "(?:(?:now|still|actually|currently|going to be|set (?:to|for|at|on)|scheduled for|due"
    r"|on|at|in|by|the|about|around|at most|up to|down to|port|version)\s+)*"
)
_NP = r"(?P<np>(?:[\w.#/+-]+(?:'s)?\s+){0,7}?[\w.#/+-]+)"
_SETTING = guarded(
    r"(?i:(?:^|\b(?:the|our|my|its|this|and|actually"
    rf"|correction)\b)[\s,:]*){_NP}\s*(?i:\b{_LINK}(?:\s+|(?<==))(?P<neg>not )?{SOFT})"
    rf"(?P<value>(?i:{VALUE})|{NAMED})(?P<tail>.*)$"
)
_IS_NOT = guarded(
    rf"(?i:(?:^|\b(?:the|our|my|its|this)\b)[\s,:]*){_NP}\s+(?i:(?P<be>is|are|was"
    rf"|were)(?:n'?t| not)\s+{SOFT})"
    f"(?P<old>(?i:{VALUE})|{NAMED}),? (?i:(?:but (?:rather )?|(?:it|that)(?:'s| is) )"
    f"{SOFT})(?P<value>"
    f"(?i:{VALUE})|{NAMED})"
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
    f" from {SOFT})(?P<old>(?i:{VALUE})|{NAMED})(?i: to {SOFT})(?P<value>(?i:{VALUE})"
    f"|{NAMED})"
)
_WE_MOVED = guarded(
    rf"(?i:\b{MOVED} (?:the|our|my|this) ){_NP} (?i:(?:back |forward |up |down |over |out )?)"
    rf"(?:(?i:from {SOFT})(?P<old>{ANY}) )?(?i:(?:to|until) {SOFT})(?P<value>{ANY})"
    r"(?P<tail>.*)$"
)
# "Move the meeting to Tuesday", told to who does it.
_TELLS_TO = guarded(
    r"^\W*(?i:(?:(?:please|ok|okay|and|then|now|also|just|let'?s|yes|yeah|no|actually)\b[\s,]*)*"
    r"(?:change|set|move|switch|update|raise|lower|increase|decrease|reduce|bump|extend|push"
    r"|shift|reschedule|postpone|delay) (?:the|our|my|this|that) )"
    rf"{_NP} (?i:(?:back |forward |up |down |over |out )?to {SOFT})(?P<value>{ANY})(?P<tail>.*)$"
)
_NOT_DONE = lazy(r"(?:\b(?:not|never|almost|nearly)\b|n't\b)", re.IGNORECASE)
# "Deadline: March 8" as a message by itself; a list of such lines is of many things.
_LINE = guarded(
    rf"^(?i:(?:the |our |my |new )?)(?P<np>[\w.#/+-]+(?: [\w.#/+-]+){{0,3}}):\s+(?i:{SOFT})"
    rf"(?P<value>(?i:{VALUE}))(?P<tail>)\W*$"
)
# Each is about one of the nouns, of which "due-date" is the only one of two words.
_A_NOUN = number(
    frozenset(form for noun in (_NUMERIC | _NAMING) - {"due-date"} for form in (noun, f"{noun}s"))
)
_NOT_OLD = re.compile(
    r"^\s*,?\s*(?i:(?:and )?not|instead of|rather than"
    rf"|no longer)\s+{SOFT}(?P<old>(?i:{VALUE})|{NAMED})"
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
_SPELLED = guarded(
    r"(?i:\b(?:it's|it is|that's|is|name's) spel(?:led|t)"
    r"|^\W*(?:no|sorry|actually|wait|oops|correction)\b\W*(?:it's|it is|that's)) "
    r"(?i:(?:the |on |in |at )*)(?P<value>[A-Z\d$€£][\w$€£.:+#/-]*)"
    r"(?i:,? not (?:the |on |in |at )*)(?P<old>[A-Z\d$€£][\w$€£.:+#/-]*)"
)
_PREPOSITION = re.compile(r"\s+(?:for|of|on|in|to|at)\s+(?:the |our |my |an? )?", re.IGNORECASE)
# Whose thing it is, a claim about the speaker's would not tell.
_ANOTHERS = lazy(r"\b(?:your|his|her|their)\b")
_IN = lazy(r"\bin\s+(?:about\s+|around\s+)?$", re.IGNORECASE)
_AWAY = lazy(r"\s*(?:away|ago|late|early|left|from now)\b", re.IGNORECASE)
_SECOND = lazy(rf"\s*,?\s*(?i:{SOFT})(?P<value>(?i:{VALUE}))")
# "100 requests per minute", "80 km/h on roads": a word before what the number is limited to.
_COUNTED = lazy(r"\s+[a-z]+(?:s|/[a-z]+)(?=\s)")
_THE_ONE = lazy(
    r"\s*,?\s*(?:that's |that is |it's )?the (?P<which>[\w ]{1,30}?) one\b", re.IGNORECASE
)
_OWNS = word_set("for of in on at")
_PLACES = word_set(
    """in on at by from near around inside outside today tonight tomorrow this next until after
    before during"""
)
_EMPTY_OWNER = word_set("it this that we they server app application service system api i")


def identity_of(phrase: str) -> str | None:
    """What a value is a value of; None where it is none of the nouns that have values.

    ``port for staging`` of "staging port" and of "port for the staging".
    """
    phrase = re.split(r"\b(?:and|actually)\b|,", nfc_lower(phrase))[-1]
    if _ANOTHERS.search(phrase):
        return None
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
        return _name_of(singular[:-5])
    qualifier = " ".join([*owner, *(word for word in words[1:] if word)])
    qualifier = re.sub(r"\b(?:the|our|my)\s+", "", qualifier).strip()
    if singular == "name" and qualifier:
        return _name_of(qualifier)
    return f"{singular} for {qualifier}" if qualifier else singular


def _name_of(thing: str) -> str | None:
    """None where one speaks of one after another: a friend, a film."""
    words = frozenset(thing.split())
    return None if words & MANY or words & _ONE_AFTER_ANOTHER else f"name of {thing}"


_ONE_AFTER_ANOTHER = word_set(
    """movie film book novel song album show series episode restaurant cafe hotel bar place street
    town city game band artist author actor character person man woman guy girl kid child"""
)


def happens(identity: str) -> bool:
    """Whether it is something that takes place: a meeting, a flight."""
    return _noun(identity) in _TIMED


def _noun(identity: str) -> str:
    if identity.startswith("name of "):
        return "name"
    return identity.split(" for ", maxsplit=1)[0].split()[-1]


def _suits(identity: str, value: str) -> bool:
    """A name is a value only of a noun that takes names."""
    return is_value(value) or _noun(identity) in _NAMING


def _value(identity: str, value: str) -> str:
    """The normal form of a value; "at 3" is a time where something happens then."""
    value = normal(value)
    clock = _noun(identity) in _TIMED and value.isdigit() and int(value) < 24
    return normal(f"{value}:00") if clock else value


def of_sort(identity: str, value: str) -> str:
    """The topic of a value: ``meeting`` of a day, ``meeting time`` of an hour.

    A noun's own sort of value keeps its name, so that "the meeting is at 3pm" and "the
    meeting time is 3pm" are one topic, and leave alone on which day it is.
    """
    sort, noun = sort_of(value), _noun(identity)
    if sort in _SORTS.get(noun, _OTHERS) or sort in _OTHERS or identity.startswith("name of "):
        return identity
    if sort in ("clock", "month"):
        first, *rest = identity.split(" for ", maxsplit=1)
        return " for ".join([f"{first} {'time' if sort == 'clock' else sort}", *rest])
    return f"{_SORT_NOUNS[sort]} for {identity}"


def setting_claims(reader: ClaimReader, clause: Clause) -> Iterator[PlacedClaim]:
    """Values of named settings, with the value they replace where the clause names it."""
    if not bits_of(clause.text) & _A_NOUN:
        return
    match = _SETTING.search(clause.text)
    if match:
        identity = identity_of(match.group("np"))
        if identity and _holds(match, identity):
            yield from value_claims(reader, clause, match, identity)
    match = _WE_MOVED.search(clause.text)
    if match and _NOT_DONE.search(clause.text[: match.start()]):
        match = None
    if match is None and not reader.advises:
        match = _TELLS_TO.search(clause.text)
    if match:
        identity = identity_of(match.group("np"))
        if identity:
            yield from value_claims(reader, clause, match, identity)
    match = _ON_PORT.search(clause.text)
    if match:
        owner = re.sub(
            r"\b(?:the|our|my|is|are|now|actually)\b\s*", "", nfc_lower(match.group("np"))
        ).strip(" ,")
        plain = not owner or owner in _EMPTY_OWNER
        yield from value_claims(reader, clause, match, "port" if plain else f"port for {owner}")


def line_claims(reader: ClaimReader, sentence: Sentence) -> Iterator[PlacedClaim]:
    """The value of a turn that is one line of a name and a value."""
    match = _LINE.search(sentence.text)
    identity = identity_of(match.group("np")) if match else None
    if match and identity:
        whole = Clause(sentence.start, sentence.end, sentence.text)
        yield from value_claims(reader, whole, match, identity)


def _holds(match: re.Match[str], identity: str) -> bool:
    """Whether it gives the thing's value as it is now.

    "The rent will be 1000" leaves the rent as it is; "in 2 hours" and "3 days away" count
    from the moment they are said.
    """
    timed = _noun(identity) in _TIMED
    if match.group("be").lower() == "will be" and not timed:
        return False
    if not timed or sort_of(normal(match.group("value"))) != "duration":
        return True
    before = match.string[: match.start("value")]
    return not (_IN.search(before) or _AWAY.match(match.group("tail")))


def value_claims(
    reader: ClaimReader, clause: Clause, match: re.Match[str], identity: str
) -> Iterator[PlacedClaim]:
    """That a thing has a value, by a match with the groups ``value`` and ``tail``.

    It may have ``old``, ``be`` and ``neg``. What follows may tell of a second value ("on
    Monday at 3"), of the one that is replaced, and of what the value is limited to.
    """
    groups = match.groupdict()
    if not _suits(identity, groups["value"]):
        return
    value, tail = _value(identity, match.group("value")), match.group("tail")
    things = _counted(reader, clause.start + match.end("value"), identity, value)
    replaced = _NOT_OLD.match(tail.lstrip().removeprefix(things) if things else tail)
    named = groups.get("old") or (replaced.group("old") if replaced else None)
    old = _value(identity, named) if named else None
    if things:
        value = f"{value} {things}"
        old = f"{old} {things}" if old and sort_of(old) == "number" else old
    past = (groups.get("be") or "").lower() in ("was", "were") and old is None
    kind = "past_state" if past else "current_state"
    second = None if replaced else _SECOND.match(tail)
    if second and _noun(identity) not in _TIMED:
        second = None
    # What is replaced is on the topic of its own sort: "moved from Monday to 3pm".
    after = match.start("tail") + (second.end() if second else 0)
    topic = limited_topic(reader, clause, of_sort(identity, old or value), after)
    denied = bool(groups.get("neg"))
    yield reader.place(clause, match, Claim(kind, reader.speaker, topic, value, old, denied))
    if old:
        yield reader.place(clause, match, Claim("correction", reader.speaker, topic, value, old))
    if second and not denied and not old:
        also = _value(identity, second.group("value"))
        if {sort_of(value), sort_of(also)} == {"day", "clock"}:
            topic = limited_topic(reader, clause, of_sort(identity, also), after)
            claim = Claim(kind, reader.speaker, topic, also)
            yield reader.place(clause, match, claim)


def _counted(reader: ClaimReader, at: int, identity: str, value: str) -> str:
    """What a number that begins before ``at`` is a number of: "files" of "10 files"."""
    if sort_of(value) != "number" or "number" in _SORTS.get(_noun(identity), ()):
        return ""
    said = tokens_from(reader.doc, at, at + 2)
    plural = said and said[0].tag_ == ("NN" if value == "1" else "NNS")
    return said[0].lower_ if plural and said[0].is_alpha else ""


def limited_topic(reader: ClaimReader, clause: Clause, topic: str, start: int) -> str:
    """The topic with what its value is limited to: ``port for dev`` of "3000 in dev"."""
    tail = clause.text[start:]
    front, _ = fronted(clause.text)
    if front:
        topic = owned(topic, front)
    one = _THE_ONE.match(tail)
    if one:
        return owned(topic, one.group("which").lower())
    counted = _COUNTED.match(tail)
    start += counted.end() if counted else 0
    limit = limits(reader, clause.start + start, clause.end)
    kind, _, what = limit.partition(" ")
    # A thing that happens is where it is and when it is, whatever is added.
    happens = _TIMED.intersection(topic.partition(" for ")[0].split())
    if happens and kind in _PLACES and not limit.startswith("on way"):
        return topic
    return owned(topic, what) if kind in _OWNS and what else limited(topic, limit)


def owned(identity: str, owner: str) -> str:
    """A topic with whose it is: ``port for dev``."""
    return f"{identity} {owner}" if " for " in identity else f"{identity} for {owner}"


def replacement_claims(reader: ClaimReader, sentence: Sentence) -> Iterator[PlacedClaim]:
    """Corrections and replacements that name both values, in one whole sentence."""
    for pattern in (_IS_NOT, _FROM_TO):
        match = pattern.search(sentence.text)
        identity = identity_of(match.group("np")) if match else None
        if match and identity:
            value = _value(identity, match.group("value"))
            old = _value(identity, match.group("old"))
            topic = of_sort(identity, old)
            for kind in ("current_state", "correction"):
                claim = Claim(kind, reader.speaker, topic, value, old)
                yield reader.place(sentence, match, claim)
    for pattern in (_USE_INSTEAD, _SWITCHED, _REPLACED, _MEANT, _SPELLED):
        match = pattern.search(sentence.text)
        if match is None or re.search(
            r"\b(?:from|of) (?:time|place|day)\b", match.group(), re.IGNORECASE
        ):
            continue
        value, old = normal(match.group("value")), normal(match.group("old"))
        named = pattern is _SWITCHED and _FROM_TO.search(sentence.text)
        if value != old and not (named and identity_of(named.group("np"))):
            claim = Claim("correction", reader.speaker, UNSPECIFIED, value, old)
            yield reader.place(sentence, match, claim)
