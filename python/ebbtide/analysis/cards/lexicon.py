"""Word lists of the card rules. Each list says what it keeps out or lets in."""

from __future__ import annotations

__all__ = [
    "ADJECTIVE_PREDICATES",
    "EMPTY_ATTRIBUTES",
    "EMPTY_OBJECTS",
    "GOAL_NOUNS",
    "HABIT_VERBS",
    "HYPOTHETICAL_WORDS",
    "IDIOM_CANNOT",
    "INTERJECTIONS",
    "NOT_EVENTS",
    "PASSIVE_EVENTS",
    "PREFERENCE_VERBS",
    "RELATION_NOUNS",
    "SAYING_VERBS",
    "STATUS_ADJECTIVES",
    "UNREAL_MODALS",
    "WRAPPER_VERBS",
    "words",
]


def words(text: str) -> frozenset[str]:
    """Split a word list."""
    return frozenset(text.split())


PREFERENCE_VERBS = words("love like enjoy prefer hate dislike adore loathe detest favor favour")

HYPOTHETICAL_WORDS = words(
    "if unless whether wish imagine suppose supposing pretend hypothetically maybe perhaps "
    "probably guess assume almost nearly hardly barely rarely seldom"
)
"""One of these in a sentence and none of its clauses is taken as stated."""

UNREAL_MODALS = words("would 'd ’d could might may should ought shall wo")
"""``wo`` is the tokeniser's half of "won't": a refusal or a guess, not a state."""

SAYING_VERBS = words(
    "say tell ask reply answer claim mention announce report explain write shout whisper "
    "suggest advise think believe reckon wonder"
)

INTERJECTIONS = words(
    "hey hi hello wow yay yeah yep yup nope oh ah aw aww awww thanks thx thank congrats "
    "congratulations lol haha hmm ok okay sure awesome cool great nice cheers bye woah whoa "
    "woo woohoo omg ugh god gosh absolutely definitely totally dude bro man sounds glad "
    "gotcha no yes good well please sorry exactly amazing love loving wishing"
)
"""Words that the tagger often takes for proper nouns at the start of a sentence."""

WRAPPER_VERBS = {
    "get": "to",
    "manage": "to",
    "go": "ahead",
    "happen": "to",
    "come": "to",
}
"""``managed to finish`` states the inner verb; the wrapper adds no fact of its own."""

NOT_EVENTS = words(
    "be do think know feel seem look sound hear want need hope guess mean say tell ask thank "
    "wonder believe understand agree remember forget appreciate wish let happen realize "
    "realise inspire notice consider love like enjoy prefer hate dislike adore mind matter "
    "care bet figure reckon suppose hold keep stay remain put imagine expect doubt trust "
    "deserve depend relate belong appear welcome remind strike hit blow mention hop check "
    "help push motivate encourage catch sit wait worry touch mess face deal grow pour fill "
    "can will pay freak turn end wind stick stumble cross pull rock kill crush nail miss "
    "experience use call 've scar scare"
)
"""Verbs whose past tense is talk, feeling, perception or idiom more often than an event."""

HABIT_VERBS = words(
    "live work study teach own use run volunteer play practice practise attend coach manage "
    "drive collect write paint cook bake speak train serve belong wear follow"
)
"""Verbs whose simple present states a lasting state or habit."""

RELATION_NOUNS = words(
    "mother mom mum mama father dad papa parent sister brother sibling son daughter child kid "
    "baby husband wife spouse partner fiance fiancé fiancee fiancée boyfriend girlfriend "
    "friend bestie buddy cousin aunt uncle niece nephew grandmother grandma granny gran "
    "grandfather grandpa roommate flatmate neighbor neighbour colleague coworker co-worker "
    "boss manager mentor teacher coach doctor therapist dog cat pet puppy pup kitten kitty "
    "turtle hamster rabbit bunny horse bird parrot fish stepmother stepfather stepsister "
    "stepbrother twin teammate"
)

EMPTY_OBJECTS = words(
    "thing things something anything everything nothing lot lots ton tons stuff one ones way "
    "ways bit bunch kind kinds sort some any all much many more most few little half rest "
    "plenty none someone anyone everyone people person fun time times blast day idea sense "
    "point part fact case word words deal kick smile tear luck chance moment while care "
    "advantage control charge note look break step steps mind eye eyes account hand hands "
    "ball everybody somebody anybody nobody other others each both either such so same "
    "another here there now then home-run back vibe vibes progress sight news opportunity "
    "trouble hard difference place piece feeling feelings best better worst hell heck "
    "goodness start result results touch pleasure attention impact effect side end line shape "
    "course doubt doubts clue worry worries power ability attitude feedback interest "
    "interests thought thoughts plunge potential experience reaction energy confidence dairy- "
    "free faith hope respect passion love support goal goals"
)
"""Heads that say nothing without a complement ("a lot", "the way", "fun")."""

EMPTY_ATTRIBUTES = words(
    "reason way part time thing chance blast pleasure honor honour treat mess deal help "
    "inspiration joy example reminder journey experience challenge bit lot kind sort day "
    "feeling moment dream_come goal good game changer key step piece spot place luck win "
    "shame pity bummer bliss bet champ star legend angel lifesaver priority rock world "
    "everything nothing something one ones point fact case idea person people sign proof "
    "symbol matter force source ride rollercoaster break relief surprise fun hit success "
    "change mix"
)
"""Complements of ``be`` that judge rather than tell."""

GOAL_NOUNS = words("goal dream plan hobby job ambition aim mission passion name")

STATUS_ADJECTIVES = words(
    "single married divorced engaged pregnant vegan vegetarian pescatarian retired unemployed "
    "diabetic transgender trans gay lesbian bisexual queer deaf blind asthmatic widowed self- "
    "employed jobless adopted bilingual colorblind autistic celiac coeliac"
)

ADJECTIVE_PREDICATES = {
    ("interested", "in"): "preference",
    ("passionate", "about"): "preference",
    ("fond", "of"): "preference",
    ("keen", "on"): "preference",
    ("obsessed", "with"): "preference",
    ("hooked", "on"): "preference",
    ("crazy", "about"): "preference",
    ("allergic", "to"): "constraint",
    ("intolerant", "to"): "constraint",
    ("afraid", "of"): "fact",
    ("scared", "of"): "fact",
    ("married", "to"): "relation",
    ("engaged", "to"): "relation",
    ("good", "at"): "fact",
    ("fluent", "in"): "fact",
}

IDIOM_CANNOT = words(
    "wait believe imagine help thank say tell remember complain think agree beat stop express "
    "go get see hear describe stress recommend emphasize deny argue explain put begin picture "
    "ignore let give find understand resist forget be"
)
""""can't wait", "can't believe" and their like are feelings, not constraints."""

PASSIVE_EVENTS = words(
    "born accepted invited promoted hired fired diagnosed raised robbed elected chosen "
    "selected published injured nominated awarded adopted featured rejected laid evicted "
    "married offered given transferred"
)
"""Passives that tell what happened to somebody ("was born in", "got promoted at")."""
