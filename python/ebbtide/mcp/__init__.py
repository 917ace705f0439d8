"""A memory as a server of the Model Context Protocol (``ebbtide[mcp]``)."""

from __future__ import annotations

from ebbtide.mcp.server import build_server, serve

__all__ = ["build_server", "serve"]
