"""Running a program on a processor of fewer instructions than this one has."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

__all__ = ["output", "without_avx", "without_avx512"]

_WIDE = """
import numpy
from numpy._core._multiarray_umath import __cpu_features__ as has
print(has["AVX2"], has["AVX512F"])
"""


def without_avx512() -> list[str]:
    """What to put before a command so that it finds AVX2 and no AVX-512.

    QEMU's user mode, else valgrind: both make up the processor that a program asks about,
    and valgrind 3.19 knows no AVX-512. Skips the test where neither is installed.
    """
    if (qemu := _qemu()) is not None:
        emulator = [qemu, "-cpu", "Haswell"]
    elif (valgrind := shutil.which("valgrind")) is not None:
        emulator = [valgrind, "--tool=none", "--quiet"]
    else:
        pytest.skip("neither qemu-x86_64 nor valgrind here to stand for an older processor")
    return _checked(emulator, "Haswell", avx2=True)


def without_avx() -> list[str]:
    """The same for a processor of 2008, whose registers have sixteen bytes."""
    if (qemu := _qemu()) is None:
        pytest.skip("no qemu-x86_64 here to stand for a processor without AVX")
    return _checked([qemu, "-cpu", "Nehalem"], "Nehalem", avx2=False)


def _qemu() -> str | None:
    return shutil.which("qemu-x86_64") or shutil.which("qemu-x86_64-static")


def _checked(emulator: Sequence[str], name: str, *, avx2: bool) -> list[str]:
    # OpenBLAS is told what it runs on, not left to find out.
    command = ["env", f"OPENBLAS_CORETYPE={name}", *emulator]
    told = subprocess.run(
        [*command, sys.executable, "-c", _WIDE], capture_output=True, text=True, check=True
    )
    assert told.stdout.split() == [str(avx2), "False"]
    return command


def output(
    program: str,
    given: Any,
    *arguments: str,
    processor: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
) -> Any:
    """What a Python program prints as JSON that is given JSON, in a process of its own.

    Args:
        program: Its text.
        given: What it reads from standard input.
        arguments: Its arguments.
        processor: What stands before the command, such as :func:`without_avx512`.
        env: Its environment; this process' by default.
    """
    done = subprocess.run(
        [*processor, sys.executable, "-c", program, *arguments],
        input=json.dumps(given),
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
