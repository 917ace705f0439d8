"""The session for the OpenAI Agents SDK, against the SDK and a model of our own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
from agents.memory import Session, SessionSettings
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from ebbtide import Config, InputError, Memory
from ebbtide.adapters.openai_agents import EbbtideSession

ITEMS: list[Any] = [
    {"role": "user", "content": "I drink green tea."},
    {"role": "user", "content": [{"type": "input_text", "text": "In this cup."}]},
    {"type": "reasoning", "id": "r1", "summary": []},
    {"type": "function_call", "call_id": "1", "name": "order", "arguments": '{"what": "tea"}'},
    {"type": "function_call_output", "call_id": "1", "output": "Ordered."},
    {
        "type": "message",
        "id": "m1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Here you are.", "annotations": []}],
    },
]


class Echo(Model):
    """Says how many items it was given, and what the first one was."""

    async def get_response(self, *_: Any, **given: Any) -> Any:
        items = given["input"]
        text = f"{len(items)} items, first: {items[0]['content']}"
        part = ResponseOutputText(type="output_text", text=text, annotations=[])
        message = ResponseOutputMessage(
            id="m", type="message", role="assistant", status="completed", content=[part]
        )
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


@pytest.fixture
def memory(cheap: Config) -> Iterator[Memory]:
    with Memory.in_memory(config=cheap) as opened:
        yield opened


def test_items_come_back_as_they_were(memory: Memory) -> None:
    session = EbbtideSession("s1", memory)
    assert isinstance(session, Session)

    async def main() -> None:
        assert await session.get_items() == []
        assert await session.pop_item() is None
        await session.add_items(ITEMS)
        await EbbtideSession("s2", memory).add_items(ITEMS[:1])
        assert await session.get_items() == ITEMS
        assert await session.get_items(2) == ITEMS[-2:]
        assert await session.get_items(0) == []
        assert await session.pop_item() == ITEMS[-1]
        assert await session.get_items() == ITEMS[:-1]
        few = EbbtideSession("s1", memory, session_settings=SessionSettings(limit=1))
        assert await few.get_items() == ITEMS[-2:-1]
        await session.clear_session()
        assert await session.get_items() == []
        assert len(await EbbtideSession("s2", memory).get_items()) == 1

    asyncio.run(main())
    assert len(memory) == 1


def test_no_more_is_read_than_is_asked_for(memory: Memory) -> None:
    session = EbbtideSession("s1", memory)
    get, read = memory.get, []

    def noted(number: int) -> Any:
        read.append(number)
        return get(number)

    async def main() -> None:
        await session.add_items([{"role": "user", "content": f"Item {n}."} for n in range(9)])
        memory.add("{}", role="tool", session_id="s1")  # no item
        memory.delete(7)
        assert [item["content"] for item in await session.get_items(2)] == ["Item 6.", "Item 8."]
        assert (await session.pop_item())["content"] == "Item 8."

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "get", noted)
        asyncio.run(main())
    assert read == [9, 8, 6, 9, 8]


def test_settings_as_a_mapping(memory: Memory) -> None:
    session = EbbtideSession("s1", memory, session_settings={"limit": 2})

    async def main() -> Any:
        await session.add_items([{"role": "user", "content": f"Item {n}."} for n in range(4)])
        assert len(await session.get_items()) == 2
        settings = RunConfig(tracing_disabled=True)
        agent = Agent(name="Echo", model=Echo())
        done = await Runner.run(agent, "And now?", session=session, run_config=settings)
        return done.final_output

    assert asyncio.run(main()) == "3 items, first: Item 2."


@pytest.mark.parametrize("call", ["add_items", "pop_item", "clear_session"])
def test_a_change_that_is_cancelled_is_done_when_the_caller_hears_of_it(
    memory: Memory, call: str
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    asyncio.run(EbbtideSession("s1", memory).add_items(ITEMS[:1]))
    original = {"add_items": "add_many", "pop_item": "delete", "clear_session": "forget"}[call]
    change = getattr(memory, original)

    def slowly(*given: Any, **named: Any) -> Any:
        begun.set()
        assert go_on.wait(60)
        return change(*given, **named)

    async def main() -> list[Any]:
        session = EbbtideSession("s1", memory)
        given = [ITEMS[1:2]] if call == "add_items" else []
        task = asyncio.ensure_future(getattr(session, call)(*given))
        await asyncio.to_thread(begun.wait, 60)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        for _ in range(3):
            await asyncio.sleep(0)
        assert not task.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await session.get_items()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, original, slowly)
        try:
            left = asyncio.run(main())
        finally:
            go_on.set()
    assert left == (ITEMS[:2] if call == "add_items" else [])


def test_items_are_popped_once_each(memory: Memory) -> None:
    texts = [f"Item {n}." for n in range(8)]
    asyncio.run(
        EbbtideSession("s1", memory).add_items([{"role": "user", "content": t} for t in texts])
    )
    together = threading.Barrier(4)
    delete = memory.delete

    def after_all_have_looked(turn: Any) -> None:
        together.wait(30)
        delete(turn)

    async def main() -> list[Any]:
        session = EbbtideSession("s1", memory)
        return await asyncio.gather(*(session.pop_item() for _ in range(4)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(together, "wait", _first_only(together.wait, 4))
        patch.setattr(memory, "delete", after_all_have_looked)
        popped = asyncio.run(main())
    assert sorted(item["content"] for item in popped) == texts[4:]
    assert [turn.text for turn in memory.turns()] == texts[:4]


def test_a_session_is_cleared_at_once(memory: Memory) -> None:
    session = EbbtideSession("s1", memory)
    forget, asked = memory.forget, []

    def after_one_went(*, ids: list[int]) -> None:
        asked.append(ids)
        if len(asked) == 1:
            memory.delete(ids[1])
        forget(ids=ids)

    async def main() -> None:
        await session.add_items([{"role": "user", "content": f"Item {n}."} for n in range(4)])
        await EbbtideSession("s2", memory).add_items(ITEMS[:1])
        await session.clear_session()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "forget", after_one_went)
        asyncio.run(main())
    assert asked == [[0, 1, 2, 3], [0, 2, 3]]
    assert [turn.session_id for turn in memory.turns()] == ["s2"]


def _first_only(wait: Callable[[float], int], times: int) -> Callable[[float], object]:
    """Waits the first few times; those who were too late need not do it again."""
    left = iter(range(times))
    return lambda seconds: None if next(left, None) is None else wait(seconds)


def test_what_is_read_of_an_item(memory: Memory) -> None:
    asyncio.run(EbbtideSession("s1", memory).add_items(ITEMS))
    assert [(turn.role, turn.text) for turn in memory.turns()] == [
        ("user", "I drink green tea."),
        ("user", "In this cup."),
        ("assistant", "[reasoning]"),
        ("assistant", 'order({"what": "tea"})'),
        ("tool", "Ordered."),
        ("assistant", "Here you are."),
    ]


def test_turns_from_elsewhere_are_items_too(memory: Memory) -> None:
    memory.add("I drink tea.", session_id="s1")
    memory.add("{}", role="tool", session_id="s1")
    items = asyncio.run(EbbtideSession("s1", memory).get_items())
    assert items == [{"role": "user", "content": "I drink tea."}]


def test_an_agent_remembers(memory: Memory) -> None:
    agent = Agent(name="Echo", model=Echo())
    settings = RunConfig(tracing_disabled=True)

    async def main() -> list[str]:
        answers = []
        for said in ("I drink green tea.", "And I live in Porto."):
            # A session made anew, as in a request of its own.
            session = EbbtideSession("s1", memory)
            result = await Runner.run(agent, said, session=session, run_config=settings)
            answers.append(result.final_output)
        return answers

    assert asyncio.run(main()) == [
        "1 items, first: I drink green tea.",
        "3 items, first: I drink green tea.",
    ]
    assert [turn.role for turn in memory.turns()] == ["user", "assistant"] * 2


def test_a_session_needs_a_name(memory: Memory) -> None:
    with pytest.raises(InputError, match="session_id"):
        EbbtideSession(None, memory)  # type: ignore[arg-type]
