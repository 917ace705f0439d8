"""The LangChain retriever and chat history, against LangChain itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    HumanMessageChunk,
    SystemMessage,
    ToolMessage,
    ToolMessageChunk,
)
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory

from ebbtide import Config, InputError, Memory
from ebbtide.adapters.langchain import EbbtideChatMessageHistory, EbbtideRetriever

CONVERSATION: list[BaseMessage] = [
    SystemMessage("Be brief."),
    HumanMessage("I drink green tea every morning.", name="Ana"),
    HumanMessage([{"type": "text", "text": "And this is my cup."}, {"type": "image", "url": "x"}]),
    AIMessage("", tool_calls=[{"name": "order", "args": {"what": "tea"}, "id": "1"}]),
    ToolMessage("Ordered.", tool_call_id="1"),
    AIMessage("Green tea it is."),
]


def clock() -> datetime:
    return datetime(2024, 6, 1, 9, tzinfo=UTC)


@pytest.fixture
def memory(cheap: Config) -> Iterator[Memory]:
    with Memory.in_memory(config=cheap) as opened:
        yield opened


def test_messages_come_back_as_they_were(memory: Memory) -> None:
    history = EbbtideChatMessageHistory(memory, "s1", clock=clock)
    history.add_messages(CONVERSATION)
    assert history.messages == CONVERSATION
    turns = list(memory.turns())
    assert [turn.role for turn in turns] == [
        "system",
        "user",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert turns[1].speaker == "Ana"
    assert turns[2].text == "And this is my cup."
    assert turns[3].text == 'order({"what": "tea"})'
    assert turns[1].utc == clock()


def test_roles_do_not_depend_on_how_a_message_came(memory: Memory) -> None:
    history = EbbtideChatMessageHistory(memory, "s1", clock=clock)
    messages: list[BaseMessage] = [
        HumanMessageChunk("Tea?"),
        AIMessageChunk("Green."),
        ToolMessageChunk("Ordered.", tool_call_id="1"),
        ChatMessage("Coffee?", role="Human"),
        ChatMessage("Black.", role="assistant"),
        ChatMessage("Cut.", role="director"),
        HumanMessage("Water.", name=""),
    ]
    history.add_messages(messages)
    assert history.messages == messages
    assert [(turn.role, turn.speaker) for turn in memory.turns()] == [
        ("user", None),
        ("assistant", None),
        ("tool", None),
        ("user", None),
        ("assistant", None),
        ("director", None),
        ("user", None),
    ]


@pytest.mark.filterwarnings("ignore:RunnableWithMessageHistory is deprecated")
def test_an_answer_that_was_streamed_is_the_assistants(memory: Memory) -> None:
    model = GenericFakeChatModel(messages=iter([AIMessage("Green tea it is.")]))
    chain = RunnableWithMessageHistory(
        model, lambda session_id: EbbtideChatMessageHistory(memory, session_id)
    )
    config: Any = {"configurable": {"session_id": "s1"}}
    said = [part.content for part in chain.stream([HumanMessage("Tea?")], config=config)]
    assert "".join(said) == "Green tea it is."
    assert [(turn.role, turn.text) for turn in memory.turns()] == [
        ("user", "Tea?"),
        ("assistant", "Green tea it is."),
    ]


def test_arguments_of_tools_are_read_as_they_are(memory: Memory) -> None:
    history = EbbtideChatMessageHistory(memory, "s1", clock=clock)
    calls = [{"name": "find", "args": {"what": "café"}, "id": "1"}]
    history.add_message(AIMessage("", tool_calls=calls))
    assert memory.get(0).text == 'find({"what": "café"})'
    odd = [{"name": "find", "args": {"when": clock()}, "id": "2"}]
    with pytest.raises(InputError, match="JSON"):
        history.add_message(AIMessage("", tool_calls=odd))


def test_long_questions_are_cut(memory: Memory) -> None:
    memory.add("I drink green tea.")
    retriever = EbbtideRetriever(memory=memory)
    assert [doc.id for doc in retriever.invoke("tea " * 20_000)] == ["0"]
    with pytest.raises(InputError, match="question"):
        retriever.invoke(" " * 20_001)


def test_sessions_stay_apart_and_are_cleared_alone(memory: Memory) -> None:
    one, two = (EbbtideChatMessageHistory(memory, name) for name in ("s1", "s2"))
    one.add_user_message("I drink tea.")
    two.add_user_message("I drink coffee.")
    one.add_ai_message("Noted.")
    # Another object for the same session sees what this one wrote.
    assert len(EbbtideChatMessageHistory(memory, "s1").messages) == 2
    one.clear()
    assert one.messages == []
    assert [message.content for message in two.messages] == ["I drink coffee."]
    assert len(memory) == 1
    one.add_user_message("I drink water.")
    assert len(one.messages) == 1


def test_turns_from_elsewhere_are_messages_too(memory: Memory) -> None:
    memory.add("I drink tea.", session_id="s1", speaker="Ana")
    memory.add("{}", role="tool", session_id="s1")
    (message,) = EbbtideChatMessageHistory(memory, "s1").messages
    assert message == HumanMessage("I drink tea.", name="Ana")


def test_a_prompt_with_the_memory_in_it_is_kept_but_not_read_anew(memory: Memory) -> None:
    history = EbbtideChatMessageHistory(memory, "s1")
    history.add_user_message("I drink green tea.")
    block = memory.render_context("What do I drink?")
    history.add_message(SystemMessage(block))
    assert history.messages[1].content == block
    assert memory.get(1).text == "[system]"


def test_a_message_that_cannot_be_stored_is_named(memory: Memory) -> None:
    history = EbbtideChatMessageHistory(memory, "s1")
    with pytest.raises(InputError, match="turn 2 of this call"):
        history.add_messages([HumanMessage("Tea."), HumanMessage("\ud800")])
    assert len(history.messages) == 1


def test_async_history(memory: Memory) -> None:
    async def main() -> list[BaseMessage]:
        history = EbbtideChatMessageHistory(memory, "s1")
        await history.aadd_messages([HumanMessage("Tea."), AIMessage("Noted.")])
        return await history.aget_messages()

    assert len(asyncio.run(main())) == 2


def test_the_retriever_in_a_chain(store_path: Path) -> None:
    with Memory.open(store_path) as memory:  # with the real models
        memory.add("I live in Lisbon.", speaker="Ana", metadata={"source": "chat"})
        memory.add("I live in Porto now.", speaker="Ana", external_id="m2")
        memory.add("I drink tea.", speaker="Luis")
        retriever = EbbtideRetriever(memory=memory, k=2)
        found = retriever.invoke("Where does Ana live now?")
        assert found[0].page_content == "I live in Porto now."
        assert found[0].id == "1"
        assert found[0].metadata["external_id"] == "m2"
        assert found[0].metadata["validity"] == "current"
        assert 0 <= found[0].metadata["confidence"] <= 1
        chain: Any = retriever | RunnableLambda(lambda docs: docs[0].page_content)
        assert asyncio.run(chain.ainvoke("What does Luis drink?")) == "I drink tea."
        only = EbbtideRetriever(memory=memory, filters={"speaker": "Luis"})
        assert [doc.page_content for doc in only.invoke("Where is home?")] == ["I drink tea."]
        sure = EbbtideRetriever(memory=memory, min_confidence=1.0)
        assert sure.invoke("What is the capital of Peru?") == []


def test_a_session_needs_a_name(memory: Memory) -> None:
    with pytest.raises(InputError, match="session_id"):
        EbbtideChatMessageHistory(memory, None)  # type: ignore[arg-type]
