"""A memory to look at: data, one self-contained page, plots."""

from __future__ import annotations

from ebbtide.inspection.gather import LIMIT, gather
from ebbtide.inspection.page import inspection_page

__all__ = ["LIMIT", "gather", "inspection_page"]
