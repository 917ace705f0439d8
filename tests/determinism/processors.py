"""Running a program on a processor of fewer instructions than this one has."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

__all__ = ["without_avx512"]

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
    qemu = shutil.which("qemu-x86_64") or shutil.which("qemu-x86_64-static")
    if qemu is not None:
        emulator = [qemu, "-cpu", "Haswell"]
    elif (valgrind := shutil.which("valgrind")) is not None:
        emulator = [valgrind, "--tool=none", "--quiet"]
    else:
        pytest.skip("neither qemu-x86_64 nor valgrind here to stand for an older processor")
    # OpenBLAS is told what it runs on, not left to find out.
    command = ["env", "OPENBLAS_CORETYPE=Haswell", *emulator]
    told = subprocess.run(
        [*command, sys.executable, "-c", _WIDE], capture_output=True, text=True, check=True
    )
    assert told.stdout.split() == ["True", "False"]
    return command
