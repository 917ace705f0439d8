"""Answer scores by hand; the token table by the figures of the DMF paper."""

from __future__ import annotations

import math

import pytest

from ebbtide.evals.endtoend.scores import TokenUse, bleu1, exact_match, token_f1


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [
        ("The Eiffel Tower!", "eiffel  tower", 1.0),
        ("Eiffel Towers", "Eiffel Tower", 0.0),
        # Punctuation goes without leaving a space, as in SQuAD.
        ("well-known", "wellknown", 1.0),
        # An article is a whole word.
        ("theatre", "atre", 0.0),
        ("", "the", 1.0),
        # Words of other scripts are kept; only ASCII punctuation goes.
        ("CAFÉ", "café", 1.0),
        ("“yes”", "yes", 0.0),
        ("2023-05-08", "8 May, 2023", 0.0),
    ],
)
def test_exact_match(answer: str, gold: str, expected: float) -> None:
    assert exact_match(answer, gold) == expected


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [
        # {blue, car} and {red, car}: P = R = 1/2.
        ("a blue car", "the red car", 0.5),
        # P = 2/4, R = 2/2.
        ("she adopted two cats", "two cats", 2 * 0.5 * 1.0 / 1.5),
        # "very" counts twice on one side and once on the other: P = 2/3, R = 2/2.
        ("very very good", "very good", 0.8),
        ("very good", "very very good", 0.8),
        ("nothing", "something", 0.0),
        ("", "", 1.0),
        ("the", "a", 1.0),
        ("", "cats", 0.0),
        ("cats", "", 0.0),
        # The RecMem paper's example (appendix E.4): right, and worth nothing.
        ("Gina opened her online clothing store on 2023-03-16", "16 March, 2023", 0.0),
        ("16 march 2023", "16 March, 2023", 1.0),
    ],
)
def test_token_f1(answer: str, gold: str, expected: float) -> None:
    assert token_f1(answer, gold) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [
        ("two cats", "two cats", 1.0),
        # 2 of 4 words, no penalty for length.
        ("she adopted two cats", "two cats", 0.5),
        # 2 of 2 words, but the reference has 4: exp(1 - 4/2).
        ("two cats", "she adopted two cats", math.exp(-1.0)),
        # "the" is in the reference twice, so two of seven count (Papineni et al. 2002).
        ("the the the the the the the", "The cat is on the mat.", 2 / 7),
        # Punctuation marks are words: 3 of 4.
        ("yes, two cats", "yes two cats", 0.75),
        # Clitics stand alone: gina 's shop / gina shop, 2 of 3.
        ("Gina's shop", "gina shop", 2 / 3),
        # Dates and numbers are one word each.
        ("2023-03-16", "16 March, 2023", 0.0),
        ("12,000", "12,000 miles", math.exp(-1.0)),
        ("", "cats", 0.0),
        ("cats", "", 0.0),
        ("", "", 0.0),
    ],
)
def test_bleu1(answer: str, gold: str, expected: float) -> None:
    assert bleu1(answer, gold) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("use", "columns"),
    [
        # DMF paper, table 6; the answers' completions are what is left of its total.
        (TokenUse(10_575_032, 24_314), (10_575_032, 0, 10_599_346)),
        (
            TokenUse(6_644_319, 24_334, 49_526_603, 456_158),
            (56_170_922, 49_982_761, 56_651_414),
        ),
        # Table 8.
        (TokenUse(569_457, 4_235), (569_457, 0, 573_692)),
        (
            TokenUse(275_117, 3_558, 136_261_462, 2_659_930),
            (136_536_579, 138_921_392, 139_200_067),
        ),
    ],
)
def test_columns_add_up_as_in_the_paper(use: TokenUse, columns: tuple[int, int, int]) -> None:
    assert (use.input, use.memory_total, use.total) == columns


def test_token_use_adds_field_by_field_and_leaves_the_judge_apart() -> None:
    first, second = TokenUse(1, 2, 3, 4, 5, 6), TokenUse(10, 20, 30, 40, 50, 60)
    assert first + second == TokenUse(11, 22, 33, 44, 55, 66)
    assert first.total == 1 + 2 + 3 + 4
