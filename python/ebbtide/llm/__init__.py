"""Optional language models behind any OpenAI-compatible endpoint (``ebbtide[llm]``)."""

from __future__ import annotations

from ebbtide.llm.cache import LlmCache
from ebbtide.llm.client import LlmClient
from ebbtide.llm.replies import LanguageModel, Message, Reply, Usage

__all__ = ["LanguageModel", "LlmCache", "LlmClient", "Message", "Reply", "Usage"]
