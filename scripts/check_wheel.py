"""Check wheels before they are handed on: what is in them, what is not, whom they suit.

    python scripts/check_wheel.py WHEEL...

A wheel must carry every file of the package that git knows, the compiled module and the
licences, and nothing else; the module must be stripped and name no folder of the machine
that built it. Then ``twine check``, ``abi3audit`` and on Linux ``auditwheel show``, where
installed. Prints a line a wheel, or what is wrong with it, and exits with 1 then.
"""

from __future__ import annotations

import importlib.util
import re
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

__all__ = ["expected", "main", "problems"]

ROOT = Path(__file__).resolve().parents[1]
PYTHON = ROOT / "python"

_MODULE = re.compile(r"ebbtide/_core\.(abi3\.so|pyd)")
_META = re.compile(
    r"ebbtide-[^/]+\.dist-info/"
    r"(METADATA|WHEEL|RECORD|entry_points\.txt|licenses/LICENSE|licenses/THIRD-PARTY-LICENSES\.txt)"
)
_LICENCES = ("licenses/LICENSE", "licenses/THIRD-PARTY-LICENSES.txt")
_LIBC = re.compile(r"(?:many|musl)linux_(\d+)_(\d+)_")
_FOLDERS = re.compile(
    rb"(?:/(?:root|home|Users|work|tmp)/|[A-Z]:\\Users\\)[\w.@-]+[/\\][\w./\\@-]{4,}"
)


def expected() -> set[str]:
    """The package's files as a wheel names them, the compiled module left out."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "ebbtide"]
    listed = subprocess.run(words, cwd=PYTHON, capture_output=True, text=True, check=True)
    return {name for name in listed.stdout.splitlines() if (PYTHON / name).is_file()}


def problems(wheel: Path, files: set[str]) -> list[str]:
    """What is wrong with a wheel's content.

    Args:
        wheel: The wheel.
        files: The package's files, see :func:`expected`.
    """
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
        modules = sorted(name for name in names if _MODULE.fullmatch(name))
        code = archive.read(modules[0]) if len(modules) == 1 else b""
    extra = {name for name in names - files - set(modules) if not _META.fullmatch(name)}
    found = [f"{name} is missing" for name in sorted(files - names)]
    found += [
        f"{name} is missing" for name in _LICENCES if not any(one.endswith(name) for one in names)
    ]
    found += [f"{name} does not belong there" for name in sorted(extra)]
    if len(modules) != 1:
        found.append(f"one compiled module is expected, not {len(modules)}")
    if any(name == ".symtab" or name.startswith(".debug") for name in sections(code)):
        found.append(f"{modules[0]} is not stripped")
    folders = sorted({match.decode("ascii", "replace") for match in _FOLDERS.findall(code)})
    return found + [f"{modules[0]} names {folder}" for folder in folders[:5]]


def sections(code: bytes) -> list[str]:
    """Names of the sections of an ELF file; none for those of other systems."""
    if code[:6] != b"\x7fELF\x02\x01":  # 64 bits, little-endian: all that there are wheels for
        return []
    (table,) = struct.unpack_from("<Q", code, 0x28)
    size, count, names_at = struct.unpack_from("<HHH", code, 0x3A)
    headers = [struct.unpack_from("<IIQQQ", code, table + i * size) for i in range(count)]
    start = headers[names_at][4]
    return [
        code[start + header[0] : code.index(b"\0", start + header[0])].decode("ascii")
        for header in headers
    ]


def suits(name: str, audit: str) -> bool:
    """Whether a Linux wheel runs on every system that its name promises.

    Args:
        name: The wheel's file name, such as ``…-manylinux_2_17_x86_64.whl``.
        audit: What ``auditwheel show`` found.
    """
    promised = [tuple(map(int, pair)) for pair in _LIBC.findall(name)]
    needed = [tuple(map(int, pair)) for pair in _LIBC.findall(audit.partition("platform tag:")[2])]
    return bool(promised and needed) and needed[0] <= min(promised)


def tools(wheel: Path) -> list[list[str]]:
    """The commands that look at a wheel, as far as they are installed."""
    wanted = {"twine": ["check", "--strict"], "abi3audit": ["--strict"]}
    if sys.platform == "linux":
        wanted["auditwheel"] = ["show"]
    return [
        [sys.executable, "-m", tool, *words, str(wheel)]
        for tool, words in wanted.items()
        if importlib.util.find_spec(tool) is not None
    ]


def main(arguments: list[str] | None = None) -> int:
    """Check each wheel; returns the exit status."""
    wheels = [Path(name) for name in (sys.argv[1:] if arguments is None else arguments)]
    files = expected()
    status = 0 if wheels else 2
    for wheel in wheels:
        found = problems(wheel, files)
        for problem in found:
            print(f"{wheel.name}: {problem}")
        for words in tools(wheel):
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            text = " ".join((done.stdout + done.stderr).split())
            print(f"{words[2]}: {text or 'passed'}")
            found += [words[2]] if done.returncode else []
            if words[2] == "auditwheel" and not suits(wheel.name, text):
                print(f"{wheel.name}: it needs a newer C library than its name says")
                found.append("auditwheel")
        print(f"{wheel.name}: {wheel.stat().st_size:,} bytes, {'refused' if found else 'good'}")
        status = 1 if found else status
    return status


if __name__ == "__main__":
    sys.exit(main())
