"""``ebbtide --version``: what this installation is made of, for reports and comparisons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ebbtide.cli.output import print_json, write

__all__ = ["fingerprints", "show"]


def show(*, as_json: bool) -> None:
    """Print version and fingerprints."""
    found = fingerprints()
    if as_json:
        print_json(found)
        return
    core = found["core"]
    write(f"ebbtide {found['ebbtide']}")
    target = f"{core['target']} ({core['instructions']})"
    write(f"core {core['version']} {core['profile']} {target} sha256 {core['sha256']}")
    for name in ("schema", "embedder", "analyser", "token_counter"):
        write(f"{name} {found[name]}")
    libraries = ", ".join(f"{name} {number}" for name, number in found["libraries"].items())
    write(f"python {found['python']}: {libraries}")


def fingerprints() -> dict[str, Any]:
    """What decides the content of a store that the default settings make.

    Returns:
        ``ebbtide`` (the version), ``core`` (``version``, ``target``, ``profile``,
        ``instructions`` that the default model runs by, ``sha256`` of the compiled
        module), ``schema`` (the version that new stores get), ``embedder`` and
        ``analyser`` (fingerprints; where the model's package is missing, the words that
        say so), ``token_counter``, ``python`` and ``libraries``.
    """
    import ebbtide
    from ebbtide import _core
    from ebbtide.analysis.embedding_model import default_directory, fingerprint_of
    from ebbtide.errors import ConfigError
    from ebbtide.evals.provenance import file_sha256, fingerprint, versions

    config = ebbtide.Config()
    target, profile = _core.build()
    try:
        analyser = fingerprint(config)
        embedder = fingerprint_of(default_directory())
    except ConfigError as error:
        analyser = embedder = str(error)
    libraries = versions()
    python = libraries.pop("python")
    return {
        "ebbtide": ebbtide.__version__,
        "core": {
            "version": _core.__version__,
            "target": target,
            "profile": profile,
            "instructions": _core.instructions(),
            "sha256": file_sha256(Path(_core.__file__)),
        },
        "schema": _core.schema_version(),
        "embedder": embedder,
        "analyser": analyser,
        "token_counter": config["capacity"]["token_counter"],
        "python": python,
        "libraries": libraries,
    }
