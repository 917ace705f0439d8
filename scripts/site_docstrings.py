"""Docstrings for the site: Sphinx roles and doubled backticks become Markdown.

A griffe extension; mkdocs.yml names it.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

__all__ = ["Roles", "plain"]

_ROLE = re.compile(r":(?:class|func|meth|mod|data|exc|attr):`~?\.?([^`]+)`")
_EXAMPLE = re.compile(r"^( *)Example:$", re.MULTILINE)
_LITERAL = re.compile(r"``([^`]+)``")


def plain(text: str) -> str:
    """A docstring as Markdown."""
    text = _EXAMPLE.sub(r"\1Examples:", text)
    return _LITERAL.sub(r"`\1`", _ROLE.sub(r"`\1`", text))


class Roles(griffe.Extension):
    """Rewrites every docstring as it is read."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = plain(obj.docstring.value)
