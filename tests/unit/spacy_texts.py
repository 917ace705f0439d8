"""Texts, and words for texts, on which ours is held against spaCy's own pipeline."""

from __future__ import annotations

from collections.abc import Sequence

from spacy.language import Language
from spacy.tokens import Doc

TEXTS = [
    "",
    " ",
    "  Two  spaces\tand a line\nbreak. ",
    "There is a dog, there's a cat, and there were birds.",
    "It ain't so, I'm gonna go, you've got ta see it, let's leave, c'm on y'all, y all!",
    "Let us all go on: nothin' doin', nuthin', somethin' else. 'Cause why?",
    "I saw her saw; she'd have had 12 mice, geese and better leaves. But that's that.",
    "CAROLINE moved from Göteborg to İstanbul; she LOVES it. 🙂👍🏽 東京 :-)",
    "Don't deploy on Fridays! That which was, is. The more, the merrier.",
    '{"level": "ERROR", "n": 3}',
]
NAMED = (
    "there is are was were 's 're let 'll ai n't n't t gon na got ta c'm on y y' all but a the "
    "that it's nothin' nuthin' Ana sees saw left better mice 12 , . ? ! 🙂 don't Let's There's "
    "ain't gonna y'all"
)
WORDS = [*NAMED.split(), "  ", "\n"]
ATTRIBUTES = ["HEAD", "DEP", "SENT_START", "ENT_IOB", "ENT_TYPE", "ENT_ID", "ENT_KB_ID", "TAG"]


def seen(doc: Doc) -> tuple[object, ...]:
    """All that is read off a parse; morphology and lemma as text, as their numbers may differ."""
    words = [(t.text, t.pos_, str(t.morph), t.lemma_) for t in doc]
    around = [(t.left_edge.i, t.right_edge.i, t.n_lefts, t.n_rights) for t in doc]
    return doc.tensor.tobytes(), doc.to_array(ATTRIBUTES).tolist(), words, around


def assert_the_same(
    ours: Language, stock: Language, texts: Sequence[str], batch_size: int = 256
) -> None:
    read = ours.pipe(texts, batch_size=batch_size)
    for own, theirs in zip(read, stock.pipe(texts), strict=True):
        assert seen(own) == seen(theirs), own.text
