"""What a context shows is what recall found, whatever else wants a place on the page."""

from __future__ import annotations

import pytest

from ebbtide import Config, Memory, Turn

THINGS = [
    "kiln",
    "garden",
    "bicycle",
    "violin",
    "harbour",
    "bakery",
    "museum",
    "train",
    "puppy",
    "laptop",
]
QUESTION = "What is the secret door code of the kiln festival office?"


def festival(memory: Memory) -> None:
    """Much that is like the answer, and the answer among the newest turns."""
    for n in range(60):
        memory.add(
            f"My sister Mia told me about the {THINGS[n % 10]} festival number {n}, where she met "
            f"{['Rui', 'Tom', 'Eva', 'Lea'][n % 4]} and bought a red lamp for {n + 3} euros.",
            speaker="Ana",
            timestamp=f"2024-03-{1 + n // 3:02d}T10:00:00Z",
        )
    last = {"speaker": "Ana", "timestamp": "2024-03-25T10:00:00Z"}
    memory.add("The secret door code of the kiln festival office is 7741.", **last)
    for n in range(4):
        memory.add(f"I will take the number {n} bus to work tomorrow and call the plumber.", **last)


@pytest.mark.parametrize("most", [200, 400, 800, 1600])
def test_the_best_evidence_is_on_the_page_or_in_the_conversation(most: int) -> None:
    config = Config().replace(capacity={"token_budget": 200})
    with Memory.in_memory(config=config) as memory:
        festival(memory)
        best = memory.retrieve(QUESTION, limit=30)[0].turn
        assert "7741" in best.text
        assert best.state == "active"
        for include in (True, False):
            found = memory.context(QUESTION, limit=30, max_tokens=most, include_active=include)
            assert best.interaction_id in found.shown
            assert found.text.count("7741") == 1
            assert found.tokens == memory.count_tokens(found.text) <= most


def test_items_that_fit_are_numbered_from_one(stub: Config) -> None:
    with Memory.in_memory(config=stub) as memory:
        for n in range(12):
            memory.add(f"the tea is green {n}, " * 20 if n % 2 else f"a chair {n}")
        whole = memory.retrieve("the tea is green", limit=12)
        most = (whole[0].turn.tokens or 0) - 1
        found = memory.retrieve("the tea is green", limit=12, max_tokens=most)
        assert [e.rank for e in whole] == list(range(1, 13))
        assert 1 < len(found) < 12
        assert found[0].turn != whole[0].turn
        assert [e.rank for e in found] == list(range(1, len(found) + 1))
        places = [whole.index(w) for e in found for w in whole if w.turn == e.turn]
        assert places == sorted(places)


def test_as_many_turns_as_are_asked_for_though_some_have_several_cards() -> None:
    question = "Where does Ana live now and what is her favourite color?"
    with Memory.in_memory(config=Config().replace(capacity={"token_budget": 128})) as memory:
        colours = ("red", "blue", "green", "teal")
        memory.add_many(
            Turn(
                f"I live in city number {n}, my favourite color is {colours[n % 4]} "
                f"and I work as a nurse in hospital {n}.",
                speaker="Ana",
            )
            for n in range(14)
        )
        memory.add_many(Turn(question, speaker="Ben") for _ in range(330))
        memory.add_many(Turn(f"zq{n} xk{n} 77{n}", speaker="Rui") for n in range(40))
        for limit in (54, 55, 100, 185, 188, 191):
            assert len(memory.retrieve(question, limit=limit)) == min(limit, 55)
