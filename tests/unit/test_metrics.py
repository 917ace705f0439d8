"""Metrics against numbers worked out by hand."""

from __future__ import annotations

import math

import pytest

from ebbtide.errors import InputError
from ebbtide.evals.metrics import (
    CUTOFFS,
    bootstrap_interval,
    contains_answer,
    ndcg_at,
    rank_metrics,
    recall_all_at,
    recall_any_at,
    recall_at,
    reciprocal_rank,
    to_sessions,
)
from ebbtide.evals.normalise import answer_tokens, context_tokens

RANKED = ["x", "a", "y", "b", "z"]
GOLD = {"a", "b", "c"}


def test_recall_counts_the_gold_within_the_cutoff() -> None:
    assert [recall_at(RANKED, GOLD, k) for k in (1, 2, 3, 4, 5, 20)] == [
        0.0,
        1 / 3,
        1 / 3,
        2 / 3,
        2 / 3,
        2 / 3,
    ]


def test_any_and_all() -> None:
    assert [recall_any_at(RANKED, GOLD, k) for k in (1, 2, 5)] == [0.0, 1.0, 1.0]
    assert [recall_all_at(RANKED, GOLD, k) for k in (1, 2, 5)] == [0.0, 0.0, 0.0]
    assert [recall_all_at(RANKED, {"a", "b"}, k) for k in (3, 4)] == [0.0, 1.0]


def test_repeated_ids_count_once_at_their_first_place() -> None:
    assert recall_at(["a", "a", "a"], {"a", "b"}, 3) == 0.5
    # Distinct ids are x, a: the repeat of x does not push a to place 3.
    assert reciprocal_rank(["x", "x", "a"], {"a"}) == 0.5
    assert recall_at(RANKED, ["a", "a", "b"], 4) == 1.0


def test_reciprocal_rank_is_that_of_the_first_hit() -> None:
    assert reciprocal_rank(RANKED, GOLD) == 0.5
    assert reciprocal_rank(RANKED, {"b", "z"}) == 0.25
    assert reciprocal_rank(RANKED, {"nowhere"}) == 0.0
    assert reciprocal_rank([], {"a"}) == 0.0


def test_ndcg_by_hand() -> None:
    # Hits at places 2 and 4, three gold ids: the ideal list has them at 1, 2, 3.
    gain = 1 / math.log2(3) + 1 / math.log2(5)
    ideal = 1 + 1 / math.log2(3) + 1 / 2
    assert ndcg_at(RANKED, GOLD) == pytest.approx(gain / ideal, abs=1e-15)
    assert ndcg_at(RANKED, GOLD) == pytest.approx(0.498189, abs=1e-6)


def test_ndcg_ideal_is_cut_at_k() -> None:
    gold = {f"g{n}" for n in range(12)}
    assert ndcg_at(sorted(gold), gold, 10) == pytest.approx(1.0)
    assert ndcg_at(["no", "g1"], gold, 1) == 0.0


def test_rank_metrics_has_one_entry_for_each_metric() -> None:
    row = rank_metrics(RANKED, GOLD)
    assert len(row) == 3 * len(CUTOFFS) + 2
    assert row["recall@3"] == pytest.approx(1 / 3)
    assert row["recall_any@3"] == 1.0
    assert row["recall_all@20"] == 0.0
    assert row["mrr"] == 0.5
    assert row["ndcg@10"] == ndcg_at(RANKED, GOLD, 10)


@pytest.mark.parametrize("metric", [recall_at, recall_any_at, recall_all_at, ndcg_at])
def test_empty_gold_and_bad_cutoffs_are_refused(metric) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError) as empty:
        metric(RANKED, set(), 5)
    assert empty.value.code == "input.field"
    with pytest.raises(InputError):
        metric(RANKED, GOLD, 0)


def test_sessions_take_the_place_of_their_best_turn() -> None:
    session_of = {"s2:9": "s2", "s1:1": "s1", "s2:3": "s2"}
    assert to_sessions(["s2:9", "gone", "s1:1", "s2:3"], session_of) == ["s2", "s1"]


@pytest.mark.parametrize(
    "written",
    [
        "2023-05-08",
        "2023-5-8",
        "2023/05/08",
        "8 May, 2023",
        "8 May 2023",
        "8th May 2023",
        "the 8th of May, 2023",
        "May 8th 2023",
        "May 8, 2023",
        "MAY 08, 2023",
        "may 8th, 2023",
        "８ May ２０２３",
    ],
)
def test_one_date_however_it_is_written(written: str) -> None:
    assert answer_tokens(written) == ["2023-05-08"]
    assert contains_answer("8 May, 2023", f"[{written}] Ana: hello")
    assert not contains_answer("9 May, 2023", f"[{written}] Ana: hello")
    assert not contains_answer("8 May, 2022", f"[{written}] Ana: hello")


