"""Every term of the default ranking, on the smallest conversation that has it."""

from __future__ import annotations

from typing import Any

import pytest

from ebbtide import Config, Memory

ANA, BEN = {"speaker": "Ana"}, {"speaker": "Ben"}


def said(text: str, **fields: Any) -> dict[str, Any]:
    return {"text": text, **fields}


MOVE = [
    said("I live in Lisbon.", **ANA),
    said("I live in Porto now.", **ANA),
    said("Nice weather today.", **BEN),
]
BOSS = [
    said("The boss of the sales team is called Matthias."),
    said("My boss is called Henrike."),
    said("It rains in Lyon."),
]
GYM = [
    said("I go rowing on Mondays."),
    said("The dog is asleep."),
    said("From this week I go rowing on Fridays instead."),
]

FLIGHT = [
    said("My flight leaves at 9:40 am."),
    said("The airline emailed: the flight is delayed to 11:15 am."),
    said("The dog is asleep."),
]
# What is corrected in the next words, which do not name it
PARTY = [
    said("The party is on May 3."),
    said("Sorry, I meant May 4."),
    said("The dog is asleep."),
]

# Replaced in part: what it says of the deposit stands.
RENT = [
    said("The rent is 900 euros and the deposit is 1800."),
    said("The rent is 950 euros now."),
    said("Nice weather today."),
]

# Term, conversation, question, for each turn the sign of the term (None: whatever it is).
CASES: list[tuple[str, list[dict[str, Any]], str, list[int | None], dict[str, Any]]] = [
    ("speaker", MOVE, "Where does Ana live?", [1, 1, 0], {}),
    ("current", MOVE, "Where does Ana live now?", [0, 1, 0], {}),
    ("stale", MOVE, "Where does Ana live now?", [-1, 0, 0], {}),
    ("former", MOVE, "Where did Ana live before?", [1, 0, 0], {}),
    ("inherited", MOVE, "Where does Ana live now?", [0, None, 0], {}),
    ("inherited", FLIGHT, "When does my flight leave?", [0, 1, 0], {}),
    ("inherited", PARTY, "When is the party?", [0, 1, 0], {}),
    ("original", MOVE, "Where did Ana originally live?", [1, 0, 0], {}),
    ("owner", BOSS, "What is my boss called?", [0, 1, 0], {}),
    ("update", GYM, "On which day do I go rowing?", [0, 0, 1], {}),
    ("outdated", GYM, "On which day do I go rowing?", [-1, 0, 0], {}),
    ("update", RENT, "How much is the rent now?", [0, 1, 0], {}),
    ("outdated", RENT, "How much is the rent now?", [-1, 0, 0], {}),
    (
        "anchor",
        [said("Our coach is Anders."), said("Our new coach is Petra."), said("Tea is ready.")],
        "Who was our coach before Petra?",
        [0, -1, 0],
        {},
    ),
    (
        "polarity",
        [said("Nora is coming to the party."), said("Freya is not coming to the party.")],
        "Who is not coming to the party?",
        [-1, 1],
        {},
    ),
    (
        "hedged",
        [said("The cause is probably the firewall."), said("The cause is the certificate.")],
        "What is the cause?",
        [-1, 0],
        {},
    ),
    (
        "length",
        [said("The cause is the firewall."), said("The cause is the firewall. " * 20)],
        "What is the cause?",
        [0, -1],
        {},
    ),
    (
        "date_range",
        [
            said("I painted the hallway.", timestamp="2025-03-09T10:00:00Z"),
            said("I painted the fence.", timestamp="2025-02-01T10:00:00Z"),
        ],
        "What did I paint yesterday?",
        [1, -1],
        {"query_time": "2025-03-10T10:00:00Z"},
    ),
    (
        "time",
        [said("The meeting is on 3 May 2025."), said("The meeting is dull.")],
        "When is the meeting?",
        [1, 0],
        {},
    ),
    (
        "answer",
        [said("Rui Costa fixed the boiler."), said("Somebody fixed the boiler.")],
        "Who fixed the boiler?",
        [1, 0],
        {},
    ),
    (
        "entities",
        [said("Rui flew to Oslo."), said("somebody flew there")],
        "Who flew to Oslo?",
        [1, 0],
        {},
    ),
    (
        "reply",
        [said("What is your cat called?", **BEN), said("She is Moss.", **ANA)],
        "What is Ana's cat called?",
        [0, 1],
        {},
    ),
    (
        "role",
        [said("I drink tea."), said("Tea is healthy.", role="assistant")],
        "What do I drink?",
        [1, 0],
        {},
    ),
    (
        "role",
        [said("Bread needs salt."), said("Try rye bread.", role="assistant")],
        "Which bread did you suggest?",
        [0, 1],
        {},
    ),
    (
        "system_or_tool",
        [said("You are a baker.", role="system"), said("The baker is closed.")],
        "Is the baker closed?",
        [-1, 0],
        {},
    ),
    (
        "question",
        [said("Where is the key?"), said("The key is under the mat.")],
        "Where is the key?",
        [-1, 0],
        {},
    ),
    (
        "remark",
        [said("Great, thanks!"), said("The key is here."), said("brb, getting the key")],
        "Where is the key?",
        [-1, 0, -1],
        {},
    ),
    ("social", [said("Thanks!"), said("The key is here.")], "Where is the key?", [-1, 0], {}),
    (
        "bm25",
        [said("The invoice port is 8080."), said("Cats sleep.")],
        "Which port has the invoice?",
        [1, 0],
        {},
    ),
    (
        "bm25_neighbours",
        [said("The invoice port?"), said("It is 8080."), said("Cats."), said("Dogs.")],
        "Which port has the invoice?",
        [0, 1, None, 0],
        {},
    ),
    *(
        (
            term,
            [said("The invoice service listens on port 8080."), said("Cats sleep all day.")],
            "Which port does the invoice service use?",
            [1, sign],
            {},
        )
        for term, sign in (("late_own", 0), ("dense", 0), ("answerability", None))
    ),
    *(
        (
            term,
            [
                said("Which port does the invoice service use?"),
                said("8080."),
                *(said(f"Cats sleep {n} hours.") for n in range(4)),
            ],
            "Which port does the invoice service use?",
            [1, 1, None, None, None, None],
            {},
        )
        for term in ("late_window", "late_previous")
    ),
]


