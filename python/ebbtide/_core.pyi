from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "MemoryHandle",
    "StoreHandle",
    "__version__",
    "count_tokens",
    "default_config",
    "error_codes",
    "kernel_bm25",
    "kernel_cosine_top_k",
    "kernel_decay",
    "kernel_divergence",
    "kernel_overlap",
    "kernel_prune",
    "load_config",
    "token_vectors",
    "unit_vectors",
    "without_rendered",
]

__version__: str

def load_config(preset: str, user: str) -> str: ...
def default_config() -> str: ...
def error_codes() -> list[str]: ...
def count_tokens(text: str, counter: str) -> int: ...
def without_rendered(text: str) -> str: ...
def unit_vectors(rows: NDArray[np.float32]) -> NDArray[np.int16]: ...
def token_vectors(rows: NDArray[np.float32]) -> NDArray[np.int8]: ...
def kernel_decay(
    omega: NDArray[np.float64],
    age: NDArray[np.int64],
    *,
    lambda_base: float,
    inertia: float,
    healthy_min: float,
    critical_max: float,
) -> tuple[NDArray[np.float64], NDArray[np.uint8]]: ...
def kernel_prune(
    effective: NDArray[np.float64],
    adjustment: NDArray[np.float64],
    tokens: NDArray[np.int64],
    *,
    budget: int,
    healthy_min: float,
    evict_healthy: bool,
) -> tuple[NDArray[np.int64], int]: ...
def kernel_divergence(
    vectors: NDArray[np.int16] | NDArray[np.float32], window: int
) -> NDArray[np.float64]: ...
def kernel_cosine_top_k(
    vectors: NDArray[np.int16] | NDArray[np.float32],
    query: NDArray[np.int16] | NDArray[np.float32],
    k: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]: ...
def kernel_overlap(
    offsets: NDArray[np.int64],
    documents: NDArray[np.uint32],
    count: int,
    query: NDArray[np.uint32],
    k: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]: ...
def kernel_bm25(
    offsets: NDArray[np.int64],
    documents: NDArray[np.uint32],
    counts: NDArray[np.uint32],
    lengths: NDArray[np.uint32],
    query: NDArray[np.uint32],
    k: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]: ...

@final
class StoreHandle:
    def __new__(
        cls,
        path: str | PathLike[str] | None,
        *,
        read_only: bool,
        holder: str,
        synchronous_full: bool,
    ) -> StoreHandle: ...
    def namespaces(self) -> list[str]: ...
    def made_with(self, name: str) -> tuple[str, str] | None: ...
    def delete(self, name: str) -> None: ...
    def vacuum(self) -> None: ...
    def close(self) -> None: ...

@final
class MemoryHandle:
    def __new__(
        cls,
        store: StoreHandle,
        namespace: str,
        *,
        config: str,
        presets: Mapping[str, str],
        analyser: str,
        reindexing: bool,
    ) -> MemoryHandle: ...
    def add(self, batch: Sequence[tuple[Any, ...]]) -> dict[str, Any]: ...
    def journal(self, turns: Sequence[Any]) -> tuple[list[int], dict[str, Any]]: ...
    def complete_pending(self, batch: Sequence[tuple[int, tuple[Any, ...]]]) -> dict[str, Any]: ...
    def pending(self) -> list[int]: ...
    def begin_reindex(self) -> None: ...
    def relate(self, newer: int, relation: str, older: int) -> dict[str, Any]: ...
    def delete(self, interaction_id: int) -> None: ...
    def delete_all(self) -> None: ...
    def get(self, interaction_id: int) -> dict[str, Any]: ...
    def find_external(self, external_id: str) -> int | None: ...
    def page(self, first: int, limit: int) -> list[dict[str, Any]]: ...
    def history(self, interaction_id: int) -> list[dict[str, Any]]: ...
    def explain(self, interaction_id: int) -> dict[str, Any]: ...
    def stats(self) -> dict[str, Any]: ...
    def digest(self) -> str: ...
    def speakers(self) -> list[str]: ...
    def newest_time(self) -> int | None: ...
    def len(self) -> int: ...
    def count_tokens(self, text: str) -> int: ...
    def recall(
        self,
        query: tuple[Any, ...],
        *,
        limit: int | None,
        preset: str | None,
        filters: Mapping[str, Any] | None,
        trace: bool,
    ) -> dict[str, Any]: ...
    def render(
        self,
        query: tuple[Any, ...],
        *,
        max_tokens: int | None,
        include_active: bool,
        limit: int | None,
        preset: str | None,
        filters: Mapping[str, Any] | None,
    ) -> tuple[str, list[int], int]: ...
    def close(self) -> None: ...
