"""Optional language models behind any OpenAI-compatible endpoint (``ebbtide[llm]``)."""

from __future__ import annotations

from ebbtide.llm.cache import LlmCache
from ebbtide.llm.client import LlmClient
from ebbtide.llm.replies import LanguageModel, Message, Reply, Usage
from ebbtide.llm.seam import JsonModel
from ebbtide.llm.tally import used

__all__ = [
    "JsonModel",
    "LanguageModel",
    "LlmCache",
    "LlmClient",
    "Message",
    "Reply",
    "Usage",
    "used",
]
