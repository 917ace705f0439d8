"""A second thread that helps an embedder."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ebbtide.analysis.embedding import ModelEmbedder

__all__ = ["helped"]


@contextmanager
def helped(embedder: ModelEmbedder) -> Iterator[None]:
    """A second thread takes its share of each text that is embedded alone."""
    done = threading.Event()

    def help_along() -> None:
        while not done.is_set():
            if not embedder.assist():
                time.sleep(0)

    thread = threading.Thread(target=help_along)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
