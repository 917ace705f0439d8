"""Noise for conversations: LoCoMo-Noise at any ratio, from templates of our own.

D-MEM (section 2.2) buries the turns that hold evidence in small talk that holds
none: phatic fillers, status updates and tangents, 40/30/30. Here the small talk
comes from a template file instead of a language model, so that the same
conversation, ratio and seed give the same noise on every machine.
"""

from __future__ import annotations

from ebbtide.evals.noise.generate import (
    MOST_NOISE_TURNS,
    NoiseReport,
    RatioOf,
    add_noise,
    describe,
    noise_count,
)
from ebbtide.evals.noise.templates import CATEGORIES, category_of
from ebbtide.evals.noise.write import write_locomo

__all__ = [
    "CATEGORIES",
    "MOST_NOISE_TURNS",
    "NoiseReport",
    "RatioOf",
    "add_noise",
    "category_of",
    "describe",
    "noise_count",
    "write_locomo",
]
