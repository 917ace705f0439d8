"""LangChain with a chat history and a retriever in ebbtide: python with_langchain.py [STORE]."""

from __future__ import annotations

import sys

from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough

from ebbtide import Memory
from ebbtide.adapters.langchain import EbbtideChatMessageHistory, EbbtideRetriever

with Memory.open(sys.argv[1] if len(sys.argv) > 1 else "langchain.db") as memory:
    history = EbbtideChatMessageHistory(memory, session_id="monday")
    history.add_user_message("I moved to Porto in May, and I drink green tea every morning.")
    history.add_ai_message("Noted.")

    # Another session, another day. A chat model would follow the prompt with "| model".
    prompt = ChatPromptTemplate.from_template("Known: {known}\nQuestion: {question}")
    retriever = EbbtideRetriever(memory=memory, k=1)
    chain = {
        "known": retriever | (lambda found: "\n".join(one.page_content for one in found)),
        "question": RunnablePassthrough(),
    } | prompt
    sys.stdout.write(f"{chain.invoke('What do I drink?').to_string()}\n")
