"""A LangGraph graph whose long-term memory is ebbtide: python with_langgraph.py [STORE]."""

from __future__ import annotations

import sys
from typing import TypedDict

from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore

from ebbtide.adapters.langgraph import EbbtideStore


class State(TypedDict):
    """What goes through the graph."""

    user: str
    question: str
    answer: str


def answer(state: State, *, store: BaseStore) -> dict[str, str]:
    """Answer with the user's best note; an agent would hand it to its model."""
    found = store.search(("notes", state["user"]), query=state["question"], limit=1)
    return {"answer": found[0].value["text"] if found else "I do not know."}


with EbbtideStore.open(sys.argv[1] if len(sys.argv) > 1 else "langgraph.db") as memory:
    memory.put(("notes", "ana"), "home", {"text": "I live in Porto."})
    memory.put(("notes", "ana"), "drink", {"text": "I drink green tea every morning."})

    graph = StateGraph(State)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    app = graph.compile(store=memory)
    done = app.invoke({"user": "ana", "question": "What do I drink?", "answer": ""})
    sys.stdout.write(f"{done['answer']}\n")
