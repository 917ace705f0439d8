"""Reading language: from a turn's text to the plain facts the engine decides on."""

from __future__ import annotations

__all__: list[str] = []
