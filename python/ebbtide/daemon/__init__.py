"""One process that writes a store for several: a local daemon, and its client.

The daemon takes the extra ``serve``; the client takes nothing.
"""

from __future__ import annotations

from ebbtide.daemon.client import RemoteMemory, connect

__all__ = ["RemoteMemory", "connect"]
