"""A LlamaIndex chat memory with a long-term block: python with_llamaindex.py [STORE]."""

from __future__ import annotations

import asyncio
import sys

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import Memory as ChatMemory

from ebbtide import Memory
from ebbtide.adapters.llamaindex import EbbtideMemoryBlock


async def main(store: str) -> None:
    """Says something, talks on until it leaves the short-term memory, and asks."""
    with Memory.open(store) as memory:
        chat = ChatMemory.from_defaults(
            session_id="monday",
            token_limit=120,
            token_flush_size=40,
            chat_history_token_ratio=0.5,
            memory_blocks=[EbbtideMemoryBlock(memory=memory, max_tokens=200)],
        )
        await chat.aput(ChatMessage(role="user", content="My sister Ana moved to Porto in May."))
        for n in range(8):
            text = f"Let us talk about the weather for a while, part {n}."
            await chat.aput(ChatMessage(role="user", content=text))
        await chat.aput(ChatMessage(role="user", content="Where did my sister Ana move?"))
        # What an agent would send to its model: the block, then the recent messages.
        for message in await chat.aget():
            sys.stdout.write(f"{message.role.value}: {message.content}\n")


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "llamaindex.db"))
