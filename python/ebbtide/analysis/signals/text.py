"""Where the rules may look: masks, sentences, clauses, and who is speaking in them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ebbtide.analysis.patterns import GuardedPattern, guarded

__all__ = ["Clause", "Sentence", "handed_over", "mask", "sentences"]

_FENCE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_INLINE_CODE = re.compile(r"`[^`\n]+`")
_LOG_LINE = re.compile(
    r"^[ \t]*(?:\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*"
    r"|\[?(?:DEBUG|INFO|WARN|WARNING|ERROR|FATAL|TRACE)\]?[:\s].*"
    r"|Traceback \(most recent call last\):.*|File \".*\", line \d+.*"
    r"|(?:>>>|\$|>) .*|at [\w.$]+\([^)]*\))$",
    re.MULTILINE,
)
_JSON = re.compile(r"[{\[][^{}\[\]]*\"[^\"\n]*\"\s*:[^{}]*[}\]]")
_JSON_OUTER = re.compile(r"[{\[][\s{}\[\],]*[}\]]")
_QUOTED = re.compile(r'"([^"\n]{3,400})"')
_QUOTED_SPEECH = re.compile(r"\b(?:I|my|we|our|you|do not|don't|never|must|please)\b")

# A text given to be worked on is not what its giver says of themselves. Verbs that are
# said of much else besides need the text to be named.
_TEXT = (
    "(?:text|sentences?|paragraphs?|passage|e-?mail|letter|essay|message|article|story|review|post"
    "|bio|poem|note|transcript|conversation|abstract|speech|caption|description|grammar|spelling)"
)
_ASKED = (
    r"(?:^|(?<=[.!?,:]\s)|(?<=\n))\W{0,5}(?:(?:please|hi|hey|hello|ok|okay|now|and|then|also"
    r"|can you|could you|would you|will you|help me|i need you to|i want you to|i'd like you to"
    r"|kindly)\b[\s,]{0,3}){0,4}"
)
_HANDED = guarded(
    rf"{_ASKED}(?:(?:translate|proof-?read|re-?write|re-?phrase|reword|paraphrase|summari[sz]e"
    r"|condense|shorten|transcribe)\b[^.!?:\n]{0,100}"
    r"|(?:correct|edit|fix|improve|check|review|analy[sz]e|revise|polish|simplify|format|convert"
    rf"|classify|critique|explain|read)\b[^.!?:\n]{{0,60}}\b{_TEXT}\b[^.!?:\n]{{0,60}}"
    r"|(?:correct|edit|improve|revise|polish|simplify|analy[sz]e|classify|critique) (?:this|these"
    r"|the following)\b[^.!?:\n]{0,60})"
    r"(?::|(?<=this)\n|(?<=following)\n|(?<=below)\n)\s*(?=\S)",
    re.IGNORECASE,
)


def handed_over(text: str, role: str) -> int | None:
    """Where a text begins that is handed over to be translated, corrected, summed up.

    Args:
        text: The turn, or its matching text.
        role: Whose it is; an assistant's "Proofread:" is advice.

    Returns:
        Its first character; it goes on to the end. None where there is none.
    """
    # It stands behind a colon or on another line.
    if role == "assistant" or (":" not in text and "\n" not in text):
        return None
    match = _HANDED.search(text)
    return match.end() if match else None


def _blank(match: re.Match[str]) -> str:
    # The blank keeps line breaks, so that what follows is a new sentence still.
    return "".join("\n" if character == "\n" else " " for character in match.group())


def _blank_speech(match: re.Match[str]) -> str:
    # A quoted title ("The Hobbit") stays; quoted speech is another's words.
    return _blank(match) if _QUOTED_SPEECH.search(match.group(1)) else match.group()


def mask(text: str, role: str = "user") -> str:
    """Blank code, logs, JSON, quoted speech and texts handed over; the length stays the same."""
    text = _FENCE.sub(_blank, text)
    text = _INLINE_CODE.sub(_blank, text)
    text = _LOG_LINE.sub(_blank, text)
    if '"' in text:
        for _ in range(8):
            reduced = _JSON.sub(_blank, text)
            if reduced == text:
                break
            text = _JSON_OUTER.sub(_blank, reduced)
        text = _QUOTED.sub(_blank_speech, text)
    start = handed_over(text, role)
    if start is not None:
        text = text[:start] + re.sub(r"[^\n]", " ", text[start:])
    return text


@dataclass(frozen=True, slots=True)
class Clause:
    """A stretch of one sentence with one verb, as far as punctuation tells.

    Attributes:
        start: First character in the turn.
        end: One past the last.
        text: The matching text of the span.
        asks: Part of a question, so that it asserts nothing.
        unreal: Hypothetical, conditional, wished for, or another's words.
    """

    start: int
    end: int
    text: str
    asks: bool = False
    unreal: bool = False


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence and its clauses; ``asks`` where any part of it is a question."""

    start: int
    end: int
    text: str
    asks: bool
    clauses: tuple[Clause, ...]