@pytest.mark.parametrize(
    ("term", "turns", "question", "signs", "options"),
    CASES,
    ids=[f"{n}-{case[0]}" for n, case in enumerate(CASES)],
)
def test_each_term(
    term: str,
    turns: list[dict[str, Any]],
    question: str,
    signs: list[int | None],
    options: dict[str, Any],
) -> None:
    # A term that the default does not use is given some weight.
    with Memory.in_memory(config=Config().replace(ranking={"dense": 0.15})) as memory:
        memory.add_many(turns)
        found = memory.retrieve(question, limit=len(turns), **options)
    values = {item.turn.interaction_id: item.features.get(term, 0.0) for item in found}
    for number, sign in enumerate(signs):
        if sign is not None:
            value = values[number]
            assert (value > 0) - (value < 0) == sign, f"{term} of turn {number} is {value}"


def test_every_term_has_a_case() -> None:
    # The weight of `role` where a role is asked for.
    assert {case[0] for case in CASES} | {"asked_role"} == set(Config()["ranking"])


def test_the_first_stage_keeps_the_neighbours_of_good_turns() -> None:
    """A reply that shares no word with the question stays; the rest is dropped by name."""
    turns = [said(f"Cats sleep for {n} hours.", session_id="a") for n in range(20)]
    turns += [
        said("Which port does the invoice service use?", session_id="b"),
        said("8080, since forever.", session_id="b"),
    ]
    config = Config().replace(retrieval={"late_interaction_k": 2})
    with Memory.in_memory(config=config) as memory:
        memory.add_many(turns)
        trace = memory.trace("Which port does the invoice service use?", limit=1)
    fates = {row["interaction_id"]: row["fate"] for row in trace["candidates"]}
    assert {i for i, fate in fates.items() if fate != "first_stage"} == {20, 21}
    assert len(fates) == 22


def test_dates_of_a_question_are_compared_by_day_and_not_by_word() -> None:
    with Memory.in_memory() as memory:
        question = memory._analyser.question(
            "What did Ana do on 3 May 2023?", query_time=None, speakers=["ana"], bare=False
        )
        undated = memory._analyser.question(
            "What did Ana do with May?", query_time=None, speakers=["ana"], bare=False
        )
    assert question.frame.first == "2023-05-03"
    assert {term for term in question.token_terms if term} == set()
    assert undated.frame.first is None


FILLER = ("The cat slept all day.", "I baked bread.", "Rain is expected in the north.")


def best(question: str, *texts: str) -> str:
    """The text of the best evidence, among what else was said."""
    with Memory.in_memory() as memory:
        memory.add_many(said(text, **ANA) for text in (*texts, *FILLER))
        return memory.retrieve(question)[0].turn.text


@pytest.mark.parametrize(
    ("asked", "answer", "other"),
    [
        (
            "Which port does the staging server use?",
            "The staging server runs on port 3000.",
            "The production server now runs on port 9000.",
        ),
        (
            "How much does my gym membership cost?",
            "My gym membership costs 30 euros a month.",
            "My new phone plan costs 15 euros a month.",
        ),
        (
            "When is my morning alarm?",
            "My morning alarm is at 6:30.",
            "My new evening alarm is at 22:00.",
        ),
        (
            "Which room is my desk in?",
            "My desk is in room 204.",
            "Carla's desk is now in room 310.",
        ),
        (
            "Where do I keep the spare key?",
            "I keep the spare key under the mat.",
            "I now keep the garage key in the drawer.",
        ),
        (
            "What is the frontend written in?",
            "The frontend is written in React.",
            "The backend is now written in Rust.",
        ),
    ],
)
def test_news_of_another_thing_changes_nothing(asked: str, answer: str, other: str) -> None:
    assert best(asked, answer, other) == answer


