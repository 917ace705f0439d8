"""Texts, and words for texts, that spaCy's components are held against."""

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
