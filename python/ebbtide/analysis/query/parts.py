"""Sub-questions: the parts of a question that one turn may not answer together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from ebbtide.analysis.query.lexicon import WH_WORDS
from ebbtide.analysis.query.question import Question

__all__ = ["split_parts"]

_HEADS = "|".join(sorted(WH_WORDS)) + "|did|does"
_CLAUSES = re.compile(rf",?\s+(?:and|or)\s+(?:also\s+)?(?=(?:{_HEADS})\b)", re.IGNORECASE)
_BETWEEN = re.compile(r"\bbetween\s+(?P<one>.{3,}?)\s+and\s+(?P<two>.{3,}?)[?.!]*$", re.IGNORECASE)
_CHOICE = re.compile(
    r"^(?:which|what|who)\b.*?,\s*(?P<one>[^,?]{3,}?),?\s+or\s+(?P<two>[^?]{3,}?)[?.!]*$",
    re.IGNORECASE,
)


def split_parts(
    question: Question, sentences: Sequence[str], names: Sequence[str]
) -> tuple[str, ...]:
    """The parts of a multi-part question, empty for a single one.

    Args:
        question: The core question.
        sentences: All sentences of the text that end with a question mark.
        names: Entity texts, in text order; "Jon and Gina" become two parts.

    Example:
        "When did Ana move and why did she leave?" gives "When did Ana move" and
        "why did she leave"; "What do Jon and Gina both like?" gives one question
        for each.
    """
    text = question.text.strip()
    if len(sentences) > 1:
        return tuple(sentence.strip() for sentence in sentences)
    clauses = [part.strip(" ,?") for part in _CLAUSES.split(text)]
    clauses = [part for part in clauses if len(part.split()) > 1]
    if len(clauses) > 1:
        return tuple(clauses)
    for pattern in (_CHOICE, _BETWEEN):
        match = pattern.search(text)
        if match is not None and not _is_names(match.group("one"), match.group("two"), names):
            return match.group("one").strip(), match.group("two").strip()
    return _by_names(text, names)


def _is_names(one: str, two: str, names: Sequence[str]) -> bool:
    """Leave "between Jon and Gina" to the pairs of names; dates are no parts."""
    digits = any(character.isdigit() for character in one) and len(one.split()) < 4
    return digits or (one in names and any(two.startswith(name) for name in names))


def _by_names(text: str, names: Sequence[str]) -> tuple[str, ...]:
    for one, two in pairwise(names):
        pair = re.search(
            rf"\b(?:both\s+)?{re.escape(one)}(?:['’]s)?\s+(?:and|or)\s+{re.escape(two)}(?:['’]s)?(?!\w)",
            text,
        )
        if pair is not None:
            head, tail = text[: pair.start()], re.sub(r"^\s+both\b", "", text[pair.end() :])
            owner = "'s" if re.search(r"['’]s$", pair.group()) else ""
            return f"{head}{one}{owner}{tail}", f"{head}{two}{owner}{tail}"
    return ()