@pytest.mark.parametrize(
    ("asked", "before", "news"),
    [
        (
            "How much does my gym membership cost?",
            "My gym membership costs 30 euros a month.",
            "The gym raised the price to 35 euros.",
        ),
        (
            "When is my morning alarm?",
            "My morning alarm is at 6:30.",
            "From now on my alarm is at 7.",
        ),
        (
            "Which room is my desk in?",
            "My desk is in room 204.",
            "I moved to room 310 yesterday.",
        ),
        (
            "Who is my dentist?",
            "My dentist is Dr. Alves.",
            "I changed dentists, I go to Dr. Costa now.",
        ),
        (
            "When is the daily standup?",
            "The daily standup is at 9:30.",
            "The standup has been moved to 10.",
        ),
    ],
)
def test_news_of_the_same_thing_counts(asked: str, before: str, news: str) -> None:
    assert best(asked, before, news) == news


def test_what_is_said_again_word_for_word_is_no_news() -> None:
    asked, answer = "Could you help me plan dinner for four people?", "We usually have dinner at 7."
    assert best("When do we have dinner?", asked, answer, asked) == answer
    turns = [said(asked), said(answer), said("Rain is expected."), said(asked)]
    with Memory.in_memory() as memory:
        memory.add_many(turns)
        trace = memory.trace("When do we have dinner?")
    terms = {row["interaction_id"]: row["terms"] for row in trace["candidates"]}
    assert "update" not in terms[3]


ASKED = [
    ("What's your favourite colour?", "Teal."),
    ("How many siblings do you have?", "Three"),
    ("Which city were you born in?", "Recife"),
    ("What's your shoe size?", "42"),
    ("Who is your emergency contact?", "My aunt Vera"),
    ("When is your anniversary?", "12 October"),
    ("Would you like a window or an aisle seat?", "aisle pls"),
]


def test_a_short_reply_belongs_to_what_was_asked() -> None:
    with Memory.in_memory() as memory:
        for question, reply in ASKED:
            memory.add(question, role="assistant")
            memory.add(reply, role="user", **ANA)
        for question, reply in [
            ("Who is my emergency contact?", "My aunt Vera"),
            ("What is my favourite colour?", "Teal."),
            ("What's my shoe size?", "42"),
            ("When is my anniversary?", "12 October"),
        ]:
            assert memory.retrieve(question)[0].turn.text == reply


def test_what_only_asks_is_no_answer_and_neither_is_another_time() -> None:
    with Memory.in_memory() as memory:
        memory.add("What's my blood type?", timestamp="2024-05-01T09:00Z", **ANA)
        memory.add("I bought a red bicycle.", timestamp="2024-05-06T09:00Z", **ANA)

        def sure(question: str) -> float:
            return memory.retrieve(question, query_time="2024-05-15T09:00Z")[0].confidence

        assert sure("What's my blood type?") < 0.5
        assert sure("What did I buy in 2019?") < 0.5 < sure("What did I buy last week?")


HOMES = [said("I live in Lisbon.", **ANA), said("I live in Rome.", **BEN)]
DRINKS = [
    said("I like tea.", **ANA),
    said("I like coffee.", **BEN),
    said("I like juice.", speaker="Cara"),
]
DAYS = [
    said("My birthday is on 3 May.", **ANA),
    said("My birthday is on 9 June.", **BEN),
]
NEWS = [
    said("My gym is in Elm Street."),
    said("My gym has moved to Oak Street."),
]
FLAT = [
    said("Our rent is 1,400 a month."),
    said("The landlord raised the rent to 1,550 starting in April."),
]
KIN = [
    said("My name is Karl."),
    said("My sister lives in Oslo."),
    said("I live in Bergen."),
]


@pytest.mark.parametrize(
    ("turns", "question", "answer"),
    [
        (HOMES, "Where does Ana live?", 0),
        (HOMES, "Where does Ben live?", 1),
        (HOMES[::-1], "Where does Ana live?", 1),
        (DRINKS, "What does Ben like to drink?", 1),
        (DRINKS, "What does Cara like?", 2),
        (DAYS, "When is Ana's birthday?", 0),
        (DAYS, "When is Ben's birthday?", 1),
        (NEWS, "Where is my gym?", 1),
        (FLAT, "How much is our rent?", 1),
        (FLIGHT[:2], "When does my flight leave?", 1),
        (PARTY[:2], "When is the party?", 1),
        (KIN, "Where do I live?", 2),
        (KIN, "Where does my sister live?", 1),
    ],
)
def test_of_a_few_turns_that_are_alike_none_is_much_nearer(
    turns: list[dict[str, Any]], question: str, answer: int
) -> None:
    """A hundredth of a cosine once weighed more than whom a turn is of, and of two turns about
    the question the second counted as if it were about something else."""
    with Memory.in_memory() as memory:
        for turn in turns:
            memory.add(**turn)
        assert memory.retrieve(question)[0].turn.interaction_id == answer
