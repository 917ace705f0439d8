"""English: cue lists, clause scoping, claims and the social test."""

from __future__ import annotations

from ebbtide.analysis.signals.english import EnglishAdapter

__all__ = ["EnglishAdapter"]
