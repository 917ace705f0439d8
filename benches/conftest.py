"""Settings of the benches: CPU time of the thread, the best of the rounds."""

from __future__ import annotations

import os

# One thread for numpy's BLAS too: the kernels run in one.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_configure(config: object) -> None:
    options = config.option  # type: ignore[attr-defined]
    options.benchmark_timer = "time.thread_time"
    options.benchmark_sort = "min"
