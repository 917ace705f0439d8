"""The QueryFrame: everything that recall knows about a question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ebbtide.analysis.facts import Entity
from ebbtide.analysis.patterns import guarded
from ebbtide.analysis.query.entities import QUOTED, aliases_of, find_entities, find_speakers
from ebbtide.analysis.query.parts import split_parts
from ebbtide.analysis.query.predicate import predicate_focus, subject_focus
from ebbtide.analysis.query.question import Question, answer_type, core_question
from ebbtide.analysis.query.time_focus import currentness, time_focus
from ebbtide.analysis.temporal import resolve_times
from ebbtide.analysis.terms import terms as content_terms

if TYPE_CHECKING:
    from spacy.tokens import Doc

__all__ = ["QueryFrame", "build_frame"]

_I = re.IGNORECASE
_YOU_SAID = guarded(
    r"\b(?:did|have|had|what|that|which)?\s*\byou\s+(?:(?:had|have|just|also|previously|once|"
    r"originally|initially|first)\s+)*(?:recommend(?:ed)?|suggest(?:ed)?|said|told|mentioned|advised?|"
    r"gave|wrote|explained|provided|listed|described|proposed|generated|created|shared|quoted|"
    r"answered)\b",
    _I,
)
_DID_YOU = guarded(
    r"\bdid\s+you\s+(?:\w+\s+)?(?:recommend|suggest|say|tell|mention|advise|give|write|explain|provide|"
    r"list|describe|propose|answer|come up with|call)\b",
    _I,
)
_YOUR = guarded(
    r"\byour\s+(?:\w+\s+)?(?:recommendations?|suggestions?|advice|answers?|repl(?:y|ies)|responses?)\b",
    _I,
)
_I_SAID = guarded(
    r"\b(?:did|have)\s+i\s+(?:\w+\s+)?(?:say|said|tell|told|mention(?:ed)?|ask(?:ed)?|describe|share)\b|"
    r"\bi\s+(?:said|told\s+you|mentioned|asked)\b",
    _I,
)
_TOOL = guarded(
    r"\b(?:tool|command|function|script|terminal|console|build|test|api)\s+(?:output|results?|calls?|logs?|"
    r"responses?)\b|\bthe\s+logs?\b|\blog\s+(?:file|output|line|message)s?\b|\bstack\s*trace\b",
    _I,
)
_SYSTEM = guarded(r"\bsystem\s+(?:prompt|message|instructions?)\b|\byour\s+instructions\b", _I)
_NOT_FIRST = guarded(
    r"\b(?:remind|tell|give|show|help)\s+me\b|\blet\s+me\b|\bi\s+(?:was\s+wondering|wonder|remember|"
    r"forgot|want\s+to\s+know)\b",
    _I,
)
_FIRST_PERSON = guarded(r"\b(?:i|me|my|mine|myself|we|us|our|ours)\b(?![.\w])", _I)
_NEGATIVE = guarded(r"\b(?:never|not|cannot|nothing|nobody|none|no longer)\b|\w+n['’]t\b", _I)
_RHETORICAL = re.compile(r"^\W*\w+n['’]t\b", _I)


@dataclass(frozen=True, slots=True)
class QueryFrame:
    """A question, read once (DMF paper, section 9.3, step 1).

    Attributes:
        text: The question as given.
        entities: Named things: model entities, quoted spans, capitalised runs.
        aliases: For each entity, its lower-case forms, itself first.
        speakers: Known speakers named, lower case.
        subject_focus: The phrase the question is about, or None.
        predicate_canonical: Predicate under its card name, or None.
        predicate_lemmas: Its lemmas with light synonyms.
        answer_type: ``person``, ``place``, ``time``, ``quantity``, ``reason``,
            ``list``, ``boolean``, ``fact`` or ``unknown``.
        temporal_intent: ``none``, ``point``, ``range``, ``before``, ``after``,
            ``order`` or ``duration``.
        first: First day the question names, ``YYYY-MM-DD``, or None.
        last: Last day, inclusive, or None.
        counts_back: Whether those days are counted from when it is asked ("a week ago").
        anchor_event: Words of an event used as a date ("the move").
        currentness: ``current``, ``historical``, ``mixed`` or ``unspecified``.
        wants_first: Whether it asks for the first or original state.
        polarity: ``positive`` or ``negative``.
        terms: Distinct content lemmas in order.
        name_free_terms: The same without the speakers' names.
        parts: Sub-questions of a multi-part question, else empty.
        role_hint: Whose turns it asks for: ``assistant``, ``user``, ``tool``,
            ``system``, or None.
        is_first_person: Whether it speaks of I, me, my or we.
        is_present: Whether it asks about the present: nothing in it is past.
        is_single: Whether it asks for one value: a place, a person, a number, "which room".
    """

    text: str
    entities: tuple[Entity, ...] = ()
    aliases: tuple[tuple[str, ...], ...] = ()
    speakers: tuple[str, ...] = ()
    subject_focus: str | None = None
    predicate_canonical: str | None = None
    predicate_lemmas: tuple[str, ...] = ()
    answer_type: str = "unknown"
    temporal_intent: str = "none"
    first: str | None = None
    last: str | None = None
    counts_back: bool = False
    anchor_event: str | None = None
    currentness: str = "unspecified"
    wants_first: bool = False
    polarity: str = "positive"
    terms: tuple[str, ...] = ()
    name_free_terms: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    role_hint: str | None = None
    is_first_person: bool = False
    is_present: bool = False
    is_single: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the core: strings, booleans, lists, None."""
        # Not ``asdict``: it copies every value deeply, in five times the time.
        values = ((name, getattr(self, name)) for name in _FIELDS)
        return {n: [*map(_plain, v)] if isinstance(v, tuple) else v for n, v in values}


