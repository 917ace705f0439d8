"""The gate's utility and the episodes' words by a real model behind a real server.

A model so small says little of worth, and some of it cannot be used; what counts is that
requests and replies fit and that nothing is lost.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from tests.integration.test_endtoend import _no_proxy, address
from tests.integration.test_llm_policies import WRITTEN
from tests.integration.test_recurrence import conversation

from ebbtide import Config, Memory
from ebbtide.llm import LlmCache, LlmClient

__all__ = ["_no_proxy", "address"]

POLICY = {**WRITTEN, "gate": "rpe", "rpe": {"utility": "llm"}}


@pytest.mark.long
def test_a_real_model_takes_part(stub: Config, address: str, tmp_path: Path) -> None:
    config = stub.replace(policy=POLICY).replace(policy={"recurrence": {"theta_count": 1}})
    turns = conversation(4)
    digests, used = set(), []
    with closing(LlmCache(tmp_path / "replies.db")) as cache:
        for _ in range(2):
            with (
                LlmClient("smollm2", address, cache=cache, timeout=50.0, attempts=1) as client,
                Memory.in_memory(config=config, llm=client) as memory,
            ):
                memory.add_many(turns)
                assert [turn.text for turn in memory.turns()] == [turn["text"] for turn in turns]
                for turn in memory.turns():
                    said = memory.explain(turn.interaction_id)["gate"]["llm"]
                    assert (said["failed"] is None) == (said["lifecycle"] is not None)
                digests.add(memory.digest())
                used.append(memory.stats()["llm"])
    # Replies from the cache cost what they cost once, and lead to the same memory.
    assert len(digests) == 1
    assert used[0] == used[1]
    utility = used[0]["utility"]
    assert utility["decided"] + utility["failed"] == len(turns)
    assert utility["tokens"] > 0
