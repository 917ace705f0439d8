"""What ``replay`` takes, and how it refuses the rest."""

from __future__ import annotations

from typing import Any

import pytest

from ebbtide import Config, InputError, Memory, Turn
from ebbtide.replay import replay


def test_a_mapping_among_the_turns_is_a_turn(stub: Config) -> None:
    turns = [Turn("one"), {"role": "user", "content": "two", "id": 7}]
    with Memory.in_memory(config=stub) as memory, Memory.in_memory(config=stub) as other:
        assert replay(memory, turns).turns == 2
        other.add_many(turns)
        assert memory.digest() == other.digest()
        wrong: Any = [Turn("three"), 5, Turn("four")]
        with pytest.raises(InputError, match="turn 2: a turn is a Turn or a mapping, not int"):
            replay(memory, wrong)
        assert [turn.text for turn in memory.turns()] == ["one", "two", "three"]


@pytest.mark.parametrize(
    "options",
    [{"workers": -1}, {"workers": 1.5}, {"workers": True}, {"batch_size": "x"}, {"batch_size": 0}],
)
def test_numbers_that_are_none_are_refused(stub: Config, options: dict[str, Any]) -> None:
    with Memory.in_memory(config=stub) as memory:
        with pytest.raises(InputError, match="must be a whole number of at least") as caught:
            replay(memory, [Turn("one")], **options)
        assert caught.value.code == "input.field"
        assert len(memory) == 0
