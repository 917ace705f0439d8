"""A stamp with an offset keeps its own clock; order and filters go by the moment."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbtide import Config, Memory
from ebbtide.analysis.temporal import parse_timestamp
from ebbtide.inputs import query_moment
from ebbtide.moments import by_its_clock

EVENING = "2024-05-14T20:00:00-07:00"  # 15 May, 3:00 am in UTC


def shown(memory: Memory) -> str:
    """What a context shows of the only turn."""
    return memory.render_context("Which exam?").splitlines()[1]


@pytest.mark.parametrize(
    ("stamp", "line"),
    [
        (EVENING, "[14 May 2024, 8:00 pm] Ana: My exam is tomorrow [15 May 2024]."),
        ("2024-05-15T00:30:00+09:00",
         "[15 May 2024, 12:30 am] Ana: My exam is tomorrow [16 May 2024]."),
        ("2024-05-15T03:00:00Z", "[15 May 2024, 3:00 am] Ana: My exam is tomorrow [16 May 2024]."),
        ("2024-05-15 03:00", "[15 May 2024, 3:00 am] Ana: My exam is tomorrow [16 May 2024]."),
        (1715742000, "[15 May 2024, 3:00 am] Ana: My exam is tomorrow [16 May 2024]."),
        (datetime(2024, 5, 14, 20, tzinfo=timezone(timedelta(hours=-7))),
         "[14 May 2024, 8:00 pm] Ana: My exam is tomorrow [15 May 2024]."),
    ],
)  # fmt: skip
def test_a_turn_is_of_its_own_day(cheap: Config, stamp: object, line: str) -> None:
    with Memory.in_memory(config=cheap) as memory:
        memory.add("My exam is tomorrow.", speaker="Ana", timestamp=stamp)
        assert shown(memory) == line


def test_its_day_is_the_same_after_reopening_and_reindexing(
    cheap: Config, store_path: Path
) -> None:
    with Memory.open(store_path, config=cheap) as memory:
        memory.add("My exam is tomorrow.", speaker="Ana", timestamp=EVENING)
        line, digest = shown(memory), memory.digest()
    with Memory.open(store_path, config=cheap) as memory:
        assert (shown(memory), memory.digest()) == (line, digest)
        memory.reindex()
        assert (shown(memory), memory.digest()) == (line, digest)
        stored = memory.get(0)
        assert stored.timestamp == EVENING
        assert stored.utc == datetime.fromisoformat(EVENING)


@pytest.mark.parametrize("asked_at", [EVENING, None])
def test_yesterday_is_the_day_before_the_day_of_asking(cheap: Config, asked_at: str | None) -> None:
    with Memory.in_memory(config=cheap) as memory:
        memory.add("I painted a fence.", speaker="Ana", timestamp="2024-05-13T20:00:00-07:00")
        memory.add("I painted a door.", speaker="Ana", timestamp=EVENING)
        found = memory.trace("What did I paint yesterday?", query_time=asked_at)
    assert found["frame"]["first"] == found["frame"]["last"] == "2024-05-13"
    compatible = {
        row["interaction_id"]: row["features"]["temporal_compatibility"]
        for row in found["candidates"]
    }
    assert compatible[0] == 1.0 > compatible[1]


def test_filters_compare_moments(cheap: Config) -> None:
    with Memory.in_memory(config=cheap) as memory:
        memory.add("I painted a fence.", speaker="Ana", timestamp=EVENING)
        for since, count in (("2024-05-15", 1), ("2024-05-15T03:00:01Z", 0)):
            assert len(memory.retrieve("fence", filters={"since": since})) == count


@given(
    st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1)),
    st.integers(-86_399, 86_399),
    st.sampled_from(["T", " "]),
    st.booleans(),
)
def test_the_core_reads_the_offset_that_python_reads(
    local: datetime, ahead: int, separator: str, basic: bool
) -> None:
    moment = local.replace(tzinfo=timezone(timedelta(seconds=ahead)))
    said = moment.isoformat(separator)
    if basic and separator == "T":
        day, _, hour = said.partition("T")
        said = day.replace("-", "") + "T" + hour.replace(":", "")
    parsed = parse_timestamp(said)
    clock = by_its_clock(parsed.utc, parsed.given)
    assert (clock, clock.replace(tzinfo=None)) == (moment, local)
    assert query_moment(said, None) == moment


@given(st.one_of(st.floats(-6e10, 2e11), st.integers(-(10**10), 10**11)))
def test_seconds_are_of_utc(seconds: float) -> None:
    parsed = parse_timestamp(seconds)
    assert by_its_clock(parsed.utc, parsed.given).utcoffset() == timedelta(0)


def test_a_number_of_numpys_is_one_of_pythons() -> None:
    for number in (np.float64(1683554160.0), np.float64(1.5)):
        assert parse_timestamp(number) == parse_timestamp(float(number))
