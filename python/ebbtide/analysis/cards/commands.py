"""Orders that hold from now on: "Never deploy on Fridays", "Always use tabs"."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ebbtide.analysis.cards.clauses import lemma_of
from ebbtide.analysis.cards.drafts import SPEAKER, Draft
from ebbtide.analysis.cards.lexicon import IDIOM_CANNOT, words
from ebbtide.analysis.cards.objects import phrase_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spacy.tokens import Span, Token

__all__ = ["command_of"]

_COURTESY = words(
    "worry hesitate mind sweat bother stress panic miss forget fret hold stop quit lose "
    "mention underestimate be keep"
)
"""``do not forget to configure it`` forbids nothing; ``don't give up`` is comfort."""


def command_of(sentence: Span) -> Iterator[tuple[Draft, Token, tuple[Token, ...]]]:
    """Yield the standing order of a sentence, where it is one.

    Args:
        sentence: One sentence.

    Yields:
        ``allow`` with ``negated`` for a ban, ``require`` for "always"; nothing
        for a request of the moment ("Check this out", "Take care").
    """
    verb = sentence.root
    lemma = lemma_of(verb)
    if verb.tag_ not in {"VB", "VBP"} or lemma in _COURTESY | IDIOM_CANNOT:
        return
    children = list(verb.children)
    if any(c.dep_ in {"nsubj", "nsubjpass", "expl", "prt"} for c in children):
        return
    before = {token.lower_ for token in sentence if token.i < verb.i}
    never = "never" in before
    banned = never or (any(c.dep_ == "neg" for c in children) and bool(before & {"do", "don't"}))
    always = "always" in before
    if banned == always or before & {"just", "so", "and", "but", "to"}:
        return
    text = phrase_of([verb], timed=True)
    if text is None or len(text.split()) < 2:
        return
    parts = text.split()
    while parts and parts[0].lower() in {
        "never",
        "always",
        "do",
        "don't",
        "don’t",
        "not",
        "please",
    }:
        parts.pop(0)
    text = " ".join(parts)
    if len(parts) < 2:
        return
    predicate = "allow" if banned else "require"
    yield Draft("constraint", SPEAKER, predicate, text, banned, "none"), verb, ()
