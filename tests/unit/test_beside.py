"""Work that is shared by two threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from ebbtide.analysis.beside import Beside
from ebbtide.threads import awaited, submitted


@pytest.fixture
def beside() -> Iterator[Beside]:
    taken = Beside()
    yield taken
    taken.close()


def test_work_that_has_begun_is_waited_for(beside: Beside) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def work() -> threading.Thread:
        begun.set()
        go_on.wait(30)
        return threading.current_thread()

    task = beside.submit(work)
    assert begun.wait(30)
    go_on.set()
    assert task.result() is not threading.current_thread()


def test_who_needs_a_result_first_does_the_work(beside: Beside) -> None:
    busy, go_on = threading.Event(), threading.Event()

    def work() -> None:
        busy.set()
        go_on.wait(30)

    first = beside.submit(work)
    assert busy.wait(30)
    second = beside.submit(threading.current_thread)
    assert second.result() is threading.current_thread()
    go_on.set()
    first.result()


@pytest.mark.parametrize("begun", [True, False])
def test_an_error_reaches_who_asks(beside: Beside, begun: bool) -> None:
    started, go_on = threading.Event(), threading.Event()

    def work() -> None:
        started.set()
        go_on.wait(30)

    first = None if begun else beside.submit(work)
    assert begun or started.wait(30)
    task = beside.submit(int, "one")
    with pytest.raises(ValueError, match="one"):
        task.result()
    go_on.set()
    if first is not None:
        first.result()


def test_who_waits_helps_as_long_as_there_is_something_to_help_with() -> None:
    done, helped = threading.Event(), []

    def help_with() -> bool:
        helped.append(threading.current_thread())
        if len(helped) == 3:
            done.set()
        return len(helped) < 4

    begun = threading.Event()

    def work() -> str:
        begun.set()
        done.wait(30)
        return "made"

    beside = Beside(help_with)
    task = beside.submit(work)
    assert begun.wait(30)
    assert task.result() == "made"
    beside.close()
    assert set(helped) == {threading.current_thread()}
    assert 3 <= len(helped) <= 4


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is once the main thread has ended."""

    def submit(*_: object) -> None:
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    monkeypatch.setattr(ThreadPoolExecutor, "submit", submit)


@pytest.mark.usefixtures("ended")
def test_where_no_thread_can_be_had_who_asks_does_the_work(beside: Beside) -> None:
    waiting = Beside._waiting
    assert beside.submit(threading.current_thread).result() is threading.current_thread()
    with pytest.raises(ValueError, match="one"):
        beside.submit(int, "one").result()
    assert Beside._waiting == waiting
    with ThreadPoolExecutor(1) as pool:
        found = submitted(pool, threading.current_thread)
        assert found.result() is threading.current_thread()
        with pytest.raises(ValueError, match="one"):
            submitted(pool, int, "one").result()
    assert asyncio.run(awaited(threading.current_thread)) is threading.current_thread()


def test_work_that_was_refused_a_thread_is_done_once(monkeypatch: pytest.MonkeyPatch) -> None:
    start, refused, done = threading.Thread.start, [], []

    def once_none(thread: threading.Thread) -> None:
        if not refused:
            refused.append(thread)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", once_none)
    with ThreadPoolExecutor(1) as pool:
        # The executor keeps what it could not begin, and begins it with the next.
        for name in ("first", "second"):
            submitted(pool, done.append, name).result()
    assert refused
    assert done == ["first", "second"]


def test_what_is_cancelled_with_its_executor_is_waited_for_by_nobody() -> None:
    going, hold = threading.Event(), threading.Event()

    def held() -> None:
        going.set()
        hold.wait(30)

    pool = ThreadPoolExecutor(1)
    first = submitted(pool, held)
    going.wait(30)
    second = submitted(pool, int, "2")
    pool.shutdown(wait=False, cancel_futures=True)
    hold.set()
    assert first.result(30) is None
    assert second.cancelled()


def test_what_is_awaited_is_done_in_another_thread() -> None:
    assert asyncio.run(awaited(threading.current_thread)) is not threading.current_thread()
