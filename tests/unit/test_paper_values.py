"""The values that the three papers give are the defaults; ours are named as ours."""

from __future__ import annotations

import pytest

from ebbtide import Config
from ebbtide.llm import deliberation

DEFAULTS = Config()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        # D-MEM: section 4.1 and 4.2, then its code's.
        ("beta", 0.4),
        ("theta_low", 0.3),
        ("theta_high", 0.7),
        ("tau", 0.05),
        ("warmup", 10),
        ("window", 50),
        ("epsilon", 0.01),
        ("least", 5),
        ("shadow_size", 200),
        ("fallback_below", 0.35),
        ("fallback_similarity", 0.2),
        ("fallback_limit", 3),
        ("links", 5),
        ("link_similarity", 0.5),
    ],
)
def test_the_gate(key: str, value: float) -> None:
    assert DEFAULTS["policy"]["rpe"][key] == value


def test_consolidation() -> None:
    values = DEFAULTS["policy"]["recurrence"]
    assert (values["paper_theta_sim"], values["paper_theta_count"]) == (0.7, 5)
    assert (values["k_epi"], values["k_sem"]) == (5, 10)
    assert DEFAULTS["retrieval"]["final_recall_limit"] == 10  # k_sub
    assert values["max_episodes"] == 3  # one to three a cluster
    assert values["max_facts"] < 10
    assert values["neighbours"] >= 2 * values["theta_count"]


def test_deliberation() -> None:
    values = DEFAULTS["deliberation"]
    # Section 3.3 and appendix: chunks of 60 with 4 before them; 5 written down, above 6
    # kept, more than 6 filtered; System 1 answers from 30 and compares above 0.8.
    assert (values["chunk_messages"], values["context_messages"]) == (60, 4)
    assert (values["emit_score"], values["keep_score"], values["filter_above"]) == (5, 6, 6)
    assert values["same_fact_cosine"] == 0.8
    assert deliberation.TOP == 30


def test_who_decides_is_the_rules() -> None:
    assert DEFAULTS["policy"]["rpe"]["utility"] == "rules"
    assert DEFAULTS["policy"]["recurrence"]["writer"] == "extractive"
