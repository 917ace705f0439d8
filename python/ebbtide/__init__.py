"""ebbtide: a deterministic memory engine for conversational AI agents.

Same turns in, same memory out, every decision explained, and no LLM call in
the loop. Start with :class:`Memory`.
"""

from __future__ import annotations

from ebbtide._core import __version__
from ebbtide.aio import AsyncMemory
from ebbtide.config import Config
from ebbtide.connecting import connect
from ebbtide.distributed.run import ReplayReport, replay_many
from ebbtide.errors import (
    ConfigError,
    EbbtideError,
    ExternalError,
    FingerprintError,
    InputError,
    NotFoundError,
    SchemaVersionError,
    StoreError,
)
from ebbtide.memory import Memory
from ebbtide.store import Store
from ebbtide.types import (
    Episode,
    Eviction,
    Excerpt,
    Fact,
    Finding,
    RenderedContext,
    RetrievedEvidence,
    SupportTurn,
    Turn,
    WriteReport,
)

__all__ = [
    "AsyncMemory",
    "Config",
    "ConfigError",
    "EbbtideError",
    "Episode",
    "Eviction",
    "Excerpt",
    "ExternalError",
    "Fact",
    "Finding",
    "FingerprintError",
    "InputError",
    "Memory",
    "NotFoundError",
    "RenderedContext",
    "ReplayReport",
    "RetrievedEvidence",
    "SchemaVersionError",
    "Store",
    "StoreError",
    "SupportTurn",
    "Turn",
    "WriteReport",
    "__version__",
    "connect",
    "replay_many",
]
