"""What a forked child finds of the locks that its parent's threads had."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest
from reference.stand_ins import HashEmbedder

from ebbtide import Config
from ebbtide.analysis.analyser import Analyser
from ebbtide.analysis.sentiment import SentimentMeter
from ebbtide.analysis.spacy_analyser import SpacyAnalyser
from ebbtide.forking import RenewedLock

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here"),
]


def in_a_child(work: Callable[[], object]) -> bool:
    """Whether a forked child gets through with it."""
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # where it waits for ever
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


def while_another_thread_has(lock: RenewedLock, work: Callable[[], bool]) -> bool:
    taken, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            taken.set()
            go_on.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert taken.wait(30)
        return work()
    finally:
        go_on.set()
        thread.join()


def taken_and_given_back(lock: RenewedLock) -> None:
    with lock:
        pass


def test_a_lock_that_another_thread_had_is_free_in_a_child() -> None:
    lock = RenewedLock()
    assert while_another_thread_has(lock, lambda: in_a_child(lambda: taken_and_given_back(lock)))
    taken_and_given_back(lock)


def test_a_lock_that_the_forking_thread_had_is_still_its_own() -> None:
    lock = RenewedLock()

    def held_in_a_child() -> None:
        free: list[bool] = []
        other = threading.Thread(target=lambda: free.append(lock._lock.acquire(blocking=False)))
        other.start()
        other.join()
        assert free == [False]

    with lock:
        assert in_a_child(held_in_a_child)
        child = os.fork()
    if child == 0:
        signal.alarm(20)
        taken_and_given_back(lock)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def meter() -> tuple[Any, Callable[[], object]]:
    made = SentimentMeter()
    return made, lambda: made.magnitude("It is lovely.")


class Pipeline:
    """Of no use but to be called."""

    vocab = ()

    def __call__(self, text: str) -> str:
        return text


def spacy() -> tuple[Any, Callable[[], object]]:
    made = SpacyAnalyser()
    made._nlp = Pipeline()  # type: ignore[assignment]
    return made, lambda: made.parse("It is lovely.")


def both() -> tuple[Any, Callable[[], object]]:
    made = Analyser(Config()["nlp"], embedder=HashEmbedder(32))
    return made, lambda: made.query_vector("It is lovely.")


@pytest.mark.parametrize("make", [meter, spacy, both])
def test_a_child_analyses_though_a_thread_of_its_parent_did(
    make: Callable[[], tuple[Any, Callable[[], object]]],
) -> None:
    reader, read = make()
    assert while_another_thread_has(reader._lock, lambda: in_a_child(read))
