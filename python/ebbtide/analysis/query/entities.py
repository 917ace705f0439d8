"""Named things of a question: model entities, quoted spans, capitalised runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ebbtide.analysis.facts import Entity, TimeExpression
from ebbtide.analysis.query.lexicon import DROPPED_LABELS, INNER, NEVER_NAMES

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

__all__ = ["QUOTED", "aliases_of", "find_entities", "find_speakers"]

QUOTED = re.compile(
    r"\"([^\"\n]{2,120})\"|“([^”\n]{2,120})”|(?<![\w'])'([A-Za-z0-9][^'\n]{1,118}[^\s'])'(?!\w)"
)
_SAME = (
    ("us", "usa", "u.s.", "united states", "america"),
    ("uk", "u.k.", "united kingdom", "britain"),
    ("nyc", "new york city", "new york"),
    ("la", "los angeles"),
    ("sf", "san francisco"),
    ("eu", "european union"),
)


def find_entities(
    doc: Doc, times: Sequence[TimeExpression], speakers: Sequence[str] = ()
) -> tuple[Entity, ...]:
    """Named entities of a question in text order, spans disjoint.

    Quoted spans come first, then the model's entities, then runs of capitalised
    words that are more than a sentence's first word. Auxiliaries, question words,
    months and weekdays are never entities; a possessive ``'s`` is cut off.

    Args:
        doc: The parse.
        times: Its time expressions: nothing inside them is an entity.
        speakers: Known names, trusted even as a sentence's first word.
    """
    found: list[Entity] = []
    text = doc.text
    for match in QUOTED.finditer(text):
        group = next(index for index in (1, 2, 3) if match.group(index))
        _add(found, text, match.start(group), match.end(group), "QUOTED", times)
    for entity in doc.ents:
        if entity.label_ in DROPPED_LABELS:
            continue
        tokens = list(entity)
        while tokens and _is_never(tokens[0]):
            tokens.pop(0)
        # A lower-case "entity" of the model is a guess; names have capitals.
        if tokens and any(token.text[0].isupper() or token.text[0].isdigit() for token in tokens):
            end = tokens[-1].idx + len(tokens[-1])
            _add(found, text, tokens[0].idx, end, entity.label_, times)
    for tokens in _runs(doc, {name.lower() for name in speakers}):
        end = tokens[-1].idx + len(tokens[-1])
        _add(found, text, tokens[0].idx, end, "PROPER", times)
    names = {part for name in speakers for part in (name.lower(), name.lower().split(" ")[0])}
    labelled = [replace(e, label="PERSON") if e.text.lower() in names else e for e in found]
    return tuple(sorted(labelled, key=lambda entity: (entity.start, entity.end)))


def _add(
    found: list[Entity],
    text: str,
    start: int,
    end: int,
    label: str,
    times: Sequence[TimeExpression],
) -> None:
    stripped = re.sub(r"(?:['’]s|['’])$", "", text[start:end].rstrip(" .,;:?!"))
    end = start + len(stripped)
    if not stripped or not any(character.isalnum() for character in stripped):
        return
    if any(start < time.end and time.start < end for time in times) and label != "QUOTED":
        return
    if any(start < other.end and other.start < end for other in found):
        _extend(found, start, end, stripped)
        return
    found.append(Entity(stripped, label, start, end))


def _extend(found: list[Entity], start: int, end: int, text: str) -> None:
    """A capitalised run that holds a model entity as a part replaces it."""
    inside = [other for other in found if other.start >= start and other.end <= end]
    touching = [other for other in found if start < other.end and other.start < end]
    if len(inside) != 1 or touching != inside or inside[0].label == "QUOTED":
        return
    if inside[0].label == "PERSON" and len(text) - len(inside[0].text) > 20:
        return
    found[found.index(inside[0])] = Entity(text, inside[0].label, start, end)


def _is_never(token: Token) -> bool:
    return token.lower_ in NEVER_NAMES or token.is_punct


def _runs(doc: Doc, speakers: set[str]) -> list[list[Token]]:
    """Maximal runs of capitalised words, small words allowed inside."""
    runs: list[list[Token]] = []
    current: list[Token] = []
    for token in doc:
        capital = token.text[:1].isupper() or (bool(current) and token.like_num)
        if (capital and not (_is_never(token) and not current) and not token.is_punct) or (
            current and token.lower_ in INNER and _continues(token)
        ):
            current.append(token)
        elif current:
            runs.append(current)
            current = []
    runs.append(current)
    return [run for run in (_trim(run, speakers) for run in runs) if run]


def _continues(token: Token) -> bool:
    following = token.doc[token.i + 1 : token.i + 3]
    return any(t.text[:1].isupper() for t in following) and all(
        t.text[:1].isupper() or t.lower_ in INNER for t in following[:1]
    )


def _trim(run: list[Token], speakers: set[str]) -> list[Token]:
    while run and run[-1].lower_ in INNER:
        run = run[:-1]
    while (
        run
        and run[0].is_sent_start
        and run[0].lower_ not in speakers
        and (run[0].pos_ != "PROPN" or len(run) == 1)
    ):
        run = run[1:]
    while run and _is_never(run[0]):
        run = run[1:]
    return run if any(token.is_alpha or token.text[0].isalpha() for token in run) else []


def find_speakers(doc: Doc, known: Sequence[str]) -> tuple[tuple[str, ...], frozenset[str]]:
    """Known speakers that a question names, and the words that name them.

    A full name, one of its parts, or a capitalised short form of at least three
    letters ("Mel" for Melanie) counts, when only one known speaker fits it. A word
    that is a function word besides ("will", "may", "the") counts where it is a proper
    noun, or capitalised within a sentence.

    Returns:
        The speakers in lower case in the order of ``known``, without doubles;
        and the lower-case words of the question that name them.
    """
    naming = (token for token in doc if not token.is_stop or _is_proper(token))
    words = {token.lower_.removesuffix("'s").removesuffix("’s") for token in naming}
    short = {t.lower_ for t in doc if t.text[:1].isupper() and t.pos_ == "PROPN" and len(t) >= 3}
    mentioned: list[str] = []
    used: set[str] = set()
    parts = {name: name.lower().split() for name in known}
    for name in dict.fromkeys(known):
        own = parts[name]
        hits = {part for part in own if part in words and len(part) > 1}
        if not hits and own:
            hits = {
                word
                for word in short
                if own[0].startswith(word)
                and sum(other.lower().startswith(word) for other in dict.fromkeys(known)) == 1
            }
        if hits and name.lower() not in mentioned:
            mentioned.append(name.lower())
            used |= hits | set(own)
    return tuple(mentioned), frozenset(used)


def _is_proper(token: Token) -> bool:
    return token.pos_ == "PROPN" or (token.text[:1].isupper() and not token.is_sent_start)


def aliases_of(entity: Entity, speakers: Sequence[str]) -> tuple[str, ...]:
    """Lower-case forms under which an entity may appear, itself first.

    First and last name of a person, the acronym of three capitalised words or
    more, a few country and city short forms, the full name of a speaker.
    """
    base = entity.text.lower()
    forms = [base]
    words = [word for word in re.split(r"[\s-]+", entity.text) if word]
    if len(words) > 1 and entity.label in {"PERSON", "PROPER"} and len(words) <= 3:
        forms += [words[0].lower(), words[-1].lower()] if entity.label == "PERSON" else []
    capitals = [word[0] for word in words if word[0].isupper()]
    if len(capitals) >= 3 and entity.label not in {"PERSON", "QUOTED"}:
        forms.append("".join(capitals).lower())
    for group in _SAME:
        if base.removeprefix("the ") in group:
            forms.extend(group)
    for speaker in speakers:
        names = speaker.split()
        if names and (names[0].startswith(base) or base in names):
            forms.extend([speaker, names[0]])
    return tuple(dict.fromkeys(form for form in forms if form))
