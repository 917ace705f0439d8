"""What a figure depends on besides data and settings: the code, the models, the libraries."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import shlex
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ebbtide import _core
from ebbtide.config import Config
from ebbtide.errors import InputError
from ebbtide.messages import reason

__all__ = ["code", "file_sha256", "fingerprint", "machine", "public_command", "versions"]

_PACKAGES = ("numpy", "onnxruntime", "spacy", "tokenizers", "vaderSentiment", "bm25s", "pyarrow")

_ROOT = Path(__file__).parents[1]
# What only shows results decides none.
_SHOWING = (("cli",), ("evals", "report"))

_FILES = {"--peer": "DIR", "--cache": "FILE", "--replies": "FILE", "--out": "DIR", "-o": "DIR"}
"""Options whose value is a place on one machine and says nothing to others."""


@functools.cache
def _code() -> tuple[tuple[str, str], ...]:
    digest = hashlib.sha256()
    for path in sorted([*_ROOT.rglob("*.py"), *_ROOT.rglob("*.toml")]):
        parts = path.relative_to(_ROOT).parts
        if not any(parts[: len(shown)] == shown for shown in _SHOWING):
            # Lengths in front keep two files from reading like one.
            for data in ("/".join(parts).encode(), path.read_bytes()):
                digest.update(len(data).to_bytes(8, "little") + data)
    return (
        ("ebbtide", _core.__version__),
        ("core_sha256", file_sha256(Path(_core.__file__))),
        ("sources_sha256", digest.hexdigest()),
    )


def code() -> dict[str, Any]:
    """Version and hashes of ebbtide's own code, and the versions of its libraries.

    Returns:
        ``ebbtide``, ``core_sha256`` (the compiled module), ``sources_sha256`` (every
        module but the command line and the reports) and ``versions``.
    """
    return dict(_code()) | {"versions": versions()}


def fingerprint(config: Config) -> str:
    """The analyser's fingerprint under a configuration; no model is loaded."""
    from ebbtide.analysis.analyser import Analyser

    cards = bool(config["retrieval"]["enable_card_semantic"])
    return str(Analyser(config["nlp"], embedder=config.embedder, cards=cards).fingerprint)


def public_command(words: Sequence[str]) -> str:
    """A command line that can be shown to anyone: no folders of the machine it ran on.

    Of data and other files the name is kept, of ``--out``, ``--peer``, ``--cache`` and
    ``--replies`` only the option.
    """
    kept: list[str] = []
    option = ""
    for word in words:
        name, equals, value = word.partition("=")
        if option:
            kept.append(_public(option, word))
            option = ""
        elif name.startswith("--") and equals:
            kept.append(f"{name}={_public(name, value)}")
        elif name[:2] in ("-o", "-d") and len(word) > 2 and not name.startswith("--"):
            kept.append(name[:2] + _public(name[:2], word[2:]))
        else:
            kept.append(_public("", word))
            # A flag takes the next word for its value too, which does no harm.
            option = word if word.startswith("-") else ""
    return shlex.join(kept)


def _public(option: str, value: str) -> str:
    if option in _FILES:
        return _FILES[option]
    head, equals, tail = value.rpartition("=")
    path = Path(tail)
    return head + equals + path.name if option in ("--data", "-d") or path.is_absolute() else value


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, in hex.

    Raises:
        InputError: ``input.transcript``: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        message = f"{path} cannot be read: {reason(error)}"
        raise InputError(message, "input.transcript") from error


def versions() -> dict[str, str]:
    """Versions of what a figure may depend on."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, Any]:
    """The machine in a few words: system, processor, cores, and memory where it is told."""
    found: dict[str, Any] = {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
    }
    try:
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not on Windows
        return found
    return found | {"memory_gib": round(size / 2**30, 1)}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
