"""A directory with an encoder and its tokenizer, checked and opened.

The directory holds ``model.safetensors`` (a BERT encoder in bytes, run by the core) or
``model.onnx`` (any BERT-like encoder, run by ONNX Runtime), ``tokenizer.json`` and,
optionally, ``manifest.json`` with any of these keys:

- ``name``: shown in the fingerprint; the directory's name by default.
- ``dimension``: width of the vectors; read from the model by default.
- ``max_tokens``: longest input in word pieces, [CLS] and [SEP] included; 512.
- ``pooling``: ``cls`` (default) or ``mean`` over all word pieces.
- ``query_prefix``: put before a question, not before a turn; empty by default.
- ``sha256``: file name to hash; a file that differs is refused.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ebbtide.analysis.networks import NETWORK_FILES, Network, open_network
from ebbtide.errors import ConfigError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = [
    "DEFAULT_PACKAGE",
    "EmbeddingModel",
    "default_directory",
    "fingerprint_of",
    "load_model",
]

DEFAULT_PACKAGE = "ebbtide_model_bge_small_en"
DEFAULT_MAX_TOKENS = 512


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """An opened encoder.

    Attributes:
        name: The model's name.
        dimension: Width of its vectors.
        max_tokens: Longest input in word pieces, special ones included.
        pooling: ``cls`` or ``mean``.
        query_prefix: What the model wants before a question.
        fingerprint: Changes whenever stored vectors would change.
        tokenizer: A ``tokenizers.Tokenizer`` that neither pads nor truncates.
        network: What makes vectors of word pieces.
    """

    name: str
    dimension: int
    max_tokens: int
    pooling: str
    query_prefix: str
    fingerprint: str
    tokenizer: Tokenizer
    network: Network


def default_directory() -> Path:
    """Directory of the installed default model.

    Raises:
        ConfigError: If its package is not installed.
    """
    try:
        package = importlib.import_module(DEFAULT_PACKAGE)
    except ImportError as error:
        distribution = DEFAULT_PACKAGE.replace("_", "-")
        raise ConfigError(
            f"the embedding model package {distribution!r} is not installed: run "
            f"`pip install {distribution}` (from a checkout: `python "
            "models/bge-small-en-v1.5/build.py`, then install the wheel from dist/), or name a "
            "directory with model.onnx and tokenizer.json",
            code="config.model_missing",
        ) from error
    return Path(package.path())


def fingerprint_of(directory: Path) -> str:
    """The fingerprint that the opened model will have, without opening it.

    Takes the manifest's word for the hashes where it has them; opening checks them.

    Raises:
        ConfigError: If a file is missing or the manifest is unusable.
    """
    paths = _model_files(directory)
    manifest = _Manifest.read(directory)
    hashes = [manifest.sha256.get(path.name) or _file_hash(path) for path in paths]
    return _fingerprint(manifest, hashes)


def load_model(directory: Path, threads: int) -> EmbeddingModel:
    """Check and open the model in ``directory``.

    Args:
        directory: Where the files are.
        threads: Threads of ONNX Runtime within one call, 1 or more.

    Raises:
        ConfigError: If a file is missing, damaged or not usable.
    """
    if threads < 1:
        raise ConfigError(f"embedder threads must be 1 or more, not {threads}", "config.range")
    paths = _model_files(directory)
    manifest = _Manifest.read(directory)
    hashes = [_file_hash(path) for path in paths]
    for path, actual in zip(paths, hashes, strict=True):
        if manifest.sha256.get(path.name, actual) != actual:
            raise _unusable(path, "its content differs from manifest.json; install it again")
    tokenizer = _open_tokenizer(paths[1])
    try:
        network = open_network(paths[0], threads)
    except ValueError as error:
        raise _unusable(paths[0], str(error)) from error
    width, longest = network.width, network.longest
    if longest is not None and manifest.max_tokens > longest:
        told = f"its longest text has {longest} word pieces, not {manifest.max_tokens}"
        raise _unusable(paths[0], f"{told}; give `max_tokens` in manifest.json")
    if width is None and manifest.dimension is None:
        raise _unusable(paths[0], "its width is not fixed; give `dimension` in manifest.json")
    if None not in (width, manifest.dimension) and width != manifest.dimension:
        raise _unusable(paths[0], f"its width is {width}, manifest.json says {manifest.dimension}")
    return EmbeddingModel(
        name=manifest.name,
        dimension=int(width or manifest.dimension or 0),
        max_tokens=manifest.max_tokens,
        pooling=manifest.pooling,
        query_prefix=manifest.query_prefix,
        fingerprint=_fingerprint(manifest, hashes),
        tokenizer=tokenizer,
        network=network,
    )


def _model_files(directory: Path) -> list[Path]:
    if not directory.is_dir():
        raise _unusable(directory, "no such directory", "config.model_missing")
    found = [directory / name for name in NETWORK_FILES if (directory / name).is_file()]
    paths = [found[0] if found else directory / NETWORK_FILES[-1], directory / "tokenizer.json"]
    for path in paths:
        if not path.is_file():
            raise _unusable(path, "no such file", "config.model_missing")
    return paths


def _fingerprint(manifest: _Manifest, hashes: list[str]) -> str:
    parts = [manifest.name, manifest.pooling, str(manifest.max_tokens)]
    return "/".join(parts + [digest[:12] for digest in hashes])


def _unusable(path: Path, reason: str, code: str = "config.model_unusable") -> ConfigError:
    return ConfigError(
        f"embedding model {str(path)!r} cannot be used: {reason}; a model is a directory with "
        "model.onnx or model.safetensors, tokenizer.json and optionally manifest.json",
        code=code,
    )


@dataclass(frozen=True, slots=True)
class _Manifest:
    name: str
    dimension: int | None
    max_tokens: int
    pooling: str
    query_prefix: str
    sha256: dict[str, str]

    @classmethod
    def read(cls, directory: Path) -> _Manifest:
        path = directory / "manifest.json"
        try:
            values = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        except (OSError, ValueError) as error:
            raise _unusable(path, str(error)) from error
        if not isinstance(values, dict):
            raise _unusable(path, "it is not a JSON object")
        manifest = cls(
            name=values.get("name", directory.resolve().name),
            dimension=values.get("dimension"),
            max_tokens=values.get("max_tokens", DEFAULT_MAX_TOKENS),
            pooling=values.get("pooling", "cls"),
            query_prefix=values.get("query_prefix", ""),
            sha256=values.get("sha256", {}),
        )
        manifest.check(path)
        return manifest

    def check(self, path: Path) -> None:
        """Refuse a value of the wrong type or range, by its key."""
        positive = {"max_tokens": self.max_tokens}
        if self.dimension is not None:
            positive["dimension"] = self.dimension
        for key, number in positive.items():
            if type(number) is not int or number < 1:
                raise _unusable(path, f"`{key}` must be a positive integer, not {number!r}")
        for key, text in {"name": self.name, "query_prefix": self.query_prefix}.items():
            if not isinstance(text, str):
                raise _unusable(path, f"`{key}` must be a string, not {text!r}")
        if self.pooling not in ("cls", "mean"):
            raise _unusable(path, f"`pooling` must be 'cls' or 'mean', not {self.pooling!r}")
        if not isinstance(self.sha256, dict):
            raise _unusable(path, "`sha256` must map file names to hashes")


def _file_hash(path: Path) -> str:
    status = path.stat()
    return _hash_once(path.resolve(), status.st_size, status.st_mtime_ns)


@functools.lru_cache(maxsize=32)
def _hash_once(path: Path, size: int, modified: int) -> str:
    """SHA-256 of a file; size and time are the cache key of its content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _open_tokenizer(path: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    # The library raises bare Exception for a file it cannot read.
    except Exception as error:
        raise _unusable(path, str(error)) from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer
