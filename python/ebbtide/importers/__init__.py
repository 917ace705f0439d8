"""Chat exports as streams of turns: ChatGPT, Claude, Gemini, WhatsApp, Slack and others.

``read`` gives the turns, ``ebbtide.replay.replay`` stores them.
"""

from __future__ import annotations

from ebbtide.importers.detection import FORMATS, detect
from ebbtide.importers.export import Export, ExportPart, read
from ebbtide.importers.preview import ImportedConversation, preview
from ebbtide.importers.reading import REASONS

__all__ = [
    "FORMATS",
    "REASONS",
    "Export",
    "ExportPart",
    "ImportedConversation",
    "detect",
    "preview",
    "read",
]