# What both may begin with is looked for first: nearly every character is something else.
_BOUNDARY = re.compile(r"(?=[.!?…\n])(?:(?:[.!?]+[\"')\]]*|…)(?=\s|$)|\n+|[!?]+(?=[A-Z]))")
# Longer than each of them, with what stands before it.
_ABBREVIATED = 9
_ABBREVIATION = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|e\.g|i\.e|approx|No|Inc|Ltd)"
    r"|(?<![A-Za-z0-9])[A-Z])\.$"
)
_BREAK = guarded(
    r"(?=[\s,;:—-])(?:\s*(?:;|\s-{1,2}\s|--+|—|:\s)\s*"
    r"|,?\s+(?=(?:but|although|though|whereas|because|yet)\b"
    r"|(?:and|so|plus)\s+(?:I|we|he|she|they|it|my|our|never|do not|don't|please)\b"
    r"|(?:and|so)\s+(?:was|am) wondering\b)"
    r"|,\s+(?=(?:so|while|since|unless|which|when)\b"
    r"|(?:can|could|do|would) you\b|(?:what|where|how|who)\b|any (?:advice|tips|ideas)\b"
    r"|(?:I|we|he|she|they|my|our|it's|please|never|don't|do not)\b))"
)
_AUXILIARY = (
    r"(?:do|does|did|is|are|was|were|am|have|has|had|can|could|will|would|should|shall|may|might"
    r"|isn't|aren't|don't|doesn't|didn't|haven't|hasn't|can't|couldn't|won't|wouldn't|shouldn't"
    r"|wasn't|weren't|'s|'re|'d|'ve)"
)
_SUBJECT = (
    r"(?:I|you|he|she|it|we|they|this|that|these|those|there|the|your|my|our|his|her|their|its"
    r"|any|anything|anyone|someone|everything|ya|u)"
)
_LEAD = r"(?:(?:hey|hi|so|and|but|or|ok|okay|well|oh|hmm|also|btw|by the way|please)\b[\s,]*)*"
_ASKS_FORM = guarded(
    rf"^{_LEAD}(?:(?:what|where|when|why|how|who|which|whose)\b(?:\s+\w+){{0,3}}?\s*{_AUXILIARY}\s+"
    rf"{_SUBJECT}\b|{_AUXILIARY}\s+{_SUBJECT}\s+\w+"
    r"|(?:how|what) about\b|(?:who|what|which|whose)(?:'s| is| are| was)\s+\w+"
    # "where does tom live", "whats the wifi password"
    r"|(?:who|where|when|why|how(?: (?:old|much|many|long|far|often|big|tall|late))?)\s+"
    rf"{_AUXILIARY}\s+\w+|(?:what|where|who|when|how)s\s+{_SUBJECT}\b)",
    re.IGNORECASE,
)
# "When I was young", "What a day", "how I love it", "had we known" ask nothing.
_NO_QUESTION = re.compile(
    r"^(?:what an?\b|which (?:is|was|are) (?:why|how|what|when|where)\b|(?:had|were|should"
    r"|may)\s+(?:I|you|we|he|she|they|the)\b|that's\b|don't you)",
    re.IGNORECASE,
)
_TAG = re.compile(
    r"(?:(?:,\s*|\s|^)(?:right|huh|eh|ok|okay|alright|you know|yeah|ya know|y'know)"
    r"|,\s*(?:no|yes|really)|,\s*(?:is|are|do|does|did|was|were|has|have|can|could|will"
    r"|would)(?:n't|\s+not)?\s+"
    r"(?:it|you|they|we|he|she|I|that))\s*[!?]*\?[!?\"')\]]*$",
    re.IGNORECASE,
)
_RHETORICAL = re.compile(
    r"^(?:[\w ,']{0,30}\b)?(?:can you believe (?:it|that)|guess what|you know what|know what"
    r"|who (?:knows|knew|cares)|why not|really|seriously|right|what)\s*[!?]*\?[!?]*$",
    re.IGNORECASE,
)
_REQUEST = guarded(
    r"^(?:(?:please|so|and|ok|okay|hey|also|well)[\s,]+)*(?:can you\s+|could you\s+)?"
    r"(?:please\s+)?(?:tell me|let me know (?:what|which|where|when|who|whether"
    "|if you (?:have (?!any (?:other |more )?questions)|know))"
    "|give me|show me|explain|remind me|list|describe|suggest|recommend|help me (?:find"
    r"|understand))\b"
    r"(?!\s+(?:about it later))"
    r"|\b(?:I'd love to|I would love to|I want to|I'd like to|wanna) (?:hear|know) more about\b"
    r"|\bI (?:want|need|would like|'d like) you to\b|\bI(?:'m| am) looking for (?:some "
    r"|any |a few )?(?:tips|advice|suggestions|recommendations|ideas)\b"
    r"|\bI(?:'m| am| was) wondering (?:if|what|how|whether)\b",
    re.IGNORECASE,
)
_CONJUNCTION = re.compile(r"^[\s,]*(?:and|but|so|or)\s+")
_UNREAL = guarded(
    r"\b(?:if|unless|wish|imagine|suppose|supposing|pretend|whether|would|wouldn't|could|might"
    r"|should|hope to|maybe|perhaps|what if|as if|as though"
    r"|(?:not|isn't) true that|(?:it|that)(?:'s| is)(?: not|n't) (?:like|as if|as though|that))\b"
    r"|^\W*not that (?:I|we|he|she|they|it|my)\b"
    r"|\b\w+'d (?!better|rather)",
    re.IGNORECASE,
)
# What follows such an opening is so only there.
_CONDITIONAL = guarded(
    r"^\W*(?:if|unless|suppose|imagine|(?:in|for) (?:this|that|the|my|our|a) (?:[\w-]+ )?"
    r"(?:story|tale|movie|film|novel|dreams?|scenario|simulation|role-?play|hypothetical"
    r"|example))\b",
    re.IGNORECASE,
)
_REPORTED = guarded(
    r"\b(?:(?:he|she|they|who|people|someone|everyone|[A-Z][a-z]+|\w+'s? (?:mom|dad|boss|friend)"
    r"|(?:[Mm]y|[Tt]he|[Oo]ur|[Hh]is|[Hh]er) \w+)\s+(?:\w+ly\s+)?"
    r"(?:said|says|say|thinks?|thought|claims?|claimed"
    r"|told (?:me|us|him|her|them|\w+)|tells (?:me|us)|insists?|asked|believes?|heard|wrote)"
    r"|according to|I(?:'ve)? heard|apparently|rumou?r)\b"
)


