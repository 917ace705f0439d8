"""Reading a question: the QueryFrame of the DMF paper, section 9.3, eq. 32."""

from __future__ import annotations

from ebbtide.analysis.query.frame import QueryFrame, build_frame
from ebbtide.analysis.query.question import with_apostrophes

__all__ = ["QueryFrame", "build_frame", "with_apostrophes"]
