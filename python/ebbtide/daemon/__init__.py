"""One process that writes a store for several: a local daemon and its client (``ebbtide[serve]``)."""

from __future__ import annotations

from ebbtide.daemon.client import RemoteMemory, connect

__all__ = ["RemoteMemory", "connect"]