_FIELDS = tuple(field.name for field in fields(QueryFrame))
_ENTITY_FIELDS = tuple(field.name for field in fields(Entity))


def _plain(value: object) -> object:
    """One of several values."""
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, Entity):
        return {name: getattr(value, name) for name in _ENTITY_FIELDS}
    return value


def build_frame(
    doc: Doc, *, query_time: datetime | None, known_speakers: Sequence[str] = ()
) -> QueryFrame:
    """Read a question.

    Args:
        doc: Its spaCy parse (tagger, parser, lemmatizer and entities).
        query_time: When it is asked; anchors its relative dates. None resolves
            only dates that name their year.
        known_speakers: Names of the people in the memory.

    Returns:
        The frame; for a text that asks nothing, ``answer_type`` is ``unknown``.
    """
    text = doc.text
    if not text.strip():
        return QueryFrame(text=text)
    question = core_question(doc)
    times = resolve_times(text, query_time)
    speakers, name_words = find_speakers(doc, known_speakers)
    entities = find_entities(doc, times, known_speakers)
    kind = answer_type(question)
    focus = time_focus(question, times, kind)
    today = query_time.date().isoformat() if query_time is not None else None
    state, wants_first = currentness(question, kind, focus, times, today)
    canonical, lemmas = predicate_focus(question)
    words = tuple(dict.fromkeys(content_terms(doc)))
    return QueryFrame(
        text=text,
        entities=entities,
        aliases=tuple(aliases_of(entity, speakers) for entity in entities),
        speakers=speakers,
        subject_focus=subject_focus(question),
        predicate_canonical=canonical,
        predicate_lemmas=lemmas,
        answer_type=kind,
        temporal_intent=focus.intent,
        first=focus.first,
        last=focus.last,
        counts_back=focus.counts_back,
        anchor_event=focus.anchor_event,
        currentness=state,
        wants_first=wants_first,
        polarity=_polarity(question),
        terms=words,
        name_free_terms=tuple(word for word in words if word not in name_words),
        parts=split_parts(question, _asking(doc), [entity.text for entity in entities]),
        role_hint=_role_hint(text),
        is_first_person=_first_person(question, text),
        is_single=kind in _SINGLE or _one_thing(question),
        is_present=state == "current" or (state == "unspecified" and _present(question)),
    )


def _first_person(question: Question, text: str) -> bool:
    """Whether the question is about its asker; without a question word, the whole text."""
    asked = question.text if question.wh is not None else text
    return bool(_FIRST_PERSON.search(_NOT_FIRST.sub(" ", asked)))


_PAST_WORDS = frozenset({"did", "has", "have", "had", "was", "were"})
_SUPPOSING_WORDS = frozenset({"would", "could", "might", "may", "will", "shall", "wo", "'ll", "'d"})


_SINGLE = frozenset({"person", "place", "time", "quantity", "boolean"})


def _one_thing(question: Question) -> bool:
    """Whether the thing asked for is singular: "which room", "what is the title"."""
    wh = question.wh
    if wh is None or wh.lower_ not in {"what", "which"}:
        return False
    asked = wh.head if wh.dep_ == "det" else None
    if asked is None and wh.head.lemma_ == "be":
        subjects = [t for t in wh.head.children if t.dep_ in {"nsubj", "attr"} and t.i != wh.i]
        asked = subjects[0] if subjects else None
    return asked is not None and asked.tag_ in {"NN", "NNP"} and asked.lemma_ not in _KINDS


_KINDS = frozenset({"kind", "type", "sort", "plan", "opinion", "idea", "advice"})


def _present(question: Question) -> bool:
    """Nothing past, perfect, future or supposed: "Where does she work?"."""
    return not any(
        token.tag_ in {"VBD", "VBN"} or token.lower_ in _PAST_WORDS | _SUPPOSING_WORDS
        for token in question.span
        if not (token.lower_ == "have" and token.dep_ in {"ROOT", "xcomp"})
    )


def _asking(doc: Doc) -> list[str]:
    return [
        text
        for text, sentence in ((sentence.text, sentence) for sentence in doc.sents)
        if text.rstrip().endswith("?") and sum(t.is_alpha for t in sentence) > 2
    ]


def _polarity(question: Question) -> str:
    """Negative when the clause denies; "Didn't Ana move?" expects a yes."""
    text = _RHETORICAL.sub(" ", QUOTED.sub(" ", question.text))
    return "negative" if _NEGATIVE.search(text) else "positive"


def _role_hint(text: str) -> str | None:
    if _SYSTEM.search(text):
        return "system"
    if _TOOL.search(text):
        return "tool"
    if _DID_YOU.search(text) or _has_past_you(text) or _YOUR.search(text):
        return "assistant"
    return "user" if _I_SAID.search(text) else None


def _has_past_you(text: str) -> bool:
    """Whether it says "you suggested" and not, as a request, "can you suggest"."""
    for match in _YOU_SAID.finditer(text):
        before = text[max(0, match.start() - 10) : match.start()].lower()
        if not re.search(r"\b(?:can|could|would|will|do|should|if)\s*$", before):
            return True
    return False
