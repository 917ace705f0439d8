"""ebbtide inside other libraries: one module each, which imports that library.

``langgraph``, ``langchain``, ``llamaindex`` and ``openai_agents`` need the extra of their
own name with a hyphen (``ebbtide[openai-agents]``); ``mem0`` needs nothing.
"""

from __future__ import annotations

__all__: list[str] = []