@pytest.mark.parametrize(
    ("written", "token"),
    [
        ("Sept 3, 2021", "2021-09-03"),
        ("3 Sep. 2021", "2021-09-03"),
        ("Dec 31 2020", "2020-12-31"),
        ("29 February", "02-29"),
        ("June 2023", "2023-06"),
        ("June of 2023", "2023-06"),
        ("the 3rd of March", "03-03"),
    ],
)
def test_other_dates(written: str, token: str) -> None:
    assert answer_tokens(written) == [token]


def test_a_context_holds_what_follows_from_its_date_but_not_more() -> None:
    context = "2023-05-08T13:56:00Z Ana: I left."
    for answer in ("May 2023", "2023", "May", "May 8", "8th of May"):
        assert contains_answer(answer, context), answer
    assert not contains_answer("8 May 2023", "It was in May 2023, on a Monday")
    assert not contains_answer("8 May 2023", "We said May 8 or so")
    assert not contains_answer("May 9", context)


def test_impossible_and_ambiguous_dates_stay_as_they_are() -> None:
    assert answer_tokens("2023-02-31") == ["2023", "02", "31"]
    assert answer_tokens("2023-13-01") == ["2023", "13", "01"]
    assert answer_tokens("08/05/2023") == ["08", "05", "2023"]
    assert answer_tokens("at 10:15 may be late") == ["at", "10", "15", "may", "be", "late"]
    assert answer_tokens("2023-05-08-1") == ["2023", "05", "08", "1"]


def test_words_numbers_and_punctuation() -> None:
    assert answer_tokens("The cat, an owl & a dog!") == ["cat", "owl", "dog"]
    assert answer_tokens("Three of twenty; 12,000 euros (95.50)") == [
        "3",
        "of",
        "20",
        "12000",
        "euros",
        "95.50",
    ]
    assert answer_tokens("Luis's, Luis’s, Luis' and don't") == [
        "luis",
        "luis",
        "luis",
        "and",
        "dont",
    ]
    assert answer_tokens("the 15th, self-care") == ["15", "self", "care"]
    assert answer_tokens("ﬁne Ｃafé") == ["fine", "café"]
    assert answer_tokens("京都 and 東京") == ["京", "都", "and", "東", "京"]


def test_containment_needs_every_token() -> None:
    context = "Luis played in Valencia in June; on Thursday it was Granada, for 60 people and a dog"
    assert contains_answer("Granada and Valencia", context)
    assert contains_answer("The dog.", context)
    assert not contains_answer("Granada and Seville", context)
    # Whole words only: "gran" is inside "granada".
    assert not contains_answer("gran", context)


def test_an_answer_without_tokens_is_not_contained() -> None:
    assert not contains_answer("", "anything")
    assert not contains_answer("the ...", "the anything")


def test_context_tokens_of_the_private_mark_are_harmless() -> None:
    assert context_tokens("a \ue0002023_5_8\ue000 b") == {"2023", "5", "8", "b"}


def test_bootstrap_is_repeatable_and_brackets_the_mean() -> None:
    values = [0.0] * 40 + [1.0] * 60
    first = bootstrap_interval(values)
    assert first == bootstrap_interval(values)
    assert first.mean == pytest.approx(0.6)
    assert first.count == 100
    # The normal approximation gives 0.6 ± 1.96 × sqrt(0.24 / 100) = 0.504 … 0.696.
    assert first.low == pytest.approx(0.504, abs=0.02)
    assert first.high == pytest.approx(0.696, abs=0.02)
    # A mean of 100 zeros and ones is a multiple of 0.01, so single ends may agree.
    seeded = [bootstrap_interval(values, resamples=25, seed=n) for n in range(1, 6)]
    assert len({(one.low, one.high) for one in seeded}) > 1


def test_bootstrap_draws_every_index_evenly() -> None:
    # Weight 1 on one value only: its share of all draws is the mean of the means.
    for place in (0, 3, 6):
        values = [0.0] * 7
        values[place] = 7.0
        interval = bootstrap_interval(values, level=0.01, resamples=4001)
        assert interval.low <= 1.0 <= interval.high


def test_bootstrap_of_equal_values_has_no_width() -> None:
    interval = bootstrap_interval([0.25, 0.25, 0.25])
    assert (interval.mean, interval.low, interval.high) == (0.25, 0.25, 0.25)


def test_bootstrap_narrows_with_the_level() -> None:
    values = [n / 50 for n in range(50)]
    wide, narrow = bootstrap_interval(values), bootstrap_interval(values, level=0.5)
    assert wide.low < narrow.low < narrow.high < wide.high


@pytest.mark.parametrize(
    ("values", "options"),
    [
        ([], {}),
        ([0.5, math.nan], {}),
        ([0.5], {"level": 1.0}),
        ([0.5], {"resamples": 0}),
        ([0.5], {"seed": -1}),
    ],
)
def test_bootstrap_refuses_what_it_cannot_use(values: list[float], options: dict[str, int]) -> None:
    with pytest.raises(InputError):
        bootstrap_interval(values, **options)
