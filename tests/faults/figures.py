"""What a suite found, for docs/reliability.md: one JSON file a suite, where one is wanted."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Any, Self


class Figures:
    """Counts of one suite; written to ``$EBBTIDE_FIGURES/NAME.json`` if it ends well.

    Attributes:
        counts: What is counted, by the words that the page says it with.
    """

    def __init__(self, name: str, promise: str, test: str) -> None:
        self.counts: Counter[str] = Counter()
        self._name = name
        self._said = {"promise": promise, "test": test}
        self._start = time.perf_counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        folder = os.environ.get("EBBTIDE_FIGURES")
        if kind is not None or not folder:
            return
        Path(folder).mkdir(parents=True, exist_ok=True)
        seconds = round(time.perf_counter() - self._start, 1)
        found: dict[str, Any] = {**self._said, "figures": self.counts, "seconds": seconds}
        text = json.dumps(found, indent=2, ensure_ascii=False)
        (Path(folder) / f"{self._name}.json").write_text(f"{text}\n", encoding="utf-8")
