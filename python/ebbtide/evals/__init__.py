"""Evaluation: public datasets in, retrieval metrics out, no language model needed."""

from __future__ import annotations

__all__: list[str] = []
