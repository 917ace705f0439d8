"""Replay of many transcripts: in processes of this machine, or on the workers of a cluster.

``sources`` says which conversations there are, ``work`` makes one batch of them into
a part, ``engines`` and ``cluster`` say where that happens, ``run`` puts it together.
"""

from __future__ import annotations

__all__: list[str] = []
