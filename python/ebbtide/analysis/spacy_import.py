"""spaCy without its command line, which is a third of what importing it takes.

``spacy/__init__.py`` imports one function of ``spacy.cli``, and with it typer, weasel,
httpx and 360 modules in all. A stand-in for the module that has the function takes its
place while spaCy is imported, and no longer: ``spacy.info`` and ``spacy.cli`` are loaded
when somebody asks for them.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

__all__ = ["import_spacy"]

_CLI = "spacy.cli"
_INFO = "spacy.cli.info"


def import_spacy() -> ModuleType:
    """The module ``spacy``, imported without its command line unless it was before."""
    if "spacy" in sys.modules or _INFO in sys.modules:
        return importlib.import_module("spacy")
    stand_in = ModuleType(_INFO)
    stand_in.__dict__["info"] = _info
    sys.modules[_INFO] = stand_in
    try:
        spacy = importlib.import_module("spacy")
    finally:
        if sys.modules.get(_INFO) is stand_in:
            del sys.modules[_INFO]
    spacy.__dict__.setdefault("__getattr__", _attribute)
    return spacy


def _info(*args: Any, **options: Any) -> Any:
    """As ``spacy.info``."""
    return importlib.import_module(_INFO).info(*args, **options)


def _attribute(name: str) -> ModuleType:
    if name == "cli":
        return importlib.import_module(_CLI)
    raise AttributeError(f"module 'spacy' has no attribute {name!r}")
