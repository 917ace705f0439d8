"""Programs of the repository as modules, so that tests can call what is in them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

__all__ = ["load_script", "loaded"]

ROOT = Path(__file__).resolve().parents[2]


def load_script(name: str) -> ModuleType:
    """The program of that name in ``scripts``."""
    return loaded(ROOT / "scripts" / f"{name}.py")


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"script_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
