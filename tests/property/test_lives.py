"""Two lives of one memory: whatever else is done to its store, the memory is the same.

One is a file that is added to in any way, closed, copied and read by others; the other has
never left the process, and took one turn after the other.
"""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from reference.stand_ins import scripted

from ebbtide import Config, EbbtideError, Memory, Store

QUESTIONS = (
    "What is the port?",
    "What was the tea before?",
    "When did the deploy move to friday?",
    "the late plan of the garden",
)
ARCHIVES: tuple[dict[str, Any], ...] = (
    {},
    {"cards_enabled": False},
    {"storage_type": "null"},
    {"enabled": False},
)
numbers = st.integers(0, 300)
places = st.integers(0, 99)


def settings_of(
    cheap: Config,
    preset: str,
    budget: int,
    protect: int,
    ltm: dict[str, Any],
    gate: str,
    consolidation: str,
    deliberation: str,
) -> Config:
    return cheap.on_preset(preset).replace(
        capacity={"token_budget": budget, "protect_last": protect},
        ltm=ltm,
        policy={
            "gate": gate,
            "consolidation": consolidation,
            "deliberation": deliberation,
            "recurrence": {"theta_sim": 0.6, "theta_count": 2},
        },
    )


class Lives(RuleBasedStateMachine):
    """``kept`` is the file, ``plain`` the memory beside it."""

    cheap: Config

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="ebbtide-lives-"))
        self.copies = 0

    @initialize(
        preset=st.sampled_from(["default", "paper"]),
        budget=st.sampled_from([12, 40, 100, 1024]),
        protect=st.sampled_from([0, 1, 3]),
        ltm=st.sampled_from(ARCHIVES),
        gate=st.sampled_from(["off", "off", "rpe"]),
        consolidation=st.sampled_from(["off", "off", "recurrence"]),
        deliberation=st.sampled_from(["off", "off", "quality", "majority"]),
    )
    def begin(self, **chosen: Any) -> None:
        self.config = settings_of(self.cheap, **chosen)
        self.path = self.folder / "memory.db"
        self.kept = Memory.open(self.path, config=self.config)
        self.plain = Memory.in_memory(config=self.config)

    def another(self) -> Path:
        self.copies += 1
        return self.folder / f"copy-{self.copies}"

    def both(self, act: Callable[[Memory], Any]) -> None:
        """The same is done to both, with the same result or the same error."""
        results = []
        for memory in (self.kept, self.plain):
            try:
                results.append(act(memory))
            except EbbtideError as error:
                results.append((type(error), error.code))
        assert results[0] == results[1]

    def id_at(self, place: int) -> int:
        """One that is there, or was, or may be one day."""
        ids = [turn.interaction_id for turn in self.plain.turns()]
        return ids[place % len(ids)] if ids and place < 90 else place

    @rule(number=numbers, named=st.booleans(), wait=st.sampled_from(["complete", "journalled"]))
    def add(self, number: int, named: bool, wait: str) -> None:
        turn = scripted(number) if named else {**scripted(number), "external_id": None}
        self.kept.add(**turn, wait=wait)
        self.plain.add(**turn)

    @rule(several=st.lists(numbers, max_size=30), size=st.sampled_from([1, 2, 7, 64]))
    def add_many(self, several: list[int], size: int) -> None:
        turns = [scripted(number) for number in several]
        self.kept.add_many(turns, batch_size=size)
        for turn in turns:
            self.plain.add(**turn)

    @rule(number=numbers)
    def say_otherwise(self, number: int) -> None:
        turn = scripted(number)
        turn["text"] += " or not"
        self.both(lambda memory: memory.add(**turn))

    @rule(
        newer=places,
        relation=st.sampled_from(["supersedes", "corrects", "invalidates", "conflicts_with"]),
        older=places,
    )
    def relate(self, newer: int, relation: str, older: int) -> None:
        a, b = self.id_at(newer), self.id_at(older)
        self.both(lambda memory: memory.relate(a, relation, b))

    @rule(place=places)
    def delete(self, place: int) -> None:
        number = self.id_at(place)
        self.both(lambda memory: memory.delete(number))

    @rule(several=st.lists(places, min_size=1, max_size=5), dry=st.booleans())
    def forget(self, several: list[int], dry: bool) -> None:
        ids = {self.id_at(place) for place in several}
        self.both(lambda memory: memory.forget(ids=ids, dry_run=dry))

    @rule(question=st.sampled_from(QUESTIONS), limit=st.integers(1, 3))
    def forget_what_answers(self, question: str, limit: int) -> None:
        self.both(lambda memory: memory.forget(question, limit=limit))

    @rule(most=st.integers(1, 60))
    def retain(self, most: int) -> None:
        self.both(lambda memory: memory.retain(max_records=most))

    @rule()
    def reindex(self) -> None:
        self.both(lambda memory: memory.reindex())

    @rule()
    def open_again(self) -> None:
        self.kept.close()
        self.kept = Memory.open(self.path, config=self.config)

    @rule()
    def read_beside(self) -> None:
        self.kept.flush()
        with Memory.open(self.path, config=self.config, read_only=True) as reader:
            self.compare(reader, QUESTIONS[:1])

    @rule()
    def go_on_in_a_copy(self) -> None:
        copy = self.another()
        self.kept.export(copy)
        self.kept.close()
        self.path = copy.with_suffix(".db")
        with Store.open(self.path, config=self.config) as store:
            store.load(copy)
        self.kept = Memory.open(self.path, config=self.config)

    @rule()
    def go_on_in_a_backup(self) -> None:
        copy = self.another()
        self.kept.close()
        with Store.open(self.path, config=self.config) as store:
            store.backup(copy)
        self.path = copy
        self.kept = Memory.open(self.path, config=self.config)

    @precondition(lambda self: len(self.plain) > 0)
    @rule(question=st.sampled_from(QUESTIONS), place=places)
    def look(self, question: str, place: int) -> None:
        self.compare(self.kept, (question,))
        number = self.id_at(place)
        self.both(lambda memory: memory.explain(number))

    @invariant()
    def the_digest_is_the_same(self) -> None:
        assert self.kept.digest() == self.plain.digest()

    def compare(self, memory: Memory, questions: tuple[str, ...]) -> None:
        """All that a reader sees."""
        assert list(memory.turns()) == list(self.plain.turns())
        assert memory.episodes() == self.plain.episodes()
        assert memory.facts(superseded=True) == self.plain.facts(superseded=True)
        for question in questions:
            found, expected = (
                [dataclasses.asdict(e) for e in m.retrieve(question, limit=5)]
                for m in (memory, self.plain)
            )
            assert found == expected
            assert memory.trace(question) == self.plain.trace(question)
            assert memory.render_context(question) == self.plain.render_context(question)

    def teardown(self) -> None:
        try:
            self.compare(self.kept, QUESTIONS)
            self.kept.close()
            with Store.open(self.path, config=self.config) as store:
                assert store.check() == []
        finally:
            self.kept.close()
            self.plain.close()
            shutil.rmtree(self.folder)


@pytest.mark.parametrize("examples", [25, pytest.param(400, marks=pytest.mark.long)])
def test_a_file_and_a_memory_live_alike(stub: Config, examples: int) -> None:
    class Given(Lives):
        cheap = stub

    run_state_machine_as_test(
        Given,
        settings=settings(
            max_examples=examples,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
