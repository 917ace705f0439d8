"""Approximate search over full segments of a memory's vectors, by ``hnswlib``.

Each segment, a range of ids all of whose turns are there, gets one graph: built once, in
id order, on one thread, from a fixed seed, so that the same turns give the same bytes.
The core says which segments there are, scores what the graphs find exactly, and scans
every vector outside them. Files lie beside the store; one that does not match its
checksum, or the vectors of today, is built anew.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ebbtide import _core
from ebbtide.threads import submitted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Graphs", "erase"]

_log = logging.getLogger(__name__)

_LINKS = 64
"""Neighbours of a vector in the graph (``M``)."""
_BREADTH = 200
"""Vectors kept in sight while one is put in (``ef_construction``)."""
_SHARED = 4
"""Segments from which on a second thread helps to search them."""
_SEED = 100
"""Of every segment's layers."""
_SCALE = 32767.0


class Graphs:
    """The graphs of one memory. Safe to share between threads."""

    def __init__(
        self,
        handle: _core.MemoryHandle,
        namespace: str,
        path: Path | None,
        config: Mapping[str, Any],
    ) -> None:
        """Nothing is read or built yet.

        Args:
            handle: The memory.
            namespace: Its name in the store.
            path: The store file; None for a store in memory, whose graphs are kept
                in memory only.
            config: The ``[retrieval]`` section.
        """
        self._handle = handle
        self._folder = None if path is None else _folder(path, namespace)
        self._size = int(config["ann_segment"])
        self._breadth = int(config["ann_ef"])
        self._hits = int(config["ann_hits"])
        self._built: dict[int, _Segment] = {}
        self._lock = threading.Lock()
        self._library = _UNSEEN

    @property
    def state(self) -> dict[str, Any]:
        """``segments`` searched by graph, and whether ``hnswlib`` is ``installed``."""
        segments = self._handle.segments()
        installed = self._hnswlib() is not None
        return {"segments": len(segments) if installed else 0, "installed": installed}

    def settle(self, *, writable: bool = True) -> None:
        """Follow what was written: drop graphs of erased turns, build those of new segments.

        Args:
            writable: Whether files may be removed and written.
        """
        with self._lock:
            wanted = self._handle.segments()
            kept = {first: s for first, s in self._built.items() if first in wanted}
            if writable:
                self._remove_files(wanted)
            library = self._hnswlib() if wanted else None
            if library is not None:
                for first in wanted:
                    if first not in kept:
                        kept[first] = self._segment(library, first, writable)
            # Replaced, never changed: a search under way keeps what it has.
            self._built = dict(sorted(kept.items()))

    def sweep(self) -> None:
        """Remove files of segments that are none: a process may have ended amid an erasure."""
        with self._lock:
            self._remove_files(self._handle.segments())

    def forget(self) -> None:
        """Let every graph go: the vectors are about to change."""
        with self._lock:
            self._built = {}
            self._remove_files([])

    def search(
        self, vector: NDArray[np.float32], *, writable: bool
    ) -> tuple[list[tuple[int, int]], list[int]] | None:
        """What the graphs find for a question; None where there are none.

        Args:
            vector: float32 [d], of any length but 0.
            writable: As for :meth:`settle`.

        Returns:
            The ranges of ids searched (first, past the last), and the ids found.
        """
        if self._handle.segments() != list(self._built):
            self.settle(writable=writable)
        segments = self._built
        if not segments or not vector.any():
            return None
        import numpy as np

        # What is near to a question is spread over many segments; scoring it takes its time.
        wanted = max(self._hits, -(-self._breadth // len(segments)))
        ranges = [(first, first + self._size) for first in segments]
        unit = vector / np.float32(np.linalg.norm(vector))
        return ranges, _search(list(segments.values()), unit, wanted)

    def _hnswlib(self) -> Any:
        if self._library is _UNSEEN:
            try:
                import hnswlib
            except ImportError:
                hnswlib = None
                _log.info(
                    "hnswlib is not installed: every vector is compared; "
                    "for large memories: pip install 'ebbtide[ann]'",
                    extra={"event": "graph.unavailable"},
                )
            self._library = hnswlib
        return self._library

    def _segment(self, library: Any, first: int, writable: bool) -> _Segment:
        import numpy as np

        owners, vectors = self._handle.segment_vectors(first)
        key = _fingerprint(vectors, owners)
        index = library.Index(space="ip", dim=vectors.shape[1])
        file = None if self._folder is None else self._folder / f"{self._name(first)}.bin"
        if file is None or not _load(index, file, key, len(owners)):
            last = first + self._size - 1
            fields = {"event": "graph.built", "first": first, "last": last}
            _log.info("building the graph of turns %d to %d", first, last, extra=fields)
            index.init_index(
                max_elements=len(owners), M=_LINKS, ef_construction=_BREADTH, random_seed=_SEED
            )
            labels = np.arange(len(owners))
            index.add_items(vectors.astype(np.float32) / _SCALE, labels, num_threads=1)
            if file is not None and writable:
                _save(index, file, key)
        index.set_ef(self._breadth)
        index.set_num_threads(1)
        return _Segment(index, owners)

    def _name(self, first: int) -> str:
        return f"segment-{first:012d}-{self._size}"

    def _remove_files(self, wanted: list[int]) -> None:
        if self._folder is None or not self._folder.is_dir():
            return
        names = {self._name(first) for first in wanted}
        for file in list(self._folder.iterdir()):
            # A folder is none of ours.
            if file.name.split(".")[0] in names or (file.is_dir() and not file.is_symlink()):
                continue
            try:
                file.unlink(missing_ok=True)
            except OSError as error:
                # What the memory was asked for is committed; the next opening tries again.
                fields = {"event": "graph.unremoved", "path": str(file)}
                _log.warning("the graph %s could not be removed: %s", file, error, extra=fields)


class _Segment:
    """A built graph and the turn of each of its vectors."""

    def __init__(self, index: Any, owners: NDArray[np.uint64]) -> None:
        self._index = index
        self._owners = owners

    def search(self, unit: NDArray[np.float32], wanted: int) -> list[int]:
        """Ids of the turns of the nearest vectors, each once."""
        import numpy as np

        labels, _ = self._index.knn_query(unit, k=min(wanted, len(self._owners)), num_threads=1)
        found: list[int] = np.unique(self._owners[labels[0]]).tolist()
        return found


def _search(segments: Sequence[_Segment], unit: NDArray[np.float32], wanted: int) -> list[int]:
    """What each segment finds, in the order of the segments; from some on, by two threads."""
    found: list[list[int]] = [[] for _ in segments]
    places = iter(range(len(segments)))

    def take() -> None:
        for place in places:
            found[place] = segments[place].search(unit, wanted)

    if len(segments) < _SHARED:
        take()
    else:
        from concurrent.futures import ThreadPoolExecutor

        # Each takes the next segment; hnswlib lets the other thread run meanwhile.
        with ThreadPoolExecutor(1) as helper:
            helped = submitted(helper, take)
            take()
            helped.result()
    return [i for ids in found for i in ids]


_UNSEEN = object()


def erase(path: Path, namespace: str) -> None:
    """Remove the graph files of a memory that was erased."""
    shutil.rmtree(_folder(path, namespace), ignore_errors=True)


def _folder(path: Path, namespace: str) -> Path:
    # A name may hold anything; its hash is a file name everywhere.
    name = hashlib.sha256(namespace.encode("utf-8")).hexdigest()[:16]
    return path.with_name(f"{path.name}.ann") / name


def _fingerprint(vectors: NDArray[np.int16], owners: NDArray[np.uint64]) -> str:
    """Of what a graph is built from; equal ones make equal graphs."""
    settings = f"hnsw;M={_LINKS};ef={_BREADTH};seed={_SEED};shape={vectors.shape};"
    hashed = hashlib.sha256(settings.encode())
    hashed.update(owners.astype("<u8").tobytes())
    hashed.update(vectors.astype("<i2").tobytes())
    return hashed.hexdigest()


def _checksum(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _load(index: Any, file: Path, fingerprint: str, count: int) -> bool:
    """Whether the file held the graph of these vectors, unharmed; then it is loaded."""
    try:
        said = json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))
        if said != {"fingerprint": fingerprint, "sha256": _checksum(file)}:
            return False
    except (OSError, ValueError):
        return False
    index.load_index(str(file), max_elements=count)
    return True


def _save(index: Any, file: Path, fingerprint: str) -> None:
    """Write the graph, then what says that it is whole."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        index.save_index(str(part))
        said = {"fingerprint": fingerprint, "sha256": _checksum(part)}
        part.replace(file)
        file.with_suffix(".json").write_text(json.dumps(said), encoding="utf-8")
    except (OSError, RuntimeError) as error:
        # A graph that cannot be kept is built again; the memory itself is whole.
        fields = {"event": "graph.unsaved", "path": str(file)}
        _log.warning("the graph %s could not be saved: %s", file, error, extra=fields)
