"""The memory block, inside LlamaIndex's own Memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.memory import Memory as ChatMemory

from ebbtide import Config, Memory
from ebbtide.adapters.llamaindex import EbbtideMemoryBlock


@pytest.fixture
def memory(cheap: Config) -> Iterator[Memory]:
    with Memory.in_memory(config=cheap) as opened:
        yield opened


def said(text: str | None, role: str = "user") -> ChatMessage:
    return ChatMessage(role=MessageRole(role), content=text)


def test_it_takes_messages_and_recalls(memory: Memory) -> None:
    block = EbbtideMemoryBlock(memory=memory, max_tokens=200)

    async def main() -> str:
        assert await block.aget([said("What do I drink?")]) == ""
        assert await block.aget([]) == ""
        assert await block.aget() == ""
        await block.aput(
            [said("I drink green tea."), said(None, "assistant"), said("Noted.", "model")],
            from_short_term_memory=True,
            session_id="s1",
        )
        return await block.aget([said("What do I drink?"), said("Hm.", "assistant")])

    text = asyncio.run(main())
    assert "I drink green tea." in text
    assert memory.count_tokens(text) <= 200
    assert [(t.role, t.session_id) for t in memory.turns()] == [("user", "s1"), ("assistant", "s1")]
    # What it gave is not taken for something that was said.
    asyncio.run(block.aput([said(text, "system")]))
    assert len(memory) == 2


def test_long_questions_are_cut(memory: Memory) -> None:
    memory.add("I drink green tea.")
    block = EbbtideMemoryBlock(memory=memory)
    assert "green tea" in asyncio.run(block.aget([said("tea " * 20_000)]))


def test_long_messages_are_cut_and_no_other_is_lost(stub: Config) -> None:
    short = stub.replace(limits={"max_turn_chars": 12})
    with Memory.in_memory(config=short) as memory:
        block = EbbtideMemoryBlock(memory=memory)
        asyncio.run(block.aput([said("Before."), said("I drink green tea."), said("After.")]))
        assert [turn.text for turn in memory.turns()] == ["Before.", "I drink gree", "After."]


def test_half_a_pair_costs_no_message(memory: Memory) -> None:
    block = EbbtideMemoryBlock(memory=memory)
    cut = "I drink tea \ud83c"  # an emoji that was cut in two
    asyncio.run(block.aput([said("Before."), said(cut), said("After.")]))
    assert [turn.text for turn in memory.turns()] == ["Before.", "I drink tea \ufffd", "After."]
    assert "I drink tea" in asyncio.run(block.aget([said("What do I drink \ud83c?")]))


def test_roles(memory: Memory) -> None:
    block = EbbtideMemoryBlock(memory=memory)
    asyncio.run(block.aput([said(f"I am {role.value}.", role.value) for role in MessageRole]))
    assert {turn.role for turn in memory.turns()} == {"system", "user", "assistant", "tool"}


def test_in_a_chat_memory(store_path: Path) -> None:
    with Memory.open(store_path) as memory:  # with the real models
        block = EbbtideMemoryBlock(memory=memory, max_tokens=200)

        async def main() -> list[ChatMessage]:
            chat = ChatMemory.from_defaults(
                session_id="s1",
                token_limit=60,
                token_flush_size=20,
                chat_history_token_ratio=0.5,
                memory_blocks=[block],
                tokenizer_fn=str.split,
            )
            try:
                await chat.aput(said("My sister Ana moved to Porto in May."))
                await chat.aput(said("Nice, Porto is lovely.", "assistant"))
                for n in range(8):
                    await chat.aput(said(f"Let us talk about the weather for a while, part {n}."))
                    await chat.aput(said("Sure, it is raining.", "assistant"))
                await chat.aput(said("Where did my sister Ana move?"))
                return await chat.aget()
            finally:
                await chat.sql_store._async_engine.dispose()

        messages = asyncio.run(main())
        assert memory.get(0).text == "My sister Ana moved to Porto in May."
        assert messages[0].role == MessageRole.SYSTEM
        assert "My sister Ana moved to Porto in May [" in (messages[0].content or "")
        assert all("Ana moved" not in (message.content or "") for message in messages[1:])
