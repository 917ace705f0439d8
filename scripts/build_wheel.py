"""Build the wheel of this machine's platform for others to use, and check it.

    python scripts/build_wheel.py [--out FOLDER] [--offline]

On Linux with ziglang installed the wheel is linked for glibc 2.17 (manylinux2014), else
for the C library of this machine. Paths of this machine are kept out of the binary. The
checks are those of scripts/check_wheel.py.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import check_wheel

__all__ = ["command", "environment", "main"]

ROOT = Path(__file__).resolve().parents[1]


def command(out: Path, *, zig: bool, offline: bool) -> list[str]:
    """The call of maturin."""
    words = [sys.executable, "-m", "maturin", "build", "--release", "--locked", "--out", str(out)]
    if zig:
        words += ["--zig", "--compatibility", "manylinux2014"]
    return [*words, "--offline"] if offline else words


def environment() -> dict[str, str]:
    """This process's environment, with this Python first and paths of builds renamed."""
    cargo = os.environ.get("CARGO_HOME") or str(Path.home() / ".cargo")
    renamed = f"--remap-path-prefix={cargo}=/cargo --remap-path-prefix={ROOT}=/ebbtide"
    flags = f"{os.environ.get('RUSTFLAGS', '')} {renamed}".strip()
    # maturin looks for zig in the Python that comes first.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, "RUSTFLAGS": flags, "PATH": path}


def main(arguments: list[str] | None = None) -> int:
    """Build and check; returns the exit status."""
    parser = argparse.ArgumentParser(description="Build and check this platform's wheel.")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--offline", action="store_true", help="fetch no crates")
    given = parser.parse_args(arguments)
    zig = sys.platform == "linux" and importlib.util.find_spec("ziglang") is not None
    given.out.mkdir(parents=True, exist_ok=True)
    # The name of the wheel depends on what it was linked with: an older one of another
    # name would be found first by pip.
    for old in given.out.glob("ebbtide-[0-9]*.whl"):
        old.unlink()
    words = command(given.out, zig=zig, offline=given.offline)
    done = subprocess.run(words, cwd=ROOT, env=environment(), check=False)
    if done.returncode:
        return done.returncode
    (wheel,) = given.out.glob("ebbtide-[0-9]*.whl")
    return check_wheel.main([str(wheel)])


if __name__ == "__main__":
    sys.exit(main())
