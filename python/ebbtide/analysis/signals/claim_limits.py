"""What limits a claim: that it adds to others, or holds only at times or in places."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from ebbtide.analysis.patterns import guarded, lazy
from ebbtide.analysis.signals.values import noun_lemma, tokens_from

if TYPE_CHECKING:
    from ebbtide.analysis.facts import Claim
    from ebbtide.analysis.signals.claim_parts import ClaimReader, PlacedClaim
    from ebbtide.analysis.signals.text import Clause

__all__ = [
    "FOR_LONG",
    "adds",
    "beside_others",
    "denies_in_part",
    "for_a_time",
    "fronted",
    "limited",
    "limits",
    "part_time",
]

_ADDS = guarded(
    r"\b(?:also|additionally|in addition|as well(?! as\b)|too(?=\s*(?:[.,!;:)]|$)))",
    re.IGNORECASE,
)
# "Also, I live in Porto now" goes on to another matter.
_GOES_ON = lazy(r"\W*(?:\w+\W+)?(?:also|additionally|in addition)\b", re.IGNORECASE)
_CHANGES = guarded(
    r"\b(?:now|new|instead|any ?more|no longer|not|moved|changed|switched|actually)\b",
    re.IGNORECASE,
)
FOR_LONG = r"for (?:[\w-]+ ){0,4}?(?:years?|months?|weeks?|days?|decades?|ages|long|while|life)"
"""How long something has been so: "for three years", "for a while"."""

_NO_LIMIT = lazy(
    r"(?:from now on|for (?:now|me|us|sure|real|good|the most part|the moment|everyone)"
    rf"|{FOR_LONG}"
    r"|(?:at|of) all|at (?:the moment|least|most|last|heart|this point)|as of (?:now|today)"
    r"|last but not least|in (?:general|fact|particular|total|my opinion|the end|my life"
    r"|every way|so many ways)"
    r"|of course|to (?:be honest|be fair|death|bits|pieces)|by (?:the way|far|default)"
    r"|with (?:all my|my whole) \w+|about (?:it|them|that)|over the years|after all|on average"
    r"|on the other hand)\b",
    re.IGNORECASE,
)
_FILLER = (
    r"(?:\s+(?:very|so|too|that|much|a lot|really|again|now|any ?more|more|best|most|either))*"
)
_LIMIT = lazy(
    rf"{_FILLER}\s+(?P<limit>(?:in|on|at|with|without|for|from|by|of|to|about|after|before|during"
    "|under|over|near|around|through|against|between|among|inside|outside|into|until|than|per"
    "|alone|together|indoors|outdoors"
    "|when|while|whenever|if|unless|because of|due to|as (?:much|long|a|an)|who|whose"
    "|that(?! much)|which|where|today|tonight|tomorrow"
    "|this (?:week|month|year|morning|evening|time|spring|summer"
    r"|autumn|fall|winter)|next (?:week|month|year)|last \w+|yesterday|only|except|plus)\b.*)",
    re.IGNORECASE | re.DOTALL,
)
_END = lazy(
    r"[,;.!?()]|\s(?:and|or|because(?! of)|but|so|since|now|too|though|as well"
    r"|any ?more|either|again|lately)\b",
    re.IGNORECASE,
)
_LONGEST = 8
_FOR_A_TIME = (
    r"for the (?:summer|winter|weekend|week|month|day|night|holidays?|semester|season)"
    r"|(?:until|till) (?!now\b)[\w ]+|temporarily"
)
_SHORT_STAY = guarded(
    rf"\b(?:{_FOR_A_TIME}|for (?:an?|one|two|three|four|five|six|\d+|a few|a couple of)"
    r" (?:days?|weeks?|months?))\b",
    re.IGNORECASE,
)
_PART_TIME = guarded(
    rf"\b(?:{_FOR_A_TIME}|during \w+(?: \w+)?|on (?:the )?(?:weekends?|weekdays|side|\w+days)"
    r"|in (?:the )?(?:summers?|winters?|spring|autumn|fall|evenings?|mornings?|afternoons?)"
    r"|this (?:week|weekend|month|summer|winter|spring|autumn|semester)|today|tonight|tomorrow"
    r"|part[- ]time|sometimes|occasionally|partly|when(?:ever)? (?:I|we|he|she|they)\b"
    r"|(?:half|most|some|part|much) (?:of )?(?:the|each|every) (?:year|month|week|time|day)"
    # In a tale one lives elsewhere.
    r"|in (?:this|that|the|my|our|a|his|her) (?:[\w-]+ )?(?:story|tale|movie|film|game|novel|book"
    r"|play|dreams?|series|show|scenario|simulation|role-?play))\b",
    re.IGNORECASE,
)
_IN_PART = lazy(
    r"(?:n['’]?t|\bnot|\bnever)\s+(?:always|only|just|all|both|mostly|usually|simply|solely"
    r"|exclusively|necessarily|entirely|exactly)\b",
    re.IGNORECASE,
)
_YES_OR_NO = frozenset({"like", "dislike", "allergic", "not allergic"})
# Of what is over nothing is left that others could be beside.
_OVER = frozenset({"cancelled", "out of work", "retired"})
# "I also lost my job": of these one has one, and "also" is said of somebody else's.
_ONE = frozenset({"age", "diet", "employment", "name", "origin", "relationship status"})


def adds(clause: Clause) -> bool:
    """Whether a clause adds to what was said before, rather than change it."""
    if not _ADDS.search(clause.text):
        return False
    return not (_GOES_ON.match(clause.text) and _CHANGES.search(clause.text))


def denies_in_part(text: str, item: PlacedClaim) -> bool:
    """Whether what was read denies only that something is always or wholly so."""
    return _IN_PART.search(text, item.start, item.end) is not None


def beside_others(claim: Claim) -> Claim:
    """A claim that leaves others on its topic alone: a topic of its own, by its value.

    What says yes or no to one thing leaves others alone already, and so does a denial.
    """
    held = claim.old_value or claim.negated or claim.identity in _ONE
    held = held or claim.value in _YES_OR_NO | _OVER
    if held or claim.kind not in ("preference", "current_state", "past_state"):
        return claim
    return replace(claim, identity=f"{claim.identity} also {claim.value}")


def limits(reader: ClaimReader, start: int, end: int) -> str:
    """To what a value said before ``start`` is limited, as lemmas; empty where to nothing.

    "in the rain" of "I hate running | in the rain", "after lunch", "for uploads". What lets
    it hold from now on, for years or in general is no limit.
    """
    match = _LIMIT.match(reader.text[start:end])
    if match is None or _NO_LIMIT.match(match.group("limit")):
        return ""
    first = start + match.start("limit")
    stop = _END.search(reader.text, first, end)
    words = [
        noun_lemma(token)
        for token in tokens_from(reader.doc, first, stop.start() if stop else end)
        if token.pos_ not in ("DET", "PUNCT", "SPACE") and token.tag_ != "PRP$"
    ]
    return " ".join(words[:_LONGEST])


# "For the record" opens a sentence and limits nothing.
_OPENING = lazy(
    r"(?:for (?:the record|once|example|your information)|on second thoughts?|in short|in that case"
    r"|at (?:first|last|any rate)|on top of (?:that|it))\b",
    re.IGNORECASE,
)
_FRONT = guarded(
    r"^\W*(?:(?:and|but|so|also|ok|okay|well|btw)\b\W*)*"
    r"(?P<limit>(?:in|on|at|for|with|under|during|inside|within)\s+"
    r"(?:(?:the|our|my|an?)\s+)?(?P<what>[^,]{1,40}?))(?:,\s|\s(?=(?:I|we)\b))",
    re.IGNORECASE,
)


def fronted(text: str) -> tuple[str, int]:
    """What a clause opens with that limits it, and where that ends.

    "staging" of "in staging, the port is 8080"; empty where nothing does.
    """
    match = _FRONT.match(text)
    said = match and match.group("limit")
    if match is None or _NO_LIMIT.match(said or "") or _OPENING.match(said or ""):
        return "", 0
    return match.group("what").strip().lower(), match.end()


def limited(identity: str, limit: str) -> str:
    """An identity with what it is limited to."""
    return f"{identity} {limit}" if limit else identity


def part_time(clause: Clause) -> str:
    """When a state holds that holds only at times ("for the summer"); else empty."""
    match = _PART_TIME.search(clause.text)
    return match.group().lower().replace("the ", "") if match else ""


def for_a_time(clause: Clause) -> str:
    """For how long or until when, where somebody goes to a place to come back; else empty."""
    match = _SHORT_STAY.search(clause.text)
    return match.group().lower().replace("the ", "") if match else ""
