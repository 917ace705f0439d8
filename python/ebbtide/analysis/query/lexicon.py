"""Word lists of the question rules."""

from __future__ import annotations

__all__ = [
    "AUXILIARIES",
    "DROPPED_LABELS",
    "FILLERS",
    "INNER",
    "LIGHT",
    "NEVER_NAMES",
    "NOT_IN_NOUN",
    "PERSON_NOUNS",
    "PLACE_NOUNS",
    "QUANTITY_ADJECTIVES",
    "QUANTITY_NOUNS",
    "REASON_VERBS",
    "STATIVE",
    "TIME_NOUNS",
    "WH_WORDS",
]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


WH_WORDS = _words("who whom whose what which when where why how")
AUXILIARIES = _words(
    "do does did is are was were am has have had can could will would shall should may might "
    "must ai"
)
PLACE_NOUNS = _words(
    "city country state town village place area region location venue spot neighborhood "
    "neighbourhood restaurant store shop university college school hospital street address "
    "continent island park museum hotel cafe bar gym beach airport station office building "
    "room destination hometown"
)
TIME_NOUNS = _words("time day date month year week weekend season hour weekday decade")
QUANTITY_NOUNS = _words(
    "percentage percent number amount price cost age total distance weight height size length "
    "duration score salary budget temperature speed ratio rate fee average count sum"
)
QUANTITY_ADJECTIVES = _words(
    "many much long old often far tall big large heavy fast high deep wide frequently few "
    "expensive late early soon"
)
REASON_VERBS = _words(
    "make inspire prompt motivate cause lead spark drive influence trigger convince encourage "
    "persuade"
)
FILLERS = _words("and so ok okay well hey hi hello but also um oh then please now")
PERSON_NOUNS = _words("person friend colleague speaker artist author relative")
DROPPED_LABELS = _words("DATE TIME ORDINAL CARDINAL QUANTITY PERCENT MONEY")
INNER = _words("of the de la & - van von del in for")
NEVER_NAMES = (
    AUXILIARIES
    | WH_WORDS
    | _words(
        "i i'm i've i'd ok okay yes no hi hey hello please thanks the a an mondays tuesdays "
        "wednesdays thursdays fridays saturdays sundays my your our his her their its this that "
        "these those if in on at for from to of and or but so can't don't didn't monday tuesday "
        "wednesday thursday friday saturday sunday january february march april may june july "
        "august september october november december spring summer autumn fall winter mr mrs ms dr "
        "according based around tell list name remind after before during since with besides both "
        "between answer give show any some"
    )
)
STATIVE = _words(
    "be live work use have own like love prefer enjoy want study drive belong wear take play "
    "drink eat date reside need attend know go speak run support stay keep employ teach "
    "collect"
)
LIGHT = _words("remind tell know remember recall wonder be do have share recommend")
NOT_IN_NOUN = _words(
    "is was are were of to in from for with by on at and or besides that when as about do does did "
    "has have she he they i you among"
)
