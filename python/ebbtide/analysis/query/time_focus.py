"""How a question speaks of time: intent, range, anchor event, currentness."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ebbtide.analysis.facts import TimeExpression
from ebbtide.analysis.patterns import guarded
from ebbtide.analysis.query.lexicon import STATIVE
from ebbtide.analysis.query.predicate import hidden_verb, main_verb
from ebbtide.analysis.query.question import Question

__all__ = ["TimeFocus", "currentness", "time_focus"]

_I = re.IGNORECASE
_ORDER = guarded(
    r"\b(?:(?:what|which)\b[^?]*\bfirst\b[^?]*\bor\b|happened (?:first|last|earlier|later|before)|"
    r"(?:chronological|the) order\b|in (?:what|which) order|from (?:earliest|first|oldest)|"
    r"earliest to|came first|who\b[^?]*\bfirst\b[^?]*\bor\b|before or after|"
    r"(?:more|most) recent(?:ly)?\b[^?]*\bor\b)",
    _I,
)
_DURATION = guarded(
    r"\bhow long\b(?!\s+ago)|\bhow many\s+(?:\w+\s+)?(?:days?|weeks?|months?|years?|hours?|"
    r"minutes?)\b(?!\s+ago|\s+later\s+will)|"
    r"\b(?:time|days|weeks|months|years)\s+(?:passed|elapsed)\b|"
    r"\bduration\b|\bfor how (?:long|many)\b",
    _I,
)
_POINT = guarded(
    r"\bhow (?:long|many (?:days|weeks|months|years)) ago\b|\bat what time\b|"
    r"\b(?:what|which) (?:exact )?(?:time|day|date|month|year|week|weekend|season)\b",
    _I,
)
_EVENT = re.compile(
    r"\b(?P<word>before|prior to|after|"
    r"following(?= (?:the|my|his|her|our|their)\b)|since|when|while|during)\s+(?P<event>[^?.!,;]+)",
    _I,
)
_SIDES = {"before": "before", "prior to": "before", "after": "after", "following": "after",
          "since": "after"}  # fmt: skip
_LEADING = re.compile(
    r"^(?:(?:the|a|an|my|our|his|her|their|its|i|we|he|she|they|it|you|was|were|had|is|did)\b\s*)+",
    _I,
)
_EVENT_END = re.compile(
    r"\s+(?:when|while)\b.*$|\s+(?:and|or)\s+(?:what|when|where|who|why|how|did|"
    r"does|do|is|was)\b.*$|\s+to be\b.*$",
    _I,
)

_COUNTS_BACK = re.compile(r"\b(?:ago|yesterday|last|past|previous)\b", _I)
_CURRENT = guarded(
    r"\b(?:right now|nowadays|now|currently|current|these days|at the moment|presently|at present|"
    r"still|as of (?:now|today)|latest|most recent|most recently|up[- ]to[- ]date|today|anymore)\b",
    _I,
)
_CONVERSATION = guarded(
    r"\b(?:previous|earlier|last|past|prior|former)\s+(?:conversations?|chats?|discussions?|"
    r"sessions?|messages?|exchanges?|talks?|time)\b",
    _I,
)
_FIRST = guarded(
    r"\b(?:originally|original|initially|initial|at first|to begin with|earliest)\b", _I
)
_FIRST_VERB = guarded(
    r"\b(?:did|do|does|has|have|had|was|were|i|we|you|he|she|they)\b(?:\s+\w+){0,2}?"
    r"(?<!\bthe)(?<!\bhis)(?<!\bher)(?<!\bmy)(?<!\btheir)(?<!['’]s)\s+first\s+"
    r"(?!(?:two|three|four|five|place|name|one|week|day|time|half)\b)[a-z]+",
    _I,
)
_HISTORICAL = guarded(
    r"\b(?:used to|did (?:i|we|you|he|she|they) use to|previous|previously|former|formerly|"
    r"back then|prior to|no longer|earlier|"
    r"in the past(?!\s+(?:\w+\s+)?(?:days?|weeks?|months?|years?))|"
    r"once (?:lived|worked|had)|ex-\w+|ex (?:husband|wife|boyfriend|girlfriend|boss|"
    r"partner)|old (?:job|home|house|address|phone|car|apartment|place|"
    r"area|employer|port|name|number|team|school|position|role))\b|"
    r"\b(?:live|lived|work|worked|use|used|have|had|own|owned|be|was|were|drive|drove|from)\b[^?]*"
    r"\bbefore\b|\bbefore (?:now|this|that)\b",
    _I,
)
_CHANGE = guarded(
    r"\b(?:how (?:has|have|did|does)\b[^?]*\bchanged?|compared (?:to|with)|over time|"
    r"before and (?:after|now)|then and now|evolved?|difference between|changed from)\b",
    _I,
)
_EVENT_TYPES = frozenset({"time", "reason"})


@dataclass(frozen=True, slots=True)
class TimeFocus:
    """Temporal reading of a question.

    Attributes:
        intent: ``none``, ``point``, ``range``, ``before``, ``after``, ``order``
            or ``duration``.
        first: First day of the range that the question names, ISO, or None.
        last: Last day of it, inclusive, or None.
        counts_back: Whether the range is counted from when it is asked ("a week ago").
        anchor_event: The words of an event that stands for a date.
    """

    intent: str
    first: str | None
    last: str | None
    counts_back: bool
    anchor_event: str | None


def time_focus(question: Question, times: Sequence[TimeExpression], kind: str) -> TimeFocus:
    """Read intent, range and anchor event.

    Args:
        question: The core question.
        times: Time expressions of the whole text.
        kind: Its answer type.
    """
    text = question.text
    offset = question.span.start_char
    named = [
        time
        for time in times
        if offset <= time.start < question.span.end_char and not _is_length(time)
    ]
    first, last = _hull(named)
    side, event = _anchor_event(question, named)
    counts_back = any(_COUNTS_BACK.search(time.text) for time in named)
    return TimeFocus(_intent(text, kind, named, side), first, last, counts_back, event)


def _is_length(time: TimeExpression) -> bool:
    return time.text.lower().startswith("for ") and time.grain == "span"


def _hull(times: Sequence[TimeExpression]) -> tuple[str | None, str | None]:
    """One range over all that is named; two open bounds meet ("since X, until Y")."""
    if not times:
        return None, None
    starts = [time.first for time in times if time.first is not None]
    ends = [time.last for time in times if time.last is not None]
    if len(times) == 1:
        return times[0].first, times[0].last
    closed = [time for time in times if time.first is not None and time.last is not None]
    if closed:
        return min(t.first or "" for t in closed), max(t.last or "" for t in closed)
    first, last = max(starts, default=None), min(ends, default=None)
    return (first, last) if first is None or last is None or first <= last else (None, None)


def _intent(text: str, kind: str, named: Sequence[TimeExpression], side: str | None) -> str:
    if _ORDER.search(text):
        return "order"
    if _POINT.search(text) and not named:
        return "point"
    if _DURATION.search(text):
        return "duration"
    if side is not None:
        return side
    if named:
        open_end = [time for time in named if time.first is None or time.last is None]
        if open_end:
            return "before" if open_end[0].first is None else "after"
        return "point" if all(time.grain == "day" for time in named) else "range"
    return "point" if kind == "time" else "none"


def _anchor_event(
    question: Question, named: Sequence[TimeExpression]
) -> tuple[str | None, str | None]:
    text, offset = question.text, question.span.start_char
    for match in _EVENT.finditer(text):
        start = offset + match.start()
        if question.wh is not None and start == question.wh.idx:
            # The question word itself: search on behind it.
            rest = _EVENT.search(text, match.start("event"))
            if rest is None:
                return None, None
            match = rest
        low, high = offset + match.start(), offset + match.end()
        if any(
            low <= t.start < offset + match.start("event") + 12 and t.start < high for t in named
        ):
            continue
        event = _LEADING.sub("", _EVENT_END.sub("", match.group("event")).strip()).strip()
        if not event or len(event) < 2:
            continue
        word = " ".join(match.group("word").lower().split())
        return _SIDES.get(word), event
    return None, None


def currentness(
    question: Question,
    kind: str,
    focus: TimeFocus,
    times: Sequence[TimeExpression],
    today: str | None,
) -> tuple[str, bool]:
    """``current``, ``historical``, ``mixed`` or ``unspecified``; and wants_first.

    Words decide first ("now", "used to", "originally"). Without them a question
    in the present tense about a state ("Where do I live?") is current, and one
    in the past tense about a state in a past period is historical; questions
    about events are unspecified. "Our previous conversation" says nothing.
    """
    if focus.intent == "order":
        return "unspecified", False
    text = _CONVERSATION.sub(" ", _without_dates(question, times))
    wants_first = bool(_FIRST.search(text) or _FIRST_VERB.search(text))
    historical = wants_first or bool(_HISTORICAL.search(text))
    current = bool(_CURRENT.search(_EVENT.sub(" ", text)))
    if _CHANGE.search(text) or (historical and current and not wants_first):
        return "mixed", wants_first
    if historical:
        return "historical", wants_first
    dated = focus.last is not None and (today is None or focus.last < today)
    by_tense = _by_tense(question, kind, focus, today)
    if dated:
        # "What is Jon reading on 3 May 2021?" asks for the state of that day.
        return ("historical" if by_tense == "historical" else "unspecified"), False
    if current:
        return "current", False
    return by_tense, False


def _without_dates(question: Question, times: Sequence[TimeExpression]) -> str:
    """The question with its dates blanked: "the Sunday before 25 October" is no past state.

    "Today" stays: it speaks of the present as much as it names a day.
    """
    text, offset = question.text, question.span.start_char
    for time in times:
        low, high = time.start - offset, time.end - offset
        if low >= 0 and high <= len(text) and time.text.lower() != "today":
            text = text[:low] + " " * (high - low) + text[high:]
    return text


def _by_tense(question: Question, kind: str, focus: TimeFocus, today: str | None) -> str:
    verb = main_verb(question)
    if verb is None:
        hidden = hidden_verb(question)
        stative = hidden is not None and hidden.lemma_.lower() in STATIVE
        present = any(token.lower_ in {"do", "does"} for token in question.span)
        return "current" if stative and present else "unspecified"
    if kind in _EVENT_TYPES or verb.lemma_.lower() not in STATIVE:
        return "unspecified"
    helpers = [child for child in verb.children if child.dep_ in {"aux", "auxpass"}]
    tags = {token.tag_ for token in (verb, *helpers)}
    words = {token.lower_ for token in helpers}
    if verb.lemma_ == "have" and any(t.tag_ == "VBN" and t.i > verb.i for t in question.span):
        # "What have John and Maria both done": the parser lost the perfect.
        return "unspecified"
    if words & {"has", "have"} and "VBN" in tags and "been" not in words:
        # "Which cities have I lived in?" asks for all that ever held.
        return "mixed"
    past = bool(tags & {"VBD"}) or "did" in words
    if past:
        over = focus.last is not None and today is not None and focus.last < today
        return "historical" if over else "unspecified"
    if words & {"would", "could", "should", "might", "may", "will", "'ll", "can", "has", "have"}:
        return "unspecified"
    if verb.tag_ == "VBG":
        return "unspecified"
    return "current" if tags & {"VBZ", "VBP"} or words & {"do", "does"} else "unspecified"
