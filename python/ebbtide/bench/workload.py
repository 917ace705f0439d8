"""A generated conversation to measure with: plausible turns, no two alike."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from itertools import count, islice
from typing import Any

__all__ = ["QUESTIONS", "conversation"]

_PEOPLE = ("Ana", "Ben", "Clara", "Duarte", "Elif", "Farid", "Greta", "Hugo")
_PLACES = ("Lisbon", "Porto", "Ankara", "Ghent", "Kyoto", "Oslo", "Lima", "Tallinn")
_THINGS = ("invoice service", "garden fence", "old bicycle", "reading group", "kitchen radio")
_HOBBIES = ("pottery", "chess", "rowing", "baking bread", "birdwatching", "life drawing")

_TEMPLATES = (
    "I moved to {place} in {month} and still have boxes number {n} to {m} to unpack.",
    "{person} said the {thing} needs {n} new parts, and that it should be done before {month}.",
    "My sister {person} has taken up {hobby}; she has been to {n} classes already.",
    "We agreed that the {thing} runs on port {n} from now on, so please don't use {m} any more.",
    "I was so happy yesterday: {person} called from {place} after {n} weeks of silence!",
    "Could you remind me to book the train to {place} for the {day}th? It costs {n} euros.",
    "Honestly, I never liked {hobby}, but {person} talked me into lesson {n}.",
    "The doctor in {place} moved my appointment to the {day}th of {month}, at {hour} o'clock.",
    "Right, that makes sense. Thanks for explaining it a {n}th time.",
    "After {n} years at the bank I start as a teacher in {place} next {month}.",
)
_MONTHS = ("January", "March", "April", "June", "August", "October", "November")

QUESTIONS = (
    "Where did Ana move to?",
    "Which port does the invoice service use now?",
    "When is the doctor's appointment?",
    "What has Clara taken up?",
    "Who called from Oslo?",
    "How much does the train to Porto cost?",
    "What do I do for a living now?",
    "Why was Ben happy?",
)
"""Questions of the usual kinds."""


def conversation(turns: int | None = None, *, seed: int = 1) -> Iterator[dict[str, Any]]:
    """Turns as ``add_many`` takes them, the same ones for the same seed.

    Args:
        turns: How many; without end if None.
        seed: Of the choice of words.
    """
    return islice(_endless(seed), turns)


def _endless(seed: int) -> Iterator[dict[str, Any]]:
    draw = random.Random(seed)
    start = datetime(2024, 1, 1, 9, tzinfo=timezone.utc)  # noqa: UP017
    for number in count():
        text = draw.choice(_TEMPLATES).format(
            person=draw.choice(_PEOPLE),
            place=draw.choice(_PLACES),
            thing=draw.choice(_THINGS),
            hobby=draw.choice(_HOBBIES),
            month=draw.choice(_MONTHS),
            day=draw.randint(4, 20),
            hour=draw.randint(8, 18),
            # No two turns are alike: equal texts are analysed once.
            n=100 + number,
            m=draw.randint(10_000, 99_999),
        )
        yield {
            "text": text,
            "role": "user" if number % 2 == 0 else "assistant",
            "speaker": _PEOPLE[number % 2],
            "session_id": f"s{number // 20}",
            "external_id": f"t{number}",
            "timestamp": start + timedelta(minutes=number),
        }
