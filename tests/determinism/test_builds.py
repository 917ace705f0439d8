"""The same turns make the same memory in every build of the core."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import ebbtide

from .processors import output, without_avx512

ROOT = Path(__file__).parents[2]
PACKAGE = Path(ebbtide.__file__).parent

# One memory of scripted turns and one with the models, questions too.
DIGESTS = """
import hashlib, json, sys
sys.path.insert(0, sys.argv[1])
from reference.stand_ins import HashEmbedder, scripted
import ebbtide
config = ebbtide.Config().replace(capacity={"token_budget": 1024})
found = []
for settings, turns in (
    (config.with_embedder(HashEmbedder(32)), [scripted(n) for n in range(300)]),
    (config, json.load(sys.stdin)),
):
    with ebbtide.Memory.in_memory(config=settings) as memory:
        memory.add_many(turns)
        found.append(memory.digest())
        for preset in ("default", "paper"):
            for question in ("Which port is it now?", "What happened in May?", "tea or coffee?"):
                items = [e.to_dict() for e in memory.retrieve(question, preset=preset)]
                found.append(hashlib.sha256(json.dumps(items).encode()).hexdigest())
print(json.dumps([ebbtide._core.__file__, found]))
"""


def digests(package: Path, turns: list[dict[str, Any]], processor: Sequence[str] = ()) -> list[str]:
    env = {**os.environ, "PYTHONPATH": str(package.parent)}
    core, found = output(DIGESTS, turns, str(ROOT / "tests"), processor=processor, env=env)
    assert Path(core).parent == package
    assert isinstance(found, list)
    return found


def built(folder: Path, name: str, *options: str, flags: str = "") -> Path:
    """The package with a core of its own, built into the target folder under that name."""
    cargo = shutil.which("cargo")
    if cargo is None:
        pytest.skip("no cargo here to build the core with")
    # Kept from run to run beside cargo's own, for it takes minutes.
    target = ROOT / "target" / ("" if name == "debug" else name)
    command = [cargo, "build", "--package", "ebbtide-py", "--features", "pyo3/extension-module"]
    done = subprocess.run(
        [*command, "--target-dir", str(target), *options],
        cwd=ROOT,
        env={**os.environ, "RUSTFLAGS": flags} if flags else None,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    package = folder / "ebbtide"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__", "_core*.so"))
    library = target / ("release" if "--release" in options else "debug") / "lib_core.so"
    shutil.copy(library, package / "_core.abi3.so")
    return package


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_debug_and_release(tmp_path: Path, example_turns: list[dict[str, Any]]) -> None:
    turns = example_turns[:80]
    debug = digests(built(tmp_path, "debug"), turns)
    assert debug == digests(PACKAGE, turns)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_baseline_and_native_instructions(
    tmp_path: Path, example_turns: list[dict[str, Any]]
) -> None:
    turns = example_turns[:80]
    package = built(tmp_path, "native", "--release", flags="-C target-cpu=native")
    assert digests(package, turns) == digests(PACKAGE, turns)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_processor_without_avx512(example_turns: list[dict[str, Any]]) -> None:
    """Language analysis, embeddings, kernels and store, the questions too."""
    turns = example_turns[:50]
    assert digests(PACKAGE, turns, without_avx512()) == digests(PACKAGE, turns)