def _is_question(text: str) -> bool:
    stripped = text.strip()
    if _REQUEST.search(stripped):
        return True
    if stripped.rstrip("\"')]").rstrip("!").endswith("?"):
        if _RHETORICAL.match(stripped):
            return False
        tag = _TAG.search(stripped)
        return not (tag and len(stripped[: tag.start()].split()) >= 1)
    return bool(_ASKS_FORM.match(stripped)) and not _NO_QUESTION.match(stripped)


def _spans(text: str, pattern: re.Pattern[str] | GuardedPattern) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    start = 0
    for match in pattern.finditer(text):
        if pattern is _BOUNDARY:
            stop = match.start() + 1
            tail = text[max(start, stop - _ABBREVIATED) : stop]
            if match.group()[0] == "." and _ABBREVIATION.search(tail):
                continue
            spans.append((start, match.end()))
        elif match.start() > start:
            spans.append((start, match.start()))
        start = match.end()
    spans.append((start, len(text)))
    return [(first, last) for first, last in spans if text[first:last].strip()]


def _clauses(text: str, offset: int, asks: bool) -> tuple[Clause, ...]:
    found: list[Clause] = []
    conditional = False
    spans = _spans(text, _BREAK)
    question_from = 0
    if asks:
        # In "I live in Rome, but where do you live?" only the last part asks.
        parts = [_CONJUNCTION.sub("", text[start:end]) for start, end in spans]
        forms = [bool(_ASKS_FORM.match(part) or _REQUEST.search(part)) for part in parts]
        question_from = forms.index(True) if True in forms else 0
    said = quoted = False
    for index, (start, end) in enumerate(spans):
        part = text[start:end]
        # "Rita said: I live in Rome" goes on in Rita's words.
        quoted = quoted or (said and ":" in text[spans[index - 1][1] : start])
        said = bool(_REPORTED.search(part))
        conditional = conditional or bool(_CONDITIONAL.match(part))
        unreal = conditional or said or quoted or bool(_UNREAL.search(part))
        found.append(
            Clause(offset + start, offset + end, part, asks and index >= question_from, unreal)
        )
    return tuple(found)


# Past this it is a dump, not a sentence, and the rules would take time by its square.
_LONGEST_SENTENCE = 2_000


def sentences(text: str) -> tuple[Sentence, ...]:
    """Cut a (masked) matching text into sentences and clauses.

    Being a question is judged for each sentence. Fillers and tags (", right?",
    "you know?") and set exclamations ("Can you believe it?") do not ask.
    """
    result: list[Sentence] = []
    for start, end in _spans(text, _BOUNDARY):
        body = text[start:end]
        if len(body) > _LONGEST_SENTENCE:
            continue
        lead = len(body) - len(body.lstrip())
        start, body = start + lead, body.strip()
        asks = _is_question(body)
        clauses = _clauses(body, start, asks)
        result.append(Sentence(start, start + len(body), body, asks, clauses))
    return tuple(result)
